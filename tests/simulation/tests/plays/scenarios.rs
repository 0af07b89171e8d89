//! Scenarios with one fault each: a plan, and a file with the replicas' writes and the final states. `UPDATE=1` writes
//! these files. Review them afterwards.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use wfe_simulation::plan::Plan;
use wfe_simulation::world::{How, play};

use super::on_all_processors;

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// Describes a play: each write with its time, the number of reads, and the final states. The Lease is left out.
fn tell(plan: &Plan) -> String {
    let outcome = play(plan, How { lines: true }).unwrap();
    let mut told = String::new();
    let mut reads = 0;
    for line in &outcome.lines {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (at, replica, method, uri, body) = (word(), word(), word(), word(), word());
        let path = uri.split('?').next().unwrap_or_default();
        if method == "GET" {
            reads += u32::from(!uri.contains("watch=true") && !path.contains("/leases"));
            continue;
        }
        if path.contains("/leases") {
            continue;
        }
        let object: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        let resource = path.split_once("/namespaces/").map_or(path, |(_, rest)| rest);
        let name = object["metadata"]["name"].as_str().filter(|_| method == "POST").unwrap_or_default();
        let phase = object["status"]["phase"].as_str().map(|phase| format!(" phase {phase}")).unwrap_or_default();
        let seconds: f64 = at.parse::<f64>().unwrap() / 1000.0;
        let line = format!("{seconds:>9.3} {replica} {method:<6} {resource} {name}{phase}");
        writeln!(told, "{}", line.trim_end()).unwrap();
    }
    writeln!(told, "{reads} reads").unwrap();
    for execution in &outcome.executions {
        writeln!(told, "{execution}").unwrap();
    }
    for violation in &outcome.violations {
        writeln!(told, "BROKEN: {violation}").unwrap();
    }
    told
}

#[test]
fn each_scenario_goes_as_it_is_told() {
    let update = std::env::var_os("UPDATE").is_some();
    let paths = std::fs::read_dir(scenarios()).unwrap().map(|entry| entry.unwrap().path());
    let plans: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    assert!(plans.len() > 10, "only {} scenarios", plans.len());
    let problems = Mutex::new(Vec::new());
    on_all_processors(plans.len(), |number| {
        let path = &plans[number];
        let (golden, told) = (path.with_extension("txt"), tell(&Plan::read(path).unwrap()));
        if update {
            std::fs::write(&golden, &told).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if told.contains("BROKEN") || told != expected {
            let differs: Vec<String> = diff(&expected, &told);
            let problem = format!("{}:\n{}", path.file_stem().unwrap().display(), differs.join("\n"));
            problems.lock().unwrap().push(problem);
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// Returns the expected lines that are missing (`-`), and the unexpected lines (`+`).
fn diff(expected: &str, told: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), told.lines().collect());
    let missing = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
    let added = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    missing.chain(added).collect()
}

#[test]
fn a_difference_is_shown_line_by_line() {
    assert_eq!(diff("a\nb\nc\n", "a\nx\nc\n"), ["- b", "+ x"]);
}
