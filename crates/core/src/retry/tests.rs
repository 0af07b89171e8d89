use proptest::prelude::*;

use super::*;
use crate::execution::Execution;
use crate::name::Uid;
use crate::testing::at;

fn both_conditions() -> RetryPolicy {
    RetryPolicy { retry_when: Some("r".into()), stop_when: Some("s".into()), ..RetryPolicy::default() }
}

fn answers(stop_when: Option<Answer>, retry_when: Option<Answer>) -> Answers {
    Answers { stop_when, retry_when }
}

/// Evaluates attempt 1, which failed before anything ran, at second 10 of an execution that began at second 0.
fn asked(policy: &RetryPolicy, change: impl FnOnce(FailedAttempt<'_>) -> Next) -> Next {
    change(base(policy))
}

fn retries(seconds: u64, not_before: i64) -> Next {
    Next::Retry { delay: Duration::from_secs(seconds), not_before: at(not_before) }
}

#[test]
fn the_first_row_that_matches_decides() {
    let policy = both_conditions();
    let (yes, no, error): (Answer, Answer, Answer) = (Ok(true), Ok(false), Err("no such key".into()));
    let erred = |what: &str| Next::Stop(Stop::ConditionError(what.into()));
    // Each row removes the reason for which the row before it stops.
    let last = FailedAttempt { attempt: 3, ..base(&policy) };
    let rows = [
        (Some(Stop::Cancelled), yes.clone(), no.clone(), Ran::Yes, Next::Stop(Stop::Cancelled)),
        (None, yes.clone(), no.clone(), Ran::Yes, Next::Stop(Stop::StopWhen)),
        (None, error.clone(), no.clone(), Ran::Yes, Next::Stop(Stop::RetryWhen)),
        (None, error.clone(), yes.clone(), Ran::Yes, erred("stopWhen: no such key")),
        (None, no.clone(), error, Ran::Yes, erred("retryWhen: no such key")),
        (None, no.clone(), yes.clone(), Ran::Yes, Next::Stop(Stop::Ran)),
        (None, no.clone(), yes.clone(), Ran::Unknown, Next::Stop(Stop::Ran)),
        (None, no.clone(), yes.clone(), Ran::No, Next::Stop(Stop::Exhausted)),
    ];
    for (ended_by, stop_when, retry_when, started, expected) in rows {
        let answers = answers(Some(stop_when), Some(retry_when));
        let failed = FailedAttempt { ended_by: ended_by.as_ref(), started, answers: &answers, ..last };
        assert_eq!(next(&failed), expected, "{failed:?}");
    }
    let asked = answers(Some(no), Some(yes));
    let second = FailedAttempt { attempt: 2, answers: &asked, ..last };
    assert_eq!(next(&second), retries(2, 12), "nothing is in the way");
    let short = RetryPolicy { max_duration: Duration::from_secs(12), ..both_conditions() };
    assert_eq!(next(&FailedAttempt { policy: &short, ..second }), Next::Stop(Stop::MaxDuration));
}

fn base(policy: &RetryPolicy) -> FailedAttempt<'_> {
    static NONE: Answers = Answers { stop_when: None, retry_when: None };
    static UID: std::sync::LazyLock<Uid> = std::sync::LazyLock::new(|| Uid::new("u"));
    FailedAttempt {
        policy,
        attempt: 1,
        uid: &UID,
        ended_by: None,
        reason: FailureReason::Unknown,
        started: Ran::No,
        answers: &NONE,
        since: at(0),
        now: at(10),
    }
}

#[test]
fn without_conditions_all_reasons_are_tried_again_but_what_is_set_up_wrong() {
    let policy = RetryPolicy::default();
    for reason in FailureReason::ALL {
        let expected = match reason {
            FailureReason::ConfigurationError => Next::Stop(Stop::RetryWhen),
            _ => retries(1, 11),
        };
        assert_eq!(asked(&policy, |failed| next(&FailedAttempt { reason, ..failed })), expected, "{reason}");
    }
    let asks = RetryPolicy { retry_when: Some("true".into()), ..policy };
    let yes = answers(None, Some(Ok(true)));
    let reason = FailureReason::ConfigurationError;
    let told = asked(&asks, |failed| next(&FailedAttempt { reason, answers: &yes, ..failed }));
    assert_eq!(told, retries(1, 11), "a condition takes the place of the default");
}

#[test]
fn a_condition_that_could_not_be_asked_is_no_retry() {
    for (policy, which) in [
        (RetryPolicy { retry_when: Some("r".into()), ..RetryPolicy::default() }, "retryWhen"),
        (RetryPolicy { stop_when: Some("s".into()), ..RetryPolicy::default() }, "stopWhen"),
    ] {
        assert!(policy.has_conditions());
        let Next::Stop(Stop::ConditionError(why)) = asked(&policy, |failed| next(&failed)) else {
            panic!("{which} was not asked");
        };
        assert!(why.starts_with(which) && why.contains("could not be read in time"), "{why}");
    }
    assert!(!RetryPolicy::default().has_conditions());
}

#[test]
fn what_ran_is_tried_again_only_where_the_policy_says_so() {
    let policy = RetryPolicy { retry_execution_failures: true, ..RetryPolicy::default() };
    for started in Ran::ALL {
        assert_eq!(asked(&policy, |failed| next(&FailedAttempt { started, ..failed })), retries(1, 11));
    }
}

#[test]
fn the_time_must_suffice_to_the_second() {
    let policy = |seconds| RetryPolicy { max_duration: Duration::from_secs(seconds), ..RetryPolicy::default() };
    let fits = policy(12);
    let late = |failed: FailedAttempt<'_>, millis: i64| {
        let now = at(10) + chrono::TimeDelta::milliseconds(millis);
        (next(&FailedAttempt { now, ..failed }), failed.too_late() - now)
    };
    assert_eq!(asked(&fits, |failed| late(failed, 0).0), retries(1, 11));
    assert_eq!(asked(&fits, |failed| late(failed, 1).0), Next::Stop(Stop::MaxDuration), "12 is not before 12");
    assert_eq!(asked(&policy(11), |failed| late(failed, 0).0), Next::Stop(Stop::MaxDuration));
    let too_late = base(&fits).too_late();
    let nanosecond = chrono::TimeDelta::nanoseconds(1);
    for (now, again) in [(too_late - nanosecond, true), (too_late, false)] {
        let answer = next(&FailedAttempt { now, ..base(&fits) });
        assert_eq!(matches!(answer, Next::Retry { .. }), again, "at {now}, too late is {too_late}");
    }
}

#[test]
fn delays_double_up_to_their_maximum() {
    let uid = Uid::new("u");
    let policy = RetryPolicy { max_attempts: 10, ..RetryPolicy::default() };
    let seconds: Vec<u64> = (1..10).map(|attempt| policy.delay(attempt, &uid).as_secs()).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(policy.longest_wait(), Duration::from_secs(1 + 2 + 4 + 8 + 16 + 32 + 60 * 3));
    let none = RetryPolicy { initial_delay: Duration::ZERO, ..policy.clone() };
    assert_eq!((none.delay(3, &uid), none.longest_wait()), (Duration::ZERO, Duration::ZERO));
    let once = RetryPolicy { max_attempts: 1, ..policy };
    assert_eq!(once.longest_wait(), Duration::ZERO);
}

#[test]
fn an_execution_waits_only_between_two_attempts() {
    use crate::testing::{running, undecided};
    let first = Attempt {
        run: Some("run".into()),
        started_at: Some(at(0)),
        end: Some(AttemptEnd {
            completed_at: at(20),
            started: Ran::No,
            reason: Some(FailureReason::Unknown),
            message: "m".into(),
        }),
        ..Attempt::default()
    };
    let second = Attempt { not_before: Some(at(30)), delay: Some(Duration::from_secs(1)), ..Attempt::default() };
    let begun = Attempt { run: Some("run2".into()), started_at: Some(at(31)), ..second.clone() };
    let with = |attempts: Vec<Attempt>| {
        let retry = Some(Box::new(Retry { policy: RetryPolicy::default(), attempts }));
        Execution { retry, ..running("a", "r1") }
    };
    let waits = with(vec![first.clone(), second.clone()]);
    let next = NextAttempt { attempt: 2, of: 3, not_before: at(30), ends_by: at(86_400) };
    assert_eq!(waits.next_attempt(), Some(next));
    for runs in [with(vec![]), with(vec![first.clone()]), with(vec![first.clone(), begun])] {
        assert_eq!(runs.next_attempt(), None, "{:?}", runs.retry);
    }
    let other = Execution { retry: waits.retry.clone(), ..undecided("a") };
    assert_eq!(other.next_attempt(), None);
    let retry = Retry { policy: RetryPolicy::default(), attempts: vec![first, second] };
    assert_eq!(retry.since(None), Some(at(20)), "from the end of the first where no status has a start");
    assert_eq!((retry.current(), retry.ended().count()), (2, 1));
}

fn any_policy() -> impl Strategy<Value = RetryPolicy> {
    let delays = (0..3600_u64, 0..3600_u64);
    (1..=20_u32, delays, 1000..=10_000_u32, any::<bool>(), 1..86_400_u64).prop_map(
        |(max_attempts, (initial, more), multiplier, jitter, max_duration)| RetryPolicy {
            max_attempts,
            initial_delay: Duration::from_secs(initial),
            multiplier: Thousandths(multiplier),
            max_delay: Duration::from_secs((initial + more).max(1)),
            jitter,
            max_duration: Duration::from_secs(max_duration),
            ..RetryPolicy::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn delays_never_exceed_their_maximum_and_grow_without_jitter(policy in any_policy(), uid in "[a-z]{1,8}") {
        let uid = Uid::new(&uid);
        let delays: Vec<Duration> = (1..20).map(|attempt| policy.delay(attempt, &uid)).collect();
        for delay in &delays {
            prop_assert!(*delay <= policy.max_delay, "{delay:?}");
            prop_assert_eq!(delay.subsec_nanos() % 1_000_000, 0, "whole milliseconds");
        }
        if !policy.jitter {
            prop_assert!(delays.is_sorted(), "{delays:?}");
        }
        let together: Duration = delays.iter().take(policy.max_attempts as usize - 1).sum();
        prop_assert!(together <= policy.longest_wait(), "{together:?} > {:?}", policy.longest_wait());
    }

    #[test]
    fn whoever_is_tried_again_is_so_in_time_and_not_too_often(
        policy in any_policy(),
        attempt in 1..30_u32,
        since in -1_000_000_000..1_000_000_000_i64,
        now in 0..2_000_000_000_i64,
    ) {
        let now = at(0) + chrono::TimeDelta::milliseconds(now);
        let failed = FailedAttempt { attempt, since: at(since), now, ..base(&policy) };
        if let Next::Retry { delay, not_before } = next(&failed) {
            prop_assert!(attempt < policy.max_attempts);
            prop_assert!(not_before >= now + delay && not_before < at(since) + policy.max_duration);
        }
    }
}
