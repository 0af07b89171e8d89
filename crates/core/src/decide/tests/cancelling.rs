//! Requests to stop a run that Tekton does not act on.

use super::*;
use crate::awaiting::Awaiting;
use crate::decide::cancelling::AGAIN;
use crate::execution::Execution;
use crate::run::Run;

/// A run with a request to stop since second 100.
fn stops() -> Run {
    to_stop(run(1, "a", Progress::Released), 100)
}

fn changed(mut run: Run, change: impl FnOnce(&mut crate::run::StopRequest)) -> Run {
    change(run.stop.get_or_insert_default());
    run
}

fn decided(owner: Option<&Execution>, run: &Run, second: i64) -> Decision {
    let view = target(owner.cloned().into_iter().collect(), vec![run.clone()]);
    let decision = decide(&view, &Policy::default(), at(second));
    assert_eq!(crate::check::violations(&view, &Policy::default(), at(second), &decision), []);
    decision
}

fn told(decision: &Decision) -> Vec<&str> {
    let names = decision.actions.iter().map(|action| match action {
        Action::Tell(Announce::CancelUnanswered { .. }) => "event",
        Action::Change(Change { to: RunChange::AskedAgain(_), .. }) => "asked again",
        Action::Write(Write { says: Says::Progress { .. }, .. }) => "status",
        other => panic!("{other:?}"),
    });
    names.collect()
}

fn message(decision: &Decision) -> String {
    match &decision.awaiting[..] {
        [(_, awaiting @ Awaiting::Cancelling(_))] => awaiting.message(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cancel_that_is_not_answered_within_a_minute_is_said_everywhere_and_asked_for_again() {
    let owner = running("a", "r1");
    let early = decided(Some(&owner), &stops(), 159);
    assert_eq!((told(&early), early.wake, early.awaiting.len()), (vec![], Some(at(160)), 0));
    let late = decided(Some(&owner), &stops(), 160);
    assert_eq!(told(&late), ["event", "asked again", "status"]);
    let Some(Action::Write(Write { says: Says::Progress { shown, .. }, .. })) = late.actions.last() else { panic!() };
    let shown_awaits = shown.awaits.clone().unwrap();
    assert_eq!((&*shown_awaits.reason, shown_awaits.message.to_string()), ("Cancelling", message(&late)));

    let mut owner = owner;
    owner.run_shown = shown.clone();
    let told_of = changed(stops(), |stop| (stop.told, stop.asked_at, stop.asked) = (true, Some(at(160)), 2));
    let again = at(160) + AGAIN;
    let later = decided(Some(&owner), &told_of, 161);
    assert_eq!((told(&later), later.wake, later.awaiting.len()), (vec![], Some(again), 1), "once");
    let asks = decide(&target(vec![owner], vec![told_of]), &Policy::default(), again).actions;
    let third = Action::Change(Change { run: run_id("r1"), facts: vec![], to: RunChange::AskedAgain(3) });
    assert_eq!(asks, [third]);
}

#[test]
fn the_run_of_a_deleted_execution_that_is_not_cancelled_is_told_of_too() {
    let late = decided(None, &stops(), 160);
    assert_eq!(told(&late), ["event", "asked again"]);
    assert_eq!(late.awaiting.len(), 1);
}

#[test]
fn a_person_who_stops_a_run_gracefully_is_not_left_alone_either() {
    let graceful = Run { cancelled: false, stopped: true, ..stops() };
    assert_eq!(told(&decided(Some(&running("a", "r1")), &graceful, 160)), ["event", "asked again", "status"]);
}

#[test]
fn what_is_being_deleted_is_not_asked_again() {
    let deleted = changed(Run { deleting: true, ..stops() }, |stop| {
        (stop.deleted_at, stop.bare_since, stop.finalizers) =
            (Some(at(150)), Some(at(150)), "chains.tekton.dev".into());
    });
    let owner = running("a", "r1");
    let view = left(target(vec![owner], vec![deleted]), pod("a"));
    let decision = decide(&view, &Policy::default(), at(160));
    assert_eq!(told(&decision), ["event", "status"]);
    assert!(message(&decision).contains("finalizers: chains.tekton.dev"), "{}", message(&decision));
}

#[test]
fn the_message_says_since_when_why_what_tekton_says_and_who_works_on_the_run() {
    let owner = running("a", "r1");
    let said = |run: Run| message(&decided(Some(&owner), &run, 200));
    let others = changed(stops(), |stop| stop.managed_by = Some("example.com/queue".into()));
    assert_eq!(
        said(Run { cancel_reason: Some(CancelReason::TimedOut), ..others }),
        "PipelineRun run-r1 was to stop at 2027-01-15T08:01:40Z (it was not done a minute after its time-out), and it goes \
         on; Tekton says nothing; spec.managedBy is example.com/queue, so Tekton leaves the run to that controller"
    );
    let couldnt = changed(stops(), |stop| stop.said = "PipelineRunCouldntCancel: conflict".into());
    let words = said(couldnt);
    assert!(words.contains("(somebody cancelled it)") && words.ends_with("says PipelineRunCouldntCancel: conflict"));
}

#[test]
fn finally_tasks_that_run_are_an_answer_until_the_run_should_have_ended() {
    let finally = changed(stops(), |stop| stop.runs_finally = true);
    let ends_by = at(0) + Policy::default().default_timeout + Duration::from_mins(1);
    let mut owner = running("a", "r1");
    owner.run_shown.proof = Some(Box::new(proof()));
    let runs = decided(Some(&owner), &finally, 1_000);
    assert_eq!((told(&runs), runs.wake), (vec![], Some(ends_by)));
    let late = decide(&target(vec![owner], vec![finally]), &Policy::default(), ends_by);
    assert_eq!(told(&late), ["event", "asked again", "status"]);
}

#[test]
fn a_process_that_begins_leaves_what_the_status_says_of_a_persons_cancel() {
    let mut owner = running("a", "r1");
    let before = decided(Some(&owner), &stops(), 160);
    let Some(Action::Write(Write { says: Says::Progress { shown, .. }, .. })) = before.actions.last() else { panic!() };
    owner.run_shown = shown.clone();
    let begins = changed(stops(), |stop| stop.since = Some(at(300)));
    assert_eq!(told(&decided(Some(&owner), &begins, 310)), Vec::<&str>::new());
}

#[test]
fn a_rival_hears_that_the_run_does_not_stop() {
    let view = |second| {
        let view = target(vec![running("a", "r1"), undecided("b")], vec![stops()]);
        let skip = decide(&view, &Policy::default(), at(second)).actions.into_iter().find_map(|action| match action {
            Action::Skip { skip, .. } => Some(skip.message("node/n")),
            _ => None,
        });
        skip.unwrap()
    };
    assert!(!view(159).contains("does not stop"), "{}", view(159));
    assert!(view(160).contains("and its run does not stop: PipelineRun run-r1 was to stop at"), "{}", view(160));
}
