//! The executions before an execution: each waits for the next, and something holds the last.

use chrono::TimeDelta;
use wfe_core::action::Decision;
use wfe_core::ending::Skip;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::ExecutionId;
use wfe_core::policy::Policy;
use wfe_core::target::Target;
use wfe_core::verdict::Verdict;

use crate::moment::shown;

/// The limit of listed executions: more than a person reads.
const MOST_LINKS: usize = 10;

/// Follows the executions before one, each at most once.
pub(super) fn behind(target: &Target, decision: &Decision, id: &ExecutionId, policy: &Policy) -> Vec<String> {
    let mut seen = vec![id.clone()];
    let mut lines = Vec::new();
    let mut next = before(decision, id);
    while let Some(first) = next.filter(|first| lines.len() < MOST_LINKS && !seen.contains(first)) {
        lines.push(format!("{first}: {}", stands(target, decision, &first, policy)));
        next = before(decision, &first);
        seen.push(first);
    }
    lines
}

/// Returns the execution on the same target that this one waits for, or is skipped for.
fn before(decision: &Decision, id: &ExecutionId) -> Option<ExecutionId> {
    let waits = decision.waiting.iter().find(|(of, _)| of == id).and_then(|(_, waiting)| waiting.behind().cloned());
    let judged = decision.judged.iter().find(|(of, _)| of == id).map(|(_, judgement)| &judgement.verdict);
    match judged {
        _ if waits.is_some() => waits,
        Some(Verdict::Skip { skip: Skip::ResourceBusy(conflict), .. }) => Some(conflict.holder.clone()),
        _ => None,
    }
}

/// Describes the state of an execution: what it waits for now, otherwise its status.
fn stands(target: &Target, decision: &Decision, id: &ExecutionId, policy: &Policy) -> String {
    let waiting = decision.waiting.iter().find(|(of, _)| of == id).map(|(_, waiting)| waiting);
    let awaiting = decision.awaiting.iter().find(|(of, _)| of == id).map(|(_, awaiting)| awaiting);
    let judged = decision.judged.iter().find(|(of, _)| of == id).map(|(_, judgement)| &judgement.verdict);
    let known = target.executions.get(&id.uid);
    match (waiting, awaiting, judged) {
        (Some(waiting), ..) => format!("waits, {}: {}", waiting.reason(), waiting.message()),
        (_, Some(awaiting), _) => format!("is Running, {}: {}", awaiting.reason(), awaiting.message()),
        (.., Some(verdict)) if *verdict != Verdict::Run => verdict.explain(target.label()),
        _ => known.map_or_else(|| "is gone".to_owned(), |known| of_status(known, policy)),
    }
}

fn of_status(execution: &Execution, policy: &Policy) -> String {
    let awaits = execution.run_shown.awaits.as_deref();
    match (&execution.state, awaits, &execution.waiting_shown) {
        (ExecutionState::Running { .. }, Some(awaits), _) => {
            format!("is Running, {}: {}", awaits.reason, awaits.message)
        }
        (ExecutionState::Running { started_at: Some(at), .. }, None, _) if execution.retry.is_none() => {
            let timeout = TimeDelta::from_std(execution.timeout.unwrap_or(policy.default_timeout)).unwrap_or_default();
            format!("is Running, until {} at the latest", shown(at.checked_add_signed(timeout).unwrap_or(*at)))
        }
        // Each attempt has a time-out of its own.
        (ExecutionState::Running { .. }, None, _) => "is Running".to_owned(),
        (ExecutionState::Undecided { .. }, _, Some(shown)) => {
            format!("has its turn, and its status says that it waits, {}", shown.reason)
        }
        (ExecutionState::Undecided { .. }, ..) => "has its turn".to_owned(),
        _ => "has ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wfe_core::Time;
    use wfe_core::name::{Uid, Version};
    use wfe_core::waiting::Waiting;

    fn id(name: &str) -> ExecutionId {
        ExecutionId { namespace: "ops".into(), name: name.into(), uid: Uid::new(name) }
    }

    fn decided(waiting: Vec<(&str, Waiting)>) -> Decision {
        let waiting = waiting.into_iter().map(|(name, waiting)| (id(name), waiting)).collect();
        Decision { waiting, ..Decision::default() }
    }

    fn turn(name: &str) -> Waiting {
        Waiting::Turn(Box::new(id(name)))
    }

    fn target(names: &[&str]) -> Target {
        let execution = |name: &str| Execution::undecided(id(name), Version::new("1"), Time::UNIX_EPOCH);
        let executions = names.iter().map(|name| (Uid::new(name), execution(name))).collect();
        Target { executions, ..Target::default() }
    }

    #[test]
    fn the_chain_ends_with_what_holds_the_first() {
        let decision = decided(vec![("c", turn("b")), ("b", turn("a")), ("a", Waiting::ApiErrors("503".into()))]);
        let lines = behind(&target(&["a", "b", "c"]), &decision, &id("c"), &Policy::default());
        assert_eq!(
            lines,
            [
                "ops/b: waits, Turn: WorkflowExecution ops/a on the same target goes first",
                "ops/a: waits, ApiErrors: the operator tries again: 503",
            ]
        );
        let turns = behind(&target(&["a", "b"]), &decided(vec![("b", turn("a"))]), &id("b"), &Policy::default());
        assert_eq!(turns, ["ops/a: has its turn"]);
        assert_eq!(behind(&target(&["a"]), &Decision::default(), &id("a"), &Policy::default()), Vec::<String>::new());
    }

    #[test]
    fn a_holder_that_runs_has_a_latest_end() {
        let mut running = Execution::undecided(id("a"), Version::new("1"), Time::UNIX_EPOCH);
        running.state = ExecutionState::Running { run: None, started_at: Some(Time::UNIX_EPOCH) };
        let policy = Policy { default_timeout: std::time::Duration::from_mins(30), ..Policy::default() };
        assert_eq!(of_status(&running, &policy), "is Running, until 1970-01-01T00:30:00Z at the latest");
    }

    #[test]
    fn a_chain_that_goes_round_in_a_circle_or_has_no_end_is_cut() {
        let circle = decided(vec![("a", turn("b")), ("b", turn("c")), ("c", turn("a"))]);
        assert_eq!(behind(&target(&[]), &circle, &id("a"), &Policy::default()).len(), 2, "never twice the same");
        let names: Vec<String> = (0..30).map(|number| format!("e{number}")).collect();
        let long = decided(names.windows(2).map(|pair| (pair[0].as_str(), turn(&pair[1]))).collect());
        assert_eq!(behind(&target(&[]), &long, &id("e0"), &Policy::default()).len(), MOST_LINKS);
    }
}
