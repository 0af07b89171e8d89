//! The page of whole clusters: of an incident, of a storm, and of hostile names. With `WFE_WRITE_PAGES=DIRECTORY` the
//! pages are also written there, for a browser (tests/page).

use chrono::TimeDelta;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use wfe_core::policy::Policy;
use wfe_view::index::{Index, Kind};
use wfe_view::read::read;

use super::*;
use crate::installation::{Config, Installation, Leader};
use crate::policies::Policies;
use crate::view::take_in;

const RUNS: &str = "kubernaut-workflows";
const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'\u{202e}&amp;";

fn at(clock: &str) -> Time {
    format!("2026-01-02T{clock}Z").parse().unwrap()
}

fn now() -> Time {
    at("18:47:02")
}

fn text(time: Time) -> String {
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The objects of a cluster.
#[derive(Default)]
struct Cluster {
    executions: Vec<DynamicObject>,
    schedules: Vec<DynamicObject>,
}

impl Cluster {
    fn add(&mut self, name: &str, target: &str, created: Time, status: &Value) {
        let (namespace, name) = name.split_once('/').unwrap();
        let uid = format!("u-{}-{name}", self.executions.len());
        let object = json!({
            "metadata": {
                "namespace": namespace, "name": name, "uid": uid, "resourceVersion": "1", "generation": 1,
                "creationTimestamp": text(created),
            },
            "spec": {
                "targetResource": target,
                "workflowRef": {"workflowId": "disk-cleanup", "version": "1.0", "containerImage": "registry.example/w:1"},
            },
            "status": status,
        });
        self.executions.push(serde_json::from_value(object).unwrap());
    }

    fn completed(&mut self, name: &str, target: &str, from: Time, to: Time) {
        let status =
            json!({"phase": "Completed", "startTime": text(from), "completionTime": text(to), "duration": "2m0s"});
        self.add(name, target, from, &status);
    }

    fn skipped(&mut self, name: &str, target: &str, at: Time, reason: &str) {
        let status = json!({"phase": "Skipped", "completionTime": text(at), "skipDetails": {"reason": reason, "message": "busy"}});
        self.add(name, target, at, &status);
    }

    /// Adds an execution that failed half way; `more` sets further fields of its status.
    fn failed(&mut self, name: &str, target: &str, [from, to]: [Time; 2], more: &Value) {
        let mut status = json!({
            "phase": "Failed", "startTime": text(from), "completionTime": text(to), "runSequence": 1,
            "failureDetails": {
                "reason": "Unknown", "message": "\"step-restart\" exited with code 1: Error", "failedAt": text(to),
                "failedTaskName": "restart", "failedStepName": "evict", "exitCode": 1, "wasExecutionFailure": true,
            },
        });
        for (key, value) in more.as_object().unwrap() {
            status[key] = value.clone();
        }
        self.add(name, target, from, &status);
    }

    /// Adds an execution that failed before anything ran.
    fn nothing_ran(&mut self, name: &str, target: &str, to: Time, in_a_row: u32, wait: TimeDelta) {
        let status = json!({
            "phase": "Failed", "startTime": text(to - TimeDelta::seconds(20)), "completionTime": text(to),
            "consecutiveFailures": in_a_row, "nextAllowedExecution": text(to + wait), "runSequence": in_a_row,
            "failureDetails": {
                "reason": "ImagePullBackOff", "message": "the image cannot be pulled", "failedAt": text(to),
                "wasExecutionFailure": false,
            },
        });
        self.add(name, target, to, &status);
    }

    fn schedule(&mut self, name: &str, target: &str, spec: &Value, status: &Value) {
        let (namespace, name) = name.split_once('/').unwrap();
        let mut spec = spec.clone();
        spec["template"] = json!({"spec": {
            "targetResource": target,
            "workflowRef": {"workflowId": "nightly", "version": "1", "containerImage": "registry.example/n:1"},
        }});
        let uid = format!("s-{}-{name}", self.schedules.len());
        let metadata =
            json!({"namespace": namespace, "name": name, "uid": uid, "resourceVersion": "1", "generation": 1});
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        self.schedules.push(serde_json::from_value(object).unwrap());
    }

    fn page(self, cluster: &str, namespace: Option<&str>) -> Page {
        let mut index = Index::new(None);
        let executions = self.executions.clone();
        let mut lists = [(Kind::Execution, self.executions), (Kind::Schedule, self.schedules)];
        for kind in Kind::ALL {
            let list = lists.iter_mut().find(|(of, _)| *of == kind).map(|(_, list)| std::mem::take(list));
            let list = list.unwrap_or_default();
            take_in(&mut index, kind, list.into_iter().filter_map(|it| read(kind, &it, RUNS)), now());
        }
        let installation = Installation {
            policy: Policy::default(),
            policy_of: String::new(),
            config: Config::default(),
            log: String::new(),
            watch_namespace: None,
            execution_namespace: RUNS.to_owned(),
            leader: Leader::Is("wfe-operator-6f7c-k2x9p_1f3a".to_owned()),
            policies: Policies { count: 13, ..Policies::default() },
        };
        Page::of(&Seen::of(index, executions, installation, now()), cluster, namespace)
    }
}

/// An evening with two targets that need a person.
fn incident() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.completed("ops/disk-01", "node/worker-1", at("18:03:00"), at("18:05:00"));
    for nth in 2..=10 {
        cluster.skipped(&format!("ops/disk-{nth:02}"), "node/worker-1", at("18:03:01"), "ResourceBusy");
    }
    cluster.failed("payment/nodefail", "node/worker-1", [at("18:36:41"), at("18:37:03")], &json!({}));
    for nth in 0..40 {
        let time = at("18:38:00") + TimeDelta::seconds(13 * nth);
        cluster.skipped(&format!("crowd/c{nth:04}"), "node/worker-1", time, "PreviousExecutionFailed");
    }
    for (nth, (clock, wait)) in
        (1..).zip([("17:50:00", 1), ("17:51:20", 2), ("17:53:40", 4), ("17:58:00", 8), ("18:06:20", 10)])
    {
        let name = format!("payment/cart-{nth}");
        cluster.nothing_ran(&name, "payment/deployment/cart", at(clock), nth, TimeDelta::minutes(wait));
    }
    let running = json!({
        "phase": "Running", "startTime": text(at("18:46:24")), "runSequence": 1,
        "pipelineRunRef": {"name": "wfe-8850dacbf7e3d928-1", "uid": "r", "namespace": RUNS},
    });
    cluster.add("payment/slow2", "payment/deployment/web", at("18:46:23"), &running);
    let waiting = json!([{
        "type": "Waiting", "status": "True", "reason": "OperatorForbidden", "message": "give the operator this right",
        "lastTransitionTime": text(at("18:45:12")),
    }]);
    let waiting = json!({"phase": "Pending", "conditions": waiting});
    cluster.add("payment/forb1", "payment/deployment/frontend", at("18:45:12"), &waiting);
    let cleared = json!({
        "clearance": {"clearedBy": "jo@example.com", "clearedAt": text(at("18:21:00")), "reason": "disk replaced"},
        "conditions": [{
            "type": "Blocked", "status": "False", "reason": "Cleared", "message": "", "lastTransitionTime": text(at("18:21:00")),
        }],
    });
    cluster.failed("ops/drain-7", "node/worker-2", [at("18:08:00"), at("18:10:00")], &cleared);
    cluster.completed("ops/drain-8", "node/worker-2", at("18:22:00"), at("18:24:30"));
    for nth in 0..6 {
        let from = at("17:48:00") + TimeDelta::minutes(10 * nth);
        cluster.completed(
            &format!("shop/reindex-{nth}"),
            "shop/statefulset/search",
            from,
            from + TimeDelta::seconds(80),
        );
    }
    let ahead = json!([{
        "type": "Held", "status": "False", "reason": "WouldBeHeld", "lastTransitionTime": text(now()),
        "message": "PreviousExecutionFailed: payment/nodefail (workflow disk-cleanup) failed half way",
    }]);
    cluster.schedule(
        "payment/nightly-cleanup",
        "node/worker-1",
        &json!({"cron": "20 1 * * *", "timeZone": "Europe/Berlin"}),
        &json!({"nextRunTime": "2026-01-03T00:20:00Z", "nextRunReason": "Cron", "conditions": ahead}),
    );
    cluster.schedule(
        "shop/reindex",
        "shop/statefulset/search",
        &json!({"interval": "10m"}),
        &json!({
            "nextRunTime": text(at("18:48:00")), "nextRunReason": "Interval",
            "lastRun": {"slot": text(at("18:38:00")), "endedAt": text(at("18:39:20")), "outcome": "Completed"},
        }),
    );
    cluster.schedule(
        "shop/vacuum",
        "shop/statefulset/orders",
        &json!({"interval": "6h", "suspend": true}),
        &json!({"conditions": [{
            "type": "Held", "status": "True", "reason": "Suspended", "message": "a person has suspended it",
            "lastTransitionTime": text(at("12:00:00")),
        }]}),
    );
    cluster
}

/// 10,000 executions of an outage: on 2,500 targets, forty of which need a person since the same minute.
fn storm() -> Cluster {
    let mut cluster = Cluster::default();
    for nth in 0..2_500_i64 {
        let target = format!("node/worker-{nth:04}");
        let from = at("17:50:00") + TimeDelta::seconds(nth % 3_000);
        if nth % 63 == 0 {
            let from = at("18:20:00") + TimeDelta::seconds(nth % 60);
            cluster.failed(&format!("ops/restart-{nth}"), &target, [from, from + TimeDelta::seconds(9)], &json!({}));
        } else {
            cluster.completed(&format!("ops/restart-{nth}"), &target, from, from + TimeDelta::seconds(95));
        }
        for more in 1..=3 {
            let at = from + TimeDelta::seconds(7 * more);
            cluster.skipped(&format!("crowd/c{nth}-{more}"), &target, at, "ResourceBusy");
        }
    }
    cluster
}

/// A cluster whose users try to attack the page with the texts of their objects.
fn hostile() -> Page {
    let mut cluster = Cluster::default();
    let busy = json!({"phase": "Skipped", "completionTime": text(now()), "skipDetails": {"reason": HOSTILE, "message": HOSTILE}});
    cluster.add(&format!("{HOSTILE}/{HOSTILE}"), "node/worker-1", now(), &busy);
    let details = json!({
        "failureDetails": {"reason": HOSTILE, "failedTaskName": HOSTILE, "failedStepName": HOSTILE, "wasExecutionFailure": true},
    });
    cluster.failed(&format!("ops/{HOSTILE}"), "node/worker-1", [at("18:00:00"), at("18:01:00")], &details);
    let cleared = json!({"clearance": {"clearedBy": HOSTILE, "clearedAt": text(at("18:05:00")), "reason": HOSTILE}});
    cluster.failed("ops/b", "node/worker-2", [at("18:00:00"), at("18:01:00")], &cleared);
    let held = json!([{"type": "Held", "status": "True", "reason": "Suspended", "message": HOSTILE, "lastTransitionTime": text(now())}]);
    cluster.schedule(
        &format!("ops/{HOSTILE}"),
        "node/worker-1",
        &json!({"cron": HOSTILE}),
        &json!({"conditions": held}),
    );
    let mut page = cluster.page(HOSTILE, None);
    (page.assumed, page.overview.namespace) = (Some(HOSTILE.to_owned()), Some(HOSTILE.to_owned()));
    page
}

fn lanes(page: &Page, window: Window) -> Lanes {
    Lanes::of(&page.tracks, &Axis::new(window, now()))
}

#[test]
fn each_target_that_moved_has_a_lane_and_trouble_comes_first() {
    let page = incident().page("prod-eu", None);
    let told: Vec<String> = lanes(&page, Window::Hour)
        .lanes
        .iter()
        .map(|it| format!("{}{}: {}. {}", if it.needs_person { "! " } else { "" }, it.target, it.state, it.text))
        .collect();
    assert_eq!(
        told,
        [
            "! payment/deployment/cart: blocked for 40m. Last 1h: 5 failed",
            "! node/worker-1: blocked for 9m59s. Last 1h: 1 completed, 1 failed, 49 skipped; schedule \
             payment/nightly-cleanup would be held in 5h32m",
            "payment/deployment/frontend: waiting for 1m50s. Last 1h: nothing ended",
            "payment/deployment/web: running for 38s. Last 1h: nothing ended",
            "shop/statefulset/search: completed 7m42s ago. Last 1h: 6 completed; schedule shop/reindex runs next in 58s",
            "node/worker-2: completed 22m ago. Last 1h: 1 completed, 1 failed, 1 cleared",
        ]
    );
    let of_payment = incident().page("prod-eu", Some("payment"));
    let targets: Vec<String> = lanes(&of_payment, Window::Hour).lanes.into_iter().map(|it| it.target).collect();
    assert_eq!(
        targets,
        ["payment/deployment/cart", "node/worker-1", "payment/deployment/frontend", "payment/deployment/web"]
    );
}

#[test]
fn a_lane_draws_what_happened_and_lists_it() {
    let page = incident().page("prod-eu", None);
    let lanes = lanes(&page, Window::Hour);
    let drawn = |target: &str| -> Vec<String> {
        let lane = lanes.lanes.iter().find(|it| it.target == target).unwrap();
        lane.drawn.iter().map(|it| format!("{} {}+{}: {}", it.kind.name(), it.at, it.wide, it.title)).collect()
    };
    assert_eq!(
        drawn("node/worker-2"),
        [
            "cooldown 5352+714: 18:24:30 to 18:29:30 ops/drain-8 cooldown of its workflow",
            "blocked 3280+1572: 18:10:00 to 18:21:00 ops/drain-7 blocked the target",
            "completed 4995+357: 18:22:00 to 18:24:30 ops/drain-8 completed",
            "failed 2995+285: 18:08:00 to 18:10:00 ops/drain-7 failed, task restart, step evict: exit code 1",
            "cleared 4852+0: 18:21:00 ops/drain-7 cleared by jo@example.com",
        ]
    );
    let cart = drawn("payment/deployment/cart");
    let backoff: Vec<&str> = cart.iter().filter_map(|it| it.strip_prefix("backoff ")?.split(':').next()).collect();
    assert_eq!(backoff, ["423+143", "614+286", "947+572", "1566+1143", "2757+1428"], "each wait is longer");
    assert_eq!(cart.iter().filter(|it| it.starts_with("blocked 2757+5814")).count(), 1, "{cart:?}");
    let worker: Vec<String> = drawn("node/worker-1").into_iter().filter(|it| it.starts_with("skipped")).collect();
    assert_eq!(worker[0], "skipped 2283+0: 18:03:01 ops/disk-02 skipped, ResourceBusy and 8 more");
    let events: Vec<String> =
        lanes.lanes[1].events.iter().map(|it| format!("{} x{} {}", it.what, it.count, it.who)).collect();
    assert_eq!(
        events,
        ["Skipped x9 ops/disk-02", "Completed x1 ops/disk-01", "Failed x1 payment/nodefail", "Skipped x40 crowd/c0000"]
    );
}

#[test]
fn what_lies_outside_of_the_window_has_no_lane_and_a_block_always_has_one() {
    let mut cluster = Cluster::default();
    cluster.completed("ops/a", "node/a", at("10:00:00"), at("10:05:00"));
    cluster.failed("ops/b", "node/b", [at("01:00:00"), at("01:05:00")], &json!({}));
    let page = cluster.page("prod-eu", None);
    let targets = |window| -> Vec<String> { lanes(&page, window).lanes.into_iter().map(|it| it.target).collect() };
    assert_eq!(
        (targets(Window::Hour), targets(Window::Day)),
        (vec!["node/b".to_owned()], vec!["node/b".to_owned(), "node/a".to_owned()])
    );
    assert!(page.html(None, None).contains("the last 24h"), "the window shows when the block began");
    let empty = Cluster::default().page("prod-eu", None).html(None, None);
    assert!(empty.contains("All is well") && empty.contains("Nothing happened on a target within the last 1h."));
}

#[test]
fn ten_thousand_executions_are_a_page_of_limited_size() {
    let page = storm().page("prod-eu", None);
    let lanes = lanes(&page, Window::Hour);
    assert_eq!((lanes.lanes.len(), lanes.left_out), (60, 2_440));
    let in_need = lanes.lanes.iter().filter(|it| it.needs_person).count();
    assert_eq!((in_need, page.overview.needs_person.len()), (40, 40));
    let html = page.html(None, None);
    assert!(html.len() < 500_000, "{} bytes", html.len());
    assert!(html.contains("2440 more targets have no lane here."));
}

#[test]
fn hostile_text_stays_text() {
    let html = hostile().html(Some(10), None);
    assert_eq!(html.matches("<script>").count(), 1, "ours");
    assert!(!html.contains("<img") && !html.contains("onerror=alert(2)>") && !html.contains('\u{202e}'));
    assert!(!html.contains("logs &quot;"), "a shell would obey such a name");
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && html.contains("\\u{202e}"));
}

#[test]
fn the_policy_permits_this_style_and_this_script_and_nothing_else() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let html = incident().page("prod-eu", None).html(Some(10), None);
    let policy = policy();
    for tag in ["style", "script"] {
        let (_, rest) = html.split_once(&format!("<{tag}>")).unwrap();
        let (text, rest) = rest.split_once(&format!("</{tag}>")).unwrap();
        assert!(!rest.contains(&format!("<{tag}")), "one {tag}");
        let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(text));
        assert!(policy.contains(&format!("{tag}-src 'sha256-{hash}'")), "{tag}");
    }
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    for word in [" style=", " onclick=", " src=", "http://", "https://", "<form", "url(http", "@import"] {
        assert!(!html.replace("http://www.w3.org/2000/svg", "").contains(word), "{word}");
    }
}

#[test]
fn commands_are_text_and_a_frozen_page_does_not_refresh_itself() {
    let page = incident().page("prod-eu", None);
    let (live, frozen) = (page.html(Some(10), None), page.html(None, None));
    for html in [&live, &frozen] {
        assert!(
            html.contains("<code>kubectl wfe clear node/worker-1 --reason &#39;&#39;</code>")
                || html.contains("<code>kubectl wfe clear node/worker-1 --reason ''</code>")
        );
        assert!(html.contains("2 need a person"));
    }
    assert!(live.contains("data-refresh=\"10\"") && live.contains("href=\"?window=6h\""));
    assert!(!frozen.contains("data-refresh") && !frozen.contains("?window=") && frozen.contains(", frozen"));
}

/// Writes the pages for the browser that looks at them.
#[test]
fn pages_are_written_for_a_browser() {
    let Some(directory) = std::env::var_os("WFE_WRITE_PAGES") else { return };
    let directory = std::path::PathBuf::from(directory);
    for (name, page) in [
        ("incident", incident().page("prod-eu", None)),
        ("storm", storm().page("prod-eu", None)),
        ("hostile", hostile()),
        ("empty", Cluster::default().page("prod-eu", None)),
    ] {
        std::fs::write(directory.join(format!("{name}.html")), page.html(None, None)).unwrap();
        std::fs::write(directory.join(format!("{name}-live.html")), page.html(Some(1), None)).unwrap();
    }
}
