use super::advance::{MAX_SKEW, SETTLE};
use super::*;
use crate::action::Unneeded;
use crate::ending::Conflict;
use crate::execution::Cancellation;
use crate::name::{RunId, Uid, Version};
use crate::residue::{Residue, ResidueId, ResidueKind};
use crate::run::{CancelReason, Order, Outcome, Progress};
use crate::target::RunNumber;
use proptest::prelude::*;

fn at(seconds: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn id(uid: &str) -> ExecutionId {
    ExecutionId { namespace: "ops".into(), name: format!("wfe-{uid}").into(), uid: Uid::new(uid) }
}

fn run_id(uid: &str) -> RunId {
    RunId { name: format!("run-{uid}").into(), uid: Uid::new(uid) }
}

fn execution(uid: &str, state: ExecutionState) -> Execution {
    Execution { workflow_id: "wf".into(), state, ..Execution::undecided(id(uid), Version::new("v"), at(0)) }
}

fn undecided(uid: &str) -> Execution {
    Execution { workflow_id: "wf".into(), ..Execution::undecided(id(uid), Version::new("v"), at(0)) }
}

fn unusable(why: &str) -> ExecutionState {
    ExecutionState::Undecided { unusable: Some(why.into()), refusal: None, first_try: None, start_before: None }
}

fn running(uid: &str, run: &str) -> Execution {
    execution(uid, ExecutionState::Running { run: Some(run_id(run)), started_at: Some(at(0)) })
}

fn failed(uid: &str) -> Execution {
    execution(uid, ExecutionState::Failed { reason: FailureReason::Unknown })
}

/// A run `r<number>` of the chain, delivered in the order of its number.
fn run(number: u64, owner: &str, progress: Progress) -> Run {
    Run {
        id: run_id(&format!("r{number}")),
        number,
        version: Version::new("rv"),
        created: at(1),
        order: Order(number),
        owner: Owner::Execution { id: id(owner), workflow_id: "wf".into(), presence: Presence::Watched },
        progress,
        cancelled: false,
        cancel_reason: None,
        started: false,
        done_seen: None,
    }
}

/// A pod of an execution that is not finished.
fn pod(owner: &str) -> Residue {
    Residue {
        id: ResidueId { kind: ResidueKind::Pod, name: "pod".into(), uid: Uid::new("pod") },
        owner: Owner::Execution { id: id(owner), workflow_id: "wf".into(), presence: Presence::Watched },
        created: at(5),
    }
}

fn left(mut target: Target, residue: Residue) -> Target {
    target.residue.insert(residue.id.uid.clone(), residue);
    target
}

fn done(succeeded: bool) -> Progress {
    Progress::Done(Outcome { succeeded, reason: "R".into(), message: "m".into(), completed_at: Some(at(40)) })
}

fn target(executions: Vec<Execution>, runs: Vec<Run>) -> Target {
    Target {
        executions: executions.into_iter().map(|execution| (execution.id.uid.clone(), execution)).collect(),
        runs: runs.into_iter().map(|run| (run.id.uid.clone(), run)).collect(),
        ..Target::default()
    }
}

fn actions(target: &Target) -> Vec<Action> {
    decide(target, &Policy::default(), at(50)).actions
}

fn waiting(target: &Target) -> Vec<(String, Waiting)> {
    decide(target, &Policy::default(), at(50))
        .waiting
        .into_iter()
        .map(|(id, waiting)| (id.uid.to_string(), waiting))
        .collect()
}

fn create(uid: &str, number: u64) -> Action {
    Action::Create { execution: id(uid), number }
}

fn committed(uid: &str, run: &str, number: u64, gone: &[&str]) -> Action {
    Action::Commit {
        execution: id(uid),
        version: Version::new("v"),
        run: run_id(run),
        number,
        started_at: at(50),
        gone: gone.iter().map(|uid| id(uid)).collect(),
    }
}

fn gives_up(uid: &str, number: RunNumber) -> Action {
    Action::GiveUp { execution: id(uid), version: Version::new("v"), number }
}

fn deleted(run: &str, why: Unneeded, gone: Option<&str>) -> Action {
    Action::Delete { run: run_id(run), version: Version::new("rv"), why, gone: gone.map(id) }
}

// The four steps, each resumed from what is there.

#[test]
fn an_execution_on_a_free_target_creates_a_pending_run() {
    assert_eq!(actions(&target(vec![undecided("a")], vec![])), [create("a", 1)]);
}

#[test]
fn the_number_is_one_above_all_that_is_known() {
    let mut skipped = execution("s", ExecutionState::Skipped);
    skipped.run_sequence = Some(6);
    let mut known = target(vec![undecided("a"), failed("b"), skipped], vec![run(4, "b", done(true))]);
    assert_eq!(actions(&known), [create("a", 7)]);
    known.highest_taken = 9;
    assert_eq!(actions(&known), [create("a", 10)]);
}

#[test]
fn at_the_look_an_execution_commits_to_its_own_run() {
    let target = target(vec![undecided("a")], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&target), [committed("a", "r1", 1, &[])]);
}

#[test]
fn a_committed_run_is_released_and_a_released_one_is_left_to_tekton() {
    let pending = target(vec![running("a", "r1")], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&pending), [Action::Release { run: run_id("r1") }]);
    let released = target(vec![running("a", "r1")], vec![run(1, "a", Progress::Released)]);
    assert_eq!(actions(&released), []);
}

#[test]
fn a_finished_run_ends_its_execution_with_the_times_of_the_run() {
    let finished = |succeeded| actions(&target(vec![running("a", "r1")], vec![run(1, "a", done(succeeded))]));
    let [Action::Finish { ending: Ending::Completed(success), lost: None, .. }] = &finished(true)[..] else {
        panic!("{:?}", finished(true))
    };
    assert_eq!((success.completed_at, success.ran_for), (at(40), Duration::from_secs(40)));
    let [Action::Finish { ending: Ending::Failed(failure), lost: None, .. }] = &finished(false)[..] else {
        panic!("{:?}", finished(false))
    };
    assert_eq!((failure.reason, failure.was_execution_failure), (FailureReason::Unknown, true));
    assert_eq!((&*failure.message, failure.failed_at), ("R: m", at(40)));
}

#[test]
fn a_completion_far_in_the_future_is_cut() {
    let late = Progress::Done(Outcome {
        succeeded: true,
        reason: "R".into(),
        message: "m".into(),
        completed_at: Some(at(100_000)),
    });
    let decided = actions(&target(vec![running("a", "r1")], vec![run(1, "a", late)]));
    let [Action::Finish { ending: Ending::Completed(success), .. }] = &decided[..] else { panic!("{decided:?}") };
    assert_eq!(success.completed_at, at(50) + MAX_SKEW);
}

#[test]
fn a_run_that_is_gone_fails_its_execution_once_that_is_read_live() {
    let decided = actions(&target(vec![running("a", "r1")], vec![]));
    let [Action::Finish { ending: Ending::Failed(failure), lost: Some(lost), .. }] = &decided[..] else {
        panic!("{decided:?}")
    };
    assert_eq!((lost, failure.was_execution_failure), (&run_id("r1"), true));
}

#[test]
fn a_running_execution_without_a_run_fails_and_says_who_must_have_written_it() {
    let odd = execution("a", ExecutionState::Running { run: None, started_at: None });
    let decided = actions(&target(vec![odd], vec![]));
    let [Action::Finish { ending: Ending::Failed(failure), .. }] = &decided[..] else { panic!("{decided:?}") };
    assert!(failure.message.contains("without a pipelineRunRef"), "{}", failure.message);
}

#[test]
fn an_execution_whose_status_names_another_ones_run_fails_and_releases_nothing() {
    let decided = actions(&target(vec![running("a", "r1"), undecided("b")], vec![run(1, "b", Progress::Pending)]));
    let finished: Vec<_> = decided.iter().filter(|action| matches!(action, Action::Finish { .. })).collect();
    let [Action::Finish { execution, ending: Ending::Failed(failure), .. }] = &finished[..] else {
        panic!("{decided:?}")
    };
    assert_eq!(*execution, id("a"));
    assert!(failure.message.contains("another WorkflowExecution"), "{}", failure.message);
    assert!(
        !decided.iter().any(|action| matches!(action, Action::Release { .. } | Action::Delete { .. })),
        "{decided:?}"
    );
}

#[test]
fn an_execution_whose_run_lives_in_another_namespace_is_left_alone_and_holds_the_target() {
    let mut stranger = running("a", "r1");
    stranger.elsewhere = true;
    let target = target(vec![stranger, undecided("b")], vec![]);
    assert_eq!((actions(&target), waiting(&target)), (vec![], vec![("b".into(), Waiting::OwnerLate)]));
}

// Rivals.

#[test]
fn of_rivals_the_oldest_goes_first_and_the_others_wait_for_their_turn() {
    let mut old = undecided("z");
    old.created = at(-5);
    let target = target(vec![undecided("b"), undecided("a"), old], vec![]);
    assert_eq!(actions(&target), [create("z", 1)]);
    assert_eq!(waiting(&target), [("a".into(), Waiting::Turn), ("b".into(), Waiting::Turn)]);
}

#[test]
fn rivals_wait_while_a_run_is_pending_and_uncommitted() {
    let target = target(vec![undecided("a"), undecided("b")], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&target), [committed("a", "r1", 1, &[])]);
    assert_eq!(waiting(&target), [("b".into(), Waiting::RivalUndecided)]);
}

#[test]
fn all_rivals_of_a_committed_run_are_skipped_in_one_batch_on_one_fact() {
    for progress in [Progress::Pending, Progress::Released] {
        let target = target(vec![running("a", "r1"), undecided("b"), undecided("c")], vec![run(1, "a", progress)]);
        let skips: Vec<_> = actions(&target).into_iter().filter(|a| matches!(a, Action::Skip { .. })).collect();
        let [Action::Skip { skipped, skip, fact }] = &skips[..] else { panic!("{skips:?}") };
        assert_eq!(skipped.iter().map(|(id, _)| id.uid.as_str()).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(*fact, Fact::Unfinished(run_id("r1")));
        let conflict = Conflict { holder: id("a"), workflow_id: "wf".into(), started_at: at(0), draining: false };
        assert_eq!(*skip, Skip::ResourceBusy(conflict));
    }
}

#[test]
fn rivals_wait_while_a_finished_runs_owner_is_late() {
    let done_but_running = target(vec![running("a", "r1"), undecided("b")], vec![run(1, "a", done(true))]);
    assert_eq!(waiting(&done_but_running), [("b".into(), Waiting::OwnerLate)]);
    let run_vanished = target(vec![running("a", "r1"), undecided("b")], vec![]);
    assert_eq!(waiting(&run_vanished), [("b".into(), Waiting::OwnerLate)]);
}

#[test]
fn a_terminal_owner_frees_the_target() {
    let target = target(vec![failed("a"), undecided("b")], vec![run(1, "a", done(false))]);
    assert_eq!(actions(&target), [create("b", 2)]);
}

#[test]
fn an_execution_on_its_way_out_gets_no_turn() {
    let mut leaving = undecided("a");
    leaving.deleting = true;
    assert_eq!(actions(&target(vec![leaving], vec![])), []);
}

// The look: what came before, and what may be lost.

#[test]
fn at_the_look_a_run_withdraws_before_an_earlier_one() {
    for earlier in [Progress::Pending, Progress::Released] {
        let mut first = run(1, "x", earlier);
        // Another operator's execution, in a namespace that is not watched.
        first.owner = Owner::Execution { id: id("x"), workflow_id: "wf".into(), presence: Presence::Elsewhere };
        let target = target(vec![undecided("a")], vec![first, run(2, "a", Progress::Pending)]);
        let decided = actions(&target);
        let is_pending = target.runs[&Uid::new("r1")].is_pending();
        match &decided[..] {
            // It may be withdrawn too: who goes then is decided anew.
            [Action::GiveUp { execution, number: 2, .. }] if is_pending => assert_eq!(*execution, id("a")),
            [Action::Skip { skipped, .. }] if !is_pending => assert_eq!(skipped[0].0, id("a")),
            _ => panic!("{decided:?}"),
        }
    }
}

#[test]
fn a_run_that_was_given_up_is_deleted_and_never_committed_to() {
    let mut given_up = undecided("a");
    given_up.run_sequence = Some(1);
    let before = target(vec![given_up.clone()], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&before), [deleted("r1", Unneeded::Withdrawn, None)]);
    assert_eq!(waiting(&before), [("a".into(), Waiting::Withdrawn)]);
    assert_eq!(actions(&target(vec![given_up.clone()], vec![])), [create("a", 2)]);
    let next = target(vec![given_up.clone()], vec![run(2, "a", Progress::Pending)]);
    assert_eq!(actions(&next), [committed("a", "r2", 2, &[])]);
    let released = target(vec![given_up], vec![run(1, "a", Progress::Released)]);
    assert_eq!(actions(&released), [committed("a", "r1", 1, &[])], "somebody has released it all the same");
}

#[test]
fn at_the_look_a_later_run_does_not_count() {
    let mut later = run(2, "x", Progress::Pending);
    later.owner = Owner::Execution { id: id("x"), workflow_id: "wf".into(), presence: Presence::Elsewhere };
    let target = target(vec![undecided("a")], vec![run(1, "a", Progress::Pending), later]);
    assert_eq!(actions(&target), [committed("a", "r1", 1, &[])]);
}

#[test]
fn two_runs_of_one_list_both_withdraw() {
    let mut second = run(2, "b", Progress::Pending);
    second.order = Order(1);
    let target = target(vec![undecided("a"), undecided("b")], vec![run(1, "a", Progress::Pending), second]);
    assert_eq!(actions(&target), [gives_up("a", 1), gives_up("b", 2)]);
}

#[test]
fn a_run_that_was_released_past_its_owner_is_committed_to_and_never_deleted() {
    let released = target(vec![undecided("a")], vec![run(1, "a", Progress::Released)]);
    assert_eq!(actions(&released), [committed("a", "r1", 1, &[])]);
    let finished = target(vec![undecided("a")], vec![run(1, "a", done(true))]);
    assert_eq!(actions(&finished), [committed("a", "r1", 1, &[])]);
}

#[test]
fn a_commit_reads_live_that_the_unknown_owners_of_finished_runs_are_gone() {
    let history = vec![run(1, "x", done(true)), run(2, "y", done(false)), run(3, "a", Progress::Pending)];
    let mut target = target(vec![undecided("a")], history);
    assert_eq!(actions(&target), [committed("a", "r3", 3, &["x", "y"])]);
    if let Some(Owner::Execution { presence, .. }) = target.runs.get_mut(&Uid::new("r1")).map(|run| &mut run.owner) {
        *presence = Presence::Gone;
    }
    assert_eq!(actions(&target), [committed("a", "r3", 3, &["y"])]);
}

// Leftovers and orphans.

#[test]
fn a_pending_run_that_nobody_can_commit_to_is_deleted() {
    let leftover = |owner: Execution| actions(&target(vec![owner], vec![run(9, "a", Progress::Pending)]));
    let mut leaving = undecided("a");
    leaving.deleting = true;
    for owner in [failed("a"), execution("a", ExecutionState::Skipped), leaving] {
        assert_eq!(leftover(owner.clone()), [deleted("r9", Unneeded::Leftover, None)], "{owner:?}");
    }
}

#[test]
fn an_execution_keeps_the_first_of_two_runs_that_it_made() {
    let runs = vec![run(1, "a", Progress::Pending), run(2, "a", Progress::Pending)];
    // Not yet deleted: an operator that does not know the first may be committing to the second.
    assert_eq!(actions(&target(vec![undecided("a")], runs.clone())), [committed("a", "r1", 1, &[])]);
    let expected = [Action::Release { run: run_id("r1") }, deleted("r2", Unneeded::Leftover, None)];
    assert_eq!(actions(&target(vec![running("a", "r1")], runs)), expected);
}

#[test]
fn runs_of_a_deleted_execution_are_deleted_or_cancelled_and_hold_the_target_until_they_end() {
    let pending = target(vec![], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&pending), [deleted("r1", Unneeded::Leftover, Some("a"))]);

    let mut released = target(vec![undecided("b")], vec![run(1, "a", Progress::Released)]);
    let cancel = Action::Cancel { run: run_id("r1"), why: CancelReason::OwnerDeleted, gone: Some(id("a")) };
    let decided = actions(&released);
    assert!(decided.contains(&cancel), "{decided:?}");
    assert!(decided.iter().any(|action| matches!(action, Action::Skip { .. })), "{decided:?}");

    released.runs.get_mut(&Uid::new("r1")).unwrap().cancelled = true;
    assert!(!actions(&released).contains(&cancel), "cancelled once");
}

#[test]
fn runs_of_nobody_and_of_executions_elsewhere_are_never_touched() {
    for owner in
        [Owner::Nobody, Owner::Execution { id: id("x"), workflow_id: "wf".into(), presence: Presence::Elsewhere }]
    {
        for progress in [Progress::Pending, Progress::Released, done(true)] {
            let mut stranger = run(1, "x", progress);
            stranger.owner = owner.clone();
            assert_eq!(actions(&target(vec![], vec![stranger])), []);
        }
    }
}

// Draining.

#[test]
fn a_run_that_is_done_ends_its_execution_at_once_or_when_what_is_left_of_it_had_time_to_be_seen() {
    let mut finished = run(1, "a", done(true));
    finished.done_seen = Some(at(49));
    let target = left(target(vec![running("a", "r1")], vec![finished]), pod("a"));
    let waits = decide(&target, &Policy::default(), at(50));
    assert_eq!((waits.actions, waits.wake), (vec![], Some(at(49) + SETTLE)));
    let decided = decide(&target, &Policy::default(), at(51)).actions;
    assert!(matches!(&decided[..], [Action::Finish { draining: true, .. }]), "{decided:?}");
}

#[test]
fn while_a_target_drains_rivals_are_skipped_on_what_is_left() {
    let drains = left(target(vec![failed("a"), undecided("b")], vec![run(1, "a", done(false))]), pod("a"));
    let decided = actions(&drains);
    let [Action::Skip { skip: Skip::ResourceBusy(conflict), fact: Fact::Draining(left), .. }] = &decided[..] else {
        panic!("{decided:?}")
    };
    assert_eq!((conflict.draining, &conflict.holder, &*left.name), (true, &id("a"), "pod"));
}

#[test]
fn what_is_left_of_a_deleted_run_drains_too_and_what_names_nobody_is_waited_for() {
    assert!(matches!(&actions(&left(target(vec![undecided("b")], vec![]), pod("a")))[..], [Action::Skip { .. }]));
    let nobodys = Residue { owner: Owner::Nobody, ..pod("a") };
    let target = left(target(vec![undecided("b")], vec![]), nobodys);
    assert_eq!(waiting(&target), [("b".into(), Waiting::Draining)]);
}

#[test]
fn at_the_look_an_execution_is_skipped_by_what_drains() {
    let decided = actions(&left(target(vec![undecided("b")], vec![run(2, "b", Progress::Pending)]), pod("a")));
    assert!(matches!(&decided[..], [Action::Skip { fact: Fact::Draining(_), .. }]), "{decided:?}");
}

#[test]
fn a_status_that_says_draining_says_free_when_nothing_is_left() {
    let mut ended = failed("a");
    ended.draining_shown = true;
    let drains = target(vec![ended], vec![]);
    let freed = Action::Freed { execution: id("a"), version: Version::new("v") };
    assert_eq!(actions(&drains), [freed]);
    assert_eq!(actions(&left(drains, pod("a"))), []);
}

#[test]
fn a_target_that_does_not_drain_is_told_of_once() {
    let mut drains = left(target(vec![failed("a")], vec![run(1, "a", done(false))]), pod("a"));
    let deadline = at(40) + Policy::default().drain_deadline;
    let early = decide(&drains, &Policy::default(), at(50));
    assert_eq!((early.actions, early.wake), (vec![], Some(deadline)));
    let late = decide(&drains, &Policy::default(), deadline).actions;
    assert!(matches!(&late[..], [Action::DrainSlow { holder, .. }] if *holder == id("a")), "{late:?}");
    drains.drain_warned = true;
    assert_eq!(decide(&drains, &Policy::default(), deadline).actions, []);
}

// Deadlines of our own, retention.

#[test]
fn a_released_run_of_which_nothing_starts_is_cancelled_at_the_start_deadline() {
    let mut released = run(1, "a", Progress::Released);
    let cancel = |why| Action::Cancel { run: run_id("r1"), why, gone: None };
    let deadline = at(0) + Policy::default().start_deadline;
    let early = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), at(50));
    assert_eq!((early.actions, early.wake), (vec![], Some(deadline)));
    let late = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), deadline);
    assert_eq!(late.actions, [cancel(CancelReason::NotStarted)]);

    released.started = true;
    let deadline = at(0) + Policy::default().default_timeout + Duration::from_mins(1);
    let early = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), at(400));
    assert_eq!((early.actions, early.wake), (vec![], Some(deadline)));
    let late = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), deadline);
    assert_eq!(late.actions, [cancel(CancelReason::TimedOut)]);

    released.cancelled = true;
    let asked = decide(&target(vec![running("a", "r1")], vec![released]), &Policy::default(), deadline);
    assert_eq!((asked.actions, asked.wake), (vec![], None), "asked once");
}

#[test]
fn the_message_of_a_run_that_we_cancelled_says_why() {
    for (why, reason, words) in [
        (CancelReason::NotStarted, FailureReason::Unknown, "within 5m0s"),
        (CancelReason::TimedOut, FailureReason::DeadlineExceeded, "time-out of 30m0s"),
        (CancelReason::Requested, FailureReason::Unknown, "cancelled by jo: enough"),
    ] {
        let mut stopped = run(1, "a", done(false));
        stopped.cancel_reason = Some(why);
        let mut owner = running("a", "r1");
        owner.cancellation = Some(Cancellation { reason: "enough".into(), requested_by: "jo".into() });
        let decided = actions(&target(vec![owner], vec![stopped]));
        let [Action::Finish { ending: Ending::Failed(failure), .. }] = &decided[..] else { panic!("{decided:?}") };
        assert_eq!(failure.reason, reason);
        assert!(failure.message.contains(words), "{}", failure.message);
    }
}

#[test]
fn a_create_that_does_not_get_through_fails_at_the_start_deadline_and_says_what_stood_in_the_way() {
    let tried = |first_try| {
        let mut trying = undecided("a");
        if let ExecutionState::Undecided { first_try: slot, .. } = &mut trying.state {
            *slot = Some(first_try);
        }
        let trouble = Some("cannot create: no answer".into());
        Target { trouble, ..target(vec![trying], vec![]) }
    };
    let deadline = at(0) + Policy::default().start_deadline;
    let early = decide(&tried(at(0)), &Policy::default(), at(5));
    assert_eq!(early.actions, [create("a", 1)]);
    assert_eq!(early.waiting, [(id("a"), Waiting::ApiErrors("cannot create: no answer".into()))]);
    let late = decide(&tried(at(0)), &Policy::default(), deadline).actions;
    let [Action::Finish { ending: Ending::Failed(failure), .. }] = &late[..] else { panic!("{late:?}") };
    assert_eq!((failure.reason, failure.was_execution_failure), (FailureReason::Unknown, false));
    assert!(failure.message.contains("cannot create: no answer"), "{}", failure.message);
}

#[test]
fn a_finished_run_is_deleted_when_it_has_expired_and_nothing_needs_it() {
    let expired = at(40) + Policy::default().retention;
    let delete = deleted("r1", Unneeded::Expired, None);
    let kept = target(vec![failed("a")], vec![run(1, "a", done(false))]);
    assert_eq!(decide(&kept, &Policy::default(), at(50)).wake, Some(expired));
    assert_eq!(decide(&kept, &Policy::default(), expired).actions, std::slice::from_ref(&delete));
    let orphan = target(vec![], vec![run(1, "a", done(false))]);
    assert_eq!(decide(&orphan, &Policy::default(), expired).actions, [deleted("r1", Unneeded::Expired, Some("a"))]);

    let drains = left(kept.clone(), pod("a"));
    assert!(!decide(&drains, &Policy::default(), expired).actions.contains(&delete));
    let owner_runs = target(vec![running("a", "r1")], vec![run(1, "a", done(false))]);
    assert!(!decide(&owner_runs, &Policy::default(), expired).actions.contains(&delete));
    let newer =
        target(vec![failed("a"), running("b", "r2")], vec![run(1, "a", done(false)), run(2, "b", Progress::Released)]);
    assert!(!decide(&newer, &Policy::default(), expired).actions.contains(&delete));
}

// Cancellation, startBefore, pause, and what the status says of waiting.

#[test]
fn a_cancelled_execution_stops_wherever_it_is() {
    let cancelled = |mut execution: Execution| {
        execution.cancellation = Some(Cancellation { reason: "enough".into(), requested_by: "jo".into() });
        execution
    };
    let decided = actions(&target(vec![cancelled(undecided("a"))], vec![]));
    let [Action::Finish { ending: Ending::Failed(failure), .. }] = &decided[..] else { panic!("{decided:?}") };
    assert_eq!(
        (failure.was_execution_failure, &*failure.message),
        (false, "cancelled by jo before it started: enough")
    );
    let looking = actions(&target(vec![cancelled(undecided("a"))], vec![run(1, "a", Progress::Pending)]));
    assert!(matches!(&looking[..], [Action::Finish { ending: Ending::Failed(_), .. }]), "{looking:?}");
    for progress in [Progress::Pending, Progress::Released] {
        let committed = target(vec![cancelled(running("a", "r1"))], vec![run(1, "a", progress)]);
        let cancel = Action::Cancel { run: run_id("r1"), why: CancelReason::Requested, gone: None };
        assert_eq!(actions(&committed), [cancel]);
    }
}

#[test]
fn an_execution_that_was_not_started_before_its_time_fails() {
    let mut late = undecided("a");
    if let ExecutionState::Undecided { start_before, .. } = &mut late.state {
        *start_before = Some(at(50));
    }
    let target = target(vec![late], vec![]);
    let in_time = decide(&target, &Policy::default(), at(50));
    assert_eq!((in_time.actions, in_time.wake), (vec![create("a", 1)], Some(at(51))));
    let decided = decide(&target, &Policy::default(), at(51)).actions;
    let [Action::Finish { ending: Ending::Failed(failure), .. }] = &decided[..] else { panic!("{decided:?}") };
    assert_eq!((failure.reason, failure.was_execution_failure), (FailureReason::DeadlineExceeded, false));
}

#[test]
fn in_a_paused_namespace_nothing_new_starts_and_what_runs_goes_on() {
    let paused = |mut execution: Execution| {
        execution.paused = Some("ask sre".into());
        execution
    };
    let waits = Waiting::Paused("ask sre".into());
    assert_eq!(waiting(&target(vec![paused(undecided("a"))], vec![])), [("a".into(), waits)]);
    let looking = target(vec![paused(undecided("a"))], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&looking), [gives_up("a", 1)]);
    let committed = target(vec![paused(running("a", "r1"))], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&committed), [Action::Release { run: run_id("r1") }]);
}

#[test]
fn the_status_says_what_an_execution_waits_for_after_ten_seconds_and_once() {
    let mut paused = undecided("a");
    paused.paused = Some("ask sre".into());
    paused.waits_since = Some(at(0));
    let early = decide(&target(vec![paused.clone()], vec![]), &Policy::default(), at(9));
    assert_eq!((early.actions, early.wake), (vec![], Some(at(10))));
    let late = decide(&target(vec![paused.clone()], vec![]), &Policy::default(), at(10)).actions;
    assert!(matches!(&late[..], [Action::ShowWaiting { waiting: Waiting::Paused(_), .. }]), "{late:?}");
    paused.waiting_shown = Some("Paused".into());
    assert_eq!(decide(&target(vec![paused], vec![]), &Policy::default(), at(10)).actions, []);
}

#[test]
fn an_action_is_repeated_by_one_that_does_the_same_to_the_same_object() {
    let commit = |version: &str, started_at| Action::Commit {
        execution: id("a"),
        version: Version::new(version),
        run: run_id("r1"),
        number: 1,
        started_at,
        gone: vec![],
    };
    assert!(commit("1", at(0)).repeats(&commit("2", at(5))), "on a newer view");
    assert!(!commit("1", at(0)).repeats(&create("a", 1)), "another write");
    let release = |run| Action::Release { run: run_id(run) };
    assert!(release("r1").repeats(&release("r1")) && !release("r1").repeats(&release("r2")));
}

#[test]
fn whoever_waits_for_a_request_that_fails_says_so_whatever_it_is_for() {
    let free = target(vec![undecided("b")], vec![]);
    let looked = target(vec![undecided("b")], vec![run(1, "b", Progress::Pending)]);
    let busy = target(vec![running("a", "r1"), undecided("b")], vec![run(1, "a", Progress::Released)]);
    for mut target in [free, looked, busy] {
        assert_eq!(waiting(&target), []);
        target.trouble = Some("cannot read".into());
        assert_eq!(waiting(&target), [("b".into(), Waiting::ApiErrors("cannot read".into()))]);
    }
}

#[test]
fn a_target_that_cannot_be_seen_is_left_alone_but_its_executions_say_so() {
    let mut waits = undecided("a");
    waits.waits_since = Some(at(0));
    let target = target(vec![waits, running("b", "r1")], vec![run(1, "b", Progress::Pending)]);
    let blind = decide_blind(&target, "cannot watch pipelineruns", at(50)).actions;
    assert!(matches!(&blind[..], [Action::ShowWaiting { waiting: Waiting::Blind(_), .. }]), "{blind:?}");
}

#[test]
fn a_run_that_lost_its_annotations_is_still_the_one_that_was_committed_to() {
    let mut stripped = run(1, "a", Progress::Released);
    stripped.owner = Owner::Nobody;
    let target = target(vec![running("a", "r1"), undecided("b")], vec![stripped]);
    let decided = actions(&target);
    assert!(matches!(&decided[..], [Action::Skip { .. }]), "{decided:?}");
}

// Failures without a run.

#[test]
fn an_unusable_spec_fails_before_rivals_are_compared() {
    let target = target(
        vec![running("a", "r1"), execution("b", unusable("spec.x: bad"))],
        vec![run(1, "a", Progress::Released)],
    );
    let decided = actions(&target);
    let [Action::Finish { execution, ending: Ending::Failed(failure), .. }] = &decided[..] else {
        panic!("{decided:?}")
    };
    assert_eq!(*execution, id("b"));
    assert_eq!((failure.reason, failure.was_execution_failure), (FailureReason::ConfigurationError, false));
}

#[test]
fn a_refused_create_fails_its_execution_and_the_others_wait_for_that() {
    let refusal = Refusal { reason: FailureReason::ResourceExhausted, message: "quota".into(), number: 3 };
    let mut refused = undecided("a");
    if let ExecutionState::Undecided { refusal: slot, .. } = &mut refused.state {
        *slot = Some(refusal);
    }
    let mut target = target(vec![refused, undecided("b")], vec![]);
    let decided = actions(&target);
    let [Action::Finish { ending: Ending::Failed(failure), .. }] = &decided[..] else { panic!("{decided:?}") };
    assert_eq!((failure.number, failure.was_execution_failure), (Some(3), false));
    assert_eq!(waiting(&target), [("b".into(), Waiting::Turn)]);

    let own = run(3, "a", Progress::Pending);
    target.runs.insert(own.id.uid.clone(), own);
    let decided = actions(&target);
    assert_eq!(decided, [committed("a", "r3", 3, &[])], "a run that is there after all counts");
}

// Properties of any view whatsoever.

fn any_target() -> impl Strategy<Value = Target> {
    let uids = || prop::sample::select(vec!["a", "b", "c", "d"]);
    let runs = || prop::sample::select(vec!["r1", "r2", "r3", "r4"]);
    let state = prop_oneof![
        4 => Just(undecided("x").state),
        1 => Just(unusable("bad")),
        2 => runs().prop_map(|run| ExecutionState::Running { run: Some(run_id(run)), started_at: Some(at(0)) }),
        1 => Just(ExecutionState::Completed),
        1 => Just(ExecutionState::Failed { reason: FailureReason::Unknown }),
        1 => Just(ExecutionState::Skipped),
    ];
    let executions = prop::collection::vec((uids(), state, 0..3_i64, any::<bool>(), 0..3_u64), 0..4).prop_map(|all| {
        all.into_iter()
            .map(|(uid, state, created, deleting, tried)| Execution {
                created: at(created),
                deleting,
                run_sequence: (tried > 0).then_some(tried),
                ..execution(uid, state)
            })
            .collect::<Vec<_>>()
    });
    let progress =
        prop_oneof![3 => Just(Progress::Pending), 2 => Just(Progress::Released), 2 => any::<bool>().prop_map(done)];
    let presence = prop::sample::select(vec![Presence::Watched, Presence::Gone, Presence::Elsewhere]);
    let runs = prop::collection::vec((1..5_u64, uids(), progress, presence, 0..4_u64), 0..4).prop_map(|all| {
        all.into_iter()
            .map(|(number, uid, progress, presence, order)| {
                let owner = Owner::Execution { id: id(uid), workflow_id: "wf".into(), presence };
                Run { order: Order(order), owner, ..run(number, uid, progress) }
            })
            .collect::<Vec<_>>()
    });
    (executions, runs).prop_map(|(executions, runs)| target(executions, runs))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_decision_does_what_none_may_do(target in any_target()) {
        let decided = actions(&target);
        let creates = decided.iter().filter(|action| matches!(action, Action::Create { .. })).count();
        prop_assert!(creates <= 1);
        for action in &decided {
            match action {
                Action::Create { number, .. } => {
                    prop_assert!(target.runs.values().all(|run| !run.is_unfinished()), "created beside an unfinished run");
                    prop_assert!(target.runs.values().all(|run| run.number < *number));
                }
                Action::Commit { execution, run, .. } => {
                    let own = &target.runs[&run.uid];
                    prop_assert!(own.is_owned_by(execution));
                    let earlier = target.runs.values().any(|other| {
                        !other.is_owned_by(execution) && other.is_unfinished() && other.order <= own.order
                    });
                    prop_assert!(!earlier, "committed after an unfinished run");
                    let given_up = own.is_pending() && target.executions[&execution.uid].has_given_up(own);
                    prop_assert!(!given_up, "committed to a run that was given up");
                }
                Action::GiveUp { execution, number, .. } => {
                    prop_assert!(target.executions[&execution.uid].is_undecided());
                    let own = target.runs.values().filter(|run| run.is_owned_by(execution)).map(|run| run.number).max();
                    prop_assert_eq!(own, Some(*number));
                }
                Action::Release { run } => {
                    let released = &target.runs[&run.uid];
                    prop_assert!(released.is_pending());
                    prop_assert!(target.owner_of(released).is_some_and(|owner| owner.is_running(run)));
                }
                Action::Skip { skipped, fact, .. } => {
                    match fact {
                        Fact::Unfinished(run) => prop_assert!(target.runs[&run.uid].is_unfinished()),
                        Fact::Draining(left) => prop_assert!(target.residue.contains_key(&left.uid)),
                    }
                    for (execution, _) in skipped {
                        prop_assert!(target.executions[&execution.uid].is_undecided());
                        let own = target.runs.values().find(|run| run.is_owned_by(execution) && !run.is_pending());
                        prop_assert!(own.is_none(), "of a Skipped one nothing may run");
                    }
                }
                Action::Delete { run, .. } => {
                    let deleted = &target.runs[&run.uid];
                    prop_assert!(deleted.is_pending(), "deleted a run that may run");
                    let owner = target.owner_of(deleted);
                    prop_assert!(!owner.is_some_and(|owner| owner.is_running(run)));
                    let may_commit = owner.is_some_and(|owner| owner.is_undecided() && !owner.has_given_up(deleted));
                    prop_assert!(!may_commit, "its owner may be committing to it now");
                }
                Action::Cancel { run, .. } => {
                    let cancelled = &target.runs[&run.uid];
                    prop_assert!(target.owner_of(cancelled).is_none());
                }
                Action::Freed { .. } | Action::ShowWaiting { .. } | Action::DrainSlow { .. } => {}
                Action::Finish { execution, .. } => {
                    prop_assert!(!target.executions[&execution.uid].is_terminal());
                }
            }
        }
    }

    #[test]
    fn deciding_again_says_the_same(target in any_target()) {
        prop_assert_eq!(decide(&target, &Policy::default(), at(50)), decide(&target.clone(), &Policy::default(), at(50)));
    }
}
