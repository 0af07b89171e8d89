//! A plan: everything that affects a cluster and its operators from outside, written down in advance.
//!
//! A plan is drawn from a seed, or read from a file. The operators' reactions depend on the plan alone, so a plan that
//! has broken a rule will break it again.

mod draw;
mod operation;

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cluster::scripts::VERSIONS;
pub use operation::{Create, Edit, Hint, NewSchedule, Operation};

/// The namespaces of executions.
pub const NAMESPACES: [&str; 2] = ["ops", "payment"];

/// Milliseconds of virtual time since the plan began.
pub type Millis = u64;

/// A plan of external events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// The seed of random details: the duration of each request, the uids, and the jitter of the election.
    pub seed: u64,
    /// How many replicas there are.
    #[serde(default = "two")]
    pub replicas: u8,
    /// The flags of all operators, such as `--cooldown-period=30s`.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The version of Tekton whose recorded stories are played.
    #[serde(default = "newest")]
    pub tekton: String,
    /// The operations of people and programs, in order of time.
    #[serde(default)]
    pub acts: Vec<Act>,
    /// The faults and their times. Every fault that can heal has healed by the end of the last one.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

fn two() -> u8 {
    2
}

fn newest() -> String {
    "v1.12.0".to_owned()
}

/// An operation at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Act {
    /// When the operation is performed.
    pub at: Millis,
    /// The operation.
    #[serde(rename = "do")]
    pub what: Operation,
}

/// A fault during a period of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fault {
    /// When the fault begins.
    pub from: Millis,
    /// When the fault ends.
    pub to: Millis,
    /// The affected replica; `None` for all replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<u8>,
    /// The kind of the fault.
    pub what: Trouble,
}

/// A kind of fault. `percent` is the percentage of affected requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Trouble {
    /// Requests never arrive.
    Lost {
        /// The percentage of affected requests.
        percent: u8,
    },
    /// Requests are executed, but their answers never arrive.
    AnswerLost {
        /// The percentage of affected requests.
        percent: u8,
    },
    /// Requests arrive twice.
    Doubled {
        /// The percentage of affected requests.
        percent: u8,
    },
    /// Requests arrive late, possibly after their sender has given up.
    Late {
        /// The percentage of affected requests.
        percent: u8,
        /// The delay, in milliseconds.
        by: Millis,
    },
    /// Requests are refused with this HTTP status.
    Refused {
        /// The percentage of affected requests.
        percent: u8,
        /// The HTTP status, such as 429 or 503.
        code: u16,
        /// The affected verb, such as `patch`; empty for all verbs.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        verb: String,
        /// The affected resource, such as `pipelineruns`; empty for all resources.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        resource: String,
    },
    /// The operator lacks the permission for this operation.
    Denied {
        /// The verb, such as `create`.
        verb: String,
        /// The resource, such as `pipelineruns`.
        resource: String,
    },
    /// The API server does not serve this kind.
    KindMissing {
        /// The resource, such as `pipelineruns`.
        resource: String,
    },
    /// The CRD of executions is replaced by a CRD that lacks these fields.
    FieldsDropped {
        /// The fields, such as `status.pipelineRunRef`.
        fields: Vec<String>,
    },
    /// Watches deliver late.
    WatchLate {
        /// The affected resource; empty for all resources.
        #[serde(default)]
        resource: String,
        /// The delay, in milliseconds.
        by: Millis,
    },
    /// Watches stay open, but deliver nothing.
    WatchSilent {
        /// The affected resource; empty for all resources.
        #[serde(default)]
        resource: String,
    },
    /// Watches break, and new ones are refused with this HTTP status.
    WatchRefused {
        /// The affected resource; empty for all resources.
        #[serde(default)]
        resource: String,
        /// The HTTP status, such as 410 or 403.
        code: u16,
    },
    /// No request of the replica arrives, and its watches are silent.
    Partition,
    /// The process is killed, and another starts when the fault ends.
    Crash,
    /// The process is asked to stop, and another starts when the fault ends.
    Restart,
    /// The clock is wrong by this many seconds. This fault does not heal.
    Clock {
        /// How many seconds the clock is ahead; negative if it is behind.
        ahead: i32,
    },
    /// When the fault begins, the API server forgets all earlier changes, so watches from before expire.
    Compacted,
    /// Tekton's controller is stopped.
    TektonDown,
    /// Tekton ignores requests to stop a run during this fault. After the fault it ignores such a run until the run
    /// changes again.
    CancelsLost,
    /// Nothing can be fetched from this registry.
    RegistryDown {
        /// The host of the registry, such as `registry.test`.
        registry: String,
    },
    /// A namespace is paused.
    NamespacePaused {
        /// The name of the namespace.
        namespace: String,
    },
    /// Everything is paused.
    Paused,
}

impl Trouble {
    /// Returns the name of this kind of fault for counters.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "lost",
            Self::AnswerLost { .. } => "answer-lost",
            Self::Doubled { .. } => "doubled",
            Self::Late { .. } => "late",
            Self::Refused { .. } => "refused",
            Self::Denied { .. } => "denied",
            Self::KindMissing { .. } => "kind-missing",
            Self::FieldsDropped { .. } => "fields-dropped",
            Self::WatchLate { .. } => "watch-late",
            Self::WatchSilent { .. } => "watch-silent",
            Self::WatchRefused { .. } => "watch-refused",
            Self::Partition => "partition",
            Self::Crash => "crash",
            Self::Restart => "restart",
            Self::Clock { .. } => "clock",
            Self::Compacted => "compacted",
            Self::TektonDown => "tekton-down",
            Self::CancelsLost => "cancels-lost",
            Self::RegistryDown { .. } => "registry-down",
            Self::NamespacePaused { .. } => "namespace-paused",
            Self::Paused => "paused",
        }
    }

    /// Returns whether an operator can still write the statuses of all executions. It can if it lacks only the
    /// permission to create or get, or if only a registry or Tekton is affected.
    #[must_use]
    pub fn leaves_statuses(&self) -> bool {
        match self {
            Self::Denied { verb, .. } => verb == "create" || verb == "get",
            Self::RegistryDown { .. } | Self::CancelsLost | Self::TektonDown => true,
            _ => false,
        }
    }

    /// Returns whether the fault only delays watches, or lets them expire.
    #[must_use]
    pub fn is_about_watches(&self) -> bool {
        matches!(self, Self::WatchSilent { .. } | Self::WatchLate { .. } | Self::Compacted)
    }

    /// Returns whether the fault ends by itself.
    #[must_use]
    pub fn heals(&self) -> bool {
        !matches!(self, Self::Clock { .. })
    }
}

impl Fault {
    /// Returns whether the fault affects a replica at this time.
    #[must_use]
    pub fn strikes(&self, replica: u8, at: Millis) -> bool {
        self.replica.is_none_or(|struck| struck == replica)
            && (!self.what.heals() || (self.from..self.to).contains(&at))
    }
}

/// Why a plan cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file cannot be read.
    #[error("cannot read the plan {path}")]
    Unreadable {
        /// The path of the file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file contains no plan.
    #[error("{path} is no plan: {source}; a field or a word is wrong there, tests/simulation/src/plan.rs lists them")]
    Invalid {
        /// The path of the file.
        path: String,
        /// The error and its position.
        source: serde_json::Error,
    },
    /// The plan has a contradiction.
    #[error("the plan cannot be played: {0}")]
    Impossible(String),
}

impl Plan {
    /// Reads a plan from a JSON file.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| PlanError::Unreadable { path: shown(), source })?;
        let plan: Self = serde_json::from_str(&text).map_err(|source| PlanError::Invalid { path: shown(), source })?;
        plan.check()?;
        Ok(plan)
    }

    /// Checks the rules of a plan that the types do not enforce.
    pub fn check(&self) -> Result<(), PlanError> {
        let impossible = |why: String| Err(PlanError::Impossible(why));
        if !(1..=3).contains(&self.replicas) {
            return impossible(format!("replicas: {} is not between 1 and 3", self.replicas));
        }
        if !VERSIONS.contains(&self.tekton.as_str()) {
            let recorded = VERSIONS.join(" and ");
            return impossible(format!("tekton: {} was never recorded, {recorded} were", self.tekton));
        }
        for (number, fault) in self.faults.iter().enumerate() {
            if fault.to < fault.from {
                return impossible(format!(
                    "faults[{number}]: ends at {} before it begins at {}",
                    fault.to, fault.from
                ));
            }
            if fault.replica.is_some_and(|replica| replica >= self.replicas) {
                return impossible(format!("faults[{number}]: there is no such replica; they count from 0"));
            }
        }
        for (number, act) in self.acts.iter().enumerate() {
            let name = act.what.object();
            if name.split('/').count() != 2 {
                return impossible(format!("acts[{number}]: {name} is not namespace/name"));
            }
        }
        Ok(())
    }

    /// Returns whether every leader's view is current, so that limits are exact. A view may be outdated if a request
    /// can arrive in the next leader's term, or if watches can be behind.
    #[must_use]
    pub fn is_seen_in_time(&self) -> bool {
        let is_blind = |what: &Trouble| {
            matches!(
                what,
                Trouble::Late { .. }
                    | Trouble::Clock { .. }
                    | Trouble::WatchLate { .. }
                    | Trouble::WatchSilent { .. }
                    | Trouble::WatchRefused { .. }
            )
        };
        let is_divided = |what: &Trouble| {
            matches!(
                what,
                Trouble::Lost { .. } | Trouble::AnswerLost { .. } | Trouble::Partition | Trouble::Refused { .. }
            )
        };
        let divides = |what: &Trouble| self.replicas > 1 && is_divided(what);
        !self.faults.iter().any(|fault| is_blind(&fault.what) || divides(&fault.what))
    }

    /// Returns the time of the last act, or the end of the last fault that heals, whichever is later.
    #[must_use]
    pub fn calm_from(&self) -> Millis {
        let acts = self.acts.iter().map(|act| act.at);
        let faults = self.faults.iter().filter(|fault| fault.what.heals()).map(|fault| fault.to);
        acts.chain(faults).max().unwrap_or_default()
    }
}

impl fmt::Display for Plan {
    /// Formats the plan as JSON, as in a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?)
    }
}
