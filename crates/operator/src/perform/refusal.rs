//! Judges why the API server refused to create a run (section 9).

use wfe_api::limits::cut;
use wfe_core::reason::FailureReason;
use wfe_tekton::MAX_MESSAGE;
use wfe_view::call::CallError;

/// Judges a refused create. Returns the reason if the refusal is final, or `None` if the create is tried again.
pub(super) fn judge(error: &CallError) -> Option<FailureReason> {
    let CallError::Refused(status) = error else {
        return None; // no answer: the outcome is unknown
    };
    if error.own_cause().is_some() || error.is_kind_missing() || is_starting(&status.message) {
        return None; // the run was not judged: the operator or the cluster is not ready for it
    }
    let has_cause =
        |reason: &str| status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == reason);
    match status.code {
        403 if status.message.contains("exceeded quota") => Some(FailureReason::ResourceExhausted),
        403 if has_cause("NamespaceTerminating") => Some(FailureReason::ConfigurationError),
        403 => Some(FailureReason::Forbidden),
        400 | 404 | 413 | 422 => Some(FailureReason::ConfigurationError),
        // After 401 (a token that is being renewed), 409 (quota contention), 429 and 5xx, the run was not judged yet.
        _ => None,
    }
}

/// Returns whether the API server is still starting. It then refuses what its admission plugins cannot judge yet, and
/// only this text shows the cause. The start deadline limits the wait.
fn is_starting(message: &str) -> bool {
    message.ends_with(" is forbidden: not yet ready to handle request")
}

/// Returns the API server's text for a refused object of this kind, cut to a limit.
pub(super) fn message(kind: &str, error: &CallError) -> String {
    cut(&format!("the API server refused to create the {kind}: {error}"), MAX_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn refused(code: u16, message: &str) -> CallError {
        CallError::Refused(Box::new(Status { code, message: message.to_owned(), ..Status::default() }))
    }

    #[test]
    fn refusals_have_the_reasons_of_section_9() {
        use FailureReason::{ConfigurationError, Forbidden, ResourceExhausted};
        for (code, message, reason) in [
            (403, "pipelineruns \"x\" is forbidden: exceeded quota: q", Some(ResourceExhausted)),
            (403, "pipelineruns \"x\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no", Some(Forbidden)),
            (
                403,
                "admission webhook \"w\" denied the request: User \"u\" cannot create: RBAC: role not found",
                Some(Forbidden),
            ),
            (403, "pipelineruns.tekton.dev \"x\" is forbidden: not yet ready to handle request", None),
            (400, "admission webhook denied", Some(ConfigurationError)),
            (404, "namespaces \"x\" not found", Some(ConfigurationError)),
            (404, "admission webhook \"w\" denied the request: no such thing", Some(ConfigurationError)),
            (404, "404 page not found", None),
            (404, "the server could not find the requested resource", None),
            (422, "invalid", Some(ConfigurationError)),
            (401, "Unauthorized", None),
            (409, "Operation cannot be fulfilled on resourcequotas", None),
            (429, "too many requests", None),
            (500, "failed calling webhook", None),
            (503, "unavailable", None),
            (504, "timeout", None),
        ] {
            assert_eq!(judge(&refused(code, message)), reason, "{code} {message}");
        }
        assert_eq!(judge(&CallError::TimedOut(std::time::Duration::from_secs(15))), None);
    }

    #[test]
    fn a_right_that_the_operator_itself_lacks_is_no_failure_of_the_execution() {
        let message = "pipelineruns.tekton.dev is forbidden: User \"system:serviceaccount:a:b\" cannot create resource \
                       \"pipelineruns\" in API group \"tekton.dev\" in the namespace \"kubernaut-workflows\"";
        for message in [message.to_owned(), format!("{message}: RBAC: role \"r\" not found")] {
            let status: Status = serde_json::from_value(serde_json::json!({
                "code": 403, "reason": "Forbidden", "message": message,
                "details": {"group": "tekton.dev", "kind": "pipelineruns"},
            }))
            .unwrap();
            assert_eq!(judge(&CallError::Refused(Box::new(status))), None, "{message}");
        }
    }

    /// Two policies judge what the author of a schedule wrote. The other policies that refuse a create judge the
    /// operator's account, and such a refusal is the operator's own fault.
    #[test]
    fn a_refusal_by_a_policy_that_ships_is_forbidden_only_where_it_judges_what_an_author_wrote() {
        let judged = ["retry", "workflow"];
        let never_met = ["author", "cancellation", "clearance", "kind", "owner", "recovery"];
        for policy in wfe_settings::policies::shipped().unwrap() {
            let (kind, resource) = policy.name.split_once('.').unwrap();
            let (resource, group) = if resource.starts_with("pipelineruns") {
                ("pipelineruns", "tekton.dev")
            } else {
                ("workflowexecutions", "kubernaut.ai")
            };
            let status: Status = serde_json::from_value(serde_json::json!({
                "code": 403, "reason": "Forbidden", "details": {"group": group, "kind": resource, "name": "x"},
                "message": format!(
                    "{resource}.{group} \"x\" is forbidden: ValidatingAdmissionPolicy '{0}' with binding '{0}' denied \
                     request: no", policy.name
                ),
            }))
            .unwrap();
            if never_met.contains(&kind) {
                continue;
            }
            let refused = CallError::Refused(Box::new(status));
            let reason = judged.contains(&kind).then_some(FailureReason::Forbidden);
            assert_eq!(judge(&refused), reason, "{}", policy.name);
            assert_eq!(refused.own_cause().is_some(), reason.is_none(), "{}", policy.name);
        }
    }

    #[test]
    fn a_namespace_on_its_way_out_is_a_matter_of_set_up() {
        let status: Status = serde_json::from_value(serde_json::json!({
            "code": 403, "details": {"causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "f"}]},
        }))
        .unwrap();
        assert_eq!(judge(&CallError::Refused(Box::new(status))), Some(FailureReason::ConfigurationError));
    }
}
