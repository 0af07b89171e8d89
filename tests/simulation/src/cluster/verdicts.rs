//! The results of pipelines that analyse: valid and invalid verdicts.

/// Separates a story from the verdict that its run has as its result.
pub const SAYS: &str = ".says.";
/// The name of the result.
pub(super) const RESULT: &str = "verdict";

/// The verdicts by name.
const VERDICTS: [(&str, &str); 8] = [
    ("nothing", r#"{"verdict": "DoNothing", "why": "it will pass"}"#),
    ("fix", r#"{"verdict": "FileFix", "why": "the secret is old", "fix": "renew the pull secret"}"#),
    ("pause", r#"{"verdict": "PauseAndNotify", "why": "each run makes it worse"}"#),
    ("adjust", r#"{"verdict": "AdjustConfig", "why": "too often", "adjust": {"interval": "90s", "timeout": "2m"}}"#),
    // A verdict that forged evidence may talk an analyst into.
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
