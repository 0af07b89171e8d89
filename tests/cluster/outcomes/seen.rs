//! The results of one outcome, in Tekton's objects and in the execution.

use serde_json::Value;
use wfe_testkit::{Change, Observed, World};
use wfe_tests::outcomes::Play;
use wfe_tests::stable;

use super::stage::{RUN, SECRET};
use crate::expect::{condition, text};

/// The maximum length of a summary in the specification, in characters.
const SUMMARY: usize = 1000;

/// The results of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// The name of the outcome.
    pub(super) play: &'static str,
    /// What happens in this outcome.
    pub(super) about: &'static str,
    /// The reason of the PipelineRun.
    pub(super) run: String,
    /// The reasons of the run's tasks, in the order of their creation.
    pub(super) tasks: String,
    /// The status and the reason of the condition `Started`.
    pub(super) started: String,
    /// The phase.
    pub(super) phase: String,
    /// `failureDetails.reason`.
    pub(super) reason: String,
    /// `failureDetails.wasExecutionFailure`.
    pub(super) executed: bool,
    /// `failureDetails.failedTaskName`.
    pub(super) task: String,
    /// `failureDetails.failedTaskIndex`.
    pub(super) index: i64,
    /// `failureDetails.failedStepName`.
    pub(super) step: Option<String>,
    /// `failureDetails.exitCode`.
    pub(super) exit: Option<i64>,
    /// `failureDetails.naturalLanguageSummary`, without the parts that change with every run.
    pub(super) summary: String,
    /// The reasons of the events about the execution.
    pub(super) events: Vec<String>,
    /// Violations of the rules that apply to every outcome.
    pub(super) broken: Vec<String>,
}

impl Seen {
    pub(super) fn new(world: &World, play: &Play, wfe: &Value, events: &[Value], changes: &[Observed]) -> Self {
        let details = &wfe["status"]["failureDetails"];
        let about_it = |event: &&Value| event["regarding"]["name"] == play.name;
        Self {
            play: play.name,
            about: play.about,
            run: run(changes),
            tasks: tasks(changes),
            started: condition(wfe, "Started"),
            phase: text(&wfe["status"]["phase"]).to_owned(),
            reason: text(&details["reason"]).to_owned(),
            executed: details["wasExecutionFailure"] == true,
            task: text(&details["failedTaskName"]).to_owned(),
            index: details["failedTaskIndex"].as_i64().unwrap_or_default(),
            step: details["failedStepName"].as_str().map(str::to_owned),
            exit: details["exitCode"].as_i64(),
            summary: timeless(&stable(world, text(&details["naturalLanguageSummary"]))),
            events: events.iter().filter(about_it).map(|event| text(&event["reason"]).to_owned()).collect(),
            broken: broken(wfe),
        }
    }

    /// Returns the status of the condition `Started`.
    pub(super) fn started_status(&self) -> &str {
        self.started.split(' ').next().unwrap_or_default()
    }
}

/// Checks the rules that apply to every ended execution.
fn broken(wfe: &Value) -> Vec<String> {
    let (status, details) = (&wfe["status"], &wfe["status"]["failureDetails"]);
    let mut broken = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            broken.push(what.to_owned());
        }
    };
    must(!status.to_string().contains(SECRET), "the value of a parameter is told");
    if status["phase"] == "Failed" {
        let summary = text(&details["naturalLanguageSummary"]);
        must(details["requiresManualReview"] == details["wasExecutionFailure"], "requiresManualReview differs");
        must(status["failureReason"] == details["message"], "failureReason is not the message");
        must(details["failedAt"] == status["completionTime"], "failedAt is not the completionTime");
        must(summary.chars().count() <= SUMMARY, "the summary is too long");
        must(!summary.is_empty(), "there is no summary");
    } else {
        must(details.is_null(), "there are failureDetails");
    }
    broken
}

/// Returns the last states of all objects of these kinds in the order of their creation, each with whether it is gone.
fn last_states<'a>(changes: &'a [Observed], kinds: &[&str]) -> Vec<(&'a Value, bool)> {
    let mut last: Vec<(&Value, bool)> = Vec::new();
    for change in changes.iter().filter(|change| kinds.contains(&change.kind.as_str())) {
        let uid = &change.object["metadata"]["uid"];
        let state = (&change.object, change.change == Change::Deleted);
        match last.iter_mut().find(|(object, _)| object["metadata"]["uid"] == *uid) {
            Some(known) => *known = state,
            None => last.push(state),
        }
    }
    last
}

/// Returns the reason of an object's condition, with a note if the object is gone.
fn reason((object, gone): (&Value, bool)) -> String {
    let reason = text(&object["status"]["conditions"][0]["reason"]);
    let reason = if reason.is_empty() { "none" } else { reason };
    if gone { format!("{reason}, then deleted") } else { reason.to_owned() }
}

fn run(changes: &[Observed]) -> String {
    let runs = last_states(changes, &["PipelineRun"]);
    let run = runs.into_iter().find(|(object, _)| object["metadata"]["name"] == RUN);
    run.map_or_else(|| "none".to_owned(), reason)
}

fn tasks(changes: &[Observed]) -> String {
    let made = last_states(changes, &["TaskRun", "CustomRun", "PipelineRun"]);
    let named = made.into_iter().filter_map(|state| {
        let name = text(&state.0["metadata"]["name"]).strip_prefix(RUN)?.strip_prefix('-')?;
        Some(format!("{name}: {}", reason(state)))
    });
    named.collect::<Vec<_>>().join("; ")
}

/// Replaces durations and times in a text.
fn timeless(text: &str) -> String {
    let belongs = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | ':' | '-' | '+');
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|one: char| one.is_ascii_digit()) {
        // If letters come before the digits, the word is a name.
        let inside = rest[..start].chars().next_back().is_some_and(belongs);
        let end = rest[start..].find(|one| !belongs(one)).map_or(rest.len(), |length| start + length);
        let word = rest[start..end].trim_end_matches(['.', ':']);
        out.push_str(&rest[..start]);
        out.push_str(match word {
            _ if inside => word,
            _ if is_duration(word) => "[duration]",
            _ if chrono::DateTime::parse_from_rfc3339(word).is_ok() => "[time]",
            _ => word,
        });
        rest = &rest[start + word.len()..];
    }
    out + rest
}

/// Returns whether a word is a Go duration, such as `1m30s`.
fn is_duration(word: &str) -> bool {
    let mut rest = word;
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|one: char| one.is_ascii_digit() || one == '.');
        let unit = ["ms", "h", "m", "s"].into_iter().find(|unit| number.starts_with(unit));
        match unit {
            Some(unit) if number.len() < rest.len() => rest = &number[unit.len()..],
            _ => return false,
        }
    }
    !word.is_empty()
}

#[test]
fn durations_and_times_are_replaced_and_names_are_not() {
    for (text, expected) in [
        ("failed after 1m30s, at 2026-01-01T00:00:00Z.", "failed after [duration], at [time]."),
        ("task 1 of 2 (\"apply-2s\") of wfe-1: 137, 8s.", "task 1 of 2 (\"apply-2s\") of wfe-1: 137, [duration]."),
        ("within \"8s\"", "within \"[duration]\""),
        ("0.5s", "[duration]"),
    ] {
        assert_eq!(timeless(text), expected);
    }
}
