//! Every form of the field is read. Every other value is refused with the field and what to do.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The policy of `true`.
fn defaults() -> RetryPolicy {
    RetryPolicy {
        max_attempts: 3,
        initial_delay: Duration::from_secs(1),
        multiplier: Thousandths(2000),
        max_delay: Duration::from_mins(1),
        jitter: false,
        retry_when: None,
        stop_when: None,
        retry_execution_failures: false,
        max_duration: Duration::from_hours(24),
    }
}

#[track_caller]
fn policy(value: &Value) -> RetryPolicy {
    read(Some(value)).unwrap().unwrap()
}

#[test]
fn without_a_policy_there_is_one_attempt() {
    for value in [None, Some(json!(null)), Some(json!(false))] {
        assert_eq!(read(value.as_ref()), Ok(None), "{value:?}");
    }
}

#[test]
fn every_form_is_read() {
    let many = |max_attempts| RetryPolicy { max_attempts, ..defaults() };
    for (value, expected) in [
        (json!(true), defaults()),
        (json!({}), defaults()),
        (json!(1), many(1)),
        (json!(3), defaults()),
        (json!(20), many(20)),
        (json!(3.0), defaults()),
        (json!({"maxAttempts": 4}), many(4)),
        (json!({"maxAttempts": 4.0}), many(4)),
        (json!({"maxAttempts": null, "maxDelay": null}), defaults()),
    ] {
        assert_eq!(policy(&value), expected, "{value}");
    }
}

#[test]
fn each_default_stands_alone() {
    let with = |change: fn(&mut RetryPolicy)| {
        let mut policy = defaults();
        change(&mut policy);
        policy
    };
    for (value, expected) in [
        (json!({"maxAttempts": 1}), with(|it| it.max_attempts = 1)),
        (json!({"initialDelay": "0s"}), with(|it| it.initial_delay = Duration::ZERO)),
        (json!({"initialDelay": "1m"}), with(|it| it.initial_delay = Duration::from_mins(1))),
        (
            json!({"initialDelay": "1m1s"}),
            with(|it| (it.initial_delay, it.max_delay) = (Duration::from_secs(61), Duration::from_secs(61))),
        ),
        (
            json!({"initialDelay": "1h"}),
            with(|it| (it.initial_delay, it.max_delay) = (Duration::from_hours(1), Duration::from_hours(1))),
        ),
        (json!({"backoffMultiplier": 1}), with(|it| it.multiplier = Thousandths(1000))),
        (json!({"backoffMultiplier": 10}), with(|it| it.multiplier = Thousandths(10_000))),
        (json!({"backoffMultiplier": 1.5}), with(|it| it.multiplier = Thousandths(1500))),
        (json!({"backoffMultiplier": 1.0004}), with(|it| it.multiplier = Thousandths(1000))),
        (json!({"maxDelay": "1s"}), with(|it| it.max_delay = Duration::from_secs(1))),
        (json!({"maxDelay": "1h"}), with(|it| it.max_delay = Duration::from_hours(1))),
        (json!({"maxDelay": "0h59m60s"}), with(|it| it.max_delay = Duration::from_hours(1))),
        (json!({"jitter": true}), with(|it| it.jitter = true)),
        (json!({"jitter": false}), defaults()),
        (json!({"retryWhen": "x"}), with(|it| it.retry_when = Some("x".into()))),
        (json!({"stopWhen": "x"}), with(|it| it.stop_when = Some("x".into()))),
        (json!({"retryExecutionFailures": true}), with(|it| it.retry_execution_failures = true)),
        (json!({"maxDuration": "4s"}), with(|it| it.max_duration = Duration::from_secs(4))),
        (json!({"maxDuration": "24h"}), defaults()),
    ] {
        assert_eq!(policy(&value), expected, "{value}");
    }
    // The limit counts characters, as the schema does.
    let longest = "ä".repeat(512);
    assert_eq!(policy(&json!({"retryWhen": longest})).retry_when.as_deref(), Some(longest.as_str()));
}

#[test]
fn what_is_no_policy_is_refused_by_its_field() {
    let delay =
        |text: &str| (json!({"initialDelay": text}), "spec.retry.initialDelay: must be a duration in whole sec");
    let longest = |text: &str| (json!({"maxDelay": text}), "spec.retry.maxDelay: must be a duration in whole seconds");
    let all =
        |text: &str| (json!({"maxDuration": text}), "spec.retry.maxDuration: must be a duration in whole seconds");
    let form =
        |value: Value| (value, "spec.retry: must be true, a whole number of attempts from 1 to 20, or an object");
    let condition =
        |value: Value| (json!({"retryWhen": value}), "spec.retry.retryWhen: must be a CEL condition of 1 to");
    let count =
        |value: Value| (json!({"maxAttempts": value}), "spec.retry.maxAttempts: must be a whole number from 1 to");
    let factor =
        |value: Value| (json!({"backoffMultiplier": value}), "spec.retry.backoffMultiplier: must be a number from 1");
    let unnamed = |key: &str| (json!({key: 1}), "spec.retry: has a field that is not known; correct or remove it, the");
    for (value, words) in [
        form(json!(0)),
        form(json!(-1)),
        form(json!(21)),
        form(json!(2.5)),
        form(json!(1e300)),
        form(json!(u64::MAX)),
        form(json!("3")),
        form(json!("")),
        form(json!([])),
        form(json!([3])),
        (
            json!({"maxAttempt": 3}),
            "spec.retry.maxAttempt: is not known; correct or remove it, the fields are maxAttempts",
        ),
        (json!({"zz": 1, "b": 1}), "spec.retry.b: is not known"),
        (json!({"x": null}), "spec.retry.x: is not known"),
        unnamed(""),
        unnamed("a b"),
        unnamed("a\nb"),
        unnamed(&"x".repeat(65)),
        count(json!(0)),
        count(json!(21)),
        count(json!(2.5)),
        count(json!("3")),
        count(json!(true)),
        delay("-1s"),
        delay("1500ms"),
        delay("banana"),
        delay("99999999999999999999h"),
        delay(""),
        delay("2h"),
        delay("1h0m1s"),
        delay("3601s"),
        delay("5"),
        delay("s"),
        delay("1s1m"),
        delay("1s1s"),
        delay("1.5h"),
        delay("+5s"),
        delay(" 5s"),
        delay("5s\n"),
        delay("000001s"),
        delay("٥s"),
        (json!({"initialDelay": 5}), "spec.retry.initialDelay: must be a duration in whole seconds from 0s to 1h"),
        longest("0s"),
        longest("1h1s"),
        longest(""),
        all("0s"),
        all("24h1s"),
        all("25h"),
        all("banana"),
        factor(json!(0.5)),
        factor(json!(0.9999)),
        factor(json!(10.001)),
        factor(json!(1e300)),
        factor(json!("2")),
        (json!({"jitter": "yes"}), "spec.retry.jitter: must be true or false"),
        (json!({"retryExecutionFailures": 1}), "spec.retry.retryExecutionFailures: must be true or false"),
        condition(json!("")),
        condition(json!("x".repeat(513))),
        condition(json!(true)),
        (json!({"stopWhen": ""}), "spec.retry.stopWhen: must be a CEL condition of 1 to 512 characters"),
        (json!({"initialDelay": "2m", "maxDelay": "1m"}), "spec.retry.maxDelay: must not be below initialDelay"),
        (json!({"initialDelay": "2s", "maxDelay": "1s"}), "spec.retry.maxDelay: must not be below initialDelay"),
    ] {
        let message = read(Some(&value)).unwrap_err();
        assert!(message.starts_with(words), "{value}: {message}");
        assert!(!message.contains('\n'), "{value}: {message}");
    }
}

#[test]
fn a_policy_whose_waits_cannot_be_over_in_time_is_refused() {
    let with = |initial: &str, attempts: u32, limit: &str, jitter: bool| json!({"initialDelay": initial, "maxAttempts": attempts, "maxDuration": limit, "jitter": jitter});
    let constant =
        |limit: &str| json!({"initialDelay": "10s", "backoffMultiplier": 1, "maxAttempts": 4, "maxDuration": limit});
    let coarse = "spec.retry.maxDuration: is too short, the waits of initialDelay between";
    for (value, refused) in [
        // Three waits of 10s.
        (constant("30s"), Some(coarse)),
        (constant("31s"), None),
        // 10s, 20s, 40s.
        (with("10s", 4, "30s", false), Some(coarse)),
        (
            with("10s", 4, "70s", false),
            Some("spec.retry.maxDuration: 1m10s is too short, the waits alone may take 1m10s; "),
        ),
        (with("10s", 4, "71s", false), None),
        // Half as much again: 15s, 30s, and 60s. The maximum cuts the last wait.
        (
            with("10s", 4, "105s", true),
            Some("spec.retry.maxDuration: 1m45s is too short, the waits alone may take 1m45s; "),
        ),
        (with("10s", 4, "106s", true), None),
        // One attempt has no wait.
        (with("1h", 1, "1s", true), None),
        (with("0s", 20, "1s", true), None),
        (json!({"maxDuration": "3s"}), Some("spec.retry.maxDuration: 3s is too short, the waits alone may take 3s; ")),
        (json!({"initialDelay": "1h", "maxAttempts": 20}), None),
    ] {
        match (read(Some(&value)), refused) {
            (Ok(Some(policy)), None) => assert!(policy.longest_wait() < policy.max_duration, "{value}"),
            (Err(message), Some(words)) => assert!(message.starts_with(words), "{value}: {message}"),
            (read, _) => panic!("{value}: {read:?}"),
        }
    }
}

#[test]
fn what_the_admission_policy_refuses_it_refuses_in_the_same_words() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/admission/retry_policy.yaml");
    let policy = std::fs::read_to_string(file).unwrap();
    let joined = policy.split_whitespace().collect::<Vec<_>>().join(" ");
    // The field has another name in the template of a schedule, and texts continue on the next line.
    let joined = joined.replace("variables.field + '", RETRY).replace("' + '", "");
    let messages = [
        format!("{RETRY}: {FORM}"),
        format!("{RETRY}.initialDelay: {DELAY_FROM_0}"),
        format!("{RETRY}.maxDelay: {DELAY_FROM_1}"),
        format!("{RETRY}.maxDuration: {DURATION}"),
        format!("{RETRY}.maxDelay: {BELOW_INITIAL}"),
        format!("{RETRY}.maxDuration: {TOO_SHORT}"),
        FIELDS.map(|field| format!("'{field}'")).join(", "),
    ];
    for message in messages {
        assert!(joined.contains(&message), "{message}: {joined}");
    }
}

#[test]
fn a_policy_that_is_built_is_read() {
    let built = Retry::default()
        .max_attempts(4)
        .initial_delay(Duration::from_secs(90))
        .backoff_multiplier(1.5)
        .max_delay(Duration::from_hours(1))
        .jitter(true)
        .retry_when("exitCode == 75")
        .stop_when("attempt == 3")
        .retry_execution_failures(true)
        .max_duration(Duration::from_hours(24));
    let read = policy(&built.into());
    assert_eq!(
        read,
        RetryPolicy {
            max_attempts: 4,
            initial_delay: Duration::from_secs(90),
            multiplier: Thousandths(1500),
            max_delay: Duration::from_hours(1),
            jitter: true,
            retry_when: Some("exitCode == 75".into()),
            stop_when: Some("attempt == 3".into()),
            retry_execution_failures: true,
            max_duration: Duration::from_hours(24),
        }
    );
    for (built, field) in [
        (Retry::default().initial_delay(Duration::from_millis(1500)), "initialDelay"),
        (Retry::default().max_delay(Duration::MAX), "maxDelay"),
        (Retry::default().max_duration(Duration::ZERO), "maxDuration"),
        (Retry::default().backoff_multiplier(f64::NAN), "backoffMultiplier"),
        (Retry::default().backoff_multiplier(f64::INFINITY), "backoffMultiplier"),
        (Retry::default().max_attempts(0), "maxAttempts"),
        (Retry::default().retry_when(""), "retryWhen"),
    ] {
        let message = super::read(Some(&built.into())).unwrap_err();
        assert!(message.starts_with(&format!("{RETRY}.{field}: ")), "{message}");
    }
}

#[test]
fn the_sample_has_a_policy() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples/payment-restart-retry.yaml");
    let sample: crate::WorkflowExecution = serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let policy = policy(sample.spec.retry.as_ref().unwrap());
    let uid = wfe_core::name::Uid::new("0d3b9a52-7a0e-4b9f-9a33-5d0a3a1f2c11");
    let waits: Vec<u64> = (1..5).map(|attempt| policy.delay(attempt, &uid).as_secs()).collect();
    assert_eq!(waits, [5, 10, 20, 40], "as its comment says");
}

/// Generates JSON of every kind, most of it similar to a policy.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..30).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0.0..12.0).prop_map(Value::from),
        "([0-9]{0,6}h)?([0-9]{0,6}m)?([0-9]{0,6}s)?".prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 8, |inner| {
        let key = prop_oneof![4 => prop::sample::select(&FIELDS[..]).prop_map(str::to_owned), 1 => "\\PC{0,8}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn every_value_is_read_or_refused(value in json()) {
        match read(Some(&value)) {
            Ok(None) => prop_assert!(value.is_null() || value == json!(false)),
            Ok(Some(policy)) => {
                prop_assert!((1..=20).contains(&policy.max_attempts));
                prop_assert!(policy.initial_delay <= policy.max_delay && policy.max_delay <= Duration::from_hours(1));
                prop_assert!((1000..=10_000).contains(&policy.multiplier.0));
                prop_assert!(policy.longest_wait() < policy.max_duration);
                prop_assert!(policy.max_duration <= Duration::from_hours(24));
            }
            Err(message) => {
                prop_assert!(message.starts_with("spec.retry"), "{}", message);
                prop_assert!(message.contains(": "), "{}", message);
            }
        }
    }

    #[test]
    fn a_duration_is_read_as_go_reads_it(text in "([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?") {
        let go = wfe_core::duration::parse(&text).ok();
        prop_assert_eq!(seconds(&json!(text), 0, Duration::MAX), go);
    }
}
