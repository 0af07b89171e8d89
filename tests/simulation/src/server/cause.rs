//! Why an object is invalid.

/// One reason why an object is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// Such as `FieldValueInvalid`.
    pub(super) reason: String,
    /// Of which field.
    pub(super) field: String,
    /// In words.
    pub(super) message: String,
}

impl Cause {
    pub(super) fn new(reason: &str, field: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), field: field.to_owned(), message: message.into() }
    }
}
