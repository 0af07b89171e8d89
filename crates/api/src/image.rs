//! The form of an image reference: `host:port/path:tag@digest`. Only the path is required. The form is that of the
//! distribution project and of Tekton's bundle resolver.
//!
//! The first part is the host if it has a dot or a port, or is `localhost`; everywhere else capitals are refused. The
//! resolver accepts only sha256 digests, and so does this module. The host may be an IPv6 address in brackets.

/// The form of an image reference as a regular expression, for the admission rule. It does not limit the length of the
/// path.
pub(crate) const PATTERN: &str = "^(([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)+(:[0-9]+)?\
     |[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?:[0-9]+|localhost|\\[[a-fA-F0-9:]+\\](:[0-9]+)?)/)?\
     [a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*\
     (:[a-zA-Z0-9_][-a-zA-Z0-9_.]{0,127})?(@sha256:[a-f0-9]{64})?$";

/// Matches a reference whose path is not too long. The first part is the host if it has a dot, a port or brackets, or
/// is `localhost`.
pub(crate) const LENGTH_PATTERN: &str = "^((localhost|[^/]*[.:][^/]*)/)?[^:@]{1,255}(:[^/]*)?(@.*)?$";

/// The longest path, without the host: registries refuse longer repository names.
const PATH: usize = 255;

const TAG: usize = 128;

/// Returns whether a text is an image reference, e.g. `registry.example/workflows/node-disk-cleanup:1.4.0`.
#[must_use]
pub fn is_image_reference(text: &str) -> bool {
    let (named, digest) = text.split_once('@').map_or((text, None), |(named, digest)| (named, Some(digest)));
    // A colon before the last slash belongs to the host.
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let colon = named[last..].find(':').map(|colon| last + colon);
    let (name, tag) = colon.map_or((named, None), |colon| (&named[..colon], Some(&named[colon + 1..])));
    let has_host = |(host, path): (&str, &str)| is_host(host) && is_path(path);
    (is_path(name) || name.split_once('/').is_some_and(has_host))
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

/// Returns whether a text is `sha256:` and 64 hexadecimal digits in lower case.
pub(crate) fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_host(text: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let is_address = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
        return !address.is_empty()
            && address.bytes().all(is_address)
            && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port));
    }
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let label = |label: &str| {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(legal) && !label.starts_with('-') && !label.ends_with('-')
    };
    (name.contains('.') || port.is_some() || name == "localhost")
        && name.split('.').all(label)
        && port.is_none_or(is_port)
}

fn is_path(text: &str) -> bool {
    text.len() <= PATH && text.split('/').all(is_component)
}

/// Lower-case letters and digits, with single dots, one or two underscores or any number of dashes between them.
fn is_component(text: &str) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_separator = |run: &[u8]| matches!(run, b"." | b"_" | b"__") || run.iter().all(|byte| *byte == b'-');
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_inner)
        && bytes.last().is_some_and(is_inner)
        && bytes.chunk_by(|a, b| is_inner(a) == is_inner(b)).all(|run| run.iter().all(is_inner) || is_separator(run))
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=TAG).contains(&text.len())
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'-' | b'.'))
        && text.bytes().next().is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    static RULES: LazyLock<[Regex; 2]> =
        LazyLock::new(|| [PATTERN, LENGTH_PATTERN].map(|pattern| Regex::new(pattern).unwrap()));

    fn is_accepted(text: &str) -> bool {
        RULES.iter().all(|rule| rule.is_match(text))
    }

    #[test]
    fn image_references_are_known_from_what_is_none() {
        let digest = format!("sha256:{}", "0f".repeat(32));
        let good = [
            "i".to_owned(),
            "registry.example/workflows/restart:1.0".to_owned(),
            "localhost/restart".to_owned(),
            "localhost:5000/a/b/c:latest".to_owned(),
            "10.0.0.1:5000/restart".to_owned(),
            "REGISTRY.example/restart:V1_0-rc.1".to_owned(),
            "a.b-c_d__e/f---g".to_owned(),
            format!("registry.example/restart@{digest}"),
            format!("registry.example/restart:1.0@{digest}"),
            format!("r/w:{}", "t".repeat(128)),
            "[::1]:5000/workflows/restart:1.0".to_owned(),
            "[2001:DB8::a]/restart".to_owned(),
            "p".repeat(255),
            format!("{}/{}:1.0", "registry.example", "p".repeat(255)),
            format!("[::1]:5000/{}@{digest}", "p".repeat(255)),
        ];
        let bad = [
            String::new(),
            "UPPER/x".to_owned(),
            "Restart".to_owned(),
            "registry.example/Restart".to_owned(),
            "registry.example/".to_owned(),
            "/restart".to_owned(),
            "registry.example//restart".to_owned(),
            "https://registry.example/restart".to_owned(),
            "registry.example/restart:".to_owned(),
            "registry.example/restart:-1".to_owned(),
            "registry.example/restart:a:b".to_owned(),
            "registry.example:port/restart".to_owned(),
            "-registry.example/restart".to_owned(),
            "registry.example/a..b".to_owned(),
            "registry.example/a___b".to_owned(),
            "registry.example/a-".to_owned(),
            "registry.example/a b".to_owned(),
            "registry.example/restart\n".to_owned(),
            "registry.example/restart@sha256:aa".to_owned(),
            format!("registry.example/restart@{}", digest.to_uppercase()),
            format!("registry.example/restart@{digest}@{digest}"),
            format!("registry.example/restart@{digest}:1.0"),
            format!("r/w:{}", "t".repeat(129)),
            "[]/restart".to_owned(),
            "[::1]".to_owned(),
            "[::1]:/restart".to_owned(),
            "[::1]5000/restart".to_owned(),
            "[::g]/restart".to_owned(),
            "[::1/restart".to_owned(),
            "::1/restart".to_owned(),
            "p".repeat(256),
            format!("registry/{}", "p".repeat(247)),
            format!("registry.example/{}:1.0", "p".repeat(256)),
            format!("localhost:5000/{}/b@{digest}", "p".repeat(254)),
        ];
        for (texts, expected) in [(&good[..], true), (&bad[..], false)] {
            for text in texts {
                assert_eq!(is_image_reference(text), expected, "{text:?}");
                assert_eq!(is_accepted(text), expected, "the patterns: {text:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_admission_rule_and_the_check_agree(
            text in prop_oneof![
                "([a-zA-Z.-]{0,8}(:[0-9a]{0,3})?/)?[a-zA-Z0-9._/-]{0,12}(:[a-zA-Z0-9._-]{0,4})?",
                "(localhost(:5)?/|A/|a/|A[.]b/)?[a-c]([._-]{0,3}[a-c]){0,3}(/[a-c])?(@sha256:[0-9a-f]{63,65})?",
                "(\\[?[:a-h1]{0,4}\\]?(:[0-9a]{0,3})?/)?[a-c]{1,2}(:[a-c]{0,2})?",
                "(localhost(:5)?/|a/|a[.]b/|\\[:1\\]/)?[a-b]{250,258}(/a)?(:t)?(@sha256:[0-9a-f]{64})?",
            ],
        ) {
            prop_assert_eq!(is_image_reference(&text), is_accepted(&text), "{}", text);
        }
    }
}
