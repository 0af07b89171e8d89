//! Everything about Tekton: how our `PipelineRuns` look, and what Tekton reports about them.
//!
//! Pure functions over JSON objects, without a client and a clock. Tekton's vocabulary does not leave this crate,
//! except as quoted text.

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
/// The API version of Tekton's objects that is written and read.
pub const VERSION: &str = "v1";
/// The kind of a run.
pub const KIND: &str = "PipelineRun";
/// The resource of that kind.
pub const PLURAL: &str = "pipelineruns";
/// The `spec.status` of a new run: Tekton starts nothing until it is cleared.
pub const PENDING: &str = "PipelineRunPending";
/// The `spec.status` that asks Tekton to cancel a run at once.
pub const CANCELLED: &str = "Cancelled";
/// The `spec.status` of a run that is cancelled except for its `finally` tasks.
pub const CANCELLED_RUN_FINALLY: &str = "CancelledRunFinally";
/// The `spec.status` of a run whose running tasks finish, and that starts only its `finally` tasks.
pub const STOPPED_RUN_FINALLY: &str = "StoppedRunFinally";
