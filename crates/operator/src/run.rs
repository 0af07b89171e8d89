//! Runs the operator as a process: signals, flags, listeners and one replica.

use anyhow::Context;
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::Config;
use tokio::sync::watch;
use wfe_core::guard::Guard;
use wfe_settings::cli::RunArgs;
use wfe_settings::config::{Flags, Place};
use wfe_settings::policies;
use wfe_view::error_chain::with_causes;

use crate::clock::Clock;
use crate::cluster::client::Cluster;
use crate::cluster::crds::Crds;
use crate::cluster::leadership::Leadership;
use crate::cluster::lease::identity;
use crate::cluster::policies::Lookout;
use crate::cluster::staleness::Staleness;
use crate::config::{Follower, Page, read_first};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::process::signals::StopSignals;
use crate::process::supervised::SupervisedTasks;
use crate::process::telemetry;
use crate::replica::{Candidacy, Replica, Setup};
use crate::server;
use crate::server::{Access, Certificates};
use crate::traces::Traces;

/// The version of this build.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the operator.
///
/// # Errors
/// What prevents the operator from starting: no cluster, an invalid certificate, a port in use, or an invalid
/// configuration.
pub async fn run(args: RunArgs, flags: Flags) -> anyhow::Result<()> {
    // This comes first, so that no signal is lost from here on.
    let mut stop_signals = StopSignals::install()?;
    args.policy().context("the flags cannot be used")?;
    let timing = args.lease.timing().map_err(anyhow::Error::msg).context("the flags cannot be used")?;
    let log_level = telemetry::start(args.log_format, &args.log_level);
    let metrics = Metrics::new().context("cannot set up the metrics")?;
    let health = Health::new();
    let staleness = Staleness::default();
    let certificates = match (&args.metrics.metrics_tls_certificate, &args.metrics.metrics_tls_key) {
        (Some(certificate), Some(key)) => Some(Certificates::read(certificate.clone(), key.clone())?),
        _ => None,
    };
    let metrics_listener = server::listen("metrics", args.metrics.metrics_address).await?;
    let health_listener = server::listen("health", args.health_address).await?;

    let instance = args.lease.identity.clone().unwrap_or_else(host_name);
    let mut chance = fastrand::Rng::new();
    let identity = identity(&instance, &mut chance);
    let config = find_cluster(&identity, args.watch_namespace.as_deref().unwrap_or("(all)")).await?;
    let server = config.cluster_url.clone();
    let leadership = if args.lease.leader_elect { Leadership::by_election() } else { Leadership::without_election() };
    metrics.leads(leadership.leads());
    let cluster =
        Cluster::connect(config, &args.execution_namespace, leadership.clone(), metrics.clone(), staleness.clone())
            .context("cannot use the cluster's configuration")?;

    let mut parts = SupervisedTasks::default();
    let access = args.metrics.metrics_authentication.then(|| Access::new(cluster.clone()));
    let serving = server::serve_metrics(metrics_listener, metrics.clone(), certificates, access);
    parts.spawn("the metrics server", serving);
    let (place, page) = (Place::of(&args), Page::new(Place::of(&args), args.watch_namespace.clone()));
    let serving = server::serve_health(health_listener, health.clone(), leadership.clone(), page.clone());
    parts.spawn("the health server", serving);

    let (first, versions) = tokio::select! {
        biased;
        first = read_first(&cluster, &server, &place, &health) => first?,
        why = parts.ended() => return Err(why),
        () = stop_signals.next() => return Ok(()),
    };
    let follower = Follower::begin(flags, place, first.as_ref(), page.clone(), metrics.clone(), log_level)?;
    let in_force = follower.in_force();
    let start = in_force.borrow().clone();
    let execution_namespace = start.defaults.execution_namespace.as_str();
    let cluster = cluster.with_execution_namespace(execution_namespace);
    tracing::info!(version = start.version, execution_namespace, "configuration in force");

    let crds = Crds::new(cluster.clone(), health.clone(), metrics.clone());
    let guard = if args.policy_check_interval.is_zero() {
        watch::channel(Guard::InForce).1 // the check is turned off
    } else {
        let shipped = policies::shipped().context("the admission policies of this build cannot be read")?;
        let (every, health, metrics) = (args.policy_check_interval, health.clone(), metrics.clone());
        let (lookout, guard) = Lookout::new(cluster.clone(), crds.clone(), shipped, every, health, metrics);
        parts.spawn("the look at the policies", lookout.run());
        guard
    };
    let candidacy = args.lease.leader_elect.then_some(Candidacy {
        namespace: args.namespace,
        lease: args.lease.lease_name,
        identity,
        timing,
        chance,
        settings: page.published(),
    });
    let traces = Traces::of_process();
    let setup = Setup {
        cluster,
        instance,
        candidacy,
        watch_namespace: args.watch_namespace,
        max_staleness: args.max_staleness,
        clock: Clock::system(),
        config: in_force,
        crds,
        guard,
        leadership,
        metrics,
        health: health.clone(),
        staleness,
        observer: None,
        traces: traces.clone(),
    };
    let mut replica = Replica::start(setup, parts);
    replica.follow(|events| follower.follow(versions, events));

    let failed = tokio::select! {
        biased;
        why = replica.ended() => Some(why),
        () = stop_signals.next() => None,
    };
    if let Some(why) = &failed {
        tracing::error!(error = with_causes(why.as_ref()), "stopping, as a part of the process has ended");
    }
    health.stopping();
    let stopped = replica.stop().await;
    traces.stop().await;
    failed.map_or(Ok(()), Err).and(stopped)?;
    tracing::info!("stopped");
    Ok(())
}

/// Finds the cluster, and sets the user agent for all requests.
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

/// Returns the name of this replica if no flag sets it: in a pod, the name of the pod.
fn host_name() -> String {
    std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "wfe-operator".to_owned())
}
