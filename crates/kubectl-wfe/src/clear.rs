//! `kubectl wfe clear`: finds what blocks a target, shows it, and sets `spec.clearance` on it in the caller's own name.

use std::io::{IsTerminal, Write, stdin, stdout};

use anyhow::{Context, Result, bail};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_core::ending::{Remediation, Skip};
use wfe_core::explain::Judgement;
use wfe_core::rules::Verdict;
use wfe_operator::client::{CallError, Verb};

use crate::cli::ClearArgs;
use crate::explain::render_answer;
use crate::view::{Lookout, target};

/// Runs the command.
pub(crate) async fn run(args: ClearArgs) -> Result<()> {
    let target = target(&args.target)?;
    let lookout = Lookout::open(&args.view).await?;
    let candidate = lookout.hypothetical(&target, &args.view.workflow)?;
    let seen = lookout.look(Some(&candidate)).await?;
    let answer = seen.answer(&seen.record(&candidate)?)?;
    let Some(blocker) = answer.judgement.as_ref().and_then(blocker) else {
        println!("{target}: there is no block to clear, and nothing was written.\n");
        print!("{}", render_answer(&format!("a new execution on {target}"), target.as_str(), &answer));
        return Ok(());
    };
    let object = seen.of_uid(&blocker.execution.uid).context("what blocks has gone meanwhile; look again")?;
    if object.data["spec"]["clearance"].is_object() {
        bail!(
            "{} blocks {target} although it has a spec.clearance, which cannot be set a second time; see its condition \
             ClearanceIneffective, then delete it or run another workflow with recoveryOf: {}",
            blocker.execution,
            blocker.execution.name
        );
    }
    println!("{}", render_block(target.as_str(), blocker, object));
    if !args.yes && !confirmed()? {
        println!("Nothing was written.");
        return Ok(());
    }
    let user = lookout.who_am_i().await?;
    let patch = patch(object, &args.reason, &user);
    let api = lookout.cluster.executions_in(&blocker.execution.namespace);
    let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
    let request = api.patch(&blocker.execution.name, &params, &patch);
    match lookout.cluster.call(Verb::Patch, "workflowexecutions", request).await {
        Ok(_) => {
            println!(
                "Cleared {} as {user}. The operator records it in status.clearance; those that were skipped stay so, so \
                 create a new WorkflowExecution.",
                blocker.execution
            );
            Ok(())
        }
        Err(error) => bail!("cannot clear {}: {}", blocker.execution, refused(&error)),
    }
}

/// Returns what a clearance would lift, where that is what decides.
fn blocker(judgement: &Judgement) -> Option<&Remediation> {
    match &judgement.verdict {
        Verdict::Skip {
            skip: Skip::PreviousExecutionFailed { failed: past, .. } | Skip::ExhaustedRetries { latest: past, .. },
            ..
        } => Some(past),
        _ => None,
    }
}

/// Shows what a clearance would lift.
fn render_block(target: &str, blocker: &Remediation, object: &DynamicObject) -> String {
    let details = &object.data["status"]["failureDetails"];
    let said = |key: &str| details[key].as_str().unwrap_or("(its status does not say)");
    let when = blocker.completed_at.format("%Y-%m-%dT%H:%M:%SZ");
    format!(
        "{target} is blocked by {}\n\n  workflow     {}\n  failed       {}\n  reason       {}\n  why          {}\n\n\
         Clearing it says that what it, and all before it on this target, left behind is in order.",
        blocker.execution,
        blocker.workflow_id,
        if blocker.is_dated { when.to_string() } else { "at a time that its status does not say".to_owned() },
        said("reason"),
        said("message"),
    )
}

/// Makes the patch: refused if the object is another one, or has changed, since it was shown.
fn patch(object: &DynamicObject, reason: &str, user: &str) -> Value {
    json!({
        "metadata": {"uid": object.metadata.uid, "resourceVersion": object.metadata.resource_version},
        "spec": {"clearance": {"reason": reason, "clearedBy": user}},
    })
}

fn confirmed() -> Result<bool> {
    if !stdin().is_terminal() {
        bail!("there is nobody to ask on this input, and nothing was written; run it on a terminal, or add --yes");
    }
    print!("Clear it? [y/N] ");
    stdout().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Says why a clearance was not accepted, and what to do.
fn refused(error: &CallError) -> String {
    let CallError::Refused(status) = error else {
        return format!("{error}; whether it was written is not known: look again with kubectl wfe explain");
    };
    let is_another = status.code == 422 && status.message.contains("metadata.uid");
    match status.code {
        404 | 409 => "it has changed or gone since it was shown, and nothing was written; look again".to_owned(),
        _ if is_another => "another one has its name now, and nothing was written; look again".to_owned(),
        403 => format!(
            "{}; ask for the rights to patch workflowexecutions and to update workflowexecutions/clearance",
            status.message
        ),
        _ => format!("{}; nothing was written", status.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wfe_core::name::{ExecutionId, Uid};

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
        let blocker = Remediation {
            execution: ExecutionId { namespace: "ns".into(), name: "a".into(), uid: Uid::new("u") },
            workflow_id: "scale".into(),
            completed_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            completed: false,
            is_dated: true,
        };
        let text = render_block("node/n", &blocker, &object());
        for part in ["node/n is blocked by ns/a", "scale", "2026-01-02T03:04:05Z", "TaskFailed", "exit 1"] {
            assert!(text.contains(part), "{part}: {text}");
        }
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
    fn a_change_meanwhile_says_to_look_again() {
        let refusal = |code, message: &str| {
            let status = kube::core::Status { code, message: message.to_owned(), ..Default::default() };
            refused(&CallError::Refused(Box::new(status)))
        };
        for (code, message) in [(409, "the object has been modified"), (422, "metadata.uid: field is immutable")] {
            assert!(refusal(code, message).ends_with("look again"), "{code}");
        }
        assert!(refusal(403, "may not clear").contains("workflowexecutions/clearance"));
    }
}
