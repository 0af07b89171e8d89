//! A plan: all that happens to a cluster and its operators from outside, written down before it happens.
//!
//! A plan is drawn from a seed, or read from a file. What the operators do about it follows from the plan alone, so a
//! plan that broke something breaks it again.

mod deed;
mod draw;

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cluster::stories::VERSIONS;
pub use deed::{Create, Deed, Edit, Hint, NewSchedule};

/// The namespaces of executions.
pub const NAMESPACES: [&str; 2] = ["ops", "payment"];

/// Milliseconds of virtual time since the begin.
pub type Millis = u64;

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// What small things follow from: how long each request takes, the uids, the jitter of the election.
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
    /// What people and programs do, by time.
    #[serde(default)]
    pub acts: Vec<Act>,
    /// What goes wrong, and when. All that can heal is healed after the last of these.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

fn two() -> u8 {
    2
}

fn newest() -> String {
    "v1.12.0".to_owned()
}

/// Something that somebody does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Act {
    /// When.
    pub at: Millis,
    /// What.
    #[serde(rename = "do")]
    pub what: Deed,
}

/// Something that goes wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fault {
    /// From when.
    pub from: Millis,
    /// Until when.
    pub to: Millis,
    /// For which replica; for all where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<u8>,
    /// What.
    pub what: Trouble,
}

/// What goes wrong. `percent` is how many of a hundred requests it happens to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Trouble {
    /// Requests never arrive.
    Lost {
        /// Of a hundred.
        percent: u8,
    },
    /// Requests are done, and their answers never arrive.
    AnswerLost {
        /// Of a hundred.
        percent: u8,
    },
    /// Requests arrive twice.
    Doubled {
        /// Of a hundred.
        percent: u8,
    },
    /// Requests arrive late, after their sender has given up where that is later.
    Late {
        /// Of a hundred.
        percent: u8,
        /// By how much, in milliseconds.
        by: Millis,
    },
    /// Requests are refused with this HTTP status.
    Refused {
        /// Of a hundred.
        percent: u8,
        /// Such as 429 or 503.
        code: u16,
        /// Which of them: such as `patch`; all, where it is empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        verb: String,
        /// Of what: such as `pipelineruns`; of all, where it is empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        resource: String,
    },
    /// The right to do this is missing.
    Denied {
        /// Such as `create`.
        verb: String,
        /// Such as `pipelineruns`.
        resource: String,
    },
    /// The API server does not serve this kind.
    KindMissing {
        /// Such as `pipelineruns`.
        resource: String,
    },
    /// The CRD of executions is another one, which lacks these fields.
    FieldsDropped {
        /// Such as `status.pipelineRunRef`.
        fields: Vec<String>,
    },
    /// Watches deliver late.
    WatchLate {
        /// Of what; all, where it is empty.
        #[serde(default)]
        resource: String,
        /// By how much, in milliseconds.
        by: Millis,
    },
    /// Watches are open and deliver nothing.
    WatchSilent {
        /// Of what; all, where it is empty.
        #[serde(default)]
        resource: String,
    },
    /// Watches break off, and are refused with this HTTP status.
    WatchRefused {
        /// Of what; all, where it is empty.
        #[serde(default)]
        resource: String,
        /// Such as 410 or 403.
        code: u16,
    },
    /// Nothing that the replica sends arrives, and its watches are silent.
    Partition,
    /// The process is killed, and starts again at the end.
    Crash,
    /// The process is asked to stop, and starts again at the end.
    Restart,
    /// The clock is wrong by so many seconds. Does not heal.
    Clock {
        /// Ahead, or behind where it is negative.
        ahead: i32,
    },
    /// At the begin, the API server forgets all changes: watches from before have expired.
    Compacted,
    /// Tekton's controller does not run.
    TektonDown,
    /// Tekton loses the requests to stop a run that are made meanwhile: it works on such a run no more, until the run
    /// changes after the end of this.
    CancelsLost,
    /// Nothing can be fetched from a registry.
    RegistryDown {
        /// Its host, such as `registry.test`.
        registry: String,
    },
    /// A namespace is paused.
    NamespacePaused {
        /// Its name.
        namespace: String,
    },
    /// Everything is paused.
    Paused,
}

impl Trouble {
    /// Names its kind, for counts.
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

    /// Returns whether an operator can tell all executions how they stand in spite of it: the right that is missing is
    /// one that no status needs, or a registry is what is out of reach.
    #[must_use]
    pub fn leaves_statuses(&self) -> bool {
        match self {
            Self::Denied { verb, .. } => verb == "create" || verb == "get",
            Self::RegistryDown { .. } | Self::CancelsLost | Self::TektonDown => true,
            _ => false,
        }
    }

    /// Returns whether it keeps nothing but watches from their work.
    #[must_use]
    pub fn is_about_watches(&self) -> bool {
        matches!(self, Self::WatchSilent { .. } | Self::WatchLate { .. } | Self::Compacted)
    }

    /// Returns whether it ends when all heals.
    #[must_use]
    pub fn heals(&self) -> bool {
        !matches!(self, Self::Clock { .. })
    }
}

impl Fault {
    /// Returns whether it strikes a replica at this time.
    #[must_use]
    pub fn strikes(&self, replica: u8, at: Millis) -> bool {
        self.replica.is_none_or(|struck| struck == replica)
            && (!self.what.heals() || (self.from..self.to).contains(&at))
    }
}

/// Why a plan cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file is not there.
    #[error("cannot read the plan {path}")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no plan.
    #[error("{path} is no plan: {source}; a field or a word is wrong there, tests/simulation/src/plan.rs lists them")]
    Invalid {
        /// Its path.
        path: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The plan says what cannot be.
    #[error("the plan cannot be played: {0}")]
    Impossible(String),
}

impl Plan {
    /// Reads a plan from a file of JSON.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| PlanError::Unreadable { path: shown(), source })?;
        let plan: Self = serde_json::from_str(&text).map_err(|source| PlanError::Invalid { path: shown(), source })?;
        plan.check()?;
        Ok(plan)
    }

    /// Checks what no type says.
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

    /// Returns when the last act is done and the last fault that heals is over.
    #[must_use]
    pub fn calm_from(&self) -> Millis {
        let acts = self.acts.iter().map(|act| act.at);
        let faults = self.faults.iter().filter(|fault| fault.what.heals()).map(|fault| fault.to);
        acts.chain(faults).max().unwrap_or_default()
    }
}

impl fmt::Display for Plan {
    /// Writes it as a file holds it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?)
    }
}
