//! How long a replica may write, according to its own writes of the Lease and their answers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use serde_json::Value;

use crate::plan::Millis;

/// How long a leader that cannot renew the Lease keeps writing, counted from when it sent the last renewal.
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(5);

/// The end of a replica's term, in milliseconds since the plan began. Zero if the replica does not lead.
#[derive(Debug, Default)]
pub(super) struct Term(AtomicU64);

/// What a write to the Lease claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The replica leads.
    Holds,
    /// The replica no longer leads.
    Releases,
}

/// By how much a write was too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    Never,
    By(Millis),
}

impl Term {
    /// Records that a claim which was sent at this time has succeeded.
    pub(super) fn take(&self, claim: Claim, sent: Millis) {
        let lasts = u64::try_from(RENEW_DEADLINE.as_millis()).unwrap_or(u64::MAX);
        let until = match claim {
            Claim::Holds => sent.saturating_add(lasts),
            Claim::Releases => 0,
        };
        self.0.store(until, Ordering::Relaxed);
    }

    /// Records that the replica does not lead.
    pub(super) fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns how long after the end of the term a request is sent. `None` if the term lasts, or if any replica may
    /// send the request.
    pub(super) fn is_over_for(&self, parts: &Parts, now: Millis) -> Option<Late> {
        if parts.method == Method::GET || is_of_lease(parts) {
            return None;
        }
        match self.0.load(Ordering::Relaxed) {
            0 => Some(Late::Never),
            until => (now > until).then(|| Late::By(now - until)),
        }
    }
}

/// Returns the claim of a request that writes the Lease. `None` for any other request.
pub(super) fn claim(parts: &Parts, body: &Bytes) -> Option<Claim> {
    if parts.method == Method::GET || !is_of_lease(parts) {
        return None;
    }
    let lease: Value = serde_json::from_slice(body).ok()?;
    let is_held = lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
    Some(if is_held { Claim::Holds } else { Claim::Releases })
}

fn is_of_lease(parts: &Parts) -> bool {
    parts.uri.path().starts_with("/apis/coordination.k8s.io/")
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("without leading"),
            Self::By(late) => write!(f, "{late} ms after its term"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(method: Method, path: &str) -> Parts {
        http::Request::builder().method(method).uri(path).body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_who_leads_writes_and_only_for_as_long_as_the_last_renewal_lasts() {
        let lease = parts(Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/wfe-operator");
        let (write, read) = (parts(Method::PATCH, "/apis/x/v1/y/z"), parts(Method::GET, "/apis/x/v1/y/z"));
        let held = claim(&lease, &Bytes::from(r#"{"spec":{"holderIdentity":"replica-0"}}"#));
        let released = claim(&lease, &Bytes::from(r#"{"spec":{"holderIdentity":""}}"#));
        assert_eq!((held, released, claim(&write, &Bytes::new())), (Some(Claim::Holds), Some(Claim::Releases), None));
        let term = Term::default();
        assert_eq!(term.is_over_for(&write, 1), Some(Late::Never));
        assert_eq!((term.is_over_for(&read, 1), term.is_over_for(&lease, 1)), (None, None));
        term.take(Claim::Holds, 1000);
        assert_eq!((term.is_over_for(&write, 6000), term.is_over_for(&write, 6002)), (None, Some(Late::By(2))));
        term.take(Claim::Releases, 2000);
        assert_eq!(term.is_over_for(&write, 2000), Some(Late::Never));
    }
}
