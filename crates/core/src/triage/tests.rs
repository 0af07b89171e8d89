//! The tables of sections 13.3 and 13.4.

use super::apply::{Applied, Bounds, apply};
use super::*;
use crate::fingerprint::Fingerprint;
use crate::reason::FailureReason;
use crate::testing::at;

/// Returns a failure whose cause no line of the table recognises.
fn failure() -> FailureSeen {
    FailureSeen {
        name: "nightly-1".into(),
        failed_at: Some(at(0)),
        reason: Some(FailureReason::Unknown),
        was_execution_failure: false,
        task: None,
        step: None,
        exit_code: None,
        ran_for: None,
        fingerprint: Fingerprint::parse("Unknown/cluster"),
        message: "something happened".into(),
    }
}

fn evidence(failures: Vec<FailureSeen>) -> Evidence {
    Evidence {
        subject: "ops/nightly".into(),
        target: "node/n".into(),
        workflow_id: "cleanup".into(),
        version: "1.0".into(),
        every: Every::Interval("1m".into()),
        failure_count: 3,
        last_success: None,
        open_circuits: vec![],
        timeout: Duration::from_mins(30),
        failures,
    }
}

fn judged(change: impl Fn(&mut FailureSeen)) -> Judgement {
    let failures = (0..3).map(|_| {
        let mut failure = failure();
        change(&mut failure);
        failure
    });
    builtin::judge(&evidence(failures.collect()))
}

/// The reason, whether something ran, the message and the exit code; the expected verdict and a word of its
/// explanation.
type Row = (Option<FailureReason>, bool, &'static str, Option<i32>, Verdict, &'static str);

#[test]
fn each_line_of_the_built_in_analyst_has_its_verdict() {
    use FailureReason::{
        ConfigurationError, DeadlineExceeded, Forbidden, ImagePullBackOff, OomKilled, ResourceExhausted, Unknown,
    };
    use Verdict::{AdjustConfig, DoNothing, FileFix, PauseAndNotify};
    let rows: [Row; 29] = [
        (Some(ImagePullBackOff), false, "pull access denied", None, FileFix, "denies"),
        (Some(ImagePullBackOff), false, "401 Unauthorized", None, FileFix, "denies"),
        (Some(ImagePullBackOff), true, "403", None, FileFix, "denies"),
        (Some(ImagePullBackOff), false, "toomanyrequests: slow down", None, DoNothing, "limits"),
        (Some(ImagePullBackOff), false, "status 429", None, DoNothing, "limits"),
        (Some(ImagePullBackOff), false, "lookup r: no such host", None, DoNothing, "cannot be reached"),
        (Some(ImagePullBackOff), false, "connection refused", None, DoNothing, "cannot be reached"),
        (Some(ImagePullBackOff), false, "i/o timeout", None, DoNothing, "cannot be reached"),
        (Some(ImagePullBackOff), false, "x509: certificate", None, DoNothing, "cannot be reached"),
        (Some(ImagePullBackOff), false, "manifest unknown", None, FileFix, "cannot be pulled"),
        (Some(ImagePullBackOff), false, "sha256:a403f429c401e unknown", None, FileFix, "cannot be pulled"),
        (Some(ImagePullBackOff), false, "timeouts_denied", None, FileFix, "cannot be pulled"),
        (Some(ConfigurationError), false, "no such pipeline", None, FileFix, "as it is written"),
        (None, false, "the API server refused it", None, FileFix, "as it is written"),
        (None, false, "wfe is forbidden: exceeded quota: q, requested: 1", None, FileFix, "a quota"),
        (None, false, "ValidatingAdmissionPolicy 'p' denied request: no", None, FileFix, "a policy"),
        (None, false, "another WorkflowExecution has the name a-1", None, FileFix, "is taken"),
        (Some(Forbidden), true, "cannot get nodes", Some(1), FileFix, "right"),
        (Some(ResourceExhausted), false, "exceeded quota", None, FileFix, "no room"),
        (Some(OomKilled), true, "killed", Some(137), FileFix, "memory"),
        (Some(DeadlineExceeded), true, "time-out", None, AdjustConfig, "30m"),
        (Some(DeadlineExceeded), false, "nothing started", None, DoNothing, "nothing was recognised"),
        (Some(Unknown), true, "write: no space left on device", Some(1), FileFix, "disk"),
        (Some(Unknown), false, "node has DiskPressure", None, FileFix, "disk"),
        (Some(Unknown), true, "exceeds its ephemeral-storage", None, FileFix, "disk"),
        (Some(Unknown), true, "exec format error", Some(126), FileFix, "command"),
        (Some(Unknown), true, "not found", Some(127), FileFix, "command"),
        (Some(Unknown), true, "it broke", Some(3), PauseAndNotify, "broke"),
        (Some(Unknown), false, "nobody knows", None, DoNothing, "nothing was recognised"),
    ];
    for (reason, ran, message, exit_code, verdict, why) in rows {
        let judgement = judged(|failure| {
            failure.reason = reason;
            failure.was_execution_failure = ran;
            failure.message = message.into();
            failure.exit_code = exit_code;
        });
        assert_eq!(judgement.verdict, verdict, "{reason:?} {message}: {judgement:?}");
        assert!(judgement.why.contains(why), "{reason:?} {message}: {judgement:?}");
        assert_eq!(judgement.fix.is_some(), verdict != DoNothing, "{judgement:?}");
    }
}

#[test]
fn a_line_must_fit_every_failure_and_failures_that_differ_have_no_common_cause() {
    let denied = |name: &str| FailureSeen { message: name.into(), ..failure() };
    let pull = FailureSeen { reason: Some(FailureReason::ImagePullBackOff), ..denied("denied") };
    let gone = FailureSeen { reason: Some(FailureReason::ImagePullBackOff), ..denied("manifest unknown") };
    let both = builtin::judge(&evidence(vec![pull.clone(), gone]));
    assert!(both.why.contains("cannot be pulled"), "one was not denied: {both:?}");
    let other = FailureSeen { fingerprint: Fingerprint::parse("ImagePullBackOff/registry/r.example"), ..pull.clone() };
    let differ = builtin::judge(&evidence(vec![pull.clone(), other]));
    assert_eq!((differ.verdict, differ.fix.is_none()), (Verdict::DoNothing, true), "{differ:?}");
    let nameless = FailureSeen { fingerprint: None, ..pull };
    let unknown = builtin::judge(&evidence(vec![nameless.clone(), nameless.clone()]));
    assert_eq!(unknown.verdict, Verdict::DoNothing, "nothing says that they have a cause in common: {unknown:?}");
    let single = builtin::judge(&evidence(vec![nameless]));
    assert_eq!(single.verdict, Verdict::FileFix, "one failure has one cause: {single:?}");
    assert_eq!(builtin::judge(&evidence(vec![])).verdict, Verdict::DoNothing);
}

#[test]
fn a_timeout_is_doubled_up_to_a_day_and_then_a_person_is_asked() {
    let timed_out =
        FailureSeen { reason: Some(FailureReason::DeadlineExceeded), was_execution_failure: true, ..failure() };
    for (timeout, verdict, wanted) in [
        (Duration::from_mins(30), Verdict::AdjustConfig, Some("1h0m0s")),
        (Duration::from_hours(13), Verdict::AdjustConfig, Some("24h0m0s")),
        (Duration::from_hours(24), Verdict::FileFix, None),
    ] {
        let judgement = builtin::judge(&Evidence { timeout, ..evidence(vec![timed_out.clone()]) });
        assert_eq!((judgement.verdict, judgement.adjust.timeout.as_deref()), (verdict, wanted), "{judgement:?}");
        assert!(wanted.is_none_or(|wanted| crate::duration::parse(wanted).is_ok()), "{wanted:?}");
    }
}

#[test]
fn advice_names_the_image_the_quota_or_the_right_that_the_message_names() {
    use FailureReason::{Forbidden, ImagePullBackOff, ResourceExhausted};
    for (reason, message, named) in [
        (ImagePullBackOff, "Back-off pulling image \"r.example/w:1\": not found", " The image is r.example/w:1."),
        (ResourceExhausted, "pods \"p\" is forbidden: exceeded quota: small, requested: cpu=1", " The quota is small."),
        (
            Forbidden,
            "User \"u\" cannot create resource \"pods\" in API group",
            " It cannot create resource \"pods\" in API group.",
        ),
        (Forbidden, "no", "admit the workflow."),
    ] {
        let failure = FailureSeen { reason: Some(reason), message: message.into(), ..failure() };
        let fix = builtin::judge(&evidence(vec![failure])).fix.unwrap();
        assert!(fix.ends_with(named), "{fix}");
    }
}

const BOUNDS: Bounds =
    Bounds { intervals: Some(Duration::from_mins(1)..=Duration::from_hours(24)), timeout: Duration::from_mins(30) };
const BY_CRON: Bounds = Bounds { intervals: None, ..BOUNDS };

fn judgement(verdict: Verdict, adjust: Wanted) -> Judgement {
    Judgement { verdict, why: "so".into(), fix: Some("do that".into()), adjust }
}

fn wanted(interval: Option<&str>, timeout: Option<&str>, parameters: &[(&str, &str)]) -> Wanted {
    Wanted {
        interval: interval.map(Into::into),
        timeout: timeout.map(Into::into),
        parameters: parameters.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
    }
}

fn all() -> TriageSpec {
    let allow_adjust = vec![Field::Interval, Field::Timeout, Field::Parameter("LEVEL".into())];
    TriageSpec { allow_adjust, ..TriageSpec::default() }
}

#[test]
fn a_verdict_has_the_effect_that_it_may_have_and_no_other() {
    for (verdict, state) in
        [(Verdict::DoNothing, State::Noted), (Verdict::FileFix, State::Filed), (Verdict::PauseAndNotify, State::Paused)]
    {
        // Values with a verdict other than AdjustConfig have no effect.
        let said = judgement(verdict, wanted(Some("10m"), None, &[]));
        let applied = apply(&said, &all(), &BOUNDS, None, true);
        assert_eq!((applied.state, &applied.adjust, applied.refused.len()), (state, &None, 0), "{applied:?}");
        let over = apply(&said, &all(), &BOUNDS, None, false);
        assert_eq!((over.state, over.adjust), (State::Noted, None), "the failures have ended meanwhile");
    }
}

#[test]
fn values_are_adjusted_where_the_schedule_lists_them_and_within_their_limits() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (asked, spec, adjusted, refused) in [
        (wanted(Some("10m"), None, &[]), all(), Some((seconds(600), None, 0)), ""),
        (wanted(Some("10m"), None, &[]), TriageSpec::default(), None, "interval: is not in"),
        (wanted(Some("59s"), None, &[]), all(), None, "interval: must be"),
        (wanted(Some("25h"), None, &[]), all(), None, "interval: must be"),
        (wanted(Some("90.5s"), None, &[]), all(), None, "interval: must be"),
        (wanted(Some("soon"), None, &[]), all(), None, "interval: must be"),
        (wanted(None, Some("24h"), &[]), all(), Some((None, seconds(86_400), 0)), ""),
        (wanted(None, Some("24h1s"), &[]), all(), None, "timeout: must be"),
        (wanted(None, Some("29m59s"), &[]), all(), None, "timeout: must be a duration in whole seconds, from the"),
        (wanted(None, Some("30m"), &[]), all(), Some((None, seconds(1_800), 0)), ""),
        (wanted(None, Some("1s"), &[]), TriageSpec::default(), None, "timeout: is not in"),
        (wanted(None, None, &[("LEVEL", "2")]), all(), Some((None, None, 1)), ""),
        (wanted(None, None, &[("SECRET", "hunter2")]), all(), None, "parameters.SECRET: is not in"),
        (wanted(Some("10m"), Some("9999h"), &[("X", "y")]), all(), Some((seconds(600), None, 0)), "timeout: must be"),
        (Wanted::default(), all(), None, "adjust: the verdict names no value"),
    ] {
        let applied = apply(&judgement(Verdict::AdjustConfig, asked.clone()), &spec, &BOUNDS, None, true);
        let is = applied.adjust.as_ref().map(|it| (it.interval, it.timeout, it.parameters.len()));
        assert_eq!(is, adjusted, "{asked:?}: {applied:?}");
        let state = if adjusted.is_some() { State::Adjusted } else { State::Noted };
        assert_eq!(applied.state, state, "{asked:?}");
        let all_refused = applied.refused.join("\n");
        assert!(all_refused.contains(refused) && all_refused.is_empty() == refused.is_empty(), "{applied:?}");
        assert!(!all_refused.contains("hunter2"), "no value is quoted: {all_refused}");
    }
}

#[test]
fn parameters_of_a_verdict_have_the_limits_of_those_of_an_execution() {
    let spec = TriageSpec { room: 10_000, ..all() };
    let long = |length: usize| "ü".repeat(length);
    let before =
        |length: usize| Adjust { parameters: [("OTHER".into(), long(length).into())].into(), ..Adjust::default() };
    for (value, so_far, refused) in [
        (long(8_192), None, ""),
        (long(8_193), None, "parameters.LEVEL: is longer"),
        (long(1_000), Some(before(9_000)), ""),
        (long(1_001), Some(before(9_000)), "parameters.LEVEL: makes the parameters longer"),
    ] {
        let asked = judgement(Verdict::AdjustConfig, wanted(None, None, &[("LEVEL", &value)]));
        let applied = apply(&asked, &spec, &BOUNDS, so_far.as_ref(), true);
        let said = applied.refused.join("");
        assert!(said.starts_with(refused) && said.is_empty() == refused.is_empty(), "{said}");
        let expected = if refused.is_empty() { State::Adjusted } else { State::Noted };
        assert_eq!(applied.state, expected, "{said}");
    }
}

#[test]
fn cron_is_never_adjusted_and_what_was_adjusted_before_stays() {
    let asked = judgement(Verdict::AdjustConfig, wanted(Some("10m"), Some("2h"), &[]));
    let before = Adjust { parameters: [("LEVEL".into(), "1".into())].into(), ..Adjust::default() };
    let Applied { adjust, refused, .. } = apply(&asked, &all(), &BY_CRON, Some(&before), true);
    let expected = Adjust { timeout: Some(Duration::from_hours(2)), ..before.clone() };
    assert_eq!((adjust, refused.len()), (Some(expected), 1));
    let nothing = judgement(Verdict::AdjustConfig, wanted(None, None, &[("LEVEL", "1")]));
    let applied = apply(&nothing, &all(), &BY_CRON, Some(&before), true);
    assert_eq!((applied.state, applied.adjust), (State::Noted, Some(before)), "that is so already");
}

#[test]
fn texts_of_an_analyst_are_cut_to_what_a_status_holds() {
    let parameters: Vec<_> = (0..40).map(|n| (format!("K{n}"), "v".to_owned())).collect();
    let parameters: Vec<_> = parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let said = Judgement {
        verdict: Verdict::AdjustConfig,
        why: "ü".repeat(2_000).into(),
        fix: Some("ü".repeat(5_000).into()),
        adjust: wanted(None, None, &parameters),
    };
    let applied = apply(&said, &all(), &BOUNDS, None, true);
    assert_eq!((applied.why.chars().count(), applied.fix.unwrap().chars().count()), (WHY, FIX));
    assert_eq!(applied.refused.len(), REFUSED);
}

#[test]
fn triages_of_the_last_hour_are_counted_and_the_oldest_makes_room() {
    let within =
        |seconds: &[i64]| Begun::within_the_hour(seconds.iter().map(|it| Began { at: at(*it), beside: false }), at(0));
    let begun = within(&[0, -4000, -3600, -3599, -10]);
    assert_eq!(begun.free_at(4), None, "three began within the hour");
    assert_eq!(begun.free_at(3), Some(at(1)));
    assert_eq!(begun.free_at(2), Some(at(3590)));
    assert_eq!(begun.free_at(1), Some(at(3600)));
    assert_eq!(Begun::default().free_at(1), None);
    let ahead = within(&[60, 61, 1_000_000]);
    assert_eq!((ahead.free_at(1), ahead.free_at(2)), (Some(at(3660)), None), "a clock was wrong");
}

#[test]
fn no_namespace_takes_the_last_triages_of_an_hour_from_the_others() {
    // Ten triages an hour are allowed. Each namespace in turn begins as many as it may.
    let mut begun: Vec<(usize, i64)> = Vec::new();
    let seen_by = |namespace: usize, begun: &[(usize, i64)]| {
        let others = begun.iter().map(|(of, seconds)| Began { at: at(*seconds), beside: *of == namespace });
        Begun::within_the_hour(others, at(100)).free_at(10)
    };
    for namespace in 0..4 {
        while seen_by(namespace, &begun).is_none() {
            begun.push((namespace, i64::try_from(begun.len()).unwrap()));
        }
    }
    let had = |namespace| begun.iter().filter(|(of, _)| *of == namespace).count();
    assert_eq!([0, 1, 2, 3].map(had), [5, 3, 1, 1]);
    assert_eq!(seen_by(4, &begun), Some(at(3600)), "the hour has had its ten");
    assert_eq!(seen_by(0, &begun), Some(at(3602)), "its turn comes when more are free than it has had");
    assert_eq!(seen_by(1, &begun), Some(at(3603)));
}

#[test]
fn words_of_the_api_are_read_as_they_are_shown() {
    let fields = [Field::Interval, Field::Timeout, Field::Parameter("A_B".into())];
    for field in fields {
        assert_eq!(Field::parse(&field.to_string()), Some(field));
    }
    for odd in ["", "Interval", "parameters.", "parameters", "cron"] {
        assert_eq!(Field::parse(odd), None, "{odd}");
    }
}
