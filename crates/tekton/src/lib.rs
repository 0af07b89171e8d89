//! Everything specific to Tekton: how our `PipelineRuns` look, and what Tekton reports about them.
//!
//! All functions are pure and work on JSON objects, without a client or a clock. Tekton's vocabulary stays within this
//! crate, except in quoted text.

#[cfg(test)]
mod any_shape;
mod bundle;
mod evidence;
mod examine;
mod labels;
mod moment;
mod object;
mod observe;
pub mod reasons;
mod redaction;
mod render;
mod results;
mod steps;
#[cfg(test)]
mod testing;
mod words;

pub use bundle::{DigestConflict, bundle_reference};
pub use evidence::{Evidence, Remains, Sighting};
pub use examine::examine;
pub use labels::label_value;
pub use moment::{api_time, moment, parse_moment, rfc3339};
pub use object::{Object, RUN_UID_LABEL};
pub use observe::{Descendant, belongs, cancel_annotation, observe_descendant, observe_run};
pub use reasons::word_of;
pub use redaction::Redaction;
pub use render::{Defaults, Parameters, RunRequest, TARGET_PARAMETER, render_run};
pub use results::results;
pub use steps::{PodStep, StepState, made_for_run, run_of, steps_of, task_run_of};
pub use words::MAX_MESSAGE;

/// The API group of Tekton.
pub const GROUP: &str = "tekton.dev";
/// The API version of Tekton's objects that the operator writes and reads.
pub const VERSION: &str = "v1";
/// The kind of a run.
pub const KIND: &str = "PipelineRun";
/// The plural of the resource.
pub const PLURAL: &str = "pipelineruns";
/// The annotation of a run with the context of its trace, as JSON: Tekton's own spans become part of that trace.
pub const SPAN_CONTEXT: &str = "tekton.dev/pipelinerunSpanContext";
/// The `spec.status` of a new run. Tekton starts nothing until this field is cleared.
pub const PENDING: &str = "PipelineRunPending";
/// The `spec.status` that requests Tekton to cancel a run at once.
pub const CANCELLED: &str = "Cancelled";
/// The `spec.status` of a run that is cancelled, but still runs its `finally` tasks.
pub const CANCELLED_RUN_FINALLY: &str = "CancelledRunFinally";
/// The `spec.status` of a run that starts only its `finally` tasks after its running tasks finish.
pub const STOPPED_RUN_FINALLY: &str = "StoppedRunFinally";
