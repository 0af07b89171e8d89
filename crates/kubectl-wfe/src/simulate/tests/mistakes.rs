//! Mistakes in a scenario: each is told in one sentence, with its line.

use std::path::Path;
use std::time::Duration;

use super::super::scenario::Scenario;

/// Returns the line and the sentence.
fn told(text: &str) -> String {
    let read = Scenario::read(text, Path::new("/nowhere"));
    let fault = read.and_then(|it| it.check_size(Duration::from_hours(24))).expect_err(text);
    format!("{}: {}", fault.line, fault.what)
}

#[test]
fn a_mistake_is_told_with_its_line_and_what_to_write() {
    const ARRIVE: &str = "arrive: [{workflow: cleanup, on: node/n}]\n";
    for (text, said) in [
        (
            "# a\nworkflows:\n  cleanup:\n    fail: []\n",
            "4: \"fail\" is unknown in workflows.cleanup: did you mean \"fails\"?",
        ),
        ("polcy: {}\n", "1: \"polcy\" is unknown: did you mean \"policy\"?"),
        (
            "\npolicy: {coldown-period: 1m}\n",
            "2: \"coldown-period\" is unknown in policy: did you mean \"cooldown-period\"?",
        ),
        (
            "policy:\n  paused: 'false'\n  cooldown-period: soon\n",
            "3: policy: cooldown-period: \"soon\" is not a duration such as 90s, 30m or 1h30m",
        ),
        ("workflows: {a: {takes: 1}}\n", "1: workflows.a.takes: \"1\" is not a duration such as 90s, 30m or 1h30m"),
        ("workflows: {a: {takes: 1500ms}}\n", "1: workflows.a.takes: \"1500ms\" must be in whole seconds"),
        ("workflows: {a: {takes: -1s}}\n", "1: workflows.a.takes: \"-1s\" must not be negative"),
        (
            "workflows:\n  a:\n    fails:\n    - from: 20m\n      to: 3m\n",
            "5: workflows.a.fails[1]: \"to\" must be later than \"from\"",
        ),
        (
            "workflows: {a: {fails: [{as: ImagePullBackof}]}}\n",
            "1: \"ImagePullBackof\" is unknown in workflows.a.fails[1].as: did you mean \"ImagePullBackOff\"?",
        ),
        ("workflows: {a: {fails: [{ran: maybe}]}}\n", "1: workflows.a.fails[1].ran: \"maybe\" must be true or false"),
        (
            "workflows: {cleanup: {}}\narrive:\n- {workflow: clean-up, on: node/n}\n",
            "3: \"clean-up\" is unknown in workflows: did you mean \"cleanup\"?",
        ),
        ("arrive:\n- on: node/n\n", "2: arrive[1] lacks \"workflow\""),
        ("arrive: 3\n", "1: arrive must be a list: begin each entry with -"),
        (
            "arrive:\n- workflow: a\n  on: worker-1\n",
            "3: arrive[1].on: \"worker-1\" must be namespace/kind/name or kind/name, e.g. payment/deployment/api or \
             node/worker-1",
        ),
        (
            "arrive: [{workflow: a, on: node/n, every: 0s}]\n",
            "1: arrive[1].every must be at least 1s; without it, all arrive at once",
        ),
        ("arrive: [{workflow: a, on: node/n, times: 0}]\n", "1: arrive[1].times must be a whole number from 1 on"),
        (
            "arrive:\n- {workflow: a, on: node/n, times: 1000000}\n",
            "2: arrive: 1000000 executions are too many; at most 200000 are played, because each is decided on as the \
             operator does it: lower \"times\", raise \"every\" or give --until",
        ),
        ("{}\n", "1: nothing happens: write at least one entry under arrive or schedules"),
        ("schedules: [{file: nightly.yaml}]\n", "1: cannot use nightly.yaml: No such file or directory (os error 2)"),
        ("schedules: [{copies: 2}]\n", "1: schedules[1] must have either \"file\" or \"spec\""),
        (
            "schedules:\n- spec: {template: {spec: {targetResource: node/n, workflowRef: {workflowId: w}}}}\n",
            "2: spec: has neither interval nor cron; set one of them",
        ),
        (
            &format!("{ARRIVE}people: [{{at: 1m}}]\n"),
            "2: people[1] must have one of \"clear\", \"cancel\", \"pause\" and \"resume\"",
        ),
        (&format!("{ARRIVE}start: today\n"), "2: start must be a time such as 2026-06-01T00:00:00Z"),
    ] {
        assert_eq!(told(text), said, "{text}");
    }
    let retry = told("arrive:\n- workflow: a\n  on: node/n\n  retry:\n    retryWhen: reason == 'ImagePullBackof'\n");
    assert!(retry.starts_with("5: spec.retry.retryWhen: "), "{retry}");
}
