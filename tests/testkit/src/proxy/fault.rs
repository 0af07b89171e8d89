//! The faults of a request.

use std::time::Duration;

use serde_json::{Value, json};

/// What happens to one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Fault {
    /// It passes.
    #[default]
    Pass,
    /// It passes late: it waits before it is forwarded, and its answer waits before it is delivered.
    Delay {
        /// Before it is forwarded.
        before: Duration,
        /// Before its answer is delivered.
        after: Duration,
    },
    /// It is never forwarded and never answered.
    Drop,
    /// It is not forwarded. The proxy answers instead of the API server.
    Refuse(Refusal),
    /// It is not forwarded. Its connection is closed.
    Close,
    /// It is forwarded. Once the API server has answered, the connection is closed without an answer.
    LoseAnswer,
    /// It is forwarded and never answered.
    NeverAnswer,
    /// It is forwarded a second time, after the API server has answered the first and this pause has elapsed.
    Duplicate {
        /// How long after the first answer.
        pause: Duration,
        /// Which answer is delivered. With the first, the delivery does not wait for the second.
        answer: Answer,
    },
    /// For a watch: it begins, and ends at once with the event that its resourceVersion is too old (410), as from the
    /// API server.
    Expire,
}

impl Fault {
    /// Returns a delay before the request is forwarded.
    #[must_use]
    pub const fn late(before: Duration) -> Self {
        Self::Delay { before, after: Duration::ZERO }
    }
}

/// The answer that is delivered of a request that was sent twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The answer to the first.
    First,
    /// The answer to the second.
    Second,
}

/// A refusal as the API server writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// Machine-readable, such as `Conflict`.
    pub reason: String,
    /// The message for a person.
    pub message: String,
    /// Seconds until the next try: `Retry-After` and `details.retryAfterSeconds`.
    pub retry_after: Option<u32>,
    /// `details` of the `metav1.Status`, if it has any.
    pub details: Option<Value>,
    /// Whether the body is text and not a `metav1.Status`, as from the API server's priority and fairness.
    pub plain: bool,
}

impl Refusal {
    /// Creates a refusal.
    #[must_use]
    pub fn new(code: u16, reason: &str, message: &str) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            retry_after: None,
            details: None,
            plain: false,
        }
    }

    /// 409: the object has changed.
    #[must_use]
    pub fn conflict() -> Self {
        Self::new(409, "Conflict", "the object has been modified; please apply your changes to the latest version")
    }

    /// 410: the resourceVersion is too old.
    #[must_use]
    pub fn expired() -> Self {
        Self::new(410, "Expired", "too old resource version")
    }

    /// 429, in the words of an admission webhook or a rate limiter.
    #[must_use]
    pub fn throttled(seconds: u32) -> Self {
        let message = "the server is currently unable to handle the request";
        Self { retry_after: Some(seconds), ..Self::new(429, "TooManyRequests", message) }
    }

    /// 429, as the API server's priority and fairness writes it: text, and a header.
    #[must_use]
    pub fn throttled_plainly(seconds: u32) -> Self {
        let message = "Too many requests, please try again later.\n";
        Self { retry_after: Some(seconds), plain: true, ..Self::new(429, "TooManyRequests", message) }
    }

    /// 500.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(500, "InternalError", "Internal error occurred: etcdserver: leader changed")
    }

    /// 503.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::new(503, "ServiceUnavailable", "the server is currently unable to handle the request")
    }

    /// Renders the `metav1.Status`.
    pub(super) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if let Some(seconds) = self.retry_after {
            status["details"]["retryAfterSeconds"] = json!(seconds);
        }
        status
    }
}
