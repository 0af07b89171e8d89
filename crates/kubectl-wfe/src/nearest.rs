//! The known word that a person may have meant.

/// How similar two words must be, from 0 to 1: `cool-down` and `cooldown-period` are, `paused` and `passive` are not.
const SIMILAR: f64 = 0.8;

/// Returns the known word that is most similar to an unknown one, if it is similar enough.
pub(crate) fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rated = known.into_iter().map(|word| (strsim::jaro_winkler(unknown, word), word));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(rate, _)| *rate >= SIMILAR).map(|(_, word)| word)
}

/// Returns the question about the nearest known word, such as `: did you mean spec?`, or nothing.
pub(crate) fn did_you_mean<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(unknown, known).map(|word| format!(": did you mean {word}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_one_that_could_have_been_meant() {
        let keys = ["cooldown-period", "base-cooldown-period", "max-cooldown-period", "paused", "log-level"];
        for (unknown, expected) in [
            ("cool-down", Some("cooldown-period")),
            ("coldown-period", Some("cooldown-period")),
            ("loglevel", Some("log-level")),
            ("pause", Some("paused")),
            ("replicas", None),
            ("", None),
        ] {
            assert_eq!(nearest(unknown, keys), expected, "{unknown}");
        }
        assert_eq!(did_you_mean("pausd", keys), ": did you mean paused?");
        assert_eq!(did_you_mean("x", keys), "");
    }
}
