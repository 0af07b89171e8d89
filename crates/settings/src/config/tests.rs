use std::time::Duration;

use proptest::prelude::*;
use wfe_core::backoff::{Backoff, Thousandths};
use wfe_core::limit::{Limit, Limits};
use wfe_core::policy::{CircuitPolicy, Scope, TriagePolicy};

use super::*;
use crate::table::{Effect, Kind, TABLE};

fn flags(words: &[&str]) -> Flags {
    Flags(["wfe-operator", "run"].iter().chain(words).map(OsString::from).collect())
}

fn place() -> Place {
    Place { namespace: "ops".to_owned(), name: "config".to_owned() }
}

fn document(values: &[(&str, &str)]) -> Document {
    let values = values.iter().map(|(key, value)| ((*key).to_owned(), Ok((*value).to_owned()))).collect();
    Document { uid: "u".to_owned(), version: "7".to_owned(), values }
}

fn read(values: &[(&str, &str)]) -> Result<InForce, String> {
    flags(&[]).under(&place(), Some(&document(values))).map_err(|refused| refused.to_string())
}

/// Returns the keys whose changes take effect at this time.
fn rows(effect: Effect) -> Vec<&'static str> {
    TABLE.iter().filter(|row| row.effect == effect).map(|row| row.key).collect()
}

#[test]
fn without_a_config_map_the_defaults_are_in_force() {
    let in_force = flags(&[]).under(&place(), None).unwrap();
    assert_eq!((in_force.version.as_str(), in_force.policy), (NO_VERSION, Policy::default()));
    assert!(in_force.settings.iter().all(|setting| setting.source == Source::Default), "{:?}", in_force.settings);
    let namespace = in_force.defaults.execution_namespace;
    assert_eq!((namespace.as_str(), in_force.warnings), ("kubernaut-workflows", vec![]));
}

#[test]
fn every_key_is_a_flag_with_a_variable_of_its_name() {
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    for key in keys() {
        let flag = run.get_arguments().find(|flag| flag.get_long() == Some(key));
        let variable = flag.and_then(clap::Arg::get_env).and_then(std::ffi::OsStr::to_str).unwrap_or_default();
        let setting = Setting { key, value: String::new(), source: Source::Environment };
        assert_eq!(setting.origin(), format!("environment {variable}"), "{key}");
    }
}

#[test]
fn every_key_changes_its_value() {
    let in_force = read(&[
        ("base-cooldown-period", "2s"),
        ("max-cooldown-period", "9s"),
        ("max-backoff-exponent", "7"),
        ("backoff-jitter", "0.25"),
        ("max-consecutive-failures", "0"),
        ("failure-quiet-period", "1h"),
        ("cooldown-period", "0"),
        ("previous-execution-failed-scope", "Workflow"),
        ("paused", "true"),
        ("execution-namespace", "elsewhere"),
        ("service-account", "runner.of.ours"),
        ("default-timeout", "1h"),
        ("start-deadline", "2m"),
        ("drain-deadline", "3m"),
        ("pipelinerun-retention", "4m"),
        ("ttl-after-finished", "5m"),
        ("log-level", "kube=debug"),
        ("outage-targets", "6"),
        ("outage-window", "7m"),
        ("breaker-threshold", "0.75"),
        ("breaker-minimum", "8"),
        ("triage-cooldown", "9h"),
        ("triage-max-per-hour", "11"),
        ("limits", "- name: drains\n  kind: Node\n  maxRunning: 3\n"),
    ])
    .unwrap();
    let (seconds, minutes) = (Duration::from_secs, Duration::from_mins);
    let expected = Policy {
        default_timeout: minutes(60),
        start_deadline: minutes(2),
        drain_deadline: minutes(3),
        retention: minutes(4),
        ttl: Some(minutes(5)),
        previous_execution_failed_scope: Scope::Workflow,
        max_consecutive_failures: 0,
        backoff: Backoff { jitter: Thousandths(250), ..Backoff::doubling(seconds(2), seconds(9), 7) },
        failure_quiet_period: Some(minutes(60)),
        cooldown_period: Duration::ZERO,
        circuits: CircuitPolicy {
            outage_targets: 6,
            outage_window: minutes(7),
            breaker_threshold: Thousandths(750),
            breaker_minimum: 8,
        },
        triage: TriagePolicy { cooldown: minutes(9 * 60), max_per_hour: 11 },
        limits: Limits::from_iter([Limit {
            name: "drains".into(),
            kind: Some("node".into()),
            workflow_id: None,
            namespace: None,
            max_running: 3,
        }]),
        paused_by: Some("ConfigMap ops/config".into()),
    };
    assert_eq!(in_force.policy, expected);
    let defaults = Defaults {
        execution_namespace: "elsewhere".to_owned(),
        service_account: "runner.of.ours".to_owned(),
        timeout: minutes(60),
    };
    assert_eq!(in_force.defaults, defaults);
    assert!(in_force.log_filter.ends_with(",kube=debug"), "{}", in_force.log_filter);
    assert!(in_force.settings.iter().all(|setting| setting.source == Source::ConfigMap), "{:?}", in_force.settings);
    assert_eq!((in_force.version.as_str(), in_force.warnings), ("7", vec![]));
}

#[test]
fn bad_values_of_every_key_are_refused_with_key_and_value() {
    const DURATIONS: &[&str] =
        &["", "soon", "5", "-1m", "99999999999999999999h", "1d", " 5m", "5m\n", "ten minutes", "5m --x"];
    const NUMBERS: &[&str] = &["", "five", "-1", "1.5", "4294967296", "5m", " 5", "0x5"];
    const NAMES: &[&str] = &["", "Upper", "a/b", "-a", "a_b", "a b", "--paused=true"];
    let huge = "x".repeat(LONGEST_VALUE + 1);
    let more: &[(&str, &[&str])] = &[
        ("base-cooldown-period", &["0", "0s", "10ms"]),
        ("max-cooldown-period", &["0", "59s"]),
        ("max-backoff-exponent", &["34", "4294967295"]),
        ("backoff-jitter", &["", "much", "-0.1", "1.1", "NaN", "inf", "1e400", "50%"]),
        ("max-consecutive-failures", &[]),
        ("failure-quiet-period", &["1s", "9m59s"]),
        ("cooldown-period", &["10ms"]),
        ("previous-execution-failed-scope", &["", "target", "Cluster", "Target,Workflow", "0"]),
        ("paused", &["", "yes", "True", "1", "0", "-1", "true "]),
        ("execution-namespace", &["a.b"]),
        ("service-account", &["a..b"]),
        ("default-timeout", &["0", "0s", "25h"]),
        ("start-deadline", &["0", "0s", "999ms"]),
        ("drain-deadline", &["0", "0s"]),
        ("pipelinerun-retention", &["0", "0s"]),
        ("ttl-after-finished", &["10ms"]),
        (
            "log-level",
            &["", "wfe_operator=loud", "a=b=c", "loud", "loud=", ",", "info,loud", "info,", "5", "[=info", "info "],
        ),
        ("outage-targets", &["1", "1001"]),
        ("outage-window", &["0", "999ms", "1h1s"]),
        ("breaker-threshold", &["", "half", "-0.1", "1.1", "NaN"]),
        ("breaker-minimum", &["0", "1", "10001"]),
        ("triage-cooldown", &["0", "0s"]),
        ("triage-max-per-hour", &["1001"]),
        ("limits", &["", "3", "[", "[{}]", "[{name: a, maxRunning: 0}]", "{name: a, maxRunning: 1}"]),
    ];
    assert!(more.iter().map(|(key, _)| *key).eq(keys()), "every key has its rows");
    for ((key, values), row) in more.iter().zip(TABLE) {
        let all: &[&str] = match row.kind {
            Kind::Number { .. } => NUMBERS,
            Kind::ObjectName => NAMES,
            Kind::Duration | Kind::DurationOrOff => DURATIONS,
            _ => &[],
        };
        for value in all.iter().chain(*values).copied().chain([huge.as_str()]) {
            let said = read(&[(key, value)]).map(|it| it.settings).unwrap_err();
            let shown = cut(value, SHOWN);
            assert!(said.starts_with(&format!("{key}: {shown:?} ")), "{key}: {value:?}: {said}");
            assert!(said.len() < 600 && !said.contains('\n'), "{said}");
        }
    }
}

#[test]
fn what_is_said_of_a_bad_value_helps() {
    for (key, value, said) in [
        ("base-cooldown-period", "-1m", r#"base-cooldown-period: "-1m" must not be negative"#),
        ("base-cooldown-period", "1d", r#"base-cooldown-period: "1d" is not a duration such as 90s, 30m or 1h30m"#),
        ("default-timeout", "25h", r#"default-timeout: "25h" must be between 1s and 24h"#),
        ("paused", "yes", r#"paused: "yes" must be true or false"#),
        ("paused", "", r#"paused: "" must be true or false"#),
        ("previous-execution-failed-scope", "x", r#"previous-execution-failed-scope: "x" must be Target or Workflow"#),
        ("max-backoff-exponent", "x", r#"max-backoff-exponent: "x" is not a whole number from 0 to 4294967295"#),
        ("max-backoff-exponent", "34", r#"max-backoff-exponent: "34" must be at most 33"#),
        ("backoff-jitter", "2", r#"backoff-jitter: "2" must be between 0 and 1"#),
        (
            "log-level",
            "loud",
            r#"log-level: "loud" names no level in "loud": one of off, error, warn, info, debug, trace"#,
        ),
        (
            "base-cooldown-period",
            "11m",
            r#"max-cooldown-period: "10m" (default) must not be less than base-cooldown-period"#,
        ),
        (
            "execution-namespace",
            "kubernaut-system",
            "execution-namespace: \"kubernaut-system\" must not be the operator's own namespace: there, workflows could \
             use the operator's service account and change its configuration",
        ),
    ] {
        assert_eq!(read(&[(key, value)]).map(|it| it.settings).unwrap_err(), said);
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once_and_nothing_of_it_is_in_force() {
    let said = read(&[("paused", "yes"), ("cooldown-period", "-1s"), ("service-account", "mine")]).unwrap_err();
    assert_eq!(said, r#"cooldown-period: "-1s" must not be negative; paused: "yes" must be true or false"#);
    let said = read(&[("max-cooldown-period", "30s"), ("max-backoff-exponent", "99")]).unwrap_err();
    let both = "max-cooldown-period: \"30s\" must not be less than base-cooldown-period; \
                max-backoff-exponent: \"99\" must be at most 33";
    assert_eq!(said, both);
}

#[test]
fn the_config_map_wins_over_a_flag_and_each_value_says_where_it_comes_from() {
    let flags = flags(&["--cooldown-period", "7m", "--base-cooldown-period=2m"]);
    let document = document(&[("base-cooldown-period", "3m")]);
    let in_force = flags.under(&place(), Some(&document)).unwrap();
    let told = |key: &str| {
        let setting = in_force.settings.iter().find(|setting| setting.key == key).unwrap();
        (setting.value.clone(), setting.origin())
    };
    for (key, value, origin) in
        [("base-cooldown-period", "3m", "ConfigMap"), ("cooldown-period", "7m", "flag"), ("paused", "false", "default")]
    {
        assert_eq!(told(key), (value.to_owned(), origin.to_owned()), "{key}");
    }
    let without = flags.under(&place(), None).unwrap();
    assert_eq!(without.changes_since(&in_force), ["base-cooldown-period 3m -> 2m"]);
    let paused = Flags(["wfe-operator", "run", "--paused=true"].map(OsString::from).into());
    assert_eq!(paused.under(&place(), None).unwrap().policy.paused_by, Some("the flag --paused (WFE_PAUSED)".into()));
    let resumed = super::tests::document(&[("paused", "false")]);
    assert_eq!(paused.under(&place(), Some(&resumed)).unwrap().policy.paused_by, None);
}

#[test]
fn keys_that_do_nothing_are_warned_of_and_are_no_reason_to_refuse() {
    let warned = |values: &[(&str, &str)]| read(values).unwrap().warnings;
    assert_eq!(
        warned(&[("cooldown_period", "1m"), ("metrics-address", "x")]),
        [r#"unknown, and does nothing: "cooldown_period", "metrics-address""#]
    );
    assert_eq!(warned(&[("outage-targets", "0"), ("outage-window", "5m")]), [""; 0]);
    let many: Vec<String> = (0..5000).map(|n| format!("{n:04}{}", "x".repeat(240))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "")).collect();
    let said = warned(&many).concat();
    assert!(said.ends_with("and 4990 more") && said.len() < 1000, "{said}");
}

#[test]
fn the_execution_namespace_stays_as_it_was_at_the_start() {
    let at = |namespace: &str| read(&[("execution-namespace", namespace), ("cooldown-period", "9m")]).unwrap();
    let start = at("first");
    let mut next = at("second");
    next.keep_from(&start);
    assert_eq!(next.defaults.execution_namespace, "first");
    assert_eq!(next.warnings, [r#"execution-namespace: "second" takes a restart; until then it is "first""#]);
    assert_eq!(next.changes_since(&start), [""; 0]);
    let mut same = at("first");
    same.keep_from(&start);
    assert_eq!(same.warnings, [""; 0]);
    assert_eq!(rows(Effect::AtRestart), [EXECUTION_NAMESPACE], "whatever takes a restart is kept");
    let mut gone = flags(&[]).under(&place(), None).unwrap();
    gone.keep_from(&start);
    assert_eq!(gone.warnings.len(), 1);
    assert_eq!(gone.changes_since(&start), ["cooldown-period 9m -> 5m"]);
}

#[test]
fn a_file_is_read_as_the_object_would_be_and_what_is_no_text_is_refused() {
    let yaml = |data: &str| {
        format!(
            "kind: Secret\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\n{data}\n---\nkind: ConfigMap\n"
        )
    };
    let read = |data: &str| {
        let document = Document::of_yaml(&yaml(data), &place()).map_err(|error| format!("{error:#}"))?;
        let in_force = flags(&[]).under(&place(), Some(&document)).map_err(|refused| refused.to_string())?;
        Ok::<_, String>((in_force.policy.max_consecutive_failures, in_force.warnings))
    };
    assert_eq!(read("data:\n  max-consecutive-failures: \"3\""), Ok((3, vec![])));
    assert_eq!(read(""), Ok((5, vec![])));
    let no_text = r#"max-consecutive-failures: "" is not a text: put it in quotes"#;
    assert_eq!(read("data:\n  max-consecutive-failures: 3"), Err(no_text.to_owned()));
    assert_eq!(read("binaryData:\n  paused: dHJ1ZQ=="), Err(r#"paused: "" is binary, not text"#.to_owned()));
    assert_eq!(read("data: [1]"), Err("its data is not a map of keys to texts".to_owned()));
    let none = |text: &str| Document::of_yaml(text, &place()).unwrap_err().to_string();
    assert_eq!(none("kind: Secret"), "it holds no ConfigMap");
    let other = none("kind: ConfigMap\nmetadata: {name: other}");
    assert_eq!(other, "it holds no ConfigMap config; --config-map names another one");
    assert!(none("{").starts_with("not YAML: "), "{}", none("{"));
}

fn repository(file: &str) -> String {
    let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_sample_and_the_page_of_the_book_have_every_key_with_its_default() {
    let place = Place { namespace: "kubernaut-system".to_owned(), name: "workflowexecution-config".to_owned() };
    let sample = Document::of_yaml(&repository("config/samples/configmap.yaml"), &place).unwrap();
    let in_force = flags(&[]).under(&place, Some(&sample)).unwrap();
    let defaults = flags(&[]).under(&place, None).unwrap();
    assert_eq!((in_force.policy, in_force.defaults), (defaults.policy, defaults.defaults.clone()));
    assert_eq!(in_force.warnings, [""; 0]);
    assert!(in_force.settings.iter().all(|setting| setting.source == Source::ConfigMap), "{:?}", in_force.settings);
    let page = repository("docs/configuration.md");
    let row = |setting: &Setting| format!("| `{}` | `{}` |", setting.key, setting.value);
    for row in defaults.settings.iter().map(row) {
        assert!(page.contains(&row), "docs/configuration.md has no row {row}");
    }
}

proptest! {
    #[test]
    fn whatever_a_config_map_holds_is_in_force_or_refused_in_words_of_a_bounded_length(
        values in prop::collection::btree_map(
            prop_oneof![prop::sample::select(keys().collect::<Vec<_>>()).prop_map(str::to_owned), "[-._a-zA-Z0-9]{1,20}"],
            prop_oneof![any::<String>(), "[-+0-9.]{0,6}(h|m|s|ms)?", Just("true".to_owned())],
            0..6,
        ),
    ) {
        let values = values.into_iter().map(|(key, value)| (key, Ok(value))).collect();
        let document = Document { values, ..Document::default() };
        match flags(&[]).under(&place(), Some(&document)) {
            Ok(in_force) => prop_assert_eq!(in_force.policy.validate(), Ok(())),
            Err(refused) => prop_assert!(!refused.problems.is_empty() && refused.to_string().len() < 8000, "{}", refused),
        }
    }
}
