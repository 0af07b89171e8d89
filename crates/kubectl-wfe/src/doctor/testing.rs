//! An installation without a fault, for tests.

use serde_json::json;
use wfe_core::policy::Policy;

use super::look::{Answer, Installed};
use crate::cli::OperatorArgs;
use crate::installation::{Config, Installation, Leader};
use crate::policies::Policies;

/// Makes the installation. No role is bound.
pub(super) fn installed() -> Installed {
    let rule = json!({"spec": {"groups": [{"rules": [{"alert": "WorkflowExecutionNoLeader"}, {"record": "x"}]}]}});
    let labels = json!({"pod-security.kubernetes.io/enforce": "baseline"});
    Installed {
        operator: OperatorArgs {
            namespace: "ops".to_owned(),
            name: "wfe-operator".to_owned(),
            watch_namespace: None,
            execution_namespace: None,
        },
        installation: Installation {
            policy: Policy::default(),
            policy_of: "no ConfigMap ops/c, over default flags".to_owned(),
            config: Config::default(),
            watch_namespace: None,
            execution_namespace: "runs".to_owned(),
            leader: Leader::Is("one".to_owned()),
            log: "kubectl logs".to_owned(),
            policies: Policies { count: 13, ..Policies::default() },
        },
        deployment: Answer::Found(json!({
            "metadata": {"labels": {"app.kubernetes.io/version": env!("CARGO_PKG_VERSION")}},
            "spec": {"replicas": 2}, "status": {"readyReplicas": 2},
        })),
        execution_namespace: Answer::Found(json!({"metadata": {"labels": labels}})),
        runner: Answer::Found(json!({})),
        bindings: Answer::Found(Vec::new()),
        alerts: Answer::Found(json!({"items": [rule]})),
    }
}
