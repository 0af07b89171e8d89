//! One WorkflowExecution over time: its statuses, commits, attempts and end.

use serde_json::Value;
use wfe_api::Phase;
use wfe_core::target::TargetName;

use super::attempt::Attempt;
use super::life::{Life, Written, phase};
use super::run::Run;
use super::schedule::ChildOf;
use super::text;
use crate::report::{Moment, ObjectRef};
use crate::section_11::Retry;

/// One WorkflowExecution.
#[derive(Debug)]
pub(crate) struct Execution<'a> {
    pub(crate) object: ObjectRef,
    pub(crate) created: Moment,
    pub(crate) gone: Option<Moment>,
    /// The target in canonical form; `None` if the spec contains no valid target.
    pub(crate) target: Option<TargetName>,
    /// The target as the spec spells it.
    pub(crate) target_as_written: &'a str,
    /// The statuses, of which each differs from the one before. The first status is from the creation, and mostly null.
    pub(crate) written: Vec<Written<'a>>,
    pub(crate) commits: Vec<Commit<'a>>,
    /// The retry policy, which never changes; `None` if there is a single attempt.
    pub(crate) retry: Option<Retry>,
    /// The attempts in the statuses. They are used only with a retry policy.
    pub(crate) attempts: Vec<Attempt<'a>>,
    /// The slot for which a schedule has made the execution, if any.
    pub(crate) child: Option<ChildOf<'a>>,
    /// The slot that the execution's reference claims, even if the name of the execution does not fit.
    pub(crate) claim: Option<ChildOf<'a>>,
    /// The child whose failure the execution analyses, if a triage has made the execution.
    pub(crate) analyses: Option<ChildOf<'a>>,
    /// All versions of the object. Each write was decided on one of them.
    versions: Vec<(Moment, &'a Value)>,
}

/// The write with which an execution commits to its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Commit<'a> {
    pub(crate) at: Moment,
    /// The uid of the run.
    pub(crate) run: &'a str,
    pub(crate) run_name: &'a str,
    pub(crate) status: &'a Value,
}

// === impl Execution ===

impl<'a> Execution<'a> {
    pub(super) fn read(life: &Life<'a>) -> Self {
        let mut written: Vec<Written<'a>> = Vec::new();
        let mut commits: Vec<Commit<'a>> = Vec::new();
        for (at, object) in &life.states {
            let status = object.get("status").unwrap_or(&Value::Null);
            if written.last().is_some_and(|last| last.status == status) {
                continue;
            }
            written.push(Written { at: *at, status });
            if let Some(run) = text(status, "/pipelineRunRef/uid")
                && commits.last().is_none_or(|last| last.run != run)
            {
                let run_name = text(status, "/pipelineRunRef/name").unwrap_or_default();
                commits.push(Commit { at: *at, run, run_name, status });
            }
        }
        let target_as_written = text(life.first(), "/spec/targetResource").unwrap_or_default();
        Self {
            object: life.object(),
            created: life.begun(),
            gone: life.gone,
            target: TargetName::parse(target_as_written).ok(),
            target_as_written,
            retry: Retry::read(&life.first()["spec"]),
            attempts: Attempt::read_all(&written),
            child: ChildOf::read(life.first()),
            claim: ChildOf::claim(life.first()),
            analyses: ChildOf::analysed(life.first()),
            written,
            commits,
            versions: life.states.clone(),
        }
    }

    /// Returns the version of the object at a moment.
    pub(crate) fn object_at(&self, moment: Moment) -> &'a Value {
        self.versions.iter().rev().find(|(at, _)| *at <= moment).map_or(&Value::Null, |(_, object)| object)
    }

    /// Returns whether a commit is for a further attempt. Rules 2 to 5 apply only before the first attempt, because the
    /// execution holds its target afterwards.
    pub(crate) fn is_of_further_attempt(&self, commit: &Commit<'_>) -> bool {
        self.retry.is_some() && self.commits.first().is_some_and(|first| first.at < commit.at)
    }

    /// Returns whether an execution with this status may commit to a pending run for its next attempt (section 11). It
    /// must be Running, have a retry policy, and have committed only to lower numbers.
    pub(crate) fn may_commit_to(&self, run: &Run<'_>, status: &Value) -> bool {
        let last = status["runSequence"].as_u64();
        let is_next = last.is_none_or(|last| last < run.number);
        self.retry.is_some() && phase(status) == Some(Phase::Running) && run.never_ran() && is_next
    }

    /// Returns the moment of the version that a write replaced.
    pub(crate) fn version_before(&self, write: Moment) -> Moment {
        self.versions.iter().rev().find(|(at, _)| *at < write).map_or(self.created, |(at, _)| *at)
    }

    /// Lists the moments at which the object changed or was deleted.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Moment> {
        self.versions.iter().map(|(at, _)| *at).chain(self.gone)
    }

    /// Returns `spec.workflowRef.workflowId`, which never changes.
    pub(crate) fn workflow_id(&self) -> &'a str {
        self.versions.first().and_then(|(_, object)| text(object, "/spec/workflowRef/workflowId")).unwrap_or_default()
    }

    /// Returns the repository of the bundle, and the digest if the bundle is pinned. Neither ever changes.
    pub(crate) fn bundle(&self) -> (&'a str, Option<&'a str>) {
        let of_spec = |field: &str| text(self.versions.first()?.1, &format!("/spec/workflowRef/{field}"));
        let image = of_spec("containerImage").unwrap_or_default();
        let (tagged, inside) = match image.rsplit_once('@') {
            Some((tagged, digest)) => (tagged, Some(digest)),
            None => (image, None),
        };
        // Text after a colon is a tag. If it contains a slash, the colon is before a port.
        let repository = match tagged.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => repository,
            _ => tagged,
        };
        (repository, of_spec("containerDigest").or(inside))
    }

    /// Returns whether the same schedule made both executions.
    pub(crate) fn is_sibling_of(&self, other: &Execution<'_>) -> bool {
        matches!((self.child, other.child), (Some(mine), Some(theirs)) if mine.schedule == theirs.schedule)
    }

    /// Returns `spec.recoveryOf`, which never changes.
    pub(crate) fn recovery_of(&self) -> Option<&'a str> {
        text(self.versions.first()?.1, "/spec/recoveryOf")
    }

    /// Returns the last status of the execution.
    pub(crate) fn last(&self) -> &'a Value {
        self.written.last().map_or(&Value::Null, |last| last.status)
    }

    /// Returns the status of the execution at a moment.
    pub(crate) fn at(&self, moment: Moment) -> &'a Value {
        let before = |written: &&Written<'_>| written.at <= moment;
        self.written.iter().rev().find(before).map_or(&Value::Null, |written| written.status)
    }

    /// Returns the write that made the execution terminal.
    pub(crate) fn ended(&self) -> Option<Written<'a>> {
        self.written.iter().copied().find(|written| written.phase().is_some_and(Phase::is_terminal))
    }

    /// Returns whether the execution existed at a moment.
    pub(crate) fn exists_at(&self, moment: Moment) -> bool {
        self.created <= moment && self.gone.is_none_or(|gone| moment < gone)
    }

    pub(crate) fn shown_target(&self) -> String {
        self.target.as_ref().map_or_else(|| format!("'{}'", self.target_as_written), ToString::to_string)
    }
}
