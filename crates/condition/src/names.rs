//! The names that a condition may use, in the form in which messages list them, and the values of `reason`.

/// The reasons that a condition can compare `reason` with.
pub const REASONS: [&str; 7] = [
    "OOMKilled",
    "DeadlineExceeded",
    "Forbidden",
    "ResourceExhausted",
    "ConfigurationError",
    "ImagePullBackOff",
    "Unknown",
];

/// The list of all variables, for messages.
pub(crate) const VARIABLES: &str = "attempt, maxAttempts, reason, error, success, exitCode, wasExecutionFailure, \
                                    nodeId, executionId, result, statusCode and data";

/// The list of all functions, for messages.
pub(crate) const FUNCTIONS: &str =
    "has, size, contains, startsWith, endsWith, int, double, string, dyn, type, and the operator in";
