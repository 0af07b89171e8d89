//! The faults that a request can meet.

use std::time::Duration;

use serde_json::{Value, json};

/// What happens to one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Fault {
    /// The request passes unchanged.
    #[default]
    Pass,
    /// The request is forwarded late, and its answer is delivered late.
    Delay {
        /// The wait before the request is forwarded.
        before: Duration,
        /// The wait before the answer is delivered.
        after: Duration,
    },
    /// The request is never forwarded and never answered.
    Drop,
    /// The request is not forwarded: the proxy answers instead of the API server.
    Refuse(Refusal),
    /// The request is not forwarded, and its connection is closed.
    Close,
    /// The request is forwarded. After the API server's answer, the connection is closed without an answer.
    LoseAnswer,
    /// The request is forwarded, but never answered.
    NeverAnswer,
    /// The request is forwarded twice: the second time after the API server's first answer and this pause.
    Duplicate {
        /// The time between the first answer and the second request.
        pause: Duration,
        /// Which of the two answers is delivered. With the first one, the delivery does not wait for the second
        /// request.
        answer: Answer,
    },
    /// A watch begins, and ends at once with the event that its resourceVersion is too old (410), as from the API
    /// server.
    Expire,
}

impl Fault {
    /// Returns a fault that delays the request before it is forwarded.
    #[must_use]
    pub const fn late(before: Duration) -> Self {
        Self::Delay { before, after: Duration::ZERO }
    }
}

/// Which of two answers is delivered for a request that was forwarded twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The answer to the first request.
    First,
    /// The answer to the second request.
    Second,
}

/// A refusal in the format of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// The machine-readable reason, such as `Conflict`.
    pub reason: String,
    /// The message for a person.
    pub message: String,
    /// Seconds until the next try: `Retry-After` and `details.retryAfterSeconds`.
    pub retry_after: Option<u32>,
    /// `details` of the `metav1.Status`, if it has any.
    pub details: Option<Value>,
    /// Whether the body is text instead of a `metav1.Status`, as from the API server's priority and fairness.
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

    /// 429, as an admission webhook or a rate limiter words it.
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

    /// 500: an internal error.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(500, "InternalError", "Internal error occurred: etcdserver: leader changed")
    }

    /// 503: the service is unavailable.
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
