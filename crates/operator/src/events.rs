//! Kubernetes events (events.k8s.io/v1), each at most once.
//!
//! An event has a deterministic name, made of the execution's uid and the transition. The event is created after the
//! status write that it announces, or when the watch shows a write whose answer was lost (`unconfirmed`). If the event
//! already exists, nothing is left to do. A crash between the write and the event loses the event, except for an end,
//! which the next leader announces (`ends`). The conditions remain the source of truth. An event about a schedule is
//! named by the schedule's uid and by a slot, a generation or a version, which distinguishes transitions. An event
//! about a circuit is named by the uid of the `ConfigMap`, the circuit's fingerprint and the time of its opening. An
//! event about the `ConfigMap` is named by its uid and version, so that several replicas announce a version once.

mod attempts;
mod circuits;
mod schedules;
mod writer;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use wfe_api::SkipReason;
use wfe_core::action::Skew;
use wfe_core::awaiting::Unanswered;
use wfe_core::blocks::Blocked;
use wfe_core::ending::{Failure, Skip, Success};
use wfe_core::execution::Clearance;
use wfe_core::guard::Directive;
use wfe_core::name::{ExecutionId, RunId, ScheduleId};
use wfe_core::reason::BlockReason;
use wfe_core::residue::ResidueId;
use wfe_core::target::TargetName;
use wfe_core::{Time, duration};
use wfe_settings::config::ConfigObject;
use wfe_view::index::{EndPhase, EndShown};
use wfe_view::printable::line;

pub use attempts::FailedAttempt;
pub use writer::{EventWriter, Events, channel};

/// The limit of a note in bytes: the API server refuses longer ones.
const MAX_NOTE: usize = 1024;
/// How much of the object's name becomes part of an event's name. 170 characters, a uid of 36, a version of 20 and the
/// longest transition together stay below 253.
const MAX_NAME: usize = 170;

/// The object that an event is about.
#[derive(Clone, Debug)]
enum About {
    Execution(ExecutionId),
    /// A schedule, with a text that distinguishes transitions with the same reason.
    Schedule(ScheduleId, String),
    ConfigMap(ConfigVersion),
    /// A circuit, with a text that distinguishes its openings. The event is about the `ConfigMap` with the circuit's
    /// settings.
    Circuit(ConfigObject, String),
}

/// One version of the operator's `ConfigMap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigVersion {
    /// The namespace of the `ConfigMap`.
    pub namespace: String,
    /// The name of the `ConfigMap`.
    pub name: String,
    /// The uid of the `ConfigMap`.
    pub uid: String,
    /// The resourceVersion of the `ConfigMap`.
    pub version: String,
}

impl From<&ExecutionId> for About {
    fn from(execution: &ExecutionId) -> Self {
        Self::Execution(execution.clone())
    }
}

impl From<&ConfigVersion> for About {
    fn from(version: &ConfigVersion) -> Self {
        Self::ConfigMap(version.clone())
    }
}

/// An event that is not written yet, about an execution, a schedule, a circuit or the configuration.
#[derive(Clone, Debug)]
pub struct NewEvent {
    about: About,
    run: Option<RunId>,
    reason: &'static str,
    action: &'static str,
    warning: bool,
    note: String,
    /// The number of the attempt, as part of the event's name.
    attempt: Option<u32>,
    /// The position among the events of one write.
    place: u8,
    /// An end that another process may have announced. It is counted only if the event did not exist yet.
    end: Option<Box<EndShown>>,
}

impl NewEvent {
    /// The execution got its turn, or its next attempt begins. With a retry policy, `attempt` is the number of the
    /// attempt and the limit of attempts.
    #[must_use]
    pub fn pipeline_run_created(execution: &ExecutionId, run: &RunId, attempt: Option<(u32, u32)>) -> Self {
        let of = attempt.map(|(number, of)| format!(", attempt {number} of {of}")).unwrap_or_default();
        let note = format!("PipelineRun {run} holds the target and runs the workflow{of}");
        let attempt = attempt.map(|(number, _)| number).filter(|number| *number > 1);
        Self { run: Some(run.clone()), attempt, ..Self::normal(execution, "PipelineRunCreated", "Run", note) }
    }

    /// The execution completed.
    #[must_use]
    pub fn completed(execution: &ExecutionId, success: &Success) -> Self {
        let note = format!("the workflow completed after {}", duration::format(success.ran_for));
        Self::normal(execution, "WorkflowCompleted", "Finish", note)
    }

    /// The execution failed.
    #[must_use]
    pub fn failed(execution: &ExecutionId, failure: &Failure) -> Self {
        let note = format!("{}: {}", failure.shown_reason(), failure.message);
        let place = if failure.tried.is_some() { 3 } else { 0 };
        Self { warning: true, place, ..Self::normal(execution, "WorkflowFailed", "Finish", note) }
    }

    /// The execution ended, as its status shows; the process that wrote the end may not have announced it.
    #[must_use]
    pub fn end_shown(execution: &ExecutionId, end: EndShown) -> Self {
        let told = match end.phase {
            EndPhase::Completed => {
                let took = end.ran_for.map(|ran_for| format!(" after {}", duration::format(ran_for)));
                let note = format!("the workflow completed{}", took.unwrap_or_default());
                Self::normal(execution, "WorkflowCompleted", "Finish", note)
            }
            EndPhase::Failed => {
                let note = format!("{}: {}", end.reason, end.message);
                Self { warning: true, ..Self::normal(execution, "WorkflowFailed", "Finish", note) }
            }
            EndPhase::Skipped { reason, .. } => {
                let warning = reason == SkipReason::ExhaustedRetries;
                let note = format!("{}: {}", end.reason, end.message);
                Self { warning, ..Self::normal(execution, "Skipped", "Skip", note) }
            }
        };
        Self { end: Some(Box::new(end)), ..told }
    }

    /// The target has drained and is free, some time after the execution ended. If the end itself frees the target,
    /// there is no such event.
    #[must_use]
    pub fn lock_released(execution: &ExecutionId, target: Option<&TargetName>) -> Self {
        let note = format!("{} is free", target.map_or("the target", TargetName::as_str));
        Self::normal(execution, "LockReleased", "Release", note)
    }

    /// The failure of the execution blocks its target until a person clears it.
    #[must_use]
    pub fn target_blocked(execution: &ExecutionId, target: &TargetName, reason: BlockReason) -> Self {
        let note = format!("{}: {}", reason.as_str(), Blocked::Yes(reason).message(target.as_str()));
        Self { warning: true, place: 5, ..Self::normal(execution, "TargetBlocked", "Block", note) }
    }

    /// A person has lifted the block that the execution had left on its target.
    #[must_use]
    pub fn block_cleared(execution: &ExecutionId, clearance: &Clearance) -> Self {
        let note = format!("{} has cleared the target: {}", clearance.author(), clearance.reason);
        Self::normal(execution, "BlockCleared", "Clear", note)
    }

    /// The execution was skipped.
    #[must_use]
    pub fn skipped(execution: &ExecutionId, skip: &Skip, message: &str) -> Self {
        // A person must act before the target accepts another run.
        let warning = matches!(skip, Skip::ExhaustedRetries { .. });
        Self { warning, ..Self::normal(execution, "Skipped", "Skip", format!("{}: {message}", skip.reason())) }
    }

    /// The clearance or cancellation of the execution has no effect now, because no policy guards it.
    #[must_use]
    pub fn unguarded(execution: &ExecutionId, kind: Directive) -> Self {
        let note = kind.message(false).to_owned();
        let told = match kind {
            Directive::Clearance => Self::normal(execution, "ClearanceUnguarded", "Clear", note),
            Directive::Cancellation => Self::normal(execution, "CancellationUnguarded", "Cancel", note),
        };
        Self { warning: true, ..told }
    }

    /// The target of the execution does not drain.
    #[must_use]
    pub fn drain_slow(holder: &ExecutionId, residue: &ResidueId, since: Time) -> Self {
        let (kind, name) = (residue.kind.as_str(), &residue.name);
        let since = since.format("%Y-%m-%dT%H:%M:%SZ");
        let note = format!(
            "the target is not free: {kind} {name} is unfinished, draining since {since}; see why it does not stop"
        );
        Self { warning: true, ..Self::normal(holder, "DrainSlow", "Drain", note) }
    }

    /// Tekton does not react to the request to stop the run of the execution. `attempt` is set from the second attempt
    /// on.
    #[must_use]
    pub fn cancel_unanswered(execution: &ExecutionId, unanswered: &Unanswered, attempt: Option<u32>) -> Self {
        let run = Some(unanswered.run.clone());
        let note = format!("the target stays locked: {}", unanswered.message());
        Self { run, warning: true, attempt, ..Self::normal(execution, "CancelUnanswered", "Cancel", note) }
    }

    /// Steps of the execution have run a second time. `attempt` is set from the second attempt on.
    #[must_use]
    pub fn steps_replayed(execution: &ExecutionId, run: &RunId, task_run: &str, attempt: Option<u32>) -> Self {
        let note = format!(
            "the pod of TaskRun {task_run} was replaced while it ran, so its steps ran again; see what they did"
        );
        let run = Some(run.clone());
        Self { run, warning: true, attempt, ..Self::normal(execution, "StepsReplayed", "Follow", note) }
    }

    /// The pipeline of the run did not declare parameters of these names.
    #[must_use]
    pub fn parameters_undeclared(execution: &ExecutionId, run: Option<&RunId>, names: &str) -> Self {
        // The names come last, because a note may not have room for all of them.
        let note = format!(
            "no task got the value of a parameter that the pipeline does not declare: declare it in the pipeline, or leave \
             it out of spec.parameters. The pipeline does not declare: {names}"
        );
        let run = run.cloned();
        Self { run, warning: true, place: 4, ..Self::normal(execution, "ParametersUndeclared", "Finish", note) }
    }

    /// The clock that timed the run differs from the operator's clock.
    #[must_use]
    pub fn clock_skewed(execution: &ExecutionId, skew: Skew) -> Self {
        let at = |time: Time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let note = match skew {
            Skew::Ahead { said, taken } => {
                format!("the run says that it ended at {}; {} is taken, as clocks differ", at(said), at(taken))
            }
            Skew::Behind { said, started_at } => format!(
                "the run says that it ended at {}, before the execution started at {}; it is believed, so the cooldown or \
                 backoff that follows is shorter: Tekton's clock is behind the operator's",
                at(said),
                at(started_at)
            ),
        };
        Self { warning: true, ..Self::normal(execution, "ClockSkewed", "Finish", note) }
    }

    /// A version of the `ConfigMap` cannot be used.
    #[must_use]
    pub fn config_refused(config: &ConfigVersion, note: String) -> Self {
        Self { warning: true, ..Self::normal(config, "ConfigRefused", "Configure", note) }
    }

    /// A version of the `ConfigMap` is in force.
    #[must_use]
    pub fn config_applied(config: &ConfigVersion, note: String) -> Self {
        Self::normal(config, "ConfigApplied", "Configure", note)
    }

    fn normal(about: impl Into<About>, reason: &'static str, action: &'static str, note: String) -> Self {
        Self {
            about: about.into(),
            run: None,
            reason,
            action,
            warning: false,
            note,
            attempt: None,
            place: 0,
            end: None,
        }
    }

    fn name(&self) -> String {
        let (name, uid, transition) = match &self.about {
            About::Execution(id) => (&*id.name, id.uid.to_string(), String::new()),
            About::Schedule(id, transition) => (&*id.name, id.uid.to_string(), format!("{transition}.")),
            About::ConfigMap(config) => (config.name.as_str(), config.uid.clone(), format!("{}.", config.version)),
            About::Circuit(config, opening) => (config.name.as_str(), config.uid.clone(), format!("{opening}.")),
        };
        let head = name[..name.len().min(MAX_NAME)].trim_end_matches(['.', '-']);
        let attempt = self.attempt.map(|attempt| format!(".{attempt}")).unwrap_or_default();
        format!("{head}.{uid}.{transition}{}{attempt}", self.reason.to_ascii_lowercase())
    }

    fn regarding(&self) -> ObjectReference {
        match &self.about {
            About::Execution(id) => ObjectReference {
                api_version: Some(format!("{}/{}", wfe_api::GROUP, wfe_api::VERSION)),
                kind: Some("WorkflowExecution".to_owned()),
                namespace: Some(id.namespace.to_string()),
                name: Some(id.name.to_string()),
                uid: Some(id.uid.to_string()),
                ..ObjectReference::default()
            },
            About::Schedule(id, _) => ObjectReference {
                api_version: Some(format!("{}/{}", wfe_api::GROUP, wfe_api::VERSION)),
                kind: Some(wfe_api::workflow_schedule::KIND.to_owned()),
                namespace: Some(id.namespace.to_string()),
                name: Some(id.name.to_string()),
                uid: Some(id.uid.to_string()),
                ..ObjectReference::default()
            },
            About::ConfigMap(config) => ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("ConfigMap".to_owned()),
                namespace: Some(config.namespace.clone()),
                name: Some(config.name.clone()),
                uid: Some(config.uid.clone()),
                resource_version: Some(config.version.clone()),
                ..ObjectReference::default()
            },
            About::Circuit(config, _) => ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("ConfigMap".to_owned()),
                namespace: Some(config.namespace.clone()),
                name: Some(config.name.clone()),
                uid: Some(config.uid.clone()),
                ..ObjectReference::default()
            },
        }
    }

    fn render(&self, instance: &str, run_namespace: &str, at: Timestamp) -> Event {
        let regarding = self.regarding();
        let related = self.run.as_ref().map(|run| ObjectReference {
            api_version: Some(format!("{}/{}", wfe_tekton::GROUP, wfe_tekton::VERSION)),
            kind: Some(wfe_tekton::KIND.to_owned()),
            namespace: Some(run_namespace.to_owned()),
            name: Some(run.name.to_string()),
            uid: Some(run.uid.to_string()),
            ..ObjectReference::default()
        });
        let note = line(&self.note);
        Event {
            metadata: ObjectMeta {
                name: Some(self.name()),
                namespace: regarding.namespace.clone(),
                ..ObjectMeta::default()
            },
            // The times show the order of the events of one write, however fast they are written.
            event_time: Some(MicroTime(at + SignedDuration::from_micros(self.place.into()))),
            reporting_controller: Some(format!("{}/{}", wfe_api::GROUP, wfe_api::labels::MANAGED_BY)),
            reporting_instance: Some(instance.to_owned()),
            action: Some(self.action.to_owned()),
            reason: Some(self.reason.to_owned()),
            regarding: Some(regarding),
            related,
            note: Some(note[..note.floor_char_boundary(MAX_NOTE)].to_owned()),
            type_: Some(if self.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wfe_core::name::Uid;

    pub(super) fn rendered(announcement: &NewEvent) -> Event {
        announcement.render("pod", "runs", Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_event_has_one_name_for_one_transition_of_one_object() {
        let id = |name: &str, uid: &str| ExecutionId { namespace: "ops".into(), name: name.into(), uid: Uid::new(uid) };
        let note = || String::new();
        let name = |id: &ExecutionId, reason| NewEvent::normal(id, reason, "Skip", note()).name();
        let first = name(&id("fix", "u-1"), "Skipped");
        assert_eq!(first, "fix.u-1.skipped");
        assert_ne!(first, name(&id("fix", "u-2"), "Skipped"));
        let long = name(&id(&"x".repeat(253), "0123456789abcdef0123456789abcdef0123"), "PipelineRunCreated");
        assert!(long.len() <= 253, "{}", long.len());
        let config = ConfigVersion {
            namespace: "ops".into(),
            name: "x".repeat(253),
            uid: "0123456789abcdef0123456789abcdef0123".into(),
            version: u64::MAX.to_string(),
        };
        let name = NewEvent::config_refused(&config, note()).name();
        assert!(name.len() <= 253 && name.ends_with(".18446744073709551615.configrefused"), "{name}");
    }

    #[test]
    fn a_text_of_others_does_nothing_where_an_event_is_shown() {
        let id = ExecutionId { namespace: "ops".into(), name: "fix".into(), uid: Uid::new("u") };
        let announcement = NewEvent::normal(&id, "Skipped", "Skip", "a\u{1b}[2J\nb\u{202e}c".to_owned());
        assert_eq!(rendered(&announcement).note.as_deref(), Some(r"a\u{1b}[2J\nb\u{202e}c"));
        let long = NewEvent::normal(&id, "Skipped", "Skip", "\u{202e}".repeat(MAX_NOTE));
        assert!(rendered(&long).note.is_some_and(|note| note.len() <= MAX_NOTE));
    }
}
