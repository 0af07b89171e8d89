//! Why a list failed, and what to do about it.

use std::error::Error;
use std::fmt;

use anyhow::anyhow;
use wfe_view::call::CallError;
use wfe_view::index::Kind;

/// The HTTP code of a request that the caller may not make.
const FORBIDDEN: u16 = 403;

/// A list that the caller may not make, and which role gives the right.
#[derive(Debug)]
pub(crate) struct Forbidden(String);

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Forbidden {}

/// Returns the error of a failed list. It is [`Forbidden`] if the caller lacks the right.
pub(super) fn refused(error: &CallError, kind: Kind) -> anyhow::Error {
    let why = format!("cannot list {}: {}", kind.label(), said(error, kind));
    if error.code() == FORBIDDEN { Forbidden(why).into() } else { anyhow!(why) }
}

/// Describes a failed list, with advice.
pub(super) fn said(error: &CallError, kind: Kind) -> String {
    let CallError::Refused(status) = error else {
        return format!("{error}; check that the API server can be reached: kubectl version");
    };
    let advice = match (status.code, kind) {
        (401, _) => "log in again",
        (403, _) if status.message.contains(" cannot impersonate") => {
            "leave --as out, or ask for the right to impersonate"
        }
        (403, Kind::Execution | Kind::Namespace | Kind::Schedule) => {
            "ask for the ClusterRole wfe-explain, or give the operator's --watch-namespace if it has one"
        }
        (403, _) => "ask for the Role wfe-explain in the execution namespace",
        (404, Kind::Execution | Kind::Schedule) => {
            "the CRD is not installed: is this the right cluster? kubectl config current-context"
        }
        (404, _) => "Tekton Pipelines is not installed: is this the right cluster? kubectl config current-context",
        _ => "try again",
    };
    format!("{}; {advice}", status.message)
}
