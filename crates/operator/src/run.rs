//! Puts the operator together and runs it until it is asked to stop.

use std::convert::Infallible;
use std::future::Future;

use anyhow::Context;
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::Config;
use tokio::sync::{mpsc, watch};

use crate::causes::with_causes;
use crate::cli::RunArgs;
use crate::client::Cluster;
use crate::clock::Clock;
use crate::config::{Flags, Follower, Page, Place, read_first};
use crate::engine::{Engine, Settings};
use crate::health::Health;
use crate::hearing::Hearing;
use crate::index::Kind;
use crate::lease::{Elector, Leadership, identity};
use crate::metrics::Metrics;
use crate::parts::Parts;
use crate::perform::Performer;
use crate::signals::StopSignals;
use crate::watch::Watch;
use crate::{events, server, telemetry};

/// How many deliveries may wait for the engine; then the watches wait, and with them the API server's stream.
const DELIVERIES: usize = 1024;
/// How long the last events may take at the end.
const LAST_EVENTS: std::time::Duration = std::time::Duration::from_secs(5);

/// The parts of the process that are stopped in an order.
const ENGINE: &str = "the engine";
const EVENT_WRITER: &str = "the writer of events";
const FOLLOWER: &str = "the follower of the ConfigMap";
const ELECTION: &str = "the election";

/// The version of this build.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the operator.
///
/// # Errors
/// What keeps it from starting: no cluster named, a bad certificate, a port that is taken, a configuration that cannot
/// be used.
pub async fn run(args: RunArgs, flags: Flags) -> anyhow::Result<()> {
    // First: from here on no signal is lost.
    let mut stop_signals = StopSignals::install()?;
    args.policy().context("the flags cannot be used")?;
    let timing = args.lease.timing().map_err(anyhow::Error::msg).context("the flags cannot be used")?;
    let log_level = telemetry::start(args.log_format, &args.log_level);
    let metrics = Metrics::new().context("cannot set up the metrics")?;
    let health = Health::new();
    let hearing = Hearing::default();
    let metrics_listener = server::listen("metrics", args.metrics_address).await?;
    let health_listener = server::listen("health", args.health_address).await?;

    let instance = args.lease.identity.clone().unwrap_or_else(host_name);
    let (clock, mut chance) = (Clock::system(), fastrand::Rng::new());
    let identity = identity(&instance, &mut chance);
    let config = find_cluster(&identity, args.watch_namespace.as_deref().unwrap_or("(all)")).await?;
    let leadership = if args.lease.leader_elect { Leadership::by_election() } else { Leadership::without_election() };
    metrics.leads(leadership.leads());
    let cluster =
        Cluster::connect(config, &args.execution_namespace, leadership.clone(), metrics.clone(), hearing.clone())
            .context("cannot use the cluster's configuration")?;

    let mut parts = Parts::default();
    parts.spawn("the metrics server", server::serve_metrics(metrics_listener, metrics.clone()));
    let (place, page) = (Place::of(&args), Page::new(Place::of(&args)));
    let serving = server::serve_health(health_listener, health.clone(), leadership.clone(), page.clone());
    parts.spawn("the health server", serving);

    let (first, versions) = tokio::select! {
        biased;
        first = read_first(&cluster, &place, &health) => first?,
        why = parts.ended() => return Err(why),
        () = stop_signals.next() => return Ok(()),
    };
    let follower = Follower::begin(flags, place, first.as_ref(), page, metrics.clone(), log_level)?;
    let in_force = follower.in_force();
    let start = in_force.borrow().clone();
    let execution_namespace = start.defaults.execution_namespace.as_str();
    let cluster = cluster.with_execution_namespace(execution_namespace);
    tracing::info!(version = start.version, execution_namespace, "configuration in force");

    let (sender, deliveries) = mpsc::channel(DELIVERIES);
    for kind in Kind::ALL {
        let watch = Watch {
            kind,
            api: cluster.watched(kind, args.watch_namespace.as_deref()),
            execution_namespace: execution_namespace.to_owned(),
            max_staleness: args.max_staleness,
            health: health.clone(),
            hearing: hearing.clone(),
            metrics: metrics.clone(),
        };
        parts.spawn(format!("the watch of {}", kind.label()), endless(watch.follow(sender.clone())));
    }
    drop(sender);

    let (events, event_writer) =
        events::channel(cluster.clone(), metrics.clone(), clock.clone(), &instance, execution_namespace);
    parts.spawn(EVENT_WRITER, endless(event_writer.run()));
    let follower = parts.spawn(FOLLOWER, endless(follower.follow(versions, events.clone())));
    let elector = args.lease.leader_elect.then(|| {
        let lease = (args.namespace.as_str(), args.lease.lease_name.as_str());
        let (leadership, metrics) = (leadership.clone(), metrics.clone());
        Elector::new(cluster.clone(), lease, &identity, timing, leadership, metrics, (clock.clone(), chance))
    });
    let performer = Performer::new(cluster, metrics.clone(), events);
    let (watch_namespace, max_staleness) = (args.watch_namespace, args.max_staleness);
    let settings = Settings { watch_namespace, max_staleness, clock, config: in_force };
    let engine = Engine::new(settings, performer, leadership, deliveries, metrics, health.clone(), hearing);
    let (stop, stopped) = watch::channel(false);
    parts.spawn(ENGINE, engine.run(stopped));
    let (let_go, done) = watch::channel(false);
    parts.spawn(ELECTION, endless(elect(elector, done)));

    let failed = tokio::select! {
        biased;
        why = parts.ended() => Some(why),
        () = stop_signals.next() => None,
    };
    if let Some(why) = &failed {
        tracing::error!(error = with_causes(why.as_ref()), "stopping, as a part of the process has ended");
    }
    health.stopping();
    // In this order, whichever part has failed: the engine finishes the writes under way, then the last events are
    // written, and only then another replica may begin.
    let _ = stop.send(true);
    let stopped = parts.join(ENGINE).await;
    follower.abort();
    let _ = parts.join(FOLLOWER).await;
    // Engine and follower held the last senders of events.
    if tokio::time::timeout(LAST_EVENTS, parts.join(EVENT_WRITER)).await.is_err() {
        tracing::warn!("stopped with events unwritten");
    }
    let _ = let_go.send(true);
    let released = parts.join(ELECTION).await;
    failed.map_or(Ok(()), Err).and(stopped).and(released)?;
    tracing::info!("stopped");
    Ok(())
}

/// Makes a part that returns nothing one that cannot fail.
async fn endless(part: impl Future<Output = ()>) -> Result<(), Infallible> {
    part.await;
    Ok(())
}

/// Finds the cluster, and has every request say who makes it.
async fn find_cluster(identity: &str, watch_namespace: &str) -> anyhow::Result<Config> {
    let mut config = Config::infer()
        .await
        .context("cannot find a cluster: set KUBECONFIG, or run in a pod with a service account")?;
    let user_agent = HeaderValue::try_from(format!("wfe-operator/{VERSION} {identity}"))
        .context("the host's name is no name for this replica: set --identity")?;
    config.headers.push((USER_AGENT, user_agent));
    tracing::info!(version = VERSION, identity, cluster = %config.cluster_url, watch_namespace, "starting");
    Ok(config)
}

/// Takes part in the election, if there is one, until this process has nothing more to write.
async fn elect(elector: Option<Elector>, mut done: watch::Receiver<bool>) {
    match elector {
        Some(elector) => elector.run(done).await,
        None => {
            let _ = done.wait_for(|done| *done).await; // whoever would say it is gone
        }
    }
}

/// The name of this replica, if it is given none: in a pod, the pod's.
fn host_name() -> String {
    std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "wfe-operator".to_owned())
}
