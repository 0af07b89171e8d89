//! Invariant 17: how many targets were busy at once.

use wfe_auditor::{Limit, Limits, Policy};

use crate::story::{API, NODE, Story, run};

const OTHER: &str = "node/worker-node-2";

/// Returns a story with one limit of one target.
fn under(change: impl FnOnce(&mut Limit)) -> Story {
    let mut limit = Limit { name: "drains".to_owned(), kind: None, workflow_id: None, namespace: None, max_running: 1 };
    change(&mut limit);
    let policy = Policy { limits: Limits(vec![limit]), ..Story::default().policy };
    Story::by(policy)
}

/// Adds executions on two targets. The second begins while the first runs.
fn two_at_once(mut story: Story) -> Story {
    story.wfe("one", NODE);
    story.wfe("two", OTHER);
    story.start("one", 1);
    story.start("two", 1);
    story
}

#[test]
fn more_targets_at_once_than_a_limit_that_matches() {
    assert_eq!(two_at_once(under(|_| ())).found(), ["17 limit"]);
    assert_eq!(two_at_once(under(|it| it.kind = Some("node".to_owned()))).found(), ["17 limit"]);
    assert_eq!(two_at_once(under(|it| it.workflow_id = Some("restart".to_owned()))).found(), ["17 limit"]);
    let report = two_at_once(under(|_| ())).report(false);
    let violation = &report.violations[0];
    assert_eq!((violation.target.as_str(), &violation.objects[0].uid), (OTHER, &run("two", 1)));
    assert!(violation.text.ends_with("was released as one of 2, and limit drains allows 1"), "{}", violation.text);
    for other in [
        under(|it| it.max_running = 2),
        under(|it| it.kind = Some("pod".to_owned())),
        under(|it| it.workflow_id = Some("other".to_owned())),
        under(|it| it.namespace = Some("payment".to_owned())),
    ] {
        assert_eq!(two_at_once(other).found(), Vec::<String>::new());
    }
}

#[test]
fn a_place_is_free_when_nothing_of_its_run_is_left() {
    let mut story = under(|_| ());
    story.wfe("one", NODE);
    story.start("one", 1);
    story.work("one", 1);
    story.task_ends("one", 1);
    story.run_ends("one", 1, "True");
    story.complete("one");
    let mut early = story.clone();
    early.live("two", API, 1);
    early.pod_ends("one", 1);
    assert_eq!(early.found(), ["17 limit"]);
    story.pod_ends("one", 1);
    story.live("two", API, 1);
    assert_eq!(story.found(), Vec::<String>::new());
}
