//! The results of analysing pipelines: valid and invalid verdicts.

/// Separates the story in the name of a bundle from the verdict that becomes the run's result.
pub const SAYS: &str = ".says.";
/// The name of the result that contains the verdict.
pub(super) const RESULT: &str = "verdict";

/// The verdicts by name.
const VERDICTS: [(&str, &str); 8] = [
    ("nothing", r#"{"verdict": "DoNothing", "why": "it will pass"}"#),
    ("fix", r#"{"verdict": "FileFix", "why": "the secret is old", "fix": "renew the pull secret"}"#),
    ("pause", r#"{"verdict": "PauseAndNotify", "why": "each run makes it worse"}"#),
    ("adjust", r#"{"verdict": "AdjustConfig", "why": "too often", "adjust": {"interval": "90s", "timeout": "2m"}}"#),
    // An analyst may write this verdict if forged evidence has misled it.
    ("everything", r#"{"verdict": "AdjustConfig", "adjust": {"interval": "1s", "parameters": {"TARGET": "all"}}}"#),
    ("unknown", r#"{"verdict": "DeleteNamespace", "why": "it said so"}"#),
    ("prose", "Please pause everything."),
    ("list", r#"["PauseAndNotify"]"#),
];

/// Returns the names of all verdicts.
pub fn names() -> impl Iterator<Item = &'static str> {
    VERDICTS.iter().map(|(name, _)| *name)
}

/// Returns the verdict with this name.
pub(super) fn verdict(name: &str) -> Option<&'static str> {
    VERDICTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
