//! The start of a play of the cluster. The ends of a target's workflows are assumed from their earlier ends there. No
//! request is made here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use kube::api::DynamicObject;
use wfe_core::Time;
use wfe_core::execution::ExecutionState;
use wfe_core::limit::Limits;
use wfe_core::policy::Policy;
use wfe_core::reason::FailureReason;
use wfe_core::target::TargetName;

use super::node::unknown;
use super::scenario::{Act, Failing, Planned, Scenario, Workflow};
use crate::cli::Condition;
use crate::installation::Leader;
use crate::moment::span;
use crate::object::text;
use crate::view::Seen;

/// The shortest run: statuses have whole seconds.
const SHORTEST: Duration = Duration::from_secs(1);
/// How many of the last ends of a workflow count.
const LAST: usize = 3;
/// The assumed duration of a run, if its workflow has not ended on the target yet.
const WITHOUT_HISTORY: Duration = Duration::from_mins(1);

/// What a play begins with.
pub(super) struct Start {
    pub(super) scenario: Scenario,
    pub(super) policy: Policy,
    /// How the workflows that may run are supposed to end.
    pub(super) ends: Vec<End>,
    /// What else is assumed, because it cannot be read or is not played.
    pub(super) assumed: Vec<String>,
}

/// How the runs of a workflow are supposed to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) workflow: String,
    /// How it fails, if it does.
    pub(super) fails: Option<Fails>,
    pub(super) takes: Duration,
    pub(super) because: Because,
}

/// How a run fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fails {
    reason: FailureReason,
    ran: bool,
    exit_code: Option<i32>,
}

/// Why a workflow is supposed to end so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Because {
    /// `alike` of the last `of` runs of the workflow ended in this way.
    History { alike: usize, of: usize },
    /// It has not ended on this target yet.
    NoHistory,
    /// The caller asked for this end.
    Asked,
}

/// An end of a workflow on the target.
#[derive(Clone, Copy, Debug)]
struct Past {
    at: Time,
    took: Duration,
    fails: Option<Fails>,
}

impl Start {
    /// Makes the start from what was read of a target.
    pub(super) fn of(seen: &Seen, target: &TargetName, condition: &Condition) -> Result<Self> {
        let mut assumed: Vec<String> = seen.unread.iter().cloned().collect();
        if let Leader::Nobody(why) = &seen.installation.leader {
            assumed.push(format!("that an operator decides: {why}"));
        }
        if *condition == Condition::Cleared && !seen.installation.policies.wrong.is_empty() {
            assumed.push(format!("that the admission policies are in force: {}", seen.installation.policies.told()));
        }
        if !seen.sees_schedules() {
            assumed.push("that the target has no schedule: you may not list them".to_owned());
        }
        if !seen.installation.policy.limits.is_empty() {
            assumed.push("that the limits have room: other targets are not played".to_owned());
        }
        let mut schedules = Vec::new();
        for object in &seen.schedules {
            match Planned::of(object, seen.now) {
                Ok(planned) => schedules.push(planned),
                Err(why) => {
                    let name = object.metadata.name.as_deref().unwrap_or_default();
                    assumed.push(format!("that the schedule {name} makes no run: {why}"));
                }
            }
        }
        let known = seen.target(target);
        ensure!(
            known.is_some(),
            "nothing on {} is known; check the spelling: kubectl get wfe,wfs --all-namespaces",
            target.as_str()
        );
        let open = known.into_iter().flat_map(|known| known.executions.values()).filter(|it| !it.is_terminal());
        let of_schedules = schedules.iter().map(|it| &it.record.schedule.workflow_id);
        let may_run: BTreeSet<&str> = open.map(|it| &it.workflow_id).chain(of_schedules).map(|it| &**it).collect();
        if let Condition::Completes(name) | Condition::Fails(name) = condition {
            let known: Vec<&str> = may_run.iter().copied().collect();
            if known.is_empty() {
                bail!(
                    "--if: nothing on {} is to run: no schedule, and no execution that waits or runs",
                    target.as_str()
                );
            }
            let place = format!(" among the workflows that may run on {} from now on", target.as_str());
            ensure!(may_run.contains(&**name), "--if: {}", unknown(name, &place, &known));
        }
        let pasts = pasts(seen, target);
        let end = |name: &&str| End::of(name, pasts.get(*name).map_or(&[], Vec::as_slice), condition);
        let ends: Vec<End> = may_run.iter().map(end).collect();
        let people = match condition {
            Condition::Cleared => vec![(Duration::ZERO, Act::Clear(target.clone()))],
            Condition::Nothing | Condition::Completes(_) | Condition::Fails(_) => Vec::new(),
        };
        let workflows = ends.iter().map(|end| (end.workflow.clone(), end.script())).collect();
        let scenario =
            Scenario { start: seen.now, keys: BTreeMap::new(), workflows, arrivals: Vec::new(), schedules, people };
        let policy = Policy { limits: Limits::default(), ..seen.installation.policy.clone() };
        Ok(Self { scenario, policy, ends, assumed })
    }
}

impl End {
    /// Supposes how a workflow ends, from its past ends, the oldest first.
    fn of(workflow: &str, past: &[Past], condition: &Condition) -> Self {
        let last = &past[past.len().saturating_sub(LAST)..];
        let failed = last.iter().filter(|past| past.fails.is_some()).count();
        // If as many failed as completed, the newest decides.
        let newest = last.last().and_then(|past| past.fails);
        let fails = match failed * 2 {
            twice if twice == last.len() => newest,
            twice if twice > last.len() => last.iter().rev().find_map(|past| past.fails),
            _ => None,
        };
        let takes = |fails: bool| {
            let alike = last.iter().filter(|past| past.fails.is_some() == fails);
            let mut took: Vec<Duration> = alike.map(|past| past.took).collect();
            took.sort_unstable();
            (took.get(took.len() / 2).map_or(WITHOUT_HISTORY, |median| SHORTEST.max(*median)), took.len())
        };
        let (median, alike) = takes(fails.is_some());
        let by_history = |because| Self { workflow: workflow.to_owned(), fails, takes: median, because };
        match condition {
            Condition::Completes(name) if name == workflow => {
                Self { fails: None, takes: takes(false).0, ..by_history(Because::Asked) }
            }
            Condition::Fails(name) if name == workflow => {
                let broke = Fails { reason: FailureReason::Unknown, ran: true, exit_code: Some(1) };
                Self { fails: Some(broke), ..by_history(Because::Asked) }
            }
            _ if last.is_empty() => by_history(Because::NoHistory),
            _ => by_history(Because::History { alike, of: last.len() }),
        }
    }

    /// Describes the assumed end, and why it is assumed.
    pub(super) fn told(&self) -> String {
        let because = match self.because {
            Because::History { of: 1, .. } => "as its one run here did".to_owned(),
            Because::History { alike, of } => format!("as {alike} of the last {of} did"),
            Because::NoHistory => "it has not ended here yet".to_owned(),
            Because::Asked => "as --if says".to_owned(),
        };
        let how = match self.fails {
            None => "Completed".to_owned(),
            Some(Fails { reason, ran: true, .. }) => format!("failed half way, {}", reason.as_str()),
            Some(Fails { reason, ran: false, .. }) => format!("failed before anything ran, {}", reason.as_str()),
        };
        format!("{because}: {how} after {}", span(self.takes))
    }

    /// Returns the script by which a play ends the runs of the workflow.
    fn script(&self) -> Workflow {
        let failing = |fails: Fails| Failing {
            reason: fails.reason,
            ran: fails.ran,
            exit_code: fails.exit_code,
            after: Some(self.takes),
            says: "supposed".to_owned(),
            ..Failing::timed_out(fails.ran)
        };
        Workflow {
            version: "1".to_owned(),
            image: None,
            takes: self.takes,
            drains: Duration::ZERO,
            fails: self.fails.into_iter().map(failing).collect(),
        }
    }
}

/// Returns how the workflows ended that ran on a target, the oldest end first.
fn pasts(seen: &Seen, target: &TargetName) -> BTreeMap<String, Vec<Past>> {
    let mut pasts: BTreeMap<String, Vec<Past>> = BTreeMap::new();
    for object in seen.objects() {
        let Some((on, execution)) = seen.known(object) else { continue };
        if on.name.as_ref() == Some(target)
            && let Some(past) = past(&execution.state, object)
        {
            pasts.entry(execution.workflow_id.to_string()).or_default().push(past);
        }
    }
    for of_workflow in pasts.values_mut() {
        of_workflow.sort_by_key(|past| past.at);
    }
    pasts
}

/// Returns how an execution ended, if a run of it ended by itself.
fn past(state: &ExecutionState, object: &DynamicObject) -> Option<Past> {
    let (fails, at) = match state {
        ExecutionState::Completed { completed_at, .. } => (None, *completed_at),
        ExecutionState::Failed(failed) if !failed.cancelled && object.data["status"]["runSequence"].is_number() => {
            let exit_code = object.data.pointer("/status/failureDetails/exitCode").and_then(serde_json::Value::as_i64);
            let exit_code = exit_code.and_then(|code| i32::try_from(code).ok());
            let fails = Fails { reason: failed.reason, ran: failed.was_execution_failure, exit_code };
            (Some(fails), failed.completed_at)
        }
        _ => return None,
    };
    let at = at?;
    let began = text(object, "/status/startTime").and_then(|at| at.parse::<Time>().ok()).unwrap_or(at);
    Some(Past { at, took: (at - began).to_std().unwrap_or_default(), fails })
}
