//! Tests of the engine's loop without an API server: every request fails.

use kube::Config;
use wfe_core::execution::{Clearance, Execution, ExecutionState, FailedState, Recorded};
use wfe_core::name::{ExecutionId, Version};
use wfe_core::policy::Policy;
use wfe_core::reason::FailureReason;
use wfe_tekton::Defaults;
use wfe_view::call::CallError;
use wfe_view::index::{ExecutionRecord, Kind};

use super::*;
use crate::cluster::client::Cluster;
use crate::cluster::crds::Crds;
use crate::events;
use crate::perform::PerformError;
use crate::traces::Traces;

/// Returns an engine that leads with this policy, and the sender for its deliveries.
fn engine(policy: Policy) -> (Engine, mpsc::Sender<Delivery>) {
    let metrics = Metrics::new().unwrap();
    let (leadership, staleness) = (Leadership::without_election(), Staleness::default());
    // No server listens on port 1: every request fails at once.
    let config = Config::new("http://127.0.0.1:1".parse().unwrap());
    let cluster = Cluster::connect(config, "runs", leadership.clone(), metrics.clone(), staleness.clone()).unwrap();
    let (events, _) = events::channel(cluster.clone(), metrics.clone(), Clock::system(), "test", "runs");
    let defaults = Defaults {
        execution_namespace: "runs".to_owned(),
        service_account: "runner".to_owned(),
        timeout: Duration::from_mins(30),
    };
    let in_force = InForce {
        version: "none".to_owned(),
        object: None,
        policy,
        defaults,
        log_filter: "info".to_owned(),
        settings: Vec::new(),
        warnings: Vec::new(),
    };
    let (_, config) = watch::channel(Arc::new(in_force));
    let settings = Settings {
        watch_namespace: None,
        max_staleness: Duration::from_mins(3),
        clock: Clock::system(),
        config,
        fitness: watch::channel(Fitness::Fit).1,
        guard: watch::channel(Guard::InForce).1,
        observer: None,
    };
    let (sender, deliveries) = mpsc::channel(64);
    let crds = Crds::new(cluster.clone(), Health::new(), metrics.clone());
    let performer = Performer::new(cluster, crds, metrics.clone(), events, Traces::default());
    (Engine::new(settings, performer, leadership, deliveries, metrics, Health::new(), staleness), sender)
}

/// Delivers every list that decisions on targets need, with one execution. The CRD of schedules is not installed.
async fn deliver(sender: &mpsc::Sender<Delivery>, record: ExecutionRecord) {
    for kind in Kind::ALL {
        sender.send(Delivery::ListBegins(kind)).await.unwrap();
    }
    sender.send(Delivery::Execution(Box::new(record))).await.unwrap();
    for kind in Kind::NEEDED {
        sender.send(Delivery::ListEnds(kind)).await.unwrap();
    }
}

/// Returns the number of decisions within half a second.
async fn decisions(policy: Policy, record: ExecutionRecord) -> u64 {
    let (engine, sender) = engine(policy);
    let metrics = engine.metrics.clone();
    deliver(&sender, record).await;
    let (_stop, stopped) = watch::channel(false);
    let running = tokio::spawn(engine.run(stopped));
    tokio::time::sleep(Duration::from_millis(500)).await;
    running.abort();
    let page = String::from_utf8(metrics.render().unwrap()).unwrap();
    let count = page.lines().find_map(|line| line.strip_prefix("workflowexecution_decision_duration_seconds_count "));
    count.unwrap().parse().unwrap()
}

/// Returns a failed execution whose target cannot be parsed, with or without a clearance.
fn unreadable(clearance: Option<Clearance>) -> ExecutionRecord {
    let id = ExecutionId { namespace: "ops".into(), name: "odd".into(), uid: Uid::new("odd") };
    let failed = FailedState {
        reason: FailureReason::ConfigurationError,
        was_execution_failure: false,
        cancelled: false,
        failed_at: Some(Time::UNIX_EPOCH),
        completed_at: Some(Time::UNIX_EPOCH),
        next_allowed_execution: None,
        fingerprint: None,
        shared_outage: false,
    };
    let execution = Execution {
        state: ExecutionState::Failed(failed),
        clearance: clearance.map(Box::new),
        ..Execution::undecided(id, Version::new("1"), Time::UNIX_EPOCH)
    };
    ExecutionRecord { execution, target: None, generation: 1, request: None, redaction: None, end: None }
}

#[tokio::test]
async fn a_decision_that_wrote_nothing_and_learned_nothing_is_not_repeated_at_once() {
    let clearance =
        Clearance { reason: "seen".into(), cleared_by: "jo".into(), recorded: Recorded::Not, unguarded: None };
    let one_is_too_many = Policy { max_consecutive_failures: 1, ..Policy::default() };
    for (case, policy, record) in [
        ("a clearance", Policy::default(), unreadable(Some(clearance))),
        ("one failure exhausts", one_is_too_many, unreadable(None)),
    ] {
        let decided = decisions(policy, record).await;
        assert!(decided > 0 && decided < 20, "{case}: {decided} decisions in half a second");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_schedules_that_fails_or_is_silent_holds_back_schedules_alone() {
    let (mut engine, _sender) = engine(Policy::default());
    for delivery in Kind::ALL.map(Delivery::ListBegins) {
        engine.apply(delivery);
    }
    for delivery in Kind::ALL.map(Delivery::ListEnds) {
        engine.apply(delivery);
    }
    for kind in Kind::ALL {
        engine.staleness.heard(kind);
    }
    let shown = |engine: &mut Engine| {
        engine.show();
        assert_eq!((engine.blind(), engine.health.ready()), (None, Ok(())));
        (engine.index.sees_schedules(), engine.health.notes())
    };
    assert_eq!(shown(&mut engine), (true, None));
    engine.health.watch_failed(Kind::Schedule, "no right".to_owned());
    let why = "no WorkflowSchedule runs: cannot watch workflowschedules: no right";
    assert_eq!(shown(&mut engine), (false, Some(why.to_owned())));
    engine.health.watch_delivered(Kind::Schedule);
    assert_eq!(shown(&mut engine), (true, None));
    tokio::time::advance(Duration::from_secs(200)).await;
    for kind in Kind::NEEDED {
        engine.staleness.heard(kind);
    }
    let why = "no WorkflowSchedule runs: the watch of workflowschedules has been silent for 200 s";
    assert_eq!(shown(&mut engine), (false, Some(why.to_owned())));
    engine.staleness.heard(Kind::Schedule);
    assert_eq!(shown(&mut engine), (true, None));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_whose_write_is_refused_shows_no_trouble_on_executions() {
    let (mut engine, _sender) = engine(Policy::default());
    engine.apply(Delivery::Execution(Box::new(unreadable(None))));
    let key = engine.index.keys().next().unwrap().clone();
    let failed = || PerformError::Call {
        what: "write".to_owned(),
        source: CallError::TimedOut(Duration::from_secs(1)),
        unconfirmed: None,
    };
    let shown = |engine: &Engine| engine.index.entry(&key).unwrap().target.memory.trouble.is_some();
    engine.take_report(&key, Report { of_schedules: vec![failed()], ..Report::default() });
    assert!(!shown(&engine), "it is the schedule's");
    assert_eq!(engine.failures[&key].count, 1, "and is tried again later");
    engine.take_report(&key, Report { errors: vec![failed()], of_schedules: vec![failed()], ..Report::default() });
    assert!(shown(&engine), "executions wait for this");
}
