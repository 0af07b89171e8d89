//! Texts for people, cut to the length that a status or a message can hold.

/// Cuts a text to a number of characters. A cut text ends with `…`, which is included in the number.
#[must_use]
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}
