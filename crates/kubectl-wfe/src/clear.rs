//! `kubectl wfe clear`: finds the block of a target, shows it, and sets `spec.clearance` in the caller's own name.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::api::{DynamicObject, Patch};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use wfe_core::ending::{Remediation, Skip};
use wfe_core::execution::{Clearance, Recorded};
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::target::Target;
use wfe_view::call::{CallError, within};
use wfe_view::observe::observe_clearance;

use crate::ask::{ask, somebody_is_there};
use crate::cli::{ClearArgs, ClusterArgs};
use crate::connection::{ANSWERS_WITHIN, by_us, words};
use crate::moment::shown;
use crate::output::{line, output};
use crate::report::{Report, Scope, what_clearing_did};
use crate::view::Lookout;

/// How long to wait for the operator to record the effect: it takes well under a second.
const RECORDED_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

/// Runs the command. Yes: the target is cleared, or has no block.
pub(crate) async fn run(cluster: &ClusterArgs, args: ClearArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let candidate = lookout.hypothetical(&args.target, args.workflow.as_deref())?;
    let mut seen = lookout.look_at(Some(&args.target), Some(&candidate)).await?;
    let record = seen.record(&candidate)?;
    lookout.read_owners(&mut seen, &record).await?;
    let (target, on) = (seen.target_of(&record)?, args.target.as_str());
    ensure!(
        target.executions.len() > 1,
        "no WorkflowExecution on {on} is known, so nothing blocks it; check the spelling: kubectl get wfe --all-namespaces"
    );
    let mut out = output();
    let scope = if args.workflow.is_some() { Scope::One } else { Scope::EachWorkflow };
    let fares = |target: &Target| Report::on(&seen, target, &record, None, scope);
    let blocks = seen.blocks(target);
    // A clearance of the newest block includes all older ones.
    let Some(newest) = blocks.first().and_then(Skip::remediation) else {
        write!(out, "{on}: there is no block to clear, and nothing was written.\n\n{}", fares(target))?;
        return Ok(true);
    };
    let blocker = &newest.execution;
    let object = seen.of_uid(&blocker.uid).context("what blocks has gone meanwhile; look again")?;
    ensure!(
        object.data["spec"]["clearance"].is_null(),
        "{blocker} blocks {on} although it has a spec.clearance, which cannot be set a second time; see its conditions \
         ClearanceIneffective and Unguarded. Where the policies are missing, it counts as soon as they are back; else run \
         another workflow with recoveryOf: {}",
        blocker.name
    );
    let lifted = blocks.iter().filter_map(|block| {
        let past = block.remediation()?;
        Some(render_block(on, block, past, seen.of_uid(&past.execution.uid)?) + "\n")
    });
    let shown = write!(
        out,
        "{}To clear {blocker} says that what it, and all before it on this target, left behind is in order.\n\
         After that, a new execution on it {}\n\n",
        lifted.collect::<String>(),
        fares(&with_clearance(target, &blocker.uid)).outlook()
    );
    // With --yes the decision is made, and an output that cannot be written does not stop it.
    if !args.yes {
        shown?;
        ensure!(
            somebody_is_there(),
            "nothing was written: there is no terminal to ask on; run it on one, or add --yes"
        );
        if !ask("Clear it?")? {
            writeln!(out, "Nothing was written.")?;
            return Ok(false);
        }
    }
    let user = write(&lookout, blocker, object, &args).await?;
    let told = write!(
        out,
        "Cleared {blocker} as {}. What was skipped stays so: create a new WorkflowExecution.\nThe clearance {}.\n",
        line(&user),
        line(&await_recorded(&lookout, blocker).await)
    );
    told.with_context(|| format!("{blocker} was cleared, and that could not be shown"))?;
    Ok(true)
}

/// Sets the clearance on the object as it was shown, and returns the name of the caller.
async fn write(lookout: &Lookout, blocker: &ExecutionId, seen: &DynamicObject, args: &ClearArgs) -> Result<String> {
    let user = lookout.who_am_i().await?;
    let (params, patch) = (by_us(), Patch::Merge(patch(seen, &args.reason, &user)));
    let executions = lookout.executions_in(&blocker.namespace);
    let request = executions.patch(&blocker.name, &params, &patch);
    if let Err(error) = within(ANSWERS_WITHIN, request).await {
        bail!("cannot clear {blocker}: {}", refused(&error, args.target.as_str()));
    }
    Ok(user)
}

/// Shows which block a clearance would lift.
fn render_block(target: &str, block: &Skip, past: &Remediation, object: &DynamicObject) -> String {
    let details = &object.data["status"]["failureDetails"];
    let said = |key: &str| line(details[key].as_str().unwrap_or("(its status does not say)"));
    let in_a_row = match block {
        Skip::ExhaustedRetries { failures, limit, .. } => {
            format!("\n  in a row     {failures} failed before anything ran; the limit is {limit}")
        }
        _ => String::new(),
    };
    format!(
        "{target} is blocked by {}, {}\n\n  workflow     {}\n  failed       {}{in_a_row}\n  reason       {}\n  why          {}\n",
        past.execution,
        block.reason(),
        line(&past.workflow_id),
        if past.is_dated { shown(past.completed_at) } else { "at a time that its status does not say".to_owned() },
        said("reason"),
        said("message"),
    )
}

/// Returns the target as it is after the clearance of an execution.
fn with_clearance(target: &Target, uid: &Uid) -> Target {
    let mut target = target.clone();
    if let Some(execution) = target.executions.get_mut(uid) {
        let (reason, cleared_by) = ("asked for".into(), "the caller".into());
        let clearance = Clearance { reason, cleared_by, recorded: Recorded::Not, unguarded: None };
        execution.clearance = Some(Box::new(clearance));
    }
    target
}

/// Makes the patch: it is refused if the object was replaced or has changed since it was shown.
fn patch(object: &DynamicObject, reason: &str, user: &str) -> Value {
    json!({
        "metadata": {"uid": object.metadata.uid, "resourceVersion": object.metadata.resource_version},
        "spec": {"clearance": {"reason": reason, "clearedBy": user}},
    })
}

/// Waits until the operator records the effect of the clearance, and describes it. A failed read is no failure of the
/// command: the clearance is stored.
async fn await_recorded(lookout: &Lookout, execution: &ExecutionId) -> String {
    let executions = lookout.executions_in(&execution.namespace);
    let deadline = Instant::now() + RECORDED_WITHIN;
    loop {
        let object = match within(ANSWERS_WITHIN, executions.get(&execution.name)).await {
            Ok(found) => found.object,
            Err(error) => return format!("stands; what it has done cannot be seen: {}", words(&error)),
        };
        let is_open = |it: &Clearance| it.recorded == Recorded::Not && !it.is_in_vain();
        let is_open = observe_clearance(&object.data).is_none_or(|clearance| is_open(&clearance));
        match what_clearing_did(&object) {
            Some(said) if !is_open => return said,
            _ if Instant::now() < deadline => sleep(PAUSE).await,
            _ => {
                let seconds = RECORDED_WITHIN.as_secs();
                return format!("stands, but no operator has recorded it within {seconds} s; does one run?");
            }
        }
    }
}

/// Returns why a clearance was refused, and what to do.
fn refused(error: &CallError, target: &str) -> String {
    let CallError::Refused(status) = error else {
        return format!("{error}; whether it was written is not known: kubectl wfe explain {target}");
    };
    let is_another = status.code == 422 && status.message.contains("metadata.uid");
    let again = format!("nothing was written; see what blocks now (kubectl wfe explain {target}), then clear again");
    match status.code {
        409 => format!("it has changed since it was shown, and {again}"),
        404 => format!("it has been deleted since it was shown, and {again}"),
        _ if is_another => format!("another one has its name now, and {again}"),
        403 => format!("{}; nothing was written; the ClusterRole wfe-clear gives the rights", status.message),
        _ => format!("{}; nothing was written", status.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> DynamicObject {
        let details = json!({"reason": "TaskFailed", "message": "exit 1"});
        serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
            "status": {"failureDetails": details},
        }))
        .unwrap()
    }

    #[test]
    fn what_is_lifted_is_shown() {
        let past = Remediation {
            execution: ExecutionId { namespace: "ns".into(), name: "a".into(), uid: Uid::new("u") },
            workflow_id: "scale".into(),
            completed_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            completed: false,
            is_dated: true,
        };
        let block = Skip::ExhaustedRetries { latest: past.clone(), failures: 6, limit: 5, until: None };
        assert_eq!(
            render_block("node/n", &block, &past, &object()),
            "node/n is blocked by ns/a, ExhaustedRetries\n\n  workflow     scale\n  failed       2026-01-02T03:04:05Z\n  \
             in a row     6 failed before anything ran; the limit is 5\n  reason       TaskFailed\n  why          exit 1\n"
        );
    }

    #[test]
    fn the_patch_holds_what_was_shown() {
        let expected = json!({
            "metadata": {"uid": "u", "resourceVersion": "7"},
            "spec": {"clearance": {"reason": "looked", "clearedBy": "jo"}},
        });
        assert_eq!(patch(&object(), "looked", "jo"), expected);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let refusal = |code, message: &str| {
            let status = kube::core::Status { code, message: message.to_owned(), ..Default::default() };
            refused(&CallError::Refused(Box::new(status)), "node/n")
        };
        for (code, message) in
            [(409, "the object has been modified"), (404, "not found"), (422, "metadata.uid: field is immutable")]
        {
            let said = refusal(code, message);
            assert!(said.contains("nothing was written") && said.contains("kubectl wfe explain node/n"), "{said}");
        }
        assert!(
            refusal(403, "may not clear").contains("may not clear; nothing was written; the ClusterRole wfe-clear")
        );
        assert!(
            refused(&CallError::TimedOut(Duration::from_secs(15)), "node/n")
                .contains("whether it was written is not known")
        );
    }
}
