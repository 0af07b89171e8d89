//! Converts any text to a valid label value, so that unusual names cause no errors.

use sha2::{Digest, Sha256};

/// The length limit of a label value in Kubernetes.
const MAX_VALUE: usize = 63;

/// Converts a text to a label value: `/` becomes `__`, and other invalid characters become `_`. If a character other
/// than `/` was replaced or cut, a hash of the whole text keeps different texts distinct.
#[must_use]
pub fn label_value(text: &str) -> String {
    let readable = text.replace('/', "__");
    let legal: String = readable.chars().map(|c| if is_legal(c) { c } else { '_' }).collect();
    let trimmed = legal.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if trimmed == readable && trimmed.len() <= MAX_VALUE {
        return readable;
    }
    let hash = short_hash(text);
    let room = MAX_VALUE - hash.len() - 1;
    let head = trimmed[..trimmed.len().min(room)].trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    if head.is_empty() { hash } else { format!("{head}-{hash}") }
}

fn is_legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Returns eight hexadecimal digits of a hash. They are enough for searching, because annotations contain the exact
/// values.
fn short_hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(4).fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keeps_what_is_legal_and_marks_what_is_not() {
        assert_eq!(label_value("node-disk-cleanup"), "node-disk-cleanup");
        assert_eq!(label_value("payment/deployment/api"), "payment__deployment__api");
        assert!(label_value("clusterrole/system:node").starts_with("clusterrole__system_node-"));
        assert_eq!(label_value(&"x".repeat(100)).len(), 63);
        assert_ne!(label_value("a:b"), label_value("a_b"));
    }

    proptest! {
        #[test]
        fn is_always_legal(text in "\\PC{1,300}") {
            let value = label_value(&text);
            prop_assert!(!value.is_empty() && value.len() <= MAX_VALUE);
            prop_assert!(value.chars().all(is_legal));
            prop_assert!(value.starts_with(|c: char| c.is_ascii_alphanumeric()));
            prop_assert!(value.ends_with(|c: char| c.is_ascii_alphanumeric()));
        }
    }
}
