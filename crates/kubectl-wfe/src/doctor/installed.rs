//! What is installed: the operator, its policies and its settings.

use serde_json::Value;

use super::check::{Check, Group};
use super::look::{Answer, Installed};
use crate::config::unknown;
use crate::installation::Leader;

/// The limit of policies that are named.
const NAMED: usize = 3;

/// Checks the Deployment, and whether a replica leads.
pub(super) fn operator(seen: &Installed, checks: &mut Vec<Check>) {
    let mut group = Group::new("operator", checks);
    let shown = format!("Deployment {}/{}", seen.operator.namespace, seen.operator.name);
    match &seen.deployment {
        Answer::Absent => group.error(
            format!("there is no {shown}"),
            "install it (deploy/README.md), or name yours with --operator-namespace and --operator",
        ),
        Answer::Denied(why) => group.not_seen(&format!("the {shown}"), why),
        Answer::Found(deployment) => {
            replicas(deployment, &shown, &seen.installation.log, &mut group);
            let (ours, theirs) = (env!("CARGO_PKG_VERSION"), version(deployment));
            if let Some(theirs) = theirs.filter(|theirs| *theirs != ours) {
                group.warning(
                    format!("the operator has version {theirs}, and this plugin {ours}: its answers may be wrong"),
                    "use the plugin of the operator's version",
                );
            }
        }
    }
    match &seen.installation.leader {
        Leader::Is(holder) => group.ok(format!("{holder} leads")),
        Leader::Nobody(why) => group.error(why, "docs/runbooks/WorkflowExecutionNoLeader.md"),
        Leader::Unknown(why) => group.not_seen("whether a replica leads", why),
    }
}

fn replicas(deployment: &Value, shown: &str, log: &str, group: &mut Group<'_>) {
    let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    let ready = deployment["status"]["readyReplicas"].as_u64().unwrap_or_default();
    let says = format!("{ready} of {wanted} replicas of the {shown} are ready");
    match ready {
        0 => group.error(says, log),
        _ if ready < wanted => group.warning(says, log),
        _ => group.ok(says),
    }
}

/// Returns the version that the chart writes as a label.
fn version(deployment: &Value) -> Option<&str> {
    deployment["metadata"]["labels"]["app.kubernetes.io/version"].as_str()
}

/// Checks the admission policies.
pub(super) fn policies(seen: &Installed, checks: &mut Vec<Check>) {
    let mut group = Group::new("policies", checks);
    let policies = &seen.installation.policies;
    let runbook = "docs/runbooks/WorkflowExecutionPolicyMissing.md";
    for wrong in policies.wrong.iter().take(NAMED) {
        group.error(wrong, runbook);
    }
    if let Some(more) = policies.wrong.len().checked_sub(NAMED).filter(|more| *more > 0) {
        group.error(format!("and {more} more are missing or changed"), runbook);
    }
    match policies.unknown {
        Some(why) => group.not_seen("whether the policies are as they ship", why),
        None if policies.wrong.is_empty() => group.ok(format!("all {} are as they ship", policies.count)),
        None => {}
    }
}

/// Checks the settings.
pub(super) fn config(seen: &Installed, checks: &mut Vec<Check>) {
    let mut group = Group::new("config", checks);
    let installation = &seen.installation;
    let config = &installation.config;
    for problem in config.refused.iter().flat_map(|refused| &refused.problems) {
        group.error(
            format!("the operator refuses the ConfigMap: {problem}"),
            "docs/runbooks/WorkflowExecutionConfigRefused.md",
        );
    }
    if config.is_unread {
        group.not_seen("the ConfigMap of the operator", &installation.policy_of);
    } else if config.refused.is_none() {
        group.ok(&installation.policy_of);
    }
    for key in &config.unknown {
        group.warning(unknown(key), "correct or remove the key; kubectl wfe config shows what is in force");
    }
    if let Some(by) = &installation.policy.paused_by {
        group.warning(format!("{by} pauses everything: nothing starts"), "docs/configuration.md#pausing");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::check::told;
    use super::super::testing::installed;
    use super::*;

    fn says(seen: &Installed) -> String {
        let mut checks = Vec::new();
        operator(seen, &mut checks);
        policies(seen, &mut checks);
        config(seen, &mut checks);
        told(&checks)
    }

    #[test]
    fn a_good_installation_is_told_line_by_line() {
        assert_eq!(
            says(&installed()),
            "operator    ok  2 of 2 replicas of the Deployment ops/wfe-operator are ready\n\
             \x20           ok  one leads\n\
             policies    ok  all 13 are as they ship\n\
             config      ok  no ConfigMap ops/c, over default flags\n\
             0 errors, 0 warnings\n"
        );
    }

    #[test]
    fn each_fault_is_told() {
        let denied = || Answer::Denied("forbidden".to_owned());
        for (change, expected) in [
            (
                (|it| it.deployment = Answer::Absent) as fn(&mut Installed),
                "operator    x   there is no Deployment ops/wfe-operator\n",
            ),
            (
                |it| it.deployment = Answer::Found(json!({"spec": {"replicas": 2}})),
                "x   0 of 2 replicas of the Deployment ops/wfe-operator are ready\n                kubectl logs\n",
            ),
            (
                |it| it.deployment = Answer::Found(json!({"spec": {"replicas": 2}, "status": {"readyReplicas": 1}})),
                "!   1 of 2 replicas",
            ),
            (
                |it| {
                    let Answer::Found(found) = &mut it.deployment else { return };
                    found["metadata"]["labels"]["app.kubernetes.io/version"] = json!("9.9.9");
                },
                "!   the operator has version 9.9.9, and this plugin 0.2.0: its answers may be wrong\n",
            ),
            (
                |it| it.installation.leader = Leader::Nobody("no operator leads: why".to_owned()),
                "x   no operator leads: why\n                docs/runbooks/WorkflowExecutionNoLeader.md\n",
            ),
            (
                |it| {
                    it.installation.policies.wrong =
                        ["a", "b", "c", "d"].map(|name| format!("{name}: there is no policy")).into();
                },
                "x   c: there is no policy\n                docs/runbooks/WorkflowExecutionPolicyMissing.md\n            \
                 x   and 1 more are missing or changed\n",
            ),
            (
                |it| it.installation.config.unknown = vec!["cool-down".to_owned()],
                "!   \"cool-down\" does nothing: did you mean cooldown-period?\n",
            ),
            (
                |it| it.installation.policy.paused_by = Some("ConfigMap ops/c".into()),
                "!   ConfigMap ops/c pauses everything: nothing starts\n",
            ),
        ] {
            let mut seen = installed();
            change(&mut seen);
            let told = says(&seen);
            assert!(told.contains(expected), "{expected}\n{told}");
        }
        let mut seen = installed();
        seen.deployment = denied();
        seen.installation.leader = Leader::Unknown("assumed".to_owned());
        (seen.installation.policies.unknown, seen.installation.config.is_unread) = (Some("as you may not"), true);
        let told = says(&seen);
        assert!(told.ends_with("0 errors, 0 warnings, 4 not seen\n"), "{told}");
        assert!(told.contains("-   not seen: the Deployment ops/wfe-operator: forbidden\n"), "{told}");
    }
}
