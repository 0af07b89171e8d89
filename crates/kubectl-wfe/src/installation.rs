//! The operator whose decision is predicted: its settings, the namespaces that it watches, and whether it leads.
//!
//! Settings come from the `ConfigMap` and the flags of the Deployment, read by the operator's own code. What cannot be
//! read is assumed, and the answer says so: a missing permission makes the answer weaker, not impossible.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chrono::TimeDelta;
use clap::CommandFactory;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar};
use kube::api::{Api, DynamicObject};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};
use wfe_core::Time;
use wfe_core::policy::Policy;
use wfe_settings::config::{Document, Flags, Place, Refused, Setting};
use wfe_settings::table::keys;
use wfe_view::index::ExecutionRecord;
use wfe_view::observe::observe_execution;

use crate::cli::{Overrides, ViewArgs};
use crate::connection::Connection;
use crate::moment::beside;
use crate::output::note;
use crate::policies::Policies;

/// How long a Lease without a duration is valid: the operator's default.
const LEASE_LASTS: Duration = Duration::from_secs(8);
/// How long an expired Lease is watched for a renewal: longer than the default duration. Clocks differ, so an old time
/// in the Lease does not prove that no operator leads.
const WATCHED_FOR: Duration = Duration::from_secs(10);
/// The age of a renewal that proves without watching that no operator leads: no operator's clock differs as much from
/// the API server's.
const CLEARLY_ENDED: TimeDelta = TimeDelta::minutes(1);
const PAUSE: Duration = Duration::from_millis(500);
/// The operator's container in the Deployment.
const CONTAINER: &str = "operator";

/// What is known of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    /// The policy in force.
    pub(crate) policy: Policy,
    /// The source of the policy, for people.
    pub(crate) policy_of: String,
    /// The one namespace that it watches; none if it watches all.
    pub(crate) watch_namespace: Option<String>,
    /// Its settings, and the faults of its `ConfigMap`.
    pub(crate) config: Config,
    /// The namespace of its runs.
    pub(crate) execution_namespace: String,
    /// Whether it leads.
    pub(crate) leader: Leader,
    /// The command that shows its log.
    pub(crate) log: String,
    /// Whether the admission policies protect, for people.
    pub(crate) policies: Policies,
}

/// The settings of an operator, and the faults of its `ConfigMap`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    /// Each key with its value.
    pub(crate) settings: Vec<Setting>,
    /// The keys of the `ConfigMap` that no operator of this version knows.
    pub(crate) unknown: Vec<String>,
    /// Why the operator refuses the `ConfigMap`, if it does. The settings are then those without the `ConfigMap`,
    /// because only the operator knows which version was in force before.
    pub(crate) refused: Option<Refused>,
    /// Whether the `ConfigMap` was not read, because the caller lacks the permission.
    pub(crate) is_unread: bool,
}

/// Whether an operator leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    /// One leads, by this name.
    Is(String),
    /// None leads, for this reason.
    Nobody(String),
    /// Unknown, for this reason.
    Unknown(String),
}

/// The result of reading an object.
enum Read<T> {
    Found(Box<T>),
    Absent,
    Denied,
}

impl Installation {
    /// Reads all that can be read.
    pub(crate) async fn read(connection: &Connection, args: &ViewArgs) -> Result<Self> {
        let client = &connection.client;
        let namespace = &args.operator.namespace;
        let deployment = get::<Deployment>(client, namespace, &args.operator.name).await?;
        let (flags, flags_of) = flags(&deployment, args);
        let run = flags.args().map_err(|error| anyhow!("the defaults of the operator cannot be used: {error}"))?;
        let place = Place { namespace: namespace.clone(), name: run.config_map.clone() };
        let mut is_unread = false;
        let (document, document_of) = if let Some(file) = &args.policy {
            let text = crate::file::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            let document = Document::of_yaml(&text, &place);
            (Some(document.with_context(|| format!("cannot use --policy {}", file.display()))?), file_name(file))
        } else {
            let read = get::<ConfigMap>(client, &place.namespace, &place.name).await?;
            is_unread = matches!(read, Read::Denied);
            config_map(read, &place)
        };
        let InForceHere { policy, execution_namespace, policy_of, config } =
            in_force(&flags, &place, document, &args.overrides, [document_of, flags_of])?;
        let leader = if run.lease.leader_elect {
            leader(connection, namespace, &run.lease.lease_name).await?
        } else {
            without_election(&deployment, args)
        };
        Ok(Self {
            policy,
            policy_of,
            config: Config { is_unread, ..config },
            watch_namespace: args.operator.watch_namespace.clone().or(run.watch_namespace),
            execution_namespace: args.operator.execution_namespace.clone().unwrap_or(execution_namespace),
            leader,
            log: format!("kubectl logs --namespace {namespace} deployment/{} --all-pods --tail 50", args.operator.name),
            policies: crate::policies::seen(client).await?,
        })
    }

    /// Reads an execution as this operator does.
    pub(crate) fn record(&self, object: &DynamicObject) -> Result<ExecutionRecord> {
        observe_execution(object, &self.execution_namespace).context("the API server sent an object without a uid")
    }

    /// Returns why no operator decides on the executions of a namespace, if that is so.
    pub(crate) fn nobody_decides_in(&self, namespace: &str) -> Option<String> {
        match (&self.watch_namespace, &self.leader) {
            (Some(watched), _) if watched != namespace => Some(format!(
                "the operator watches the namespace {watched} alone, so it does not see the namespace {namespace}"
            )),
            (_, Leader::Nobody(why)) => Some(why.clone()),
            _ => None,
        }
    }
}

/// Reads one object. Only an API server that does not answer is an error.
async fn get<K>(client: &Client, namespace: &str, name: &str) -> Result<Read<K>>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope> + Clone + std::fmt::Debug,
    K: DeserializeOwned,
{
    match Api::<K>::namespaced(client.clone(), namespace).get_opt(name).await {
        Ok(Some(object)) => Ok(Read::Found(Box::new(object))),
        Ok(None) => Ok(Read::Absent),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(Read::Denied),
        Err(error) => {
            Err(error).with_context(|| format!("cannot read the {} {namespace}/{name}", K::kind(&()).to_lowercase()))
        }
    }
}

/// Returns the operator's flags, and their source.
fn flags(deployment: &Read<Deployment>, args: &ViewArgs) -> (Flags, String) {
    let own = format!("--namespace={}", args.operator.namespace);
    let shown = deployment_of(args);
    let without = Flags::of_run([own.clone()]);
    let container = match deployment {
        Read::Found(deployment) => operator_in(deployment),
        Read::Absent => return (without, format!("default flags, as there is no {shown}")),
        Read::Denied => return (without, format!("default flags, as you may not get the {shown} ({})", ask(args))),
    };
    let words = container.map(|container| words(container, &args.operator.namespace)).unwrap_or_default();
    let flags = Flags::of_run(std::iter::once(own).chain(words));
    match flags.args() {
        Ok(_) => (flags, format!("the flags of the {shown}")),
        Err(why) => (without, format!("default flags, as those of the {shown} cannot be read by this version: {why}")),
    }
}

fn operator_in(deployment: &Deployment) -> Option<&Container> {
    let containers = &deployment.spec.as_ref()?.template.spec.as_ref()?.containers;
    containers.iter().find(|container| container.name == CONTAINER).or(containers.first())
}

/// Returns the flags of a container. Those from environment variables come first, because a flag wins.
fn words(container: &Container, namespace: &str) -> Vec<String> {
    let command = wfe_settings::cli::Cli::command();
    let run = command.find_subcommand("run");
    let variables = container.env.iter().flatten();
    let from_variables = variables.filter_map(|variable| {
        let flag = run?.get_arguments().find(|flag| flag.get_env().is_some_and(|env| *env == *variable.name))?;
        Some(format!("--{}={}", flag.get_long()?, value_of(variable, namespace)?))
    });
    let flags = container.args.iter().flatten().filter(|word| *word != "run").cloned();
    from_variables.chain(flags).collect()
}

fn value_of(variable: &EnvVar, namespace: &str) -> Option<String> {
    let from = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
    match from {
        Some(field) => (field.field_path == "metadata.namespace").then(|| namespace.to_owned()),
        None => variable.value.clone(),
    }
}

/// Returns the content of the `ConfigMap`, and describes its source.
fn config_map(read: Read<ConfigMap>, place: &Place) -> (Option<Document>, String) {
    match read {
        Read::Found(object) => {
            let document = Document::of(*object);
            let shown = format!("{place}, version {}", document.version);
            (Some(document), shown)
        }
        Read::Absent => (None, format!("no {place}")),
        Read::Denied => (None, format!("no keys, as you may not get the {place} ({})", ask_in(&place.namespace))),
    }
}

/// All values together, with their sources.
#[derive(Debug)]
struct InForceHere {
    policy: Policy,
    execution_namespace: String,
    policy_of: String,
    config: Config,
}

/// Combines all values, and describes their sources.
fn in_force(
    flags: &Flags,
    place: &Place,
    document: Option<Document>,
    overrides: &Overrides,
    [document_of, flags_of]: [String; 2],
) -> Result<InForceHere> {
    let own = |document: Document| {
        let given = overrides.0.iter().map(|(key, value)| (key.clone(), Ok(value.clone())));
        let values = document.values.into_iter().chain(given).collect();
        Document { values, ..document }
    };
    let is_file = document.is_some();
    let keys_of_document = document.iter().flat_map(|document| document.values.keys());
    let unknown = keys_of_document.filter(|key| !keys().any(|known| known == *key)).cloned().collect();
    let (in_force, document_of, refused) = match flags.under(place, Some(&own(document.unwrap_or_default()))) {
        Ok(in_force) => (in_force, document_of, None),
        // The operator refuses the `ConfigMap` too. It uses the version before, which this tool cannot know.
        Err(refused) if is_file && overrides.0.is_empty() => {
            let by_flags =
                flags.under(place, None).map_err(|refused| anyhow!("the flags cannot be used: {refused}"))?;
            let of = format!("no keys, as the {place} is refused ({refused}) and what was before is not known");
            (by_flags, of, Some(refused))
        }
        Err(refused) => return Err(anyhow!("the values cannot be used: {refused}")),
    };
    let mut policy = in_force.policy;
    if overrides.0.iter().any(|(key, value)| key == "paused" && value == "true") {
        policy.paused_by = Some("--paused".into());
    }
    let given: Vec<String> = overrides.0.iter().map(|(key, _)| format!("--{key}")).collect();
    let given = if given.is_empty() { String::new() } else { format!("{} of yours, over ", given.join(", ")) };
    Ok(InForceHere {
        policy,
        execution_namespace: in_force.defaults.execution_namespace,
        policy_of: format!("{given}{document_of}, over {flags_of}"),
        config: Config { settings: in_force.settings, unknown, refused, is_unread: false },
    })
}

/// Finds the leader.
async fn leader(connection: &Connection, namespace: &str, name: &str) -> Result<Leader> {
    let deadline = Instant::now() + WATCHED_FOR;
    let mut first = None;
    loop {
        let lease = match get::<Lease>(&connection.client, namespace, name).await? {
            Read::Found(lease) => lease.spec.unwrap_or_default(),
            Read::Absent => {
                return Ok(Leader::Nobody(format!(
                    "no operator leads: there is no Lease {namespace}/{name}; if yours is elsewhere, give \
                     --operator-namespace and --operator"
                )));
            }
            Read::Denied => {
                return Ok(Leader::Unknown(format!(
                    "that one leads is assumed, as you may not get the Lease {namespace}/{name} ({})",
                    ask_in(namespace)
                )));
            }
        };
        let now = connection.now();
        match held(&lease, now) {
            Held::By(holder) => return Ok(Leader::Is(holder)),
            Held::ByNobody => {
                return Ok(Leader::Nobody(format!("no operator leads: nobody holds the Lease {namespace}/{name}")));
            }
            Held::Ended(holder, renewed) => {
                let is_new = first.is_none();
                if *first.get_or_insert(renewed) != renewed {
                    return Ok(Leader::Is(holder)); // renewed meanwhile, so only the clocks differ
                }
                if now - renewed > CLEARLY_ENDED || Instant::now() + PAUSE >= deadline {
                    return Ok(Leader::Nobody(format!(
                        "no operator leads: {holder} has not renewed the Lease {namespace}/{name} since {}",
                        beside(renewed, now)
                    )));
                }
                if is_new {
                    note(&format!(
                        "the Lease {namespace}/{name} was last renewed at {}; watching it",
                        beside(renewed, now)
                    ));
                }
            }
        }
        sleep(PAUSE).await;
    }
}

/// How a Lease is held, by the API server's clock.
#[derive(Debug, PartialEq, Eq)]
enum Held {
    By(String),
    ByNobody,
    /// The last holder, and its last renewal.
    Ended(String, Time),
}

fn held(lease: &LeaseSpec, now: Time) -> Held {
    let Some(holder) = lease.holder_identity.clone().filter(|holder| !holder.is_empty()) else { return Held::ByNobody };
    let lasts = lease.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    let renewed = lease.renew_time.as_ref().and_then(|time| Time::from_timestamp(time.0.as_second(), 0));
    match renewed {
        Some(renewed) if (now - renewed).to_std().is_ok_and(|age| age > lasts.unwrap_or(LEASE_LASTS)) => {
            Held::Ended(holder, renewed)
        }
        _ => Held::By(holder),
    }
}

/// Finds out from the Deployment whether an operator runs, if there is no leader election.
fn without_election(deployment: &Read<Deployment>, args: &ViewArgs) -> Leader {
    let shown = deployment_of(args);
    let Read::Found(deployment) = deployment else {
        return Leader::Unknown(format!("that one runs is assumed, as the {shown} cannot be read"));
    };
    let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default();
    if ready > 0 {
        Leader::Is(shown)
    } else {
        Leader::Nobody(format!("no operator runs: no replica of the {shown} is ready"))
    }
}

fn deployment_of(args: &ViewArgs) -> String {
    format!("Deployment {}/{}", args.operator.namespace, args.operator.name)
}

fn ask(args: &ViewArgs) -> String {
    ask_in(&args.operator.namespace)
}

fn ask_in(namespace: &str) -> String {
    format!("the Role wfe-explain of {namespace} gives the right")
}

fn file_name(file: &std::path::Path) -> String {
    format!("the file {}", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::OperatorArgs;
    use serde_json::{Value, json};

    fn deployment(container: &Value) -> Read<Deployment> {
        let spec = json!({"selector": {}, "template": {"spec": {"containers": [{"name": "sidecar"}, container]}}});
        Read::Found(serde_json::from_value(json!({"metadata": {}, "spec": spec})).map(Box::new).unwrap())
    }

    fn args() -> ViewArgs {
        ViewArgs {
            operator: OperatorArgs {
                namespace: "ops".to_owned(),
                name: "wfe-operator".to_owned(),
                watch_namespace: None,
                execution_namespace: None,
            },
            policy: None,
            overrides: Overrides::default(),
        }
    }

    fn place() -> Place {
        Place { namespace: "ops".to_owned(), name: "c".to_owned() }
    }

    fn document(keys: &[(&str, &str)]) -> Document {
        let values = keys.iter().map(|(key, value)| ((*key).to_owned(), Ok((*value).to_owned()))).collect();
        Document { version: "7".to_owned(), values, ..Document::default() }
    }

    #[test]
    fn the_flags_are_those_of_the_deployment_and_of_its_environment() {
        let container = json!({
            "name": "operator",
            "args": ["run", "--cooldown-period=7m", "--lease-name=mine"],
            "env": [
                {"name": "WFE_COOLDOWN_PERIOD", "value": "8m"},
                {"name": "WFE_WATCH_NAMESPACE", "value": "payment"},
                {"name": "WFE_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                {"name": "WFE_UNHEARD_OF", "value": "x"},
                {"name": "OTHER", "value": "x"},
            ],
        });
        let (flags, whose) = flags(&deployment(&container), &args());
        let run = flags.args().unwrap();
        assert_eq!(run.policy().unwrap().cooldown_period, Duration::from_mins(7));
        assert_eq!((run.watch_namespace.as_deref(), &*run.lease.lease_name), (Some("payment"), "mine"));
        assert_eq!((&*run.namespace, &*whose), ("ops", "the flags of the Deployment ops/wfe-operator"));
    }

    #[test]
    fn what_cannot_be_read_is_assumed_and_said_to_be() {
        let strange = deployment(&json!({"name": "operator", "args": ["run", "--from-a-later-version=1"]}));
        for (deployment, said) in [
            (Read::Absent, "default flags, as there is no Deployment ops/wfe-operator"),
            (Read::Denied, "default flags, as you may not get the Deployment ops/wfe-operator (the Role"),
            (strange, "default flags, as those of the Deployment ops/wfe-operator cannot be read by this version"),
        ] {
            let (flags, whose) = flags(&deployment, &args());
            assert!(whose.starts_with(said), "{whose}");
            assert_eq!(flags.args().unwrap().policy().unwrap(), Policy::default());
        }
    }

    #[test]
    fn the_config_map_wins_over_flags_and_what_the_caller_gives_over_both() {
        let flags = Flags::of_run(["--cooldown-period=7m", "--start-deadline=2m"].map(str::to_owned));
        let by = |keys: Option<&[(&str, &str)]>, given: &[(&str, &str)]| {
            let given = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let of = ["C".to_owned(), "F".to_owned()];
            let combined = in_force(&flags, &place(), keys.map(document), &Overrides(given), of);
            combined.map(|it| (it.policy, it.policy_of))
        };
        let (policy, of) = by(None, &[]).unwrap();
        assert_eq!((policy.cooldown_period, policy.start_deadline), (Duration::from_mins(7), Duration::from_mins(2)));
        assert_eq!(of, "C, over F");
        let keys = [("cooldown-period", "8m"), ("paused", "true")];
        let (policy, _) = by(Some(&keys), &[]).unwrap();
        assert_eq!(policy.cooldown_period, Duration::from_mins(8));
        assert_eq!(policy.paused_by.as_deref(), Some("ConfigMap ops/c"));
        let (policy, of) = by(Some(&keys), &[("cooldown-period", "9m"), ("paused", "false")]).unwrap();
        assert_eq!((policy.cooldown_period, policy.paused_by), (Duration::from_mins(9), None));
        assert_eq!(of, "--cooldown-period, --paused of yours, over C, over F");
        // A version that the operator refuses is not in force.
        let (policy, of) = by(Some(&[("cooldown-period", "-1m")]), &[]).unwrap();
        assert_eq!(policy.cooldown_period, Duration::from_mins(7));
        assert!(of.contains("no keys, as the ConfigMap ops/c is refused (cooldown-period"), "{of}");
        assert!(by(None, &[("max-cooldown-period", "1s")]).is_err());
    }

    #[test]
    fn the_faults_of_a_config_map_are_kept() {
        let flags = Flags::of_run(["--start-deadline=2m"].map(str::to_owned));
        let config = |keys: &[(&str, &str)]| {
            let combined = in_force(&flags, &place(), Some(document(keys)), &Overrides::default(), Default::default());
            combined.unwrap().config
        };
        let accepted = config(&[("cooldown-period", "8m"), ("cool-down", "9m")]);
        assert_eq!((accepted.unknown, accepted.refused), (vec!["cool-down".to_owned()], None));
        let from = |key: &str| accepted.settings.iter().find(|it| it.key == key).map(Setting::origin).unwrap();
        assert_eq!([from("cooldown-period"), from("start-deadline"), from("paused")], ["ConfigMap", "flag", "default"]);
        let refused = config(&[("cooldown-period", "-1m"), ("cool-down", "9m")]);
        assert_eq!((refused.unknown.len(), refused.refused.unwrap().problems.len()), (1, 1));
    }

    #[test]
    fn a_lease_is_held_until_it_ends() {
        let lease = |holder: Option<&str>| LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(15),
            renew_time: serde_json::from_value(json!("2026-01-02T03:04:05.000000Z")).unwrap(),
            ..LeaseSpec::default()
        };
        let at = |text: &str| text.parse().unwrap();
        for (holder, now, expected) in [
            (Some("a"), "2026-01-02T03:04:20Z", Held::By("a".to_owned())),
            (Some("a"), "2026-01-02T03:00:00Z", Held::By("a".to_owned())),
            (Some("a"), "2026-01-02T03:04:21Z", Held::Ended("a".to_owned(), at("2026-01-02T03:04:05Z"))),
            (Some(""), "2026-01-02T03:04:06Z", Held::ByNobody),
            (None, "2026-01-02T03:04:06Z", Held::ByNobody),
        ] {
            assert_eq!(held(&lease(holder), at(now)), expected, "{holder:?} {now}");
        }
    }

    #[test]
    fn nobody_decides_where_nobody_looks_or_leads() {
        let installation = |watched: Option<&str>, leader| Installation {
            policy: Policy::default(),
            policy_of: String::new(),
            config: Config::default(),
            watch_namespace: watched.map(str::to_owned),
            execution_namespace: String::new(),
            leader,
            log: String::new(),
            policies: crate::policies::Policies::default(),
        };
        let leads = || Leader::Is("a".to_owned());
        assert_eq!(installation(None, leads()).nobody_decides_in("x"), None);
        assert_eq!(installation(Some("x"), leads()).nobody_decides_in("x"), None);
        assert_eq!(installation(None, Leader::Unknown("why".to_owned())).nobody_decides_in("x"), None);
        let nobody = installation(Some("x"), Leader::Nobody("nobody leads".to_owned()));
        assert_eq!(nobody.nobody_decides_in("x").as_deref(), Some("nobody leads"));
        let said = nobody.nobody_decides_in("y").unwrap();
        assert_eq!(said, "the operator watches the namespace x alone, so it does not see the namespace y");
    }
}
