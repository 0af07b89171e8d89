//! Fingerprints: what a failure has in common with others (section 13.1).
//!
//! A fingerprint is `<reason>/<subject>`. The subject is the cause: a registry, the cluster, or a version of a
//! workflow. The fingerprint is computed once, when an execution ends, from the findings and never from free text.
//! Fingerprints do not depend on circuits or schedules; circuits use them to find the success that refutes a failure.

use std::fmt;
use std::sync::Arc;

use crate::backoff::draw;
use crate::findings::FailedTask;
use crate::reason::FailureReason;

/// The most characters of a fingerprint, as in `failureDetails.fingerprint`. A longer fingerprint is cut, so two
/// fingerprints that differ only beyond the limit become equal.
pub const LONGEST: usize = 320;
/// The reason of a child that the API server refused. Such a child was never an execution, so circuits ignore it.
const REFUSED: &str = "Refused";
/// The subject of a failure that concerns the whole cluster.
const CLUSTER: &str = "cluster";
const REGISTRY: &str = "registry/";
const WORKFLOW: &str = "workflow/";
/// The host of an image whose reference names no host.
const DEFAULT_REGISTRY: &str = "docker.io";
/// Another name of the default host.
const DEFAULT_REGISTRY_INDEX: &str = "index.docker.io";

/// What a failure has in common with others. It is a single pointer: tens of thousands of records have a fingerprint,
/// and equal fingerprints share their text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(Arc<Box<str>>);

/// What an execution, or a child of a schedule, runs: the parts that fingerprints need. Everything that runs the same
/// shares one `Origin`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// `workflowRef.workflowId`.
    pub workflow_id: Arc<str>,
    /// `workflowRef.version`.
    pub version: Box<str>,
    /// The host from which the bundle is fetched, as [`registry_of`] reads it.
    pub registry: Box<str>,
}

impl Origin {
    /// Reads `workflowRef`.
    #[must_use]
    pub fn new(workflow_id: &str, version: &str, image: &str) -> Self {
        Self { workflow_id: workflow_id.into(), version: version.into(), registry: registry_of(image).into() }
    }
}

/// How far an execution had come when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The execution failed before its turn: its spec cannot be used, it was too late, or a person cancelled it.
    Asking,
    /// The execution failed when its run was to be created or released: that was refused or impossible.
    Creating,
    /// The run was released, but its bundle never yielded a pipeline, for one of several causes that Tekton does not
    /// distinguish.
    Unresolved,
    /// The run was released.
    Released,
}

/// The facts about a failure from which its fingerprint is computed.
#[derive(Clone, Copy, Debug)]
pub struct Symptoms<'a> {
    /// The failure reason.
    pub reason: FailureReason,
    /// How far the execution had come.
    pub stage: Stage,
    /// Whether anything of the workflow ran or may have run (`wasExecutionFailure`).
    pub may_have_run: bool,
    /// Whether a person cancelled the execution, so that nothing is to blame.
    pub cancelled: bool,
    /// The task that failed or was stopped, if any.
    pub task: Option<&'a FailedTask>,
}

impl Fingerprint {
    /// Computes the fingerprint of a failure. The first matching line names the subject.
    #[must_use]
    pub fn of(symptoms: Symptoms<'_>, origin: &Origin) -> Self {
        use FailureReason::{DeadlineExceeded, ImagePullBackOff, ResourceExhausted, Unknown};
        let Symptoms { reason, stage, may_have_run, cancelled, task } = symptoms;
        let subject = match (reason, stage, task) {
            _ if cancelled => of_workflow(origin, task),
            // The registry may never have been contacted, so it is not to blame.
            (ImagePullBackOff, Stage::Unresolved, _) => of_workflow(origin, task),
            // A missing image does not mean that the workflow is broken, even if something of it ran before.
            (ImagePullBackOff, ..) => {
                let of_step = task.and_then(|task| task.registry.as_deref());
                format!("{REGISTRY}{}", of_step.unwrap_or(&origin.registry))
            }
            _ if may_have_run => of_workflow(origin, task),
            (_, Stage::Asking, _) => of_workflow(origin, task),
            // Nothing started, and nothing shows that the workflow is to blame.
            (ResourceExhausted, ..) | (_, Stage::Creating, _) | (Unknown | DeadlineExceeded, _, None) => {
                CLUSTER.to_owned()
            }
            _ => of_workflow(origin, task),
        };
        Self::join(reason.as_str(), &subject)
    }

    /// Returns the fingerprint of a child that the API server refused.
    #[must_use]
    pub fn refused(origin: &Origin) -> Self {
        Self::join(REFUSED, &of_workflow(origin, None))
    }

    /// Reads the fingerprint from a status; `None` if it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (reason, subject) = text.split_once('/')?;
        let is_reason = reason == REFUSED || FailureReason::ALL.iter().any(|known| known.as_str() == reason);
        let names = |kind: &str| subject.strip_prefix(kind).is_some_and(|named| !named.is_empty());
        let is_subject = subject == CLUSTER || names(REGISTRY) || names(WORKFLOW);
        let is_short = text.len() <= LONGEST || text.chars().count() <= LONGEST;
        (is_reason && is_subject && is_short).then(|| Self::from_text(text))
    }

    /// Returns the text of the fingerprint, as in a status.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the reason: a failure reason, or `Refused`.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.parts().0
    }

    /// Returns whether a version of a workflow is to blame.
    #[must_use]
    pub fn is_of_workflow(&self) -> bool {
        self.parts().1.starts_with(WORKFLOW)
    }

    /// Returns whether other targets can fail with this fingerprint for an external cause. A refused child concerns
    /// only its own schedule.
    #[must_use]
    pub fn may_be_shared(&self) -> bool {
        self.reason() != REFUSED
    }

    /// Returns what a success must use to refute this failure of this origin: the same registry, the same version of
    /// the same workflow, or the cluster.
    #[must_use]
    pub(crate) fn refuted_by(&self, origin: &Origin) -> String {
        let (_, subject) = self.parts();
        // Ids and versions may contain any characters, so the subject of a workflow cannot be split.
        if subject.starts_with(WORKFLOW) { of_workflow(origin, None) } else { subject.to_owned() }
    }

    /// Returns what an origin uses, in the form of [`refuted_by`](Self::refuted_by).
    #[must_use]
    pub(crate) fn subjects(origin: &Origin) -> [String; 3] {
        [CLUSTER.to_owned(), format!("{REGISTRY}{}", origin.registry), of_workflow(origin, None)]
    }

    /// Returns a number for the fingerprint that never changes, for the names of events about its circuit.
    #[must_use]
    pub fn number(&self) -> u32 {
        draw(self.as_str(), 0)
    }

    /// Returns the number of references to the fingerprint. The index drops a fingerprint that nothing else refers to.
    #[must_use]
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or((&self.0, ""))
    }

    fn join(reason: &str, subject: &str) -> Self {
        Self::from_text(cut(&format!("{reason}/{subject}"), LONGEST))
    }

    fn from_text(text: &str) -> Self {
        Self(Arc::new(text.into()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Allows searching for a text in a set of fingerprints.
impl std::borrow::Borrow<str> for Fingerprint {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

fn of_workflow(origin: &Origin, task: Option<&FailedTask>) -> String {
    let mut subject = format!("{WORKFLOW}{}@{}", origin.workflow_id, origin.version);
    for part in task.into_iter().flat_map(|task| [Some(task.name.to_string()), task.exit_code.map(|it| it.to_string())])
    {
        let Some(part) = part.filter(|part| !part.is_empty()) else { break };
        subject.push('/');
        subject.push_str(&part);
    }
    subject
}

/// Returns the host from which an image is fetched, in lower case and with its port. Never fails: a text that is no
/// image reference has the default host.
#[must_use]
pub fn registry_of(image: &str) -> String {
    // The first part is a host only if it has a dot or a port, or is `localhost`.
    let is_host = |part: &str| part.contains(['.', ':']) || part.eq_ignore_ascii_case("localhost");
    let host = image.split_once('/').map(|(first, _)| first).filter(|first| is_host(first));
    let host = host.map_or_else(|| DEFAULT_REGISTRY.to_owned(), str::to_ascii_lowercase);
    if host == DEFAULT_REGISTRY_INDEX { DEFAULT_REGISTRY.to_owned() } else { host }
}

/// Cuts a text to a number of characters.
fn cut(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests;
