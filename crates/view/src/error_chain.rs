//! Renders errors for people, together with their causes.
//!
//! A client's error shows only that it cannot connect. The cause (an unknown certificate, a name that does not resolve)
//! is in the sources of the error, which `Display` omits.

use std::error::Error;

/// The limit of shown sources: twice the depth of the deepest chain of the client.
const DEPTH: usize = 16;

/// Renders an error with all its sources, the outermost first. A source is omitted if the text before it already
/// contains it.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut said = error.to_string();
    let mut source = error.source();
    for _ in 0..DEPTH {
        let Some(error) = source else { break };
        let cause = error.to_string();
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
        source = error.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let (text, inner) = texts.split_first().unwrap();
        Layer { text, source: (!inner.is_empty()).then(|| Box::new(layers(inner))) }
    }

    #[test]
    fn each_cause_is_named_once() {
        for (texts, said) in [
            (&["refused"][..], "refused"),
            (
                &[
                    "ServiceError: client error (Connect)",
                    "client error (Connect)",
                    "invalid certificate",
                    "UnknownIssuer",
                ],
                "ServiceError: client error (Connect): invalid certificate: UnknownIssuer",
            ),
            (&["cannot list", "cannot list", ""], "cannot list"),
        ] {
            assert_eq!(with_causes(&layers(texts)), said);
        }
        let endless = vec!["a"; 3].into_iter().chain(vec!["b"; 100]).collect::<Vec<_>>();
        assert_eq!(with_causes(&layers(&endless)), "a: b");
    }
}
