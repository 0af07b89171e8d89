//! The effect of a child's end on its target: the waits of the schedule and of the target do not multiply. Also which
//! children are kept.

use super::*;
use crate::schedule::{Child, HistoryLimits, Retention};

/// A child of schedule `s`.
fn of_s(execution: Execution) -> Execution {
    made_by("s", 0, Retention::Own, execution)
}

fn rule(past: Vec<Execution>, asks: Execution) -> &'static str {
    let decision = decide(&target([past, vec![asks]].concat(), vec![]), &Policy::default(), at(50));
    decision.judged.last().map_or("none", |(_, judgement)| judgement.rule())
}

/// Returns the failure count and the earliest next time that the end of an execution writes.
fn charged(view: &Target) -> (u32, Option<Time>) {
    let charge = only_failure(&actions(view)).charge;
    (charge.consecutive_failures, charge.next_allowed_execution)
}

#[test]
fn a_child_in_which_nothing_ran_does_not_count_for_its_target() {
    let ends = |child: fn(Execution) -> Execution| {
        let executions = vec![stalled("p", "x", 1, -100, -40), child(running("a", "r2"))];
        charged(&target(executions, vec![looked_at(run(2, "a", done(false)), 0, waited())]))
    };
    assert_eq!(ends(|it| it), (2, Some(at(40 + 120))));
    assert_eq!(ends(of_s), (1, None));
    let spoilt = |child: fn(Execution) -> Execution| {
        charged(&target(vec![stalled("p", "x", 1, -100, -40), child(execution("a", unusable("bad")))], vec![]))
    };
    assert_eq!(spoilt(|it| it), (2, Some(at(50 + 120))));
    assert_eq!(spoilt(of_s), (1, None));
    let refused = |child: fn(Execution) -> Execution| {
        let mut execution = child(undecided("a"));
        execution.remember().refusal =
            Some(Refusal { reason: FailureReason::Forbidden, message: "no".into(), number: 1 });
        charged(&target(vec![execution], vec![]))
    };
    assert_eq!(refused(|it| it), (1, Some(at(50 + 60))));
    assert_eq!(refused(of_s), (0, None));
}

#[test]
fn a_failed_child_in_which_nothing_ran_stands_in_nobodys_way() {
    let stalls = || stalled("p", "wf", 1, 45, 105);
    assert_eq!(rule(vec![stalls()], undecided("a")), "4 backoff");
    assert_eq!(rule(vec![of_s(stalls())], undecided("a")), "6 otherwise");
    assert_eq!(rule(vec![of_s(stalls())], of_s(undecided("a"))), "6 otherwise");
    let five = |child: fn(Execution) -> Execution| {
        (1..=5).map(|n| child(stalled(&format!("p{n}"), "x", n, -5000 + n.cast_signed(), -4000))).collect::<Vec<_>>()
    };
    assert_eq!(rule(five(|it| it), undecided("a")), "3 exhausted retries");
    assert_eq!(rule(five(of_s), undecided("a")), "6 otherwise");
}

#[test]
fn a_child_does_not_hide_the_failure_before_it() {
    let past = vec![stalled("p", "wf", 1, 45, 105), of_s(stalled("q", "wf", 2, 46, 106))];
    assert_eq!(rule(past, undecided("a")), "4 backoff");
}

#[test]
fn a_child_that_broke_half_way_blocks_as_any_does() {
    assert_eq!(rule(vec![of_s(broke("p", "wf", 1, 0))], undecided("a")), "2 previous execution failed");
    assert_eq!(rule(vec![of_s(broke("p", "wf", 1, 0))], of_s(undecided("a"))), "2 previous execution failed");
}

#[test]
fn a_cooldown_passes_between_children_of_schedules_and_binds_all_others() {
    let done = || completed("p", "wf", 1, 45);
    let of_other = |it| made_by("t", 0, Retention::Own, it);
    assert_eq!(rule(vec![done()], undecided("a")), "5 cooldown");
    assert_eq!(rule(vec![of_s(done())], of_s(undecided("a"))), "6 otherwise");
    assert_eq!(rule(vec![of_s(done())], undecided("a")), "5 cooldown");
    assert_eq!(rule(vec![done()], of_s(undecided("a"))), "5 cooldown");
    assert_eq!(rule(vec![of_s(done())], of_other(undecided("a"))), "6 otherwise", "one would starve the other");
    let both = vec![completed("q", "wf", 1, 40), of_s(completed("p", "wf", 2, 45))];
    assert_eq!(rule(both, of_s(undecided("a"))), "5 cooldown", "another's success binds, though a sibling's is newer");
}

#[test]
fn a_schedule_passes_the_cooldown_of_children_of_schedules() {
    let own = |it| made_by("s", 0, Retention::Own, it);
    let holds = |past: Execution| {
        let view = scheduled(target(vec![past], vec![]), vec![schedule("s")]);
        decide(&view, &Policy::default(), at(60)).schedules[0].1.held
    };
    assert_eq!(holds(own(completed("p", "wf", 1, 10))), None);
    assert_eq!(holds(completed("p", "wf", 1, 10)), Some(HeldBy::RecentlyRemediated));
    assert_eq!(holds(made_by("t", 0, Retention::Own, completed("p", "wf", 1, 10))), None);
    assert_eq!(holds(own(stalled("p", "wf", 1, 10, 1000))), None);
}

fn keeps(schedule: &Schedule) -> Vec<(i64, Retention)> {
    let keeps = schedule.keeps();
    let slot = |child: &Child| (child.slot - at(0)).num_seconds();
    schedule.children.iter().map(|child| (slot(child), keeps[&child.uid])).collect()
}

#[test]
fn the_newest_of_each_kind_stay_and_what_is_not_recorded_is_needed() {
    use Outcome::{Cancelled, Completed, Failed, Skipped};
    let ended = |slot, outcome| ended_child(slot, outcome, slot + 5);
    let history = |successful, failed| {
        let mut schedule = Schedule { history: HistoryLimits { successful, failed }, ..at_work(0) };
        schedule.children = vec![
            ended(-360, Completed),
            ended(-300, Skipped),
            ended(-240, Failed),
            ended(-180, Completed),
            ended(-120, Cancelled),
            ended(-60, Completed),
            ended(0, Failed),
            child(60),
        ];
        keeps(&schedule).into_iter().map(|(_, keep)| keep).collect::<Vec<_>>()
    };
    let (own, gone, needed) = (Retention::Own, Retention::Expendable, Retention::Needed);
    assert_eq!(history(1, 1), [gone, gone, gone, gone, own, own, needed, needed]);
    assert_eq!(history(2, 2), [gone, gone, own, own, own, own, needed, needed]);
    assert_eq!(history(0, 0), [gone, gone, gone, gone, gone, gone, needed, needed]);
    assert_eq!(history(100, 100), [own, own, own, own, own, own, needed, needed]);
}

#[test]
fn children_of_a_plan_before_are_history_and_an_unwritten_plan_needs_all() {
    let ended = |slot| ended_child(slot, Outcome::Failed, slot + 5);
    let mut schedule = with(|it| {
        it.children = vec![ended(-120), ended(-60), ended(0)];
        it.history.failed = 1;
        it.status.planned_from = Some(at(30));
    });
    assert_eq!(keeps(&schedule), [(-120, Retention::Expendable), (-60, Retention::Expendable), (0, Retention::Own)]);
    schedule.status = ScheduleStatus::default();
    assert_eq!(keeps(&schedule).into_iter().filter(|(_, keep)| *keep == Retention::Needed).count(), 3);
}

fn removed(executions: Vec<Execution>, second: i64) -> (Vec<String>, Option<Time>) {
    let decision = decide(&target(executions, vec![]), &Policy::default(), at(second));
    let uids = decision.actions.iter().filter_map(|action| match action {
        Action::Remove { execution, .. } => Some(execution.uid.to_string()),
        _ => None,
    });
    (uids.collect(), decision.wake)
}

#[test]
fn an_expendable_child_goes_as_if_its_time_were_over_and_a_needed_one_never() {
    let cooled = Policy::default().cooldown_period.as_secs().cast_signed();
    let gone = |keep, ttl: Option<u64>, second| {
        let old = Execution { ttl: ttl.map(Duration::from_secs), ..completed("old", "w", 1, 0) };
        removed(vec![made_by("s", 0, keep, old), completed("new", "other", 2, 10)], second)
    };
    let (nobody, old) = (Vec::<String>::new(), vec!["old".to_owned()]);
    assert_eq!(gone(Retention::Expendable, None, cooled), (old.clone(), None));
    assert_eq!(gone(Retention::Expendable, Some(100_000), cooled), (old.clone(), None));
    assert_eq!(
        gone(Retention::Expendable, None, cooled - 1),
        (nobody.clone(), Some(at(cooled))),
        "others cool down by it"
    );
    let newer = |newer: Execution, second| {
        removed(vec![made_by("s", 0, Retention::Expendable, completed("old", "w", 1, 0)), newer], second).0
    };
    assert_eq!(
        newer(made_by("s", 60, Retention::Own, completed("new", "w", 2, 10)), 20),
        old,
        "a newer one cools down"
    );
    assert_eq!(newer(completed("new", "w", 2, 10), 20), old);
    let old_of_nobody = Execution { ttl: Some(Duration::ZERO), ..completed("old", "w", 1, 0) };
    let schedules = removed(vec![old_of_nobody, made_by("s", 0, Retention::Own, completed("n", "w", 2, 10))], 20);
    assert_eq!(schedules.0, nobody, "schedules cool down by what no schedule made");
    assert_eq!(gone(Retention::Needed, Some(0), 100_000), (nobody.clone(), None));
    assert_eq!(gone(Retention::Own, None, 100_000), (nobody.clone(), None));
    assert_eq!(gone(Retention::Own, Some(1000), 999), (nobody, Some(at(1000))));
    assert_eq!(gone(Retention::Own, Some(1000), 1000), (old, None));
}

#[test]
fn an_expendable_child_on_which_the_target_rests_stays() {
    let expendable = |it| made_by("s", 0, Retention::Expendable, it);
    let blocks =
        Execution { blocked_shown: Some("PreviousExecutionFailed".into()), ..expendable(broke("p", "w", 1, 0)) };
    let skips = |uid: &str| expendable(execution(uid, ExecutionState::Skipped { completed_at: Some(at(5)) }));
    assert_eq!(removed(vec![blocks, skips("a"), skips("b")], 100_000).0, ["a"], "it blocks, and one is the newest");
    let newest = vec![expendable(completed("p", "w", 1, 0))];
    assert_eq!(removed(newest, 100_000).0, [""; 0]);
}
