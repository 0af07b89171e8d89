//! The report on a decided execution for a caller who may not list the other executions.

use kube::api::DynamicObject;
use wfe_api::conditions::BLOCKED;
use wfe_core::Time;
use wfe_core::execution::Execution;

use super::Report;
use super::about::About;
use crate::installation::Installation;

impl Report {
    /// Reports on the execution from its status, and says what was not seen, and why.
    pub(crate) fn alone(
        installation: &Installation,
        execution: &Execution,
        object: &DynamicObject,
        why: String,
        now: Time,
    ) -> Self {
        let about = About::of_object(installation, &execution.id.namespace, object, now);
        let mut report = Self::of_decided(&about, execution, object);
        if is_blocking(object) {
            report.tell_block(&about, execution, object);
        }
        let unseen = format!("other executions and the runs, and so what would run on the target now: {why}");
        report.facts.push(("not seen", unseen));
        report.not_seen = Some(why);
        report
    }
}

/// Returns whether an execution blocks its target, as the operator has recorded it.
fn is_blocking(object: &DynamicObject) -> bool {
    let conditions = object.data["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == BLOCKED && it["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wfe_core::policy::Policy;

    use super::*;
    use crate::installation::Leader;

    const WHY: &str = "cannot list workflowexecutions: you may not; ask for the ClusterRole wfe-explain";

    fn alone(status: &Value) -> Report {
        let installation = Installation {
            policy: Policy::default(),
            policy_of: String::new(),
            config: crate::installation::Config::default(),
            watch_namespace: None,
            execution_namespace: "runs".to_owned(),
            leader: Leader::Unknown("that one leads is assumed".to_owned()),
            log: String::new(),
            policies: crate::policies::Policies::default(),
        };
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": {"targetResource": "node/n"},
            "status": status,
        }))
        .unwrap();
        let execution = installation.record(&object).unwrap().execution;
        Report::alone(&installation, &execution, &object, WHY.to_owned(), "2026-01-02T03:05:05Z".parse().unwrap())
    }

    #[test]
    fn a_decided_one_says_what_its_status_says_and_what_was_not_seen() {
        let unseen =
            format!("  not seen     other executions and the runs, and so what would run on the target now: {WHY}\n");
        let details = json!({"reason": "Unknown", "message": "exit 1"});
        let blocked =
            |status: &str| json!([{"type": "Blocked", "status": status, "reason": "PreviousExecutionFailed"}]);
        for (status, is_yes, said) in [
            (json!({"phase": "Completed"}), true, "is Completed, and that does not change any more\n\n"),
            (
                json!({"phase": "Skipped", "skipDetails": {"reason": "ResourceBusy", "message": "b runs"}}),
                false,
                "is Skipped, and that does not change any more\n\n  reason       ResourceBusy\n  why          b runs\n",
            ),
            (
                json!({"phase": "Failed", "failureDetails": details, "conditions": blocked("True")}),
                false,
                "is Failed, and that does not change any more\n\n  reason       Unknown\n  why          exit 1\n  \
                 blocks       its target, until somebody clears it: kubectl wfe clear node/n --reason ...\n",
            ),
            (
                json!({"phase": "Failed", "failureDetails": details, "conditions": blocked("False")}),
                false,
                "is Failed, and that does not change any more\n\n  reason       Unknown\n  why          exit 1\n",
            ),
        ] {
            let report = alone(&status);
            assert_eq!(report.to_string(), format!("ns/a on node/n: {said}{unseen}"));
            assert_eq!(report.is_yes(), is_yes);
            assert_eq!(serde_json::to_value(&report).unwrap()["notSeen"], WHY);
        }
    }
}
