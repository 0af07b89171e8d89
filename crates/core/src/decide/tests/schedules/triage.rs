//! When a triage begins, how it continues, and the effect of its verdict (sections 13.2 to 13.4).

use std::sync::Arc;

use super::*;
use crate::action::{Analyse, TriageDoes, TriageStep};
use crate::circuit::{Circuits, Closing, OpenCircuit, Seen, Share};
use crate::fingerprint::Fingerprint;
use crate::name::ExecutionId;
use crate::policy::TriagePolicy;
use crate::reason::FailureReason;
use crate::schedule::{Child, Heard};
use crate::triage::{
    Adjust, Analyst, AnalystRun, AnalystState, Began, Begun, Every as Written, Evidence, FailureSeen, Field, Gathered,
    Judgement, State, Suppressed, Triage, TriageSpec, Verdict, WHY, Wanted,
};

const OF: &str = "wfs-s-1800000000";

/// A schedule whose last child, at second 0, was the third failure in a row. The next slot lies in the future.
fn failing(change: impl FnOnce(&mut Schedule)) -> Schedule {
    with(|it| {
        it.status.failure_count = 3;
        it.status.last_success = None;
        it.status.last_run = Some(last_run(0, Some((Outcome::Failed, 10))));
        it.status.next = Some(Planned { at: at(490), why: PlannedBy::Backoff });
        it.children = vec![ended_child(0, Outcome::Failed, 10)];
        change(it);
    })
}

fn spec(schedule: &mut Schedule) -> &mut TriageSpec {
    Arc::make_mut(&mut schedule.triage)
}

fn failure(reason: FailureReason, ran: bool) -> FailureSeen {
    FailureSeen {
        name: OF.into(),
        failed_at: Some(at(10)),
        reason: Some(reason),
        was_execution_failure: ran,
        task: None,
        step: None,
        exit_code: None,
        ran_for: None,
        fingerprint: Fingerprint::parse("Unknown/workflow/wf@1"),
        message: "no".into(),
    }
}

fn gathered(reason: FailureReason, ran: bool) -> Gathered {
    Gathered {
        of: OF.into(),
        evidence: Evidence {
            subject: "ops/wfs-s".into(),
            target: "node/n".into(),
            workflow_id: "wf".into(),
            version: "1".into(),
            every: Written::Interval("1m".into()),
            failure_count: 3,
            last_success: None,
            open_circuits: vec![],
            timeout: std::time::Duration::from_mins(30),
            failures: vec![failure(reason, ran)],
        },
        text: "{}".into(),
        digest: "d1".into(),
    }
}

/// Returns the step of a triage at a second, except writes to the status.
fn step(schedule: &Schedule, second: i64) -> Option<TriageDoes> {
    step_by(&Policy::default(), schedule, second)
}

fn step_by(policy: &Policy, schedule: &Schedule, second: i64) -> Option<TriageDoes> {
    let target = scheduled(Target::default(), vec![schedule.clone()]);
    let actions = decide(&target, policy, at(second)).actions;
    let mut steps = actions.into_iter().filter_map(|action| match action {
        Action::Triage(TriageStep { does, of, .. }) => Some((does, of)),
        _ => None,
    });
    let step = steps.next();
    assert!(steps.next().is_none(), "one step at a time");
    step.map(|(does, of)| {
        assert_eq!(&*of, OF);
        does
    })
}

fn triage_said(schedule: &Schedule, second: i64) -> Triage {
    *said(schedule, second).triage.unwrap()
}

fn record(state: State) -> Triage {
    Triage {
        of: OF.into(),
        at: at(20),
        analyst: Analyst::Pipeline,
        run: None,
        fingerprint: None,
        evidence: Some("d1".into()),
        verdict: None,
        why: None,
        fix: None,
        refused: vec![],
        state,
    }
}

/// A schedule whose failures have been analysed by a workflow since second 20.
fn analysing(change: impl FnOnce(&mut Schedule)) -> Schedule {
    failing(|it| {
        it.triage = Arc::new(TriageSpec { analyst: Analyst::Pipeline, ..TriageSpec::default() });
        it.status.triage = Some(Box::new(record(State::Analysing)));
        change(it);
    })
}

fn analyst(state: AnalystState) -> AnalystRun {
    let id = ExecutionId { namespace: "ops".into(), name: format!("{OF}-triage").into(), uid: Uid::new("analyst") };
    AnalystRun { id, of: at(0), state }
}

fn name(it: &mut Schedule) {
    let run = Some((format!("{OF}-triage").into(), Uid::new("analyst")));
    it.status.triage.as_mut().unwrap().run = run;
}

fn heard(verdict: Verdict, adjust: Wanted) -> Heard {
    let said = Ok(Judgement { verdict, why: "so".into(), fix: None, adjust });
    Heard { of: OF.into(), said }
}

#[test]
fn the_third_failure_in_a_row_has_its_evidence_read_and_nothing_else_begins_a_triage() {
    let gathers = |schedule: &Schedule| matches!(step(schedule, 20), Some(TriageDoes::Gather(_)));
    assert!(gathers(&failing(|_| {})));
    assert!(gathers(&failing(|it| it.status.last_run = Some(last_run(0, Some((Outcome::Refused, 10)))))));
    for (what, not) in [
        ("two failures", failing(|it| it.status.failure_count = 2)),
        ("a success", failing(|it| it.status.last_run = Some(last_run(0, Some((Outcome::Completed, 10)))))),
        ("a skip after failures", failing(|it| it.status.last_run = Some(last_run(0, Some((Outcome::Skipped, 10)))))),
        ("nobody analyses", failing(|it| spec(it).analyst = Analyst::Off)),
        ("later", failing(|it| spec(it).after = 4)),
        ("suspended", failing(|it| it.suspended = true)),
        ("a pause", failing(|it| it.paused = Some(crate::testing::pause("ask")))),
        ("an edit", failing(|it| it.revision = Revision(8))),
        ("it has had its triage", failing(|it| it.status.triage = Some(Box::new(record(State::Noted))))),
    ] {
        assert_eq!(step(&not, 20), None, "{what}");
    }
}

#[test]
fn no_triage_begins_where_the_policy_lets_none_begin() {
    let limited = |max_per_hour| {
        let policy = Policy { triage: TriagePolicy { max_per_hour, ..TriagePolicy::default() }, ..Policy::default() };
        step_by(&policy, &failing(|_| {}), 20)
    };
    assert_eq!(limited(0), None);
    assert!(matches!(limited(1), Some(TriageDoes::Gather(_))));
}

#[test]
fn a_triage_reads_the_five_newest_failures_of_this_plan() {
    let schedule = failing(|it| {
        it.status.planned_from = Some(at(-500));
        it.children = [-600, -400, -300, -240, -180, -120, -60, 0]
            .map(|slot| ended_child(slot, if slot == -120 { Outcome::Skipped } else { Outcome::Failed }, slot + 10))
            .into();
    });
    let Some(TriageDoes::Gather(gather)) = step(&schedule, 20) else { panic!("gathers nothing") };
    let slots: Vec<_> = gather.children.iter().map(|(slot, _)| *slot).collect();
    assert_eq!(slots, [0, -60, -180, -240, -300].map(at));
    assert_eq!((gather.failure_count, gather.refused), (3, None));
}

#[test]
fn a_triage_is_suppressed_in_the_cooldown_and_when_too_many_began() {
    let of = |it: &mut Schedule, begun: i64| {
        let triage = Triage { of: "wfs-s-1799990000".into(), at: at(begun), ..record(State::Noted) };
        it.status.triage = Some(Box::new(triage));
    };
    let hot = failing(|it| of(it, -100));
    assert_eq!(step(&hot, 20), None);
    let cold = failing(|it| of(it, 20 - 86_400));
    assert!(matches!(step(&cold, 20), Some(TriageDoes::Gather(_))));
    assert_eq!(step(&cold, 19), None);
    let others = |begun| Begun::within_the_hour(vec![Began { at: at(15), beside: false }; begun], at(20));
    let busy = |analyst: Analyst, begun: usize| {
        let schedule = failing(|it| {
            it.memory.others_begun = others(begun);
            spec(it).analyst = analyst;
        });
        step(&schedule, 20).is_none()
    };
    assert!(busy(Analyst::Pipeline, 10) && !busy(Analyst::Pipeline, 9));
    assert!(!busy(Analyst::BuiltIn, 10), "the table costs nothing");
    // The suppression is counted with the failure that would have begun a triage.
    let fails = |change: &dyn Fn(&mut Schedule)| {
        let schedule = failing(|it| {
            it.status.failure_count = 2;
            it.status.last_run = Some(last_run(0, None));
            change(it);
        });
        only_record(&decided(&schedule, 20)).suppressed
    };
    assert_eq!(fails(&|_| {}), None);
    assert_eq!(
        fails(&|it| {
            it.memory.others_begun = others(10);
            spec(it).analyst = Analyst::Pipeline;
        }),
        Some(Suppressed::TooMany)
    );
    let cooldown = |it: &mut Schedule| {
        let triage = Triage { of: "wfs-s-1799990000".into(), at: at(-100), ..record(State::Noted) };
        it.status.triage = Some(Box::new(triage));
    };
    assert_eq!(fails(&cooldown), Some(Suppressed::Cooldown));
}

#[test]
fn what_others_fail_with_puts_a_triage_off_by_an_hour_at_most() {
    let mine = "Unknown/workflow/wf@1";
    let fails_with = |it: &mut Schedule| {
        it.status.last_run.as_mut().unwrap().fingerprint = Fingerprint::parse(mine);
    };
    let seen = |open, closed| circuits(open, closed);
    let young = OpenCircuit { holds_from: at(100), ..open_circuit(mine, 0, 9000, None) };
    let degraded: Circuits = Seen { degraded: Some(Share { failed: 12, of: 20 }), ..Seen::default() }.into();
    let by = |why| seen(vec![], vec![closed_circuit(mine, 15, why)]);
    let open = || seen(vec![open_circuit(mine, 0, 9000, None)], vec![]);
    for (what, circuits, second, begins) in [
        ("nothing", Circuits::default(), 20, true),
        ("its own circuit", open(), 20, false),
        ("for an hour", open(), 3609, false),
        ("and no longer", open(), 3610, true),
        ("another circuit", seen(vec![open_circuit("Unknown/cluster", 0, 9000, None)], vec![]), 20, true),
        ("one that holds nobody yet", seen(vec![young.clone()], vec![]), 20, true),
        ("and then does", seen(vec![young], vec![]), 100, false),
        ("its circuit closed by a probe", by(Closing::Probe), 20, false),
        ("for an hour, too", by(Closing::Probe), 3610, true),
        ("its circuit closed otherwise", by(Closing::Success), 20, true),
        ("most targets fail", degraded.clone(), 20, false),
        ("for an hour, likewise", degraded, 3610, true),
    ] {
        let target = Target { circuits, ..scheduled(Target::default(), vec![failing(fails_with)]) };
        let decision = decide(&target, &Policy::default(), at(second));
        let has_begun = decision.actions.iter().any(|action| matches!(action, Action::Triage(_)));
        assert_eq!(has_begun, begins, "{what}, at {second}");
        assert!(begins || decision.wake.is_some_and(|wake| wake <= at(3610)), "{what}: {:?}", decision.wake);
    }
}

/// The hour begins with the failure that made the triage due, however many failures follow.
#[test]
fn further_failures_do_not_put_a_triage_off_any_longer() {
    let degraded: Circuits = Seen { degraded: Some(Share { failed: 12, of: 20 }), ..Seen::default() }.into();
    let begins = |children: Vec<Child>, second| {
        let failing = failing(|it| {
            it.status.failure_count = 5;
            it.status.last_success = Some(at(-20));
            it.status.last_run = Some(last_run(3000, Some((Outcome::Failed, 3010))));
            it.status.next = None;
            it.children = children;
        });
        let target = Target { circuits: degraded.clone(), ..scheduled(Target::default(), vec![failing]) };
        let actions = decide(&target, &Policy::default(), at(second)).actions;
        actions.iter().any(|action| matches!(action, Action::Triage(_)))
    };
    let failed = |slot| ended_child(slot, Outcome::Failed, slot + 10);
    let all = || vec![failed(0), failed(600), failed(3000)];
    assert_eq!([begins(all(), 3609), begins(all(), 3610)], [false, true]);
    // That child is gone. The hour then begins with the plan or the last success.
    let gone = || vec![failed(3000)];
    assert_eq!([begins(gone(), 3020), begins(gone(), 3579), begins(gone(), 3580)], [false, false, true]);
}

/// Failures before a success are not evidence, and neither are failures before a refused child.
#[test]
fn the_evidence_is_the_failures_in_a_row_and_nothing_else() {
    let failed = |slot| ended_child(slot, Outcome::Failed, slot + 10);
    let asked = |change: fn(&mut Schedule)| {
        let schedule = failing(|it| {
            it.children = [-300, -200, -100, 0].map(failed).into();
            change(it);
        });
        let Some(TriageDoes::Gather(gather)) = step(&schedule, 20) else { panic!("nothing is gathered") };
        (gather.children.iter().map(|(slot, _)| (*slot - at(0)).num_seconds()).collect::<Vec<_>>(), gather.refused)
    };
    assert_eq!(asked(|_| {}).0, [0, -100, -200, -300]);
    assert_eq!(asked(|it| it.status.last_success = Some(at(-150))).0, [0, -100]);
    assert_eq!(asked(|it| it.status.planned_from = Some(at(-200))).0, [0, -100]);
    let (children, refused) = asked(|it| it.status.last_run = Some(last_run(0, Some((Outcome::Refused, 10)))));
    assert!(children.is_empty() && refused.is_some(), "{children:?}");
}

#[test]
fn the_built_in_analyst_says_its_verdict_in_the_one_write_that_begins_the_triage() {
    use FailureReason::{ConfigurationError, Unknown};
    for (reason, ran, state, verdict) in [
        (Unknown, false, State::Noted, Verdict::DoNothing),
        (ConfigurationError, false, State::Filed, Verdict::FileFix),
        (Unknown, true, State::Paused, Verdict::PauseAndNotify),
    ] {
        let schedule = failing(|it| it.memory.triage_evidence = Some(Box::new(gathered(reason, ran))));
        let status = said(&schedule, 20);
        let triage = status.triage.clone().unwrap();
        assert_eq!((triage.state, triage.verdict), (state, Some(verdict)));
        assert_eq!((&*triage.of, triage.at, triage.evidence.as_deref()), (OF, at(20), Some("d1")));
        assert_eq!(triage.fingerprint.as_ref().map(Fingerprint::as_str), Some("Unknown/workflow/wf@1"));
        let held = (state == State::Paused).then_some(HeldBy::TriagePaused);
        assert_eq!((status.held.by(), status.next.is_none()), (held, held.is_some()));
        // After this write the triage is over.
        let after = failing(|it| it.status = status);
        assert!(decided(&after, 21).actions.is_empty(), "{:?}", decided(&after, 21).actions);
    }
}

#[test]
fn a_triage_that_paused_holds_the_schedule_until_a_person_lifts_it() {
    let paused = failing(|it| {
        it.memory.triage_evidence = Some(Box::new(gathered(FailureReason::Unknown, true)));
    });
    let paused = failing(|it| it.status = said(&paused, 20));
    let decision = decided(&paused, 100_000);
    assert_eq!((row(&decision), decision.actions.len()), ("4 paused by a triage", 0));
    let message = match &paused.status.held {
        Held::By { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    };
    assert!(message.contains(OF) && message.contains("resume"), "{message}");
    let stale = Schedule { resume: Some("wfs-s-1799999940".into()), ..paused.clone() };
    assert_eq!(row(&decided(&stale, 100_000)), "4 paused by a triage", "another triage was meant");
    let resumed = Schedule { resume: Some(OF.into()), ..paused };
    let status = said(&resumed, 100_000);
    assert_eq!((status.planned_from, status.failure_count), (Some(at(100_000)), 0));
    assert_eq!((status.triage.as_ref().unwrap().state, status.held.by()), (State::Over, None));
    let after = Schedule { status, ..resumed };
    assert_eq!(row(&decided(&after, 100_001)), "6 slot ahead", "it is lifted once");
}

/// The messages of conditions are cut when they are read back. A longer message would be written again and again.
#[test]
fn a_pause_says_no_more_than_is_read_back() {
    let long = Triage { of: "n".repeat(253).into(), why: Some("\u{fc}".repeat(WHY).into()), ..record(State::Paused) };
    let paused = failing(|it| it.status.triage = Some(Box::new(long)));
    let status = said(&paused, 20);
    let Held::By { message, .. } = &status.held else { panic!("{:?}", status.held) };
    assert!(message.chars().count() <= 1024, "{} characters", message.chars().count());
    assert!(message.ends_with("(kubectl wfe schedule resume)"), "{message}");
}

#[test]
fn a_triage_of_a_clock_that_was_ahead_begins_its_cooldown_now() {
    let ahead = |seconds: i64| {
        let triage = Triage { of: "wfs-s-1799990000".into(), at: at(20 + seconds), ..record(State::Paused) };
        said(&failing(|it| it.status.triage = Some(Box::new(triage))), 20)
    };
    assert_ne!(ahead(60).planned_from, Some(at(20)), "the plan stands");
    let anew = ahead(61);
    assert_eq!((anew.planned_from, anew.failure_count), (Some(at(20)), 0));
    let triage = anew.triage.unwrap();
    assert_eq!((triage.at, triage.state), (at(20), State::Paused), "a clock lifts no pause");
}

#[test]
fn a_child_that_ends_while_it_is_paused_is_recorded_and_nothing_is_next() {
    let schedule = failing(|it| {
        it.status.triage = Some(Box::new(record(State::Paused)));
        it.status.held = Held::By { reason: HeldBy::TriagePaused, message: "m".into() };
        it.status.last_run = Some(last_run(0, None));
        it.status.next = None;
    });
    let status = said(&schedule, 20);
    assert_eq!((status.failure_count, status.next), (4, None));
}

#[test]
fn a_workflow_that_analyses_is_recorded_first_and_created_then() {
    let begins = failing(|it| {
        it.triage = Arc::new(TriageSpec { analyst: Analyst::Pipeline, ..TriageSpec::default() });
        it.memory.triage_evidence = Some(Box::new(gathered(FailureReason::Unknown, true)));
    });
    let triage = triage_said(&begins, 20);
    assert_eq!((triage.state, triage.verdict, triage.evidence.as_deref()), (State::Analysing, None, Some("d1")));
    // After a restart the evidence must be read again.
    assert!(matches!(step(&analysing(|_| {}), 21), Some(TriageDoes::Gather(_))));
    let again = analysing(|it| {
        it.memory.triage_evidence =
            Some(Box::new(Gathered { digest: "d2".into(), ..gathered(FailureReason::Unknown, true) }));
    });
    assert_eq!(triage_said(&again, 21).evidence.as_deref(), Some("d2"), "the record is of what is shown");
    let creates = analysing(|it| it.memory.triage_evidence = Some(Box::new(gathered(FailureReason::Unknown, true))));
    let Some(TriageDoes::Analyse(analyse)) = step(&creates, 21) else { panic!("creates nothing") };
    let timeout = std::time::Duration::from_mins(10);
    assert_eq!(*analyse, Analyse { generation: 1, start_before: at(620), timeout, evidence: "{}".into() });
    assert_eq!(triage_said(&creates, 680).state, State::Failed, "nobody waits for ever");
}

#[test]
fn a_workflow_that_analyses_is_followed_to_its_verdict() {
    let at_work = analysing(|it| it.analyst = Some(Box::new(analyst(AnalystState::AtWork))));
    assert_eq!(triage_said(&at_work, 30).run.unwrap().1, Uid::new("analyst"), "it is named once it is seen");
    let rests = analysing(|it| {
        it.analyst = Some(Box::new(analyst(AnalystState::AtWork)));
        name(it);
    });
    assert!(decided(&rests, 40).actions.is_empty());
    let ended = analysing(|it| {
        it.analyst = Some(Box::new(analyst(AnalystState::Completed)));
        name(it);
    });
    assert_eq!(step(&ended, 40), Some(TriageDoes::ReadVerdict(analyst(AnalystState::Completed).id)));
    let says = analysing(|it| {
        it.analyst = Some(Box::new(analyst(AnalystState::Completed)));
        name(it);
        it.memory.analyst_answer = Some(Box::new(heard(Verdict::PauseAndNotify, Wanted::default())));
    });
    let triage = triage_said(&says, 40);
    assert_eq!((triage.state, triage.verdict), (State::Paused, Some(Verdict::PauseAndNotify)));
    assert_eq!(triage.at, at(20), "it began when it began");
}

#[test]
fn an_analyst_that_gives_no_verdict_fails_its_triage_and_the_schedule_goes_on() {
    let deleted = analysing(name);
    let failed = analysing(|it| {
        it.analyst = Some(Box::new(analyst(AnalystState::Ended("Unknown"))));
        name(it);
    });
    let silent = analysing(|it| {
        it.analyst = Some(Box::new(analyst(AnalystState::Completed)));
        name(it);
        it.memory.analyst_answer =
            Some(Box::new(Heard { of: OF.into(), said: Err("its result verdict is no JSON".into()) }));
    });
    for (schedule, why) in [(deleted, "deleted"), (failed, "Unknown"), (silent, "no JSON")] {
        let status = said(&schedule, 40);
        let triage = status.triage.clone().unwrap();
        assert_eq!((triage.state, triage.verdict), (State::Failed, None));
        assert!(triage.why.as_ref().unwrap().contains(why), "{triage:?}");
        let gone = only_record(&decided(&schedule, 40)).gone.clone();
        assert_eq!(gone.as_deref(), (why == "deleted").then_some("wfs-s-1800000000-triage"), "it is looked for");
        let after = Schedule { status, ..schedule };
        let decision = decided(&after, 490);
        assert!(matches!(decision.actions[..], [Action::CreateChild { .. }]), "{:?}", decision.actions);
    }
}

#[test]
fn a_verdict_for_a_streak_that_has_ended_is_only_noted() {
    let ended = analysing(|it| {
        it.status.failure_count = 0;
        it.status.last_run = Some(last_run(30, Some((Outcome::Completed, 40))));
        it.status.next = Some(Planned { at: at(90), why: PlannedBy::Interval });
        it.analyst = Some(Box::new(analyst(AnalystState::Completed)));
        name(it);
        it.memory.analyst_answer = Some(Box::new(heard(Verdict::PauseAndNotify, Wanted::default())));
    });
    assert_eq!(triage_said(&ended, 50).state, State::Noted);
    // A verdict does not apply to later failures either, even if there are as many.
    let again = |change: fn(&mut Schedule)| {
        let schedule = analysing(|it| {
            it.analyst = Some(Box::new(analyst(AnalystState::Completed)));
            name(it);
            it.memory.analyst_answer = Some(Box::new(heard(Verdict::PauseAndNotify, Wanted::default())));
            change(it);
        });
        triage_said(&schedule, 50).state
    };
    assert_eq!(again(|it| it.status.last_success = Some(at(20))), State::Paused, "that came before it began");
    assert_eq!(again(|it| it.status.last_success = Some(at(21))), State::Noted);
    assert_eq!(again(|it| it.status.planned_from = Some(at(21))), State::Noted);
}

#[test]
fn an_adjusted_interval_paces_the_schedule_until_its_plan_begins_anew() {
    let interval: Wanted = Wanted { interval: Some("90s".into()), ..Wanted::default() };
    let schedule = analysing(|it| {
        plan(it).max_interval = std::time::Duration::from_hours(24);
        spec(it).allow_adjust = vec![Field::Interval];
        it.analyst = Some(Box::new(analyst(AnalystState::Completed)));
        name(it);
        it.memory.analyst_answer = Some(Box::new(heard(Verdict::AdjustConfig, interval)));
    });
    let status = said(&schedule, 40);
    assert_eq!(status.triage.as_ref().unwrap().state, State::Adjusted);
    let adjusted = Schedule { status, ..schedule };
    let next = said(&adjusted, 41).next.unwrap();
    assert_eq!(next.at, at(10 + 90 * 8), "three failures double it three times");
    let edited = Schedule { revision: Revision(8), ..adjusted.clone() };
    let anew = said(&edited, 50);
    assert_eq!((anew.adjust, anew.triage.unwrap().state), (None, State::Over));
    // A resume that names the latest triage also ends the adjusted values, whatever the state of that triage.
    let mut noted = Schedule { resume: Some(OF.into()), ..adjusted.clone() };
    noted.status.triage.as_mut().unwrap().state = State::Noted;
    let anew = said(&noted, 50);
    assert_eq!((anew.adjust, anew.triage.unwrap().state), (None, State::Over));
    let lifted = Schedule { resume: Some(OF.into()), ..adjusted };
    let anew = said(&lifted, 50);
    assert_eq!((anew.adjust, anew.next.unwrap().at), (None, at(110)), "what a person wrote counts again");
    assert_eq!(Adjust::default().interval, None);
}

#[test]
fn the_end_of_a_suspension_lifts_nothing_that_a_triage_has_done() {
    let suspended = failing(|it| {
        let triage = Triage { verdict: Some(Verdict::PauseAndNotify), ..record(State::Paused) };
        it.status.triage = Some(Box::new(triage));
        it.status.adjust =
            Some(Box::new(Adjust { timeout: Some(std::time::Duration::from_mins(5)), ..Adjust::default() }));
        it.status.held = Held::By { reason: HeldBy::Suspended, message: "m".into() };
        it.status.next = None;
    });
    let status = said(&suspended, 50);
    assert_eq!((status.planned_from, status.held.by()), (Some(at(50)), Some(HeldBy::TriagePaused)));
    assert_eq!((&status.triage, &status.adjust), (&suspended.status.triage, &suspended.status.adjust));
    let after = Schedule { status, ..suspended };
    let decision = decided(&after, 51);
    assert_eq!((row(&decision), decision.actions.len()), ("4 paused by a triage", 0), "who may suspend may not resume");
}
