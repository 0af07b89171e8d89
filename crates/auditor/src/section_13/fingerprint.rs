//! What a fingerprint touches (section 13.1).

use super::{ALL, Runs};

/// The most characters of a fingerprint.
const LONGEST: usize = 320;

/// Tells whether a circuit touches what runs this: its registry, the same version of its workflow, or everything.
pub(super) fn touches(key: &str, runs: Runs<'_>) -> bool {
    let Some((reason, subject)) = key.split_once('/') else { return key == ALL };
    let cut = |whole: String| whole.chars().take(LONGEST).collect::<String>();
    if subject.starts_with("registry/") {
        return key == cut(format!("{reason}/registry/{}", host(runs.image)));
    }
    if subject.starts_with("workflow/") {
        let mine = cut(format!("{reason}/workflow/{}@{}", runs.workflow, runs.version));
        return key.strip_prefix(&mine).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    }
    subject == "cluster"
}

/// Returns the host of a reference to an image; that of Docker where it names none.
pub(super) fn host(image: &str) -> String {
    let first = image.split_once('/').map_or("", |(first, _)| first).to_lowercase();
    let is_host = first.contains('.') || first.contains(':') || first == "localhost";
    if is_host && first != "index.docker.io" { first } else { "docker.io".to_owned() }
}
