//! `kubectl wfe cancel`: shows what a cancellation does to the target, and sets `spec.cancellation` in the caller's own
//! name.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::api::{Api, DynamicObject, Patch};
use serde_json::{Value, json};
use tokio::time::Instant;
use wfe_api::conditions::{STARTED, SUCCEEDED};
use wfe_core::Time;
use wfe_core::ending::CANCELLED;
use wfe_view::call::{CallError, within};
use wfe_view::index::Kind;
use wfe_view::source::objects;

use crate::ask::{ask, somebody_is_there};
use crate::cli::{CancelArgs, ClusterArgs};
use crate::connection::{ANSWERS_WITHIN, Connection, by_us};
use crate::execution::{End, Following, Outcome, full_name, get, how_far, target};
use crate::moment::{since, span};
use crate::object::condition;
use crate::output::{line, note, output};
use crate::report::what_cancelling_did;

/// How long to wait for the end: the operator examines a run that was stopped for up to 45 s.
const ENDS_WITHIN: Duration = Duration::from_mins(1);
/// How often a write is tried. The operator writes the status of a running execution every five seconds at most, so a
/// second conflict in a row is rare.
const TRIES: usize = 5;

/// What a cancellation does to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The execution is undecided: it ends without a run.
    NoRun,
    /// Its run is stopped, and nothing of it is known to have run.
    NothingSeen,
    /// Its run is stopped after a step has run, in this attempt or an earlier one.
    Blocks,
}

/// Runs the command. Yes: the execution is cancelled, or had ended already.
pub(crate) async fn run(cluster: &ClusterArgs, args: &CancelArgs) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    let found = get(&connection, &args.name).await?;
    let name = full_name(&found);
    let mut out = output();
    let Some(effect) = Effect::of(&found) else {
        let end = End::of(&found).map_or_else(|| "is of a later version".to_owned(), |end| end.told());
        writeln!(out, "{}: {}; there is nothing to cancel, and nothing was written.", line(&name), line(&end))?;
        return Ok(true);
    };
    if let Some(already) = already(&found) {
        writeln!(out, "{}: {}; nothing was written.", line(&name), line(&already))?;
        return Ok(true);
    }
    let shown = write!(out, "{}\n\n", effect.told(&found, connection.now()));
    // With --yes the decision is made, and an output that cannot be written does not stop it.
    if !args.yes {
        shown?;
        ensure!(
            somebody_is_there(),
            "nothing was written: there is no terminal to ask on; run it on one, or add --yes"
        );
        if !ask("Cancel it?")? {
            writeln!(out, "Nothing was written.")?;
            return Ok(false);
        }
    }
    let user = write(&connection, found, effect, args).await?;
    let told = writeln!(out, "Cancelled {} as {}.", line(&name), line(&user));
    told.with_context(|| format!("{name} was cancelled, and that could not be shown"))?;
    if effect != Effect::NoRun {
        note("waiting until its run has stopped");
    }
    writeln!(out, "{}", line(&await_end(&connection, &args.name).await))?;
    Ok(true)
}

impl Effect {
    /// Reads the effect from a status. None if the execution has ended, or has an unknown phase of another version.
    fn of(object: &DynamicObject) -> Option<Self> {
        let status = &object.data["status"];
        match status["phase"].as_str() {
            None | Some("" | "Pending") => Some(Self::NoRun),
            Some("Running") => {
                let attempts = status["attempts"].as_array().into_iter().flatten();
                // An attempt that has not ended does not have the field.
                let mut ended = attempts.filter_map(|it| it["started"].as_str());
                let has_run = condition(object, STARTED).is_some_and(|it| it["status"] != "False");
                let has_run = has_run || ended.any(|started| started != "False");
                Some(if has_run { Self::Blocks } else { Self::NothingSeen })
            }
            Some(_) => None,
        }
    }

    /// Tells what the cancellation of an execution does.
    fn told(self, object: &DynamicObject, now: Time) -> String {
        let (name, target) = (full_name(object), target(object));
        let (name, target) = (line(&name), line(target));
        let status = &object.data["status"];
        let started = status["startTime"].as_str().and_then(|at| at.parse().ok());
        let run_for = started.map(|at| format!(" for {}", since(at, now))).unwrap_or_default();
        let run = &status["pipelineRunStatus"];
        let tasks = match (run["completedTasks"].as_u64(), run["totalTasks"].as_u64()) {
            (Some(done), Some(all)) => format!(", {done} of {all} tasks done"),
            _ => String::new(),
        };
        match self {
            Self::NoRun => format!(
                "{name} on {target} is not decided yet, and nothing of it has run.\n\nTo cancel it ends it as Failed, \
                 without a run. {target} is not blocked, and this failure does not count."
            ),
            Self::NothingSeen => format!(
                "{name} runs on {target}{run_for}{tasks}; no step of it is known to have run.\n\nTo cancel it stops its \
                 run. If no step has run by then, {target} is not blocked, and this failure does not count.\nIf one \
                 has, or nobody can tell, it BLOCKS {target} until somebody clears it."
            ),
            Self::Blocks => format!(
                "{name} runs on {target}{run_for}{tasks}; steps of it have run, or nobody can tell.\n\nTo cancel it stops \
                 its run, so {target} may be left half way. It BLOCKS {target} until somebody clears it."
            ),
        }
    }
}

/// Describes the cancellation that an execution has already: who set it, and why.
fn already(object: &DynamicObject) -> Option<String> {
    let cancellation = object.data["spec"]["cancellation"].as_object()?;
    let text = |key: &str| cancellation.get(key).and_then(Value::as_str).unwrap_or("somebody");
    let effect = what_cancelling_did(object).map(|said| format!("; it {said}")).unwrap_or_default();
    Some(format!("{} has cancelled it already: {}{effect}", text("requestedBy"), text("reason")))
}

/// Sets the cancellation, and returns the name of the caller. While the execution runs, its status changes often. After
/// a conflict the write is therefore repeated, as long as the effect is still the one that was shown.
async fn write(connection: &Connection, shown: DynamicObject, effect: Effect, args: &CancelArgs) -> Result<String> {
    let user = connection.who_am_i().await?;
    let name = full_name(&shown);
    let executions: Api<DynamicObject> = objects(&connection.client, Kind::Execution, Some(&connection.namespace));
    let mut found = shown.clone();
    for _ in 0..TRIES {
        let change = Patch::Merge(patch(&found, &args.reason, &user));
        match within(ANSWERS_WITHIN, executions.patch(&args.name, &by_us(), &change)).await {
            Ok(_) => return Ok(user),
            Err(error) if error.code() == 409 => {}
            Err(error) => bail!("cannot cancel {name}: {}", refused(&error)),
        }
        found = get(connection, &args.name).await.context("nothing was written")?;
        ensure!(
            found.metadata.uid == shown.metadata.uid && Effect::of(&found) == Some(effect) && already(&found).is_none(),
            "cannot cancel {name}: it has changed since it was shown, and nothing was written; cancel it again"
        );
    }
    bail!("cannot cancel {name}: it changed before each of {TRIES} writes, and nothing was written; cancel it again")
}

/// Makes the patch: it is refused if the object was replaced or has changed since it was read.
fn patch(object: &DynamicObject, reason: &str, user: &str) -> Value {
    json!({
        "metadata": {"uid": object.metadata.uid, "resourceVersion": object.metadata.resource_version},
        "spec": {"cancellation": {"reason": reason, "requestedBy": user}},
    })
}

/// Returns why a cancellation was refused, and what to do.
fn refused(error: &CallError) -> String {
    let CallError::Refused(status) = error else {
        return format!("{error}; whether it was written is not known: kubectl get wfe --output wide");
    };
    match status.code {
        403 => format!("{}; nothing was written; the ClusterRole wfe-cancel gives the rights", status.message),
        404 => "it has been deleted since it was shown, and nothing was written".to_owned(),
        _ => format!("{}; nothing was written", status.message),
    }
}

/// Waits until the execution has ended, and tells how. A failed read is no failure of the command: the cancellation is
/// stored.
async fn await_end(connection: &Connection, name: &str) -> String {
    let begun = Instant::now();
    let unseen = |error| format!("The cancellation stands; what it has done cannot be seen: {error:#}");
    let mut following = match Following::begin(connection, name).await {
        Ok(following) => following,
        Err(error) => return unseen(error),
    };
    loop {
        let seen = following.seen();
        if let Some(end) = End::of(seen) {
            return ended(seen, &end, begun.elapsed());
        }
        if let Some(said) = what_cancelling_did(seen) {
            return format!("The cancellation {said}.");
        }
        match following.changes(begun + ENDS_WITHIN).await {
            Ok(true) => {}
            Ok(false) => return unfinished(following.seen(), connection.now()),
            Err(error) => return unseen(error),
        }
    }
}

/// Tells how a cancelled execution has ended.
fn ended(object: &DynamicObject, end: &End, after: Duration) -> String {
    let is_cancelled = condition(object, SUCCEEDED).is_some_and(|it| it["reason"] == CANCELLED);
    let after = span(Duration::from_secs(after.as_secs()));
    let target = target(object);
    match end.outcome {
        Outcome::FailedNothingRan if is_cancelled => {
            format!("It ended after {after}: nothing of it ran, and {target} is not blocked by it.")
        }
        Outcome::FailedHalfWay if is_cancelled => {
            format!("It ended after {after}, half way. Look at {target}, then: kubectl wfe clear {target} --reason ...")
        }
        _ => format!("It ended by itself, before the cancellation: {}", end.told()),
    }
}

/// Tells what is known of a cancelled execution that has not ended in time.
fn unfinished(object: &DynamicObject, now: Time) -> String {
    format!(
        "It has not ended within {}: {}. Does an operator run? kubectl wfe wait {} waits on",
        span(ENDS_WITHIN),
        how_far(object, now),
        object.metadata.name.as_deref().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::tests::execution;

    fn started(status: &str) -> Value {
        json!({
            "phase": "Running", "target": "node/n", "startTime": "2026-01-02T03:04:05Z",
            "pipelineRunStatus": {"completedTasks": 1, "totalTasks": 2},
            "conditions": [{"type": "Started", "status": status}],
        })
    }

    #[test]
    fn the_effect_is_known_before_it_is_asked_for() {
        let attempts = |starts: Value| json!({"phase": "Running", "attempts": [{"attempt": 1, "started": starts}]});
        for (status, expected) in [
            (json!({}), Some(Effect::NoRun)),
            (json!({"phase": "Pending"}), Some(Effect::NoRun)),
            (json!({"phase": "Running"}), Some(Effect::NothingSeen)),
            (started("False"), Some(Effect::NothingSeen)),
            (started("True"), Some(Effect::Blocks)),
            (started("Unknown"), Some(Effect::Blocks)),
            (attempts(json!("False")), Some(Effect::NothingSeen)),
            (attempts(json!("True")), Some(Effect::Blocks)),
            (attempts(json!("Unknown")), Some(Effect::Blocks)),
            (attempts(Value::Null), Some(Effect::NothingSeen)),
            (json!({"phase": "Failed"}), None),
            (json!({"phase": "Skipped"}), None),
        ] {
            assert_eq!(Effect::of(&execution(&status)), expected, "{status}");
        }
    }

    #[test]
    fn each_effect_is_told() {
        let now = "2026-01-02T03:04:43Z".parse().unwrap();
        let told = |effect: Effect, status: &Value| effect.told(&execution(status), now);
        assert_eq!(
            told(Effect::NoRun, &json!({})),
            "ns/a on Node/n is not decided yet, and nothing of it has run.\n\nTo cancel it ends it as Failed, without a run. \
             Node/n is not blocked, and this failure does not count."
        );
        assert_eq!(
            told(Effect::NothingSeen, &json!({"phase": "Running", "target": "node/n"})),
            "ns/a runs on node/n; no step of it is known to have run.\n\nTo cancel it stops its run. If no step has run by \
             then, node/n is not blocked, and this failure does not count.\nIf one has, or nobody can tell, it BLOCKS node/n \
             until somebody clears it."
        );
        assert_eq!(
            told(Effect::Blocks, &started("True")),
            "ns/a runs on node/n for 38s, 1 of 2 tasks done; steps of it have run, or nobody can tell.\n\nTo cancel it stops \
             its run, so node/n may be left half way. It BLOCKS node/n until somebody clears it."
        );
    }

    #[test]
    fn the_end_is_told_with_what_to_do() {
        let failed = |ran: bool, reason: &str| {
            execution(&json!({
                "phase": "Failed", "target": "node/n",
                "failureDetails": {"reason": "Unknown", "message": "m", "wasExecutionFailure": ran},
                "conditions": [{"type": "Succeeded", "status": "False", "reason": reason}],
            }))
        };
        for (object, expected) in [
            (failed(false, "Cancelled"), "It ended after 3s: nothing of it ran, and node/n is not blocked by it."),
            (
                failed(true, "Cancelled"),
                "It ended after 3s, half way. Look at node/n, then: kubectl wfe clear node/n --reason ...",
            ),
            (failed(true, "Unknown"), "It ended by itself, before the cancellation: Failed half way: Unknown: m"),
        ] {
            let end = End::of(&object).unwrap();
            assert_eq!(ended(&object, &end, Duration::from_millis(3400)), expected);
        }
    }

    #[test]
    fn the_patch_holds_what_was_read() {
        let expected = json!({
            "metadata": {"uid": "u", "resourceVersion": "7"},
            "spec": {"cancellation": {"reason": "wrong cluster", "requestedBy": "jo"}},
        });
        assert_eq!(patch(&execution(&json!({})), "wrong cluster", "jo"), expected);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let refusal = |code| {
            let message = "may not".to_owned();
            refused(&CallError::Refused(Box::new(kube::core::Status { code, message, ..Default::default() })))
        };
        assert_eq!(refusal(403), "may not; nothing was written; the ClusterRole wfe-cancel gives the rights");
        assert_eq!(refusal(404), "it has been deleted since it was shown, and nothing was written");
        assert_eq!(refusal(422), "may not; nothing was written");
        assert!(refused(&CallError::TimedOut(ANSWERS_WITHIN)).contains("whether it was written is not known"));
    }
}
