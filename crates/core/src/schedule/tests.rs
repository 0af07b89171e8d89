use super::*;
use crate::testing::{at, child, ended_child, every, last_run, schedule};
use proptest::prelude::*;

#[test]
fn a_slot_is_read_from_the_name_of_its_child_and_from_no_other() {
    assert_eq!(slot_of("nightly", "nightly-1800000060"), Some(at(60)));
    assert_eq!(slot_of("nightly-1", "nightly-1-1800000060"), Some(at(60)));
    for other in [
        "nightly",
        "nightly-",
        "nightly-x",
        "nightly-1800000060-triage",
        "nightly-01800000060",
        "nightly-+1800000060",
        "nightly-18000000601800000060",
        "nightlyx-1800000060",
        "Nightly-1800000060",
        "nightly-1-1800000060",
    ] {
        assert_eq!(slot_of("nightly", other), None, "{other}");
    }
}

proptest! {
    #[test]
    fn a_child_has_the_name_of_its_slot(second in -60_000_000_000_i64..250_000_000_000, name in "[a-z]([a-z0-9-]{0,8}[a-z0-9])?") {
        let slot = Time::from_timestamp(second, 0).unwrap();
        prop_assert_eq!(slot_of(&name, &child_name(&name, slot)), Some(slot));
    }
}

#[test]
fn a_slot_is_used_when_its_plan_began_after_it_or_it_has_run() {
    let used = |planned: Option<i64>, last: Option<i64>| {
        let mut schedule = schedule("s");
        schedule.status.planned_from = planned.map(at);
        schedule.status.last_run = last.map(|slot| last_run(slot, None));
        schedule.used_up_to()
    };
    assert_eq!(used(Some(5), Some(60)), Some(at(60)));
    assert_eq!(used(Some(65), Some(60)), Some(at(65)));
    assert_eq!(used(Some(5), None), Some(at(5)));
    assert_eq!(used(None, None), None);
}

#[test]
fn unrecorded_is_the_last_run_while_it_is_open_and_what_came_after_it() {
    let slots = |open: bool, planned: i64| {
        let mut schedule = schedule("s");
        let end = (!open).then_some((Outcome::Failed, 65));
        schedule.status.last_run = Some(last_run(60, end));
        schedule.status.planned_from = Some(at(planned));
        schedule.children = vec![child(0), ended_child(60, Outcome::Failed, 65), child(120), child(180)];
        schedule.unrecorded().map(|child| (child.slot - at(0)).num_seconds()).collect::<Vec<_>>()
    };
    assert_eq!(slots(true, -10), [60, 120, 180]);
    assert_eq!(slots(false, -10), [120, 180]);
    assert_eq!(slots(true, 130), [60, 180], "one that is named is waited for, whichever plan made it");
    assert_eq!(slots(false, 120), [180]);
}

#[test]
fn each_word_of_the_api_is_said_once() {
    fn are_different<T: Copy>(all: &[T], word: fn(T) -> &'static str) {
        let words: std::collections::BTreeSet<_> = all.iter().map(|it| word(*it)).collect();
        assert_eq!(words.len(), all.len());
    }
    are_different(&Outcome::ALL, Outcome::as_str);
    are_different(&HeldBy::ALL, HeldBy::as_str);
    are_different(&PlannedBy::ALL, PlannedBy::as_str);
}

#[test]
fn a_schedule_should_succeed_before_its_third_slot_without_a_success() {
    let mut it = schedule("s");
    it.plan = Ok(every(60));
    (it.status.planned_from, it.status.last_success) = (Some(at(0)), None);
    assert_eq!(it.success_due(), Some(at(180)));
    it.status.last_success = Some(at(70));
    assert_eq!(it.success_due(), Some(at(250)));
    it.status.last_success = Some(at(-70));
    assert_eq!(it.success_due(), Some(at(180)), "a plan that begins anew has three slots of its own");
    // The slots are at a quarter past every hour; second 0 is a full hour. A spread delays each slot by the schedule's
    // share.
    let cron = cron::Cron::parse("15 * * * *", "UTC").unwrap();
    it.plan = Ok(Plan { every: Every::Cron(Arc::new(cron.clone())), ..every(60) });
    assert_eq!(it.success_due(), Some(at(900 + 2 * 3600)));
    it.plan = Ok(Plan { every: Every::Cron(Arc::new(cron)), spread: Duration::from_mins(10), ..every(60) });
    let share = it.past(at(0)).offset;
    assert!(!share.is_zero() && it.success_due() == Some(at(900 + 2 * 3600) + share), "{share:?}");
    for stops in [
        (|it: &mut Schedule| it.suspended = true) as fn(&mut Schedule),
        |it| it.leaving = true,
        |it| it.plan = Err("odd".into()),
        |it| it.status.planned_from = None,
    ] {
        let mut it = Schedule { status: ScheduleStatus { last_success: None, ..it.status.clone() }, ..it.clone() };
        stops(&mut it);
        assert_eq!(it.success_due(), None);
    }
}

#[test]
fn of_missed_slots_those_count_that_were_not_told() {
    let missed = |second: i64, count: u32| Missed { slot: at(second), count };
    let used = Some(at(0));
    assert_eq!(missed(120, 2).beyond(None, used), 2);
    assert_eq!(missed(180, 3).beyond(Some(missed(120, 2)), used), 1, "since the same run");
    assert_eq!(missed(180, 3).beyond(Some(missed(-60, 2)), used), 3, "since an earlier one");
    assert_eq!(missed(-60, 2).beyond(Some(missed(-60, 2)), used), 0, "all were");
}
