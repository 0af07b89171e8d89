//! What a condition may name, as messages list it, and the values of `reason`.

/// All values that `reason` may have.
pub const REASONS: [&str; 7] = [
    "OOMKilled",
    "DeadlineExceeded",
    "Forbidden",
    "ResourceExhausted",
    "ConfigurationError",
    "ImagePullBackOff",
    "Unknown",
];

/// All variables, for messages.
pub(crate) const VARIABLES: &str = "attempt, maxAttempts, reason, error, success, exitCode, wasExecutionFailure, \
                                    nodeId, executionId, result, statusCode and data";

/// All functions, for messages.
pub(crate) const FUNCTIONS: &str =
    "has, size, contains, startsWith, endsWith, int, double, string, dyn, type, and the operator in";
