//! What a fingerprint is about (section 13.1), and so what success refutes it (section 13.5).

use super::Runs;

/// Returns what a success has to use to refute a failure of what runs this: the same registry, the same version of its
/// workflow, or the cluster.
pub(super) fn subject(fingerprint: &str, runs: Runs<'_>) -> String {
    let subject = fingerprint.split_once('/').map_or("", |(_, subject)| subject);
    if subject.starts_with("workflow/") { workflow(runs) } else { subject.to_owned() }
}

/// Tells whether what runs this uses a subject.
pub(super) fn uses(subject: &str, runs: Runs<'_>) -> bool {
    subject == "cluster" || subject == format!("registry/{}", host(runs.image)) || subject == workflow(runs)
}

fn workflow(runs: Runs<'_>) -> String {
    format!("workflow/{}@{}", runs.workflow, runs.version)
}

/// Returns the host of a reference to an image; that of Docker where it names none.
pub(super) fn host(image: &str) -> String {
    let first = image.split_once('/').map_or("", |(first, _)| first).to_lowercase();
    let is_host = first.contains('.') || first.contains(':') || first == "localhost";
    if is_host && first != "index.docker.io" { first } else { "docker.io".to_owned() }
}
