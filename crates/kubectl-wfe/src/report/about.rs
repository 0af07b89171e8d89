//! The facts of a report that do not depend on the rules.

use kube::api::DynamicObject;
use serde_json::Value;
use wfe_core::Time;
use wfe_core::ending::Skip;
use wfe_core::name::ExecutionId;
use wfe_core::target::TargetName;

use super::common::Common;
use crate::installation::{Installation, Leader};
use crate::recorded::Recorded;

/// The subject of a report, and its facts that do not depend on the rules.
pub(super) struct About {
    /// The namespace of the execution.
    pub(super) namespace: String,
    /// The name of the execution; none for a made-up one.
    pub(super) name: Option<String>,
    /// Its target.
    pub(super) target: String,
    /// The blocks of the target that only a person ends, newest first.
    pub(super) blocks: Vec<Skip>,
    /// What the failures on the target have in common with others.
    pub(super) common: Vec<(ExecutionId, Common)>,
    /// Other facts about the history of the target.
    pub(super) history: Option<String>,
    /// Why no operator decides on the execution, if that is so.
    pub(super) nobody_decides: Option<String>,
    /// The plan of its retry policy, if it has one and is undecided.
    pub(super) plan: Option<String>,
    /// What an operator has recorded of it, if it exists and is undecided.
    pub(super) recorded: Option<Recorded>,
    /// Other executions on the target that wait because of a problem of the operator.
    pub(super) stuck: Option<String>,
    /// The command that shows the operator's log.
    pub(super) log: String,
    /// The time of the answer.
    pub(super) now: Time,
    /// What the answer depends on.
    pub(super) basis: Basis,
}

impl About {
    /// Makes the facts of an execution from its object alone.
    pub(super) fn of_object(installation: &Installation, namespace: &str, object: &DynamicObject, now: Time) -> Self {
        let written = object.data.pointer("/spec/targetResource").and_then(Value::as_str).unwrap_or_default();
        Self {
            namespace: namespace.to_owned(),
            name: object.metadata.name.clone(),
            target: TargetName::parse(written).map_or_else(|_| written.to_owned(), |name| name.as_str().to_owned()),
            blocks: Vec::new(),
            common: Vec::new(),
            history: None,
            nobody_decides: installation.nobody_decides_in(namespace),
            plan: None,
            basis: Basis::of(installation),
            recorded: None,
            stuck: None,
            log: String::new(),
            now,
        }
    }
}

/// What an answer depends on, and what is only assumed.
#[derive(Clone, Debug, Default)]
pub(super) struct Basis {
    /// The source of the settings in force.
    pub(super) policy: Option<String>,
    /// The leader, as far as it is known.
    pub(super) operator: Option<String>,
    /// Whether the admission policies protect.
    pub(super) policies: Option<String>,
    /// Which executions of other namespaces could not be read, and what is assumed of them.
    pub(super) owners: Option<String>,
}

impl Basis {
    pub(super) fn of(installation: &Installation) -> Self {
        let operator = match &installation.leader {
            Leader::Is(name) => format!("{name} leads"),
            Leader::Nobody(why) | Leader::Unknown(why) => why.clone(),
        };
        let (policy, policies) = (installation.policy_of.clone(), installation.policies.told());
        Self { policy: Some(policy), operator: Some(operator), policies: Some(policies), owners: None }
    }

    pub(super) fn told(&self) -> impl Iterator<Item = (&'static str, String)> {
        [
            ("policy", &self.policy),
            ("operator", &self.operator),
            ("policies", &self.policies),
            ("assumed", &self.owners),
        ]
        .into_iter()
        .filter_map(|(label, said)| Some((label, said.clone()?)))
    }
}
