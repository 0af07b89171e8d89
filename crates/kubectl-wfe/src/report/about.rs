//! What a report is told before the rules are asked.

use wfe_core::ending::Skip;
use wfe_core::name::ExecutionId;

use super::common::Common;
use crate::installation::{Installation, Leader};

/// Whom a report is about, and what stands there whatever the rules say.
pub(super) struct About {
    /// Where it is, or would be.
    pub(super) namespace: String,
    /// Its name; none for one that is made up.
    pub(super) name: Option<String>,
    /// Its target.
    pub(super) target: String,
    /// What blocks the target until a person clears it, newest first.
    pub(super) blocks: Vec<Skip>,
    /// What the failures on the target have in common with others.
    pub(super) common: Vec<(ExecutionId, Common)>,
    /// What else there is to say of the history of the target.
    pub(super) history: Option<String>,
    /// Why nobody decides on it, where that is so.
    pub(super) nobody_decides: Option<String>,
    /// What its retry policy provides for, where it has one and is not decided on yet.
    pub(super) plan: Option<String>,
    /// What the answer rests on.
    pub(super) basis: Basis,
}

/// What an answer rests on, and what of it is assumed.
#[derive(Clone, Debug, Default)]
pub(super) struct Basis {
    /// Whose values are in force.
    pub(super) policy: Option<String>,
    /// What is known of who leads.
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
        let (policy, policies) = (installation.policy_of.clone(), installation.policies.clone());
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
