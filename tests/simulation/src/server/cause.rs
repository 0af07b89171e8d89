//! The reasons why an object is invalid.

/// One reason why an object is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// The reason, such as `FieldValueInvalid`.
    pub(super) reason: String,
    /// The path of the field.
    pub(super) field: String,
    /// The description of the problem.
    pub(super) message: String,
}

impl Cause {
    pub(super) fn new(reason: &str, field: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), field: field.to_owned(), message: message.into() }
    }
}
