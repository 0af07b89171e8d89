//! Texts for people, cut to what a status or a message holds.

/// Cuts a text to so many characters; a cut is marked by `…`, which counts.
#[must_use]
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}
