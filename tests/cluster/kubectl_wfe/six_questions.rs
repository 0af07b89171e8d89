//! The six questions of a person on call. One command answers each of them, as the terminal shows.
//! `tests/golden/plugin` contains the answers at 80 and at 200 columns.

use std::fs;

use anyhow::{Result, ensure};
use chrono::DateTime;
use serde_json::{Value, json};
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{Operator, Outcome, Pipeline, Terminal, World, repository};

use super::Caller;
use crate::configuration::pause::{annotate_namespace, is_paused};
use crate::expect::condition;
use crate::schedules::{await_schedule, create};

const TIME: &str = "2026-01-02T03:04:05Z";

/// The questions, each with the exit code and the arguments of the command that answers it.
const QUESTIONS: [(&str, i32, &[&str]); 12] = [
    ("the-alert-names-a-number", 1, &["status"]),
    ("why-was-it-skipped", 1, &["status", "late"]),
    ("who-holds-it", 1, &["status", "node/worker-1"]),
    ("what-must-i-do", 1, &["status", "payment/deployment/cart"]),
    ("what-will-the-schedule-do", 1, &["schedule", "explain", "weekly"]),
    ("why-is-it-pending", 1, &["status", "paused"]),
    ("what-happened", 0, &["history", "node/worker-1"]),
    ("which-rules", 1, &["explain", "payment/deployment/cart"]),
    ("which-executions", 0, &["list"]),
    ("which-need-a-person", 1, &["list", "--needs-person"]),
    ("which-schedules", 0, &["schedule", "list"]),
    ("which-circuits", 0, &["circuits"]),
];

/// Lets an operator create the situation: a blocked target that has a schedule, a holder, and an execution that is
/// skipped because of the holder. Another execution waits for the end of a pause.
async fn night(world: &World) -> Result<Operator> {
    let half_way = Pipeline::new().task("drain", Outcome::Ok).task("restart", Outcome::Exit(3));
    let half_way = world.push_pipeline("half-way", &half_way).await?;
    let holds = world.push_pipeline("holds", &Pipeline::new().task("measure", Outcome::Hold)).await?;
    annotate_namespace(world, &world.system_namespace(), json!("upgrade, ask jo")).await?;
    let operator = world.operator().start().await?;
    world.wfe("restart").target("payment/deployment/cart").workflow("restart").image(&half_way).create().await?;
    world.wfe("cleanup").target("node/worker-1").workflow("disk-cleanup").image(&holds).create().await?;
    world.await_wfe("cleanup", "shows its task", |wfe| wfe["status"]["summary"] == "Task 1/1").await?;
    world.wfe("late").target("node/worker-1").workflow("disk-cleanup").image(&holds).create().await?;
    let paused = format!("{}/deployment/web", world.system_namespace());
    world.wfe("paused").target(&paused).workflow("restart").image(&half_way).create().await?;
    world.await_phase("late", "Skipped").await?;
    world.await_wfe("restart", "blocks", |wfe| condition(wfe, "Blocked").starts_with("True")).await?;
    create(world, "weekly", "payment/deployment/cart", &half_way, &json!({"interval": "168h"})).await?;
    let would_be_held = |schedule: &Value| condition(schedule, "Held") == "False WouldBeHeld";
    await_schedule(world, "weekly", "would be held", would_be_held).await?;
    world.await_wfe("paused", "waits", is_paused).await?;
    Ok(operator)
}

/// Replaces text that varies between runs: names by text of the same width, all times by the same time, and durations
/// in minutes and seconds by `Ns`.
fn masked(screen: &str, world: &World) -> String {
    let mut shown = screen.replace(world.namespace(), &"n".repeat(world.namespace().len()));
    for at in 0..shown.len() {
        let is_time = |it: &str| it.starts_with("20") && DateTime::parse_from_rfc3339(it).is_ok();
        if shown.get(at..at + TIME.len()).is_some_and(is_time) {
            shown.replace_range(at..at + TIME.len(), TIME);
        }
    }
    let is_span = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_digit())
            && word.ends_with('s')
            && word.chars().all(|it| it.is_ascii_digit() || "ms".contains(it))
    };
    let mut spans = String::new();
    for word in shown.split_inclusive(|it: char| !it.is_alphanumeric()) {
        let bare = word.trim_end_matches(|it: char| !it.is_alphanumeric());
        spans.push_str(&if is_span(bare) { word.replacen(bare, "Ns", 1) } else { word.to_owned() });
    }
    spans.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Returns the words of an answer. Line breaks are ignored, because they depend on the length of an age. The order of a
/// list is ignored too, because it depends on the second in which each object was created.
fn words_of<'a>(answer: &'a str, command: &[&str]) -> Vec<&'a str> {
    let mut words: Vec<&str> = answer.split_whitespace().collect();
    if command == ["list"] {
        words.sort_unstable();
    }
    words
}

#[tokio::test]
async fn each_has_one_command_that_answers_it_on_narrow_and_wide_terminals() -> Result<()> {
    let world = World::new("night").await?;
    let _operator = night(&world).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let golden = repository().join("tests/golden/plugin");
    let mut differ = Vec::new();
    for (question, code, words) in QUESTIONS {
        for columns in [80, 200] {
            let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
            command.args(words).env("KUBECONFIG", &jo.kubeconfig);
            // The list of schedules does not depend on the operator.
            if words != ["schedule", "list"] {
                command.args(jo.places());
            }
            command.env("NO_COLOR", "1");
            let terminal = Terminal::start_wide(command, columns)?;
            let (status, screen) = terminal.ended().await?;
            let shown = format!("$ kubectl wfe {}\n{}", words.join(" "), masked(&screen, &world));
            ensure!(status.code() == Some(code), "{question}: {status}, not {code}:\n{shown}");
            let too_long = shown.lines().find(|line| line.chars().count() > columns.into());
            ensure!(too_long.is_none(), "{question}: longer than {columns} columns: {too_long:?}");
            let path = golden.join(format!("{question}-{columns}.txt"));
            if std::env::var_os("WFE_WRITE_GOLDEN").is_some_and(|value| value == "1") {
                fs::write(&path, &shown)?;
            } else if words_of(&fs::read_to_string(&path).unwrap_or_default(), words) != words_of(&shown, words) {
                differ.push(format!("{}:\n{shown}", path.display()));
            }
        }
    }
    ensure!(differ.is_empty(), "where the answers are right, `make golden` takes them over:\n{}", differ.join("\n"));
    world.close().await
}
