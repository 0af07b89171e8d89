//! Tests of whole scenarios. The output of the shipped ones is compared with golden files, which `UPDATE=1` writes
//! anew.

mod from_cluster;
mod like_explain;
mod mistakes;

use std::fs;
use std::path::{Path, PathBuf};

use super::story::Story;
use super::*;

pub(super) use like_explain::Mirror;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn scenario(text: &str) -> Scenario {
    Scenario::read(text, Path::new("")).unwrap_or_else(|fault| panic!("{fault:?} in {text}"))
}

fn told(text: &str) -> Story {
    let scenario = scenario(text);
    let policy = scenario.policy(None).unwrap();
    Play::new(&scenario, &policy).play(A_DAY, true).unwrap()
}

/// Returns the lines of a story, with single spaces.
fn lines(text: &str) -> Vec<String> {
    let story = told(text);
    let single = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    Simulation(&story).to_string().lines().map(single).collect()
}

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(CRATE).join("../../config/scenarios");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "yaml"));
    files.sort();
    files
}

#[test]
fn the_scenarios_that_ship_are_played_as_recorded() {
    let files = shipped();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let scenario = scenario(&fs::read_to_string(&file).unwrap());
        let policy = scenario.policy(None).unwrap();
        let has_end = !scenario.schedules.is_empty();
        let until = if has_end { Duration::from_hours(1) } else { A_DAY };
        let story = Play::new(&scenario, &policy).play(until, !has_end).unwrap();
        let told = Simulation(&story).to_string();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let golden = Path::new(CRATE).join("tests/simulate").join(format!("{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&golden, &told).unwrap();
        }
        let recorded = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(told, recorded, "{name} is played differently; UPDATE=1 records it");
        let again = Play::new(&scenario, &policy).play(until, !has_end).unwrap();
        assert_eq!(Simulation(&again).to_string(), told, "{name}: the same file, the same bytes");
    }
}

/// The table in docs/schedules.md, which the simulation of whole replicas plays too.
#[test]
fn a_schedule_that_always_fails_runs_as_often_in_a_day_as_the_page_on_schedules_says() {
    for (interval, runs) in [("5s", 544), ("60s", 49)] {
        let story = told(&format!(
            "workflows: {{w: {{fails: [{{as: ConfigurationError}}]}}}}\n\
             schedules:\n- {{spec: {{interval: {interval}, template: {{spec: {{targetResource: node/n, \
             workflowRef: {{workflowId: w}}}}}}}}}}\n"
        ));
        assert_eq!(story.totals.runs, runs, "{interval}");
    }
}

/// Without early removal, each execution would make a play slower.
#[test]
fn removing_ended_executions_early_changes_nothing() {
    for file in shipped() {
        let scenario = scenario(&fs::read_to_string(&file).unwrap());
        let policy = scenario.policy(None).unwrap();
        let until = Duration::from_hours(3);
        let removes = Play::new(&scenario, &policy);
        let mut keeps = Play::new(&scenario, &policy);
        keeps.policy = policy.clone();
        let [removes, keeps] = [removes, keeps].map(|play| play.play(until, false).unwrap());
        assert_eq!(Simulation(&removes).to_string(), Simulation(&keeps).to_string(), "{}", file.display());
    }
}

#[test]
fn people_cancel_pause_and_resume() {
    let lines = lines(
        "workflows: {w: {takes: 10m}}\n\
         arrive: [{workflow: w, on: a/deployment/x, namespace: a}, {workflow: w, on: node/n, at: 5m}]\n\
         people: [{at: 1m, cancel: a/w-1}, {at: 2m, pause: all}, {at: 7m, resume: all}, {at: 8m, cancel: a/w-1}]\n",
    );
    for said in [
        "1m00 a/w-1 person cancels it",
        "1m00 a/deployment/x failed w-1: Cancelled half way: BLOCKED, needs a person",
        "7m00 node/n runs w-1",
        "8m00 a/w-1 person asks to cancel it, but it does not exist any more",
        "runs 2 | failed 1 | skipped 0 | needs a person: 1 target",
    ] {
        assert!(lines.iter().any(|line| line == said), "{said} in {lines:#?}");
    }
}

#[test]
fn runs_end_at_their_time_out_and_every_nth_and_first_attempts_fail() {
    let lines = lines(
        "workflows:\n  long: {takes: 1h}\n  third: {takes: 1s, fails: [{every: 3, as: ResourceExhausted}]}\n  \
         twice: {takes: 1s, fails: [{attempts: 2, as: ResourceExhausted, results: {statusCode: \"503\"}}]}\n\
         policy: {cooldown-period: 0s}\n\
         arrive:\n- {workflow: long, on: node/a, timeout: 5m}\n- {workflow: third, on: node/b, every: 20m, times: 4}\n\
         - {workflow: twice, on: node/c, retry: {retryWhen: statusCode == 503}}\n",
    );
    for said in [
        "5m00 node/a failed long-1: DeadlineExceeded half way: BLOCKED, needs a person",
        "40m00 node/b failed third-3: ResourceExhausted, 1 of 5, next 41m00",
        "0m01 node/c waits twice-1: ResourceExhausted, attempt 2 of 3, next 0m03",
        "0m03 node/c runs twice-1: attempt 3 of 3",
    ] {
        assert!(lines.iter().any(|line| line == said), "{said} in {lines:#?}");
    }
}

#[test]
fn a_schedule_that_keeps_failing_is_analysed() {
    let story = told(
        "workflows: {w: {fails: [{as: ImagePullBackOff, says: unauthorized}]}}\n\
         schedules: [{spec: {interval: 5m, template: {spec: {targetResource: node/n, workflowRef: {workflowId: w}}}}}]\n",
    );
    let triage = story.timeline.lines.iter().find(|line| line.what == "triage").unwrap();
    assert!(triage.why.starts_with("FileFix: the registry denies the pull"), "{triage:?}");
    assert!(!story.totals.needs_a_person());
}

#[test]
fn the_last_line_of_a_paused_schedule_names_the_command_that_ends_it() {
    let clears: Vec<String> = (1..40).map(|nth| format!("{{at: {nth}m, clear: node/n}}")).collect();
    let story = told(&format!(
        "workflows: {{w: {{takes: 30s, fails: [{{exitCode: 1}}]}}}}\n\
         schedules: [{{namespace: ops, name: nightly, \
         spec: {{interval: 5m, template: {{spec: {{targetResource: node/n, workflowRef: {{workflowId: w}}}}}}}}}}]\n\
         people: [{}]\n",
        clears.join(", ")
    ));
    let last = story.timeline.lines.last().unwrap();
    let command = "kubectl wfe schedule resume nightly -n ops --reason '...'";
    assert_eq!(
        (&*last.subject, last.what, &*last.why),
        ("ops/nightly", "paused", command),
        "{:?}",
        story.timeline.lines
    );
    assert_eq!(story.totals.people(), "1 schedule");
}

#[test]
fn the_answer_for_programs_has_a_kind_events_and_totals() {
    let story = told("arrive: [{workflow: w, on: node/n, times: 3}]\n");
    let answer = serde_json::to_value(Simulation(&story)).unwrap();
    let event = &answer["events"][1];
    assert_eq!((&event["what"], &event["times"], &event["afterSeconds"]), (&"skipped".into(), &2.into(), &0.into()));
    assert_eq!((&answer["totals"]["runs"], &answer["totals"]["skipped"]["busy"]), (&1.into(), &2.into()));
    assert_eq!(event["time"], "2026-06-01T00:00:00Z");
}

#[test]
fn values_of_a_key_are_compared_column_by_column() {
    let text = fs::read_to_string(Path::new(CRATE).join("../../config/scenarios/backoff.yaml")).unwrap();
    let values = ["3", "8"].map(str::to_owned);
    let compared = Comparison::of(&scenario(&text), "max-consecutive-failures", &values, A_DAY, true).unwrap();
    assert!(!compared.is_fine(), "with 3 the target is exhausted");
    assert_eq!(
        compared.to_string(),
        "max-consecutive-failures         3        8\n\
         runs                             3        7\n\
         failed                           3        7\n\
         skipped, backoff                 1       33\n\
         skipped, exhausted              36        0\n\
         needs a person            1 target  nothing\n\
         blocked for                  36m0s       0s\n\
         recovered after                  -        -\n"
    );
    let said = scenario::check_key("max-consecutive-failure").unwrap_err();
    assert!(said.ends_with("did you mean \"max-consecutive-failures\"?"), "{said}");
    let refused = Comparison::of(&scenario(&text), "cooldown-period", &["soon".to_owned()], A_DAY, true).unwrap_err();
    assert!(refused.to_string().starts_with("--compare: policy: cooldown-period: \"soon\" "), "{refused}");
}

/// Returns the bars and marks of a target, with the minutes of their beginning and end.
fn spans(story: Story, target: &str) -> Vec<String> {
    let start = story.start;
    let page = story.page("a file".to_owned(), None, Vec::new());
    let track = page.tracks.iter().find(|track| track.target == target).unwrap();
    let minute = |at: wfe_core::Time| (at - start).num_minutes();
    let shown = track.spans.iter().map(|it| format!("{} {}-{}", it.kind.name(), minute(it.from), minute(it.to)));
    shown.chain(track.needs_person.map(|since| format!("needs a person since {}", minute(since)))).collect()
}

#[test]
fn the_lanes_of_a_play_are_what_happens_on_its_targets() {
    let blocked = told(
        "workflows: {w: {takes: 2m, fails: [{from: 10m, to: 11m, exitCode: 1}]}, v: {takes: 1h}}\n\
         arrive: [{workflow: w, on: node/n, every: 5m, times: 4}, {workflow: v, on: node/m, at: 1m}]\n\
         people: [{at: 16m, clear: node/n}, {at: 17m, clear: node/n}]\n",
    );
    assert_eq!(
        spans(blocked, "node/n"),
        [
            "completed 0-2",
            "cooldown 2-7",
            "skipped 5-5",
            "failed 10-12",
            "skipped 15-15",
            "cleared 16-16",
            "blocked 12-16"
        ]
    );
    let retried = told(
        "workflows: {w: {takes: 2m, fails: [{as: ResourceExhausted}]}}\n\
         arrive: [{workflow: w, on: node/n, retry: {maxAttempts: 2, initialDelay: 3m}}]\n\
         policy: {max-consecutive-failures: \"1\"}\n",
    );
    assert_eq!(
        spans(retried, "node/n"),
        ["failed 0-0", "backoff 0-3", "failed 3-3", "blocked 3-3", "needs a person since 3"]
    );
    let held = told(
        "workflows: {w: {takes: 2m, fails: [{exitCode: 1}]}}\n\
         schedules: [{spec: {interval: 20m, template: {spec: {targetResource: node/n, workflowRef: {workflowId: w}}}}}]\n",
    );
    let held = spans(held, "node/n");
    assert_eq!(
        held.iter().map(|it| it.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["failed", "held", "blocked", "needs"]
    );
}

#[test]
fn the_page_of_a_play_is_the_same_each_time_and_a_script_in_a_name_stays_text() {
    let text = "workflows: {\"<script>alert(1)</script>\": {image: \"registry.example/w:1\", takes: 1m, fails: [{exitCode: 1, from: 1h}]}}\n\
        arrive: [{workflow: \"<script>alert(1)</script>\", on: \"node/n-{n}\", times: 70, targets: 70, every: 90s}]\n";
    let page = || told(text).page("<script>alert(2)</script>.yaml".to_owned(), None, Vec::new()).html();
    let html = page();
    assert_eq!(html, page());
    assert!(!html.contains("<script>alert") && html.contains("&lt;script&gt;alert(1)&lt;/script&gt;-1"), "{html}");
    assert_eq!((html.matches("<details class=\"lane\"").count(), html.matches("<script>").count()), (60, 1));
    assert!(
        html.contains("10 more targets have no lane here.") && html.contains("needs a person: 30 targets"),
        "{html}"
    );
    assert_eq!(html.matches("://").count(), html.matches("http://www.w3.org/").count(), "nothing is loaded");
}
