//! Properties that hold for any view. `check` tests what no decision may do.

use super::*;
use crate::action::{Probe, Record};
use crate::backoff::{Backoff, Thousandths};
use crate::blocks::TargetBlocks;
use crate::circuit::Circuits;
use crate::ending::Charge;
use crate::explain::{Finding, OTHERWISE};
use crate::name::ExecutionId;
use crate::rules::RULES;
use crate::schedule::{Held, PlannedBy};
use crate::testing::generate::{NOW, any_history, any_policy, any_target};
use crate::verdict::Verdict;

type Answer = (Vec<Action>, Vec<(ExecutionId, Waiting)>, Vec<Verdict>, TargetBlocks, Vec<Scheduled>);
/// The decision on a schedule: the row that decided, its text, whether time ends its slot, and its role for circuits.
type Scheduled = (&'static str, String, Option<bool>, Probe);

/// Returns a decision without its times, so that only what is decided is compared.
fn answer(target: &Target, policy: &Policy, now: Time) -> Answer {
    let mut decision = decide(target, policy, now);
    for action in &mut decision.actions {
        match action {
            Action::Write(Write { says: Says::Running { consecutive_failures, .. }, .. }) => {
                *consecutive_failures = 0;
            }
            Action::Write(Write { says: Says::Ended { ending: Ending::Completed(success), .. }, .. }) => {
                (success.completed_at, success.ran_for) = (at(0), Duration::ZERO);
            }
            Action::Write(Write { says: Says::Ended { ending: Ending::Failed(failure), .. }, .. }) => {
                (failure.failed_at, failure.ran_for) = (at(0), Duration::ZERO);
                // Whether a circuit was open also depends on the time.
                (failure.charge, failure.shared_outage) = (Charge::default(), false);
                if let Some(end) = failure.tried.as_mut().and_then(|tried| tried.end.as_mut()) {
                    end.completed_at = at(0);
                }
            }
            Action::Write(Write { says: Says::Retry { end, not_before, .. }, .. }) => {
                (end.completed_at, *not_before) = (at(0), at(0));
            }
            Action::Create { at_most, .. } => *at_most = None,
            Action::Record(Record { status, suppressed, .. }) => {
                *suppressed = None; // when the status is written, the operator decides on the schedule again
                if status.next.is_some() {
                    status.held = Held::Never; // the hold of that slot
                }
                (status.planned_from, status.next, status.last_success) = (None, None, None);
                if let Some(last) = &mut status.last_run {
                    (last.slot, last.ended_at) = (at(0), None);
                }
            }
            _ => {}
        }
    }
    // An ignored hint is announced with a write, and depends on what is known of the hint at that time.
    decision.actions.retain(|action| !matches!(action, Action::Tell(Announce::HintIgnored { .. })));
    let scheduled = decision.schedules.iter().map(|(_, judgement)| {
        let (row, because) = judgement.asked.last().unwrap();
        // The rows before row 6 do not compute the next slot.
        let ends = judgement.next.filter(|next| *row >= "6" && next.until.is_some());
        let ends = ends.map(|next| next.planned.why == PlannedBy::Again);
        (*row, because.to_string(), ends, judgement.probe.clone())
    });
    let scheduled = scheduled.collect();
    let verdicts = decision.judged.into_iter().map(|(_, judgement)| judgement.verdict).collect();
    (decision.actions, decision.waiting, verdicts, decision.blocks, scheduled)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn deciding_again_says_the_same(target in any_target(), policy in any_policy()) {
        prop_assert_eq!(decide(&target, &policy, at(NOW)), decide(&target.clone(), &policy.clone(), at(NOW)));
    }

    #[test]
    fn wake_is_the_first_moment_at_which_the_answer_changes(
        target in prop_oneof![any_target(), any_history()],
        policy in any_policy(),
        share in 0.0..1.0_f64,
    ) {
            let before = answer(&target, &policy, at(NOW));
            // Three rows are excluded. A schedule that creates a child is decided again when the child exists, whatever
            // time has passed. A time from a wrong clock becomes right later. A triage that begins records its time.
            if before.4.iter().any(|(row, ..)| ["1 plan", "4 triage", "10 otherwise"].contains(row)) {
                return Ok(());
            }
            let Some(wake) = decide(&target, &policy, at(NOW)).wake else {
                prop_assert_eq!(&before, &answer(&target, &policy, at(NOW + 1_000_000_000)));
                return Ok(());
            };
            let nanosecond = Duration::from_nanos(1);
            let between = at(NOW) + (wake - at(NOW)).to_std().unwrap().mul_f64(share);
            for early in [wake - nanosecond, between.min(wake - nanosecond)] {
                prop_assert_eq!(&before, &answer(&target, &policy, early), "changed before {}, at {}", wake, early);
            }
            prop_assert_ne!(&before, &answer(&target, &policy, wake), "did not change at {}", wake);
    }

    #[test]
    fn no_circuit_holds_an_execution(target in any_target(), policy in any_policy()) {
        let without = Target { circuits: Circuits::default(), ..target.clone() };
        let (with, without) = (decide(&target, &policy, at(NOW)), decide(&without, &policy, at(NOW)));
        prop_assert_eq!((with.judged, with.waiting, with.blocks), (without.judged, without.waiting, without.blocks));
    }

    #[test]
    fn the_largest_and_the_smallest_values_of_a_policy_are_decided_by(
        target in prop_oneof![any_target(), any_history()],
        seconds in prop::sample::select(vec![1, 9_223_372_036]),
    ) {
        let longest = Duration::from_secs(seconds);
        let policy = Policy {
            default_timeout: longest,
            start_deadline: longest,
            drain_deadline: longest,
            retention: longest,
            max_consecutive_failures: u32::MAX,
            backoff: Backoff { jitter: Thousandths::ONE, ..Backoff::doubling(longest, longest, 33) },
            failure_quiet_period: Some(longest * 2),
            cooldown_period: longest,
            ..Policy::default()
        };
        prop_assert_eq!(policy.validate(), Ok(()));
        let decision = decide(&target, &policy, at(NOW));
        let found = crate::check::violations(&target, &policy, at(NOW), &decision);
        prop_assert!(found.is_empty(), "{:#?}", found);
    }

    #[test]
    fn an_explanation_names_the_rule_that_decided_and_all_that_were_asked_before(
        target in any_history(),
        policy in any_policy(),
    ) {
        let decision = decide(&target, &policy, at(NOW));
        for (execution, judgement) in &decision.judged {
            let names: Vec<&str> = judgement.asked.iter().map(|(rule, _)| *rule).collect();
            let all = RULES.iter().map(|(rule, _)| *rule).chain(["5b limit"]);
            let in_order: Vec<&str> = all.take(names.len()).collect();
            prop_assert_eq!(names, in_order);
            let (last, before) = judgement.asked.split_last().unwrap();
            let passed = before.iter().all(|(_, finding)| matches!(finding, Finding::Passes { .. }));
            prop_assert!(passed, "{:?}", before);
            let said = judgement.explain("node/n");
            let decided = said.lines().last().unwrap();
            prop_assert!(decided.starts_with(judgement.rule()), "{}", said);
            match &last.1 {
                Finding::Decides { verdict, .. } => prop_assert_eq!(verdict, &judgement.verdict),
                Finding::Passes { .. } => {
                    prop_assert_eq!((judgement.rule(), &judgement.verdict), (OTHERWISE, &Verdict::Run));
                }
            }
            // The status, the event and the log line of a skip use the text of the rule that decided.
            for action in &decision.actions {
                if let Action::Skip { skipped, skip, .. } = action
                    && skipped.iter().any(|(id, _)| id == execution)
                {
                    prop_assert!(decided.contains(&skip.message("node/n")), "{}", said);
                }
            }
        }
    }
}
