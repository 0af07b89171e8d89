//! The reasons why a request failed, and what follows from each.

mod denial;

use std::future::Future;
use std::time::Duration;

use denial::{lacks_right, remedy};
use futures::FutureExt;
use wfe_core::trouble::OwnCause;

use crate::error_chain::with_causes;

/// The limit of the delay that the API server, or a proxy in front of it, asks for. It is as long as the operator's own
/// wait after many failures. A server that is still busy asks again. A server that asks for a day must not stop a
/// target for a day.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No answer arrived within this time, so the outcome of a write is unknown.
    #[error("no answer within {} s", .0.as_secs().max(1))]
    TimedOut(Duration),
    /// The API server refused the request.
    #[error("{}{}", .0.message, advice(.0))]
    Refused(Box<kube::core::Status>),
    /// The connection failed, or the answer could not be read, so the outcome of a write is unknown.
    #[error("{}", with_causes(.0.as_ref()))]
    Transport(Box<kube::Error>),
    /// Another replica may lead now. The write was not sent, or its outcome is unknown.
    #[error("this replica does not lead")]
    NotLeading,
}

impl CallError {
    /// Returns the HTTP code of a refusal; 0 if there was no answer.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Refused(status) => status.code,
            Self::TimedOut(_) | Self::Transport(_) | Self::NotLeading => 0,
        }
    }

    /// Returns whether the failed write may have succeeded. The result is false at the end of a term, because the next
    /// leader announces what happened.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        match self {
            Self::TimedOut(_) | Self::Transport(_) => true,
            // The API server gave up, or its store did not answer.
            Self::Refused(status) => status.code >= 500,
            Self::NotLeading => false,
        }
    }

    /// Returns whether the operator's own account lacks permission for this request.
    #[must_use]
    pub fn lacks_right(&self) -> bool {
        matches!(self, Self::Refused(status) if lacks_right(status))
    }

    /// Returns the operator's own fault that caused a refusal, if any. The API server did not judge the content of such
    /// a request.
    #[must_use]
    pub fn own_cause(&self) -> Option<OwnCause> {
        let Self::Refused(status) = self else { return None };
        if lacks_right(status) { Some(OwnCause::LacksRight) } else { remedy(status).map(|_| OwnCause::RefusedByPolicy) }
    }

    /// Returns whether the cluster does not serve objects of this kind.
    #[must_use]
    pub fn is_kind_missing(&self) -> bool {
        matches!(self, Self::Refused(status) if denial::is_kind_missing(status))
    }

    /// Returns how long the API server asks to wait (`Retry-After`), up to a limit; `None` if it does not ask.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(status) => status
                .details
                .as_ref()
                .map(|details| u64::from(details.retry_after_seconds))
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds).min(MAX_RETRY_AFTER)),
            Self::TimedOut(_) | Self::Transport(_) | Self::NotLeading => None,
        }
    }
}

impl From<kube::Error> for CallError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            other => Self::Transport(Box::new(other)),
        }
    }
}

/// Returns advice for a person about a refusal.
fn advice(status: &kube::core::Status) -> String {
    if lacks_right(status) {
        return "; give the operator this right, it is in config/rbac".to_owned();
    }
    remedy(status).map(|remedy| format!("; {remedy}")).unwrap_or_default()
}

/// Sends one request, and waits for its answer up to this time.
///
/// # Errors
/// Why the request failed.
pub fn within<T>(
    limit: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> impl Future<Output = Result<T, CallError>> {
    // Not an async function, because that would store the large request twice.
    tokio::time::timeout(limit, request).map(move |answer| match answer {
        Ok(answer) => answer.map_err(CallError::from),
        Err(_) => Err(CallError::TimedOut(limit)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_server_that_asks_to_wait_for_days_is_asked_again_after_half_a_minute() {
        for (asked, waits) in [(0, None), (1, Some(1)), (30, Some(30)), (31, Some(30)), (u32::MAX, Some(30))] {
            let details = serde_json::from_value(serde_json::json!({"retryAfterSeconds": asked})).unwrap();
            let status = kube::core::Status { code: 429, details: Some(details), ..Default::default() };
            let error = CallError::Refused(Box::new(status));
            assert_eq!(error.retry_after(), waits.map(Duration::from_secs), "{asked}");
        }
    }

    #[test]
    fn a_missing_right_is_said_together_with_what_to_do() {
        let message =
            "pods \"x\" is forbidden: User \"u\" cannot get resource \"pods\" in API group \"\" in the namespace \"n\"";
        let status = serde_json::json!({
            "code": 403, "reason": "Forbidden", "message": message, "details": {"kind": "pods", "name": "x"},
        });
        let lacking = CallError::Refused(serde_json::from_value(status).unwrap());
        assert!(lacking.lacks_right());
        assert!(
            lacking.to_string().ends_with("in the namespace \"n\"; give the operator this right, it is in config/rbac")
        );
        assert_eq!(lacking.own_cause(), Some(OwnCause::LacksRight));
        let quota = kube::core::Status { code: 403, message: "exceeded quota".to_owned(), ..Default::default() };
        let other = CallError::Refused(Box::new(quota));
        assert!(!other.lacks_right() && !other.to_string().contains("config/rbac"), "{other}");
        assert_eq!(other.own_cause(), None);
    }

    #[test]
    fn a_refusal_by_a_policy_of_ours_is_said_with_its_remedy_and_never_asks_for_a_right() {
        let message = "pipelineruns.tekton.dev \"wfe-x-1\" is forbidden: ValidatingAdmissionPolicy \
                       'marks.pipelineruns.kubernaut.ai' with binding 'marks.pipelineruns.kubernaut.ai' denied request: \
                       metadata: kubernetes-admin may not set kubernaut.ai/workflow-execution";
        let status = serde_json::json!({
            "code": 403, "reason": "Forbidden", "message": message,
            "details": {"group": "tekton.dev", "kind": "pipelineruns", "name": "wfe-x-1"},
        });
        let refused = CallError::Refused(serde_json::from_value(status).unwrap());
        assert_eq!(refused.own_cause(), Some(OwnCause::RefusedByPolicy));
        let said = refused.to_string();
        assert!(said.contains("bind the Role wfe-operator of config/rbac") && !said.contains("this right"), "{said}");
    }
}
