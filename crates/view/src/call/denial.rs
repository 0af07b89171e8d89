//! Distinguishes refusals that concern the operator's account or the cluster from refusals that concern the content of
//! a request.
//!
//! No field of an answer names the source of a refusal. The API server's own text has one exact form, which repeats the
//! content of `details`. An admission webhook or policy cannot imitate it, because the API server puts its own text
//! before theirs.

use kube::core::Status;
use kube::core::response::StatusDetails;

/// The remedy for a refusal by a policy. An operator and policies of the same version never cause this refusal.
const APPLY_POLICIES: &str = "apply config/admission of the operator's own version";

/// The policies of `config/admission` that judge the requesting account, each with its remedy. The other policies that
/// an operator can meet judge what the author of a schedule wrote, so their refusals concern the author.
const OWN_POLICIES: [(&str, &str); 5] = [
    (
        "child.workflowexecutions.kubernaut.ai",
        "bind the ClusterRole wfe-operator of config/rbac to the account that the operator runs as",
    ),
    ("deletion.workflowexecutions.kubernaut.ai", APPLY_POLICIES),
    (
        "marks.pipelineruns.kubernaut.ai",
        "the policy does not know the account that the operator runs as: bind the Role wfe-operator of config/rbac to it \
         in the execution namespace, and apply config/admission of the operator's own version",
    ),
    ("operator.workflowexecutions.kubernaut.ai", APPLY_POLICIES),
    (
        "target.workflowexecutions.kubernaut.ai",
        "bind the ClusterRole wfe-operator-targets of config/rbac to the account that the operator runs as",
    ),
];

/// Returns whether the API server denies the request because the requesting account lacks permission.
///
/// The form is `<resource>.<group> "<name>" is forbidden: User "<account>" cannot <verb> resource "<resource>" in API
/// group "<group>" in the namespace "<namespace>"`. The text has no name if the request has none. If the request has no
/// namespace, the text has `at the cluster scope`. An authorizer may append text: an API server that is starting
/// appends that it does not know a role yet.
pub(super) fn lacks_right(status: &Status) -> bool {
    forbidden(status)
        .is_some_and(|details| says_who_cannot(&status.message, &details.group, &details.kind, &details.name).is_some())
}

/// Returns the remedy for a refusal by a policy of this operator that judges the requesting account; `None` for any
/// other refusal.
///
/// The form is `<resource>.<group> "<name>" is forbidden: ValidatingAdmissionPolicy '<policy>' with binding ...`. The
/// API server writes this part; the policy's own text follows.
pub(super) fn remedy(status: &Status) -> Option<&'static str> {
    let details = forbidden(status)?;
    let begin =
        format!("{}.{} {:?} is forbidden: ValidatingAdmissionPolicy '", details.kind, details.group, details.name);
    let (by, _) = status.message.strip_prefix(&begin)?.split_once("' with ")?;
    OWN_POLICIES.iter().find(|(policy, _)| *policy == by).map(|(_, remedy)| *remedy)
}

fn forbidden(status: &Status) -> Option<&StatusDetails> {
    status.details.as_ref().filter(|_| status.code == 403 && status.reason == "Forbidden")
}

/// Parses the form of a missing permission; `None` if the message differs.
fn says_who_cannot(message: &str, group: &str, resource: &str, name: &str) -> Option<()> {
    let rest = message.strip_prefix(resource)?;
    let rest = if group.is_empty() { rest } else { rest.strip_prefix('.')?.strip_prefix(group)? };
    let rest = if name.is_empty() { rest } else { rest.strip_prefix(&format!(" {name:?}"))? };
    let (account, rest) = rest.strip_prefix(" is forbidden: User \"")?.split_once("\" cannot ")?;
    let (verb, rest) = rest.split_once(" resource \"")?;
    let (denied, rest) = rest.split_once('"')?;
    let (denied, _) = denied.split_once('/').unwrap_or((denied, ""));
    let rest = rest.strip_prefix(&format!(" in API group \"{group}\" "))?;
    let rest = match rest.strip_prefix("in the namespace \"") {
        Some(rest) => rest.split_once('"')?.1,
        None => rest.strip_prefix("at the cluster scope")?,
    };
    let is_word = !verb.is_empty() && verb.bytes().all(|byte| byte.is_ascii_lowercase());
    let ends = rest.is_empty() || rest.starts_with(": ");
    (is_word && ends && denied == resource && !account.contains('"')).then_some(())
}

/// Returns whether the cluster does not serve the kind of the object, because its CRD is missing or being deleted. A
/// webhook that imitates this text only makes the execution wait until its start deadline.
pub(super) fn is_kind_missing(status: &Status) -> bool {
    let message = status.message.trim();
    match status.code {
        403 => message.ends_with(" is forbidden: create not allowed while custom resource definition is terminating"),
        404 => {
            message == "404 page not found" || message.starts_with("the server could not find the requested resource")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ACCOUNT: &str = "User \"system:serviceaccount:kubernaut-system:wfe-operator\"";

    fn status(code: u16, message: &str, details: &serde_json::Value) -> Status {
        let status =
            json!({"status": "Failure", "code": code, "reason": "Forbidden", "message": message, "details": details});
        serde_json::from_value(status).unwrap()
    }

    /// Returns the denial of a create of a run, with this text.
    fn create(message: &str) -> Status {
        status(403, message, &json!({"group": "tekton.dev", "kind": "pipelineruns"}))
    }

    fn own(message: &str) -> String {
        format!(
            "pipelineruns.tekton.dev is forbidden: {ACCOUNT} cannot create resource \"pipelineruns\" in API group \
             \"tekton.dev\" in the namespace \"kubernaut-workflows\"{message}"
        )
    }

    #[test]
    fn a_denial_of_the_operators_own_account_has_one_form() {
        assert!(lacks_right(&create(&own(""))));
        assert!(lacks_right(&create(&own(": RBAC: role.rbac.authorization.k8s.io \"wfe-operator\" not found"))));
        let named = json!({"group": "tekton.dev", "kind": "pipelineruns", "name": "wfe-x-1"});
        let patch = format!(
            "pipelineruns.tekton.dev \"wfe-x-1\" is forbidden: {ACCOUNT} cannot patch resource \"pipelineruns\" in API group \
             \"tekton.dev\" in the namespace \"kubernaut-workflows\""
        );
        assert!(lacks_right(&status(403, &patch, &named)));
        let of_status = json!({"group": "kubernaut.ai", "kind": "workflowexecutions", "name": "w"});
        let patch = format!(
            "workflowexecutions.kubernaut.ai \"w\" is forbidden: {ACCOUNT} cannot patch resource \
             \"workflowexecutions/status\" in API group \"kubernaut.ai\" in the namespace \"ops\""
        );
        assert!(lacks_right(&status(403, &patch, &of_status)));
        let list = format!(
            "namespaces is forbidden: {ACCOUNT} cannot list resource \"namespaces\" in API group \"\" at the cluster scope"
        );
        assert!(lacks_right(&status(403, &list, &json!({"kind": "namespaces"}))));
    }

    #[test]
    fn a_refusal_by_a_policy_of_ours_is_known_by_its_name_and_is_no_missing_right() {
        let details = json!({"group": "kubernaut.ai", "kind": "workflowexecutions", "name": "nightly-1"});
        let begin = "workflowexecutions.kubernaut.ai \"nightly-1\" is forbidden: ValidatingAdmissionPolicy";
        let denied =
            |policy: &str| format!("{begin} '{policy}' with binding '{policy}' denied request: spec: you may not");
        for (own, ends) in OWN_POLICIES {
            let refused = status(403, &denied(own), &details);
            assert_eq!(remedy(&refused), Some(ends), "{own}");
            assert!(!lacks_right(&refused), "{own}");
        }
        for other in ["workflow.workflowexecutions.kubernaut.ai", "x.child.workflowexecutions.kubernaut.ai"] {
            assert_eq!(remedy(&status(403, &denied(other), &details)), None, "{other}");
        }
        let own = denied(OWN_POLICIES[0].0);
        let of_another = json!({"group": "kubernaut.ai", "kind": "workflowexecutions", "name": "nightly-2"});
        assert_eq!(remedy(&status(403, &own, &of_another)), None);
        let forged = format!("admission webhook \"w.example.com\" denied the request: {own}");
        assert_eq!(remedy(&status(403, &forged, &details)), None);
        assert_eq!(remedy(&status(422, &own, &details)), None, "another code");
    }

    #[test]
    fn what_a_policy_or_webhook_says_is_never_taken_for_it() {
        for forged in [
            format!("admission webhook \"w.example.com\" denied the request: {}", own("")),
            format!(
                "pipelineruns.tekton.dev \"wfe-x-1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {}",
                own("")
            ),
            format!(
                "pipelineruns.tekton.dev \"wfe-x-1\" is forbidden: {ACCOUNT} cannot create resource \"pipelineruns\" in API group \"tekton.dev\" in the namespace \"ns\""
            ),
            own(" because of a policy"),
            own("").replace("cannot create", "cannot create anything but"),
            own("").replace("API group \"tekton.dev\"", "API group \"other.dev\""),
            own("").replace("resource \"pipelineruns\"", "resource \"secrets\""),
            own("").replace("pipelineruns.tekton.dev is", "x: pipelineruns.tekton.dev is"),
            "pipelineruns.tekton.dev \"wfe-x-1\" is forbidden: exceeded quota: q".to_owned(),
            "pipelineruns.tekton.dev \"wfe-x-1\" is forbidden: service account cannot create resource".to_owned(),
            String::new(),
        ] {
            assert!(!lacks_right(&create(&forged)), "{forged}");
        }
        let details = json!({"group": "tekton.dev", "kind": "pipelineruns"});
        assert!(!lacks_right(&status(422, &own(""), &details)), "another code");
        assert!(!lacks_right(&Status { details: None, ..create(&own("")) }), "no details");
        assert!(!lacks_right(&Status { reason: "Invalid".to_owned(), ..create(&own("")) }), "another reason");
        assert!(!lacks_right(&status(403, &own(""), &json!({"group": "other.dev", "kind": "pipelineruns"}))));
    }

    #[test]
    fn a_missing_kind_is_told_from_a_missing_object() {
        let is_missing =
            |code, message: &str| is_kind_missing(&Status { code, message: message.to_owned(), ..Status::default() });
        assert!(is_missing(404, "404 page not found") && is_missing(404, "404 page not found\n"));
        assert!(is_missing(404, "the server could not find the requested resource"));
        let leaving = "pipelineruns.tekton.dev \"wfe-x-1\" is forbidden: create not allowed while custom resource definition is \
                       terminating";
        assert!(is_missing(403, leaving));
        for (code, message) in [
            (404, "namespaces \"kubernaut-workflows\" not found"),
            (404, "admission webhook \"w\" denied the request: 404 page not found"),
            (403, "404 page not found"),
        ] {
            assert!(!is_missing(code, message), "{code} {message}");
        }
    }
}
