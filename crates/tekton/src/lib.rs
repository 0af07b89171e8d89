//! All that is known about Tekton: what a `PipelineRun` of ours looks like, and what Tekton reports of it.
//!
//! Pure functions over JSON objects. No client, no clock. Nothing of Tekton's vocabulary leaves this crate but the
//! words that it said, as text.

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
pub use words::MAX_MESSAGE;

/// The API group of Tekton.
pub const GROUP: &str = "tekton.dev";
/// The API version of Tekton that is written and read.
pub const VERSION: &str = "v1";
/// The kind that a run is.
pub const KIND: &str = "PipelineRun";
/// The resource of that kind.
pub const PLURAL: &str = "pipelineruns";
/// The `spec.status` with which a run is created: Tekton starts nothing until it is cleared.
pub const PENDING: &str = "PipelineRunPending";
/// The `spec.status` that asks Tekton to cancel a run at once.
pub const CANCELLED: &str = "Cancelled";
/// `spec.status` of a run that is cancelled but for its `finally` tasks.
pub const CANCELLED_RUN_FINALLY: &str = "CancelledRunFinally";
/// `spec.status` of a run whose tasks that have begun go on, and of which no other begins but for its `finally` tasks.
pub const STOPPED_RUN_FINALLY: &str = "StoppedRunFinally";
