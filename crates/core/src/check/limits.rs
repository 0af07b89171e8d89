//! Checks that nothing new is created without a place in every limit that matches (section 18).

use super::Check;
use crate::action::{Action, Decision};
use crate::limit::Limit;
use crate::name::Uid;
use crate::waiting::Waiting;

impl Check<'_> {
    pub(super) fn places(&mut self, decision: &Decision) {
        let mut uses = false;
        for action in &decision.actions {
            match action {
                Action::Create { execution, .. } => {
                    let Some(known) = self.target.executions.get(&execution.uid) else { continue };
                    let made_for = known.child.as_ref().map(|child| &child.schedule);
                    let has_place = self.has_place(&execution.uid) || made_for.is_some_and(|it| self.has_place(it));
                    // An execution between two attempts holds its place already.
                    let is_first = !known.started_once();
                    uses |= is_first && has_place;
                    let needs = is_first && !known.analyses() && self.is_limited(&known.workflow_id);
                    self.require("18", has_place || !needs, || {
                        format!("created a run for {execution} without a place")
                    });
                }
                Action::CreateChild { schedule, .. } => {
                    let Some(known) = self.target.schedules.get(&schedule.uid) else { continue };
                    let has_place = self.has_place(&schedule.uid);
                    uses |= has_place;
                    let needs = self.is_limited(&known.workflow_id);
                    self.require("18", has_place || !needs, || format!("{schedule} makes a child without a place"));
                }
                _ => {}
            }
        }
        self.require("18", uses == decision.uses_place, || format!("uses its place: {uses}, and says otherwise"));
        for (execution, waiting) in &decision.waiting {
            let waits = matches!(waiting, Waiting::Limit(_));
            let asks = decision.asks.iter().any(|ask| !ask.limits.is_empty());
            self.require("18", !waits || asks, || format!("{execution} waits for a place, and nothing asks for one"));
        }
    }

    fn has_place(&self, uid: &Uid) -> bool {
        self.target.places.are_given_to(uid)
    }

    /// Returns whether a limit matches a workflow on the target.
    fn is_limited(&self, workflow: &str) -> bool {
        let name = self.target.name.as_ref().map(ToString::to_string);
        let parts: Option<Vec<&str>> = name.as_ref().map(|name| name.split('/').collect());
        let is_target = |limit: &Limit| match parts.as_deref() {
            Some([kind, _]) => limit.namespace.is_none() && limit.kind.as_deref().is_none_or(|it| it == *kind),
            Some([namespace, kind, _]) => {
                limit.namespace.as_deref().is_none_or(|it| it == *namespace)
                    && limit.kind.as_deref().is_none_or(|it| it == *kind)
            }
            _ => true,
        };
        let is_workflow = |limit: &Limit| limit.workflow_id.as_deref().is_none_or(|it| it == workflow);
        self.policy.limits.iter().any(|limit| is_target(limit) && is_workflow(limit))
    }
}
