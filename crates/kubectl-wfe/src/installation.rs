//! The operator whose decision is predicted: its settings, the namespaces that it watches, and whether it leads.
//!
//! The leader publishes its settings in its Lease. Without a leader, the settings are those of the `ConfigMap` over the
//! last leader's flags, read by the operator's own code. What cannot be read is assumed, and the answer says so: a
//! missing permission makes the answer weaker, not impossible.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chrono::TimeDelta;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};
use wfe_api::labels::ANNOTATION_SETTINGS;
use wfe_core::Time;
use wfe_core::policy::Policy;
use wfe_settings::config::{Document, Flags, InForce, Place, Refused, Setting};
use wfe_settings::published::Published;
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
    /// Why the operator refuses the `ConfigMap`, if it does. The settings are then those that the leader has published.
    /// Without a leader, they are those without the `ConfigMap`.
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
        let (leader, published) = leader(connection, args).await?;
        let (flags, flags_of) = match &published {
            Ok(published) => (published.flags(namespace), flags_of(published)),
            Err(why) => (Flags::of_run([format!("--namespace={namespace}")]), format!("default flags, as {why}")),
        };
        let run = flags.args().map_err(|error| anyhow!("the flags of the operator cannot be used: {error}"))?;
        let config_map = published.as_ref().map_or(&run.config_map, |published| &published.config_map);
        let place = Place { namespace: namespace.clone(), name: config_map.clone() };
        let (mut is_unread, mut by_leader) = (false, None);
        let (document, document_of) = if let Some(file) = &args.policy {
            let text = crate::file::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            let document = Document::of_yaml(&text, &place);
            (Some(document.with_context(|| format!("cannot use --policy {}", file.display()))?), file_name(file))
        } else {
            let read = get::<ConfigMap>(client, &place.namespace, &place.name).await?;
            is_unread = matches!(read, Read::Denied);
            by_leader = published.as_ref().ok().filter(|_| matches!(leader, Leader::Is(_)));
            config_map_of(read, &place)
        };
        let sources = Sources { flags, flags_of, place, document, document_of, by_leader };
        let (in_force, policy_of, config) = sources.in_force(&args.overrides)?;
        let watched = published.as_ref().ok().and_then(|published| published.watch_namespace.clone());
        Ok(Self {
            policy: in_force.policy,
            policy_of,
            config: Config { is_unread, ..config },
            watch_namespace: args.operator.watch_namespace.clone().or(watched),
            execution_namespace: args
                .operator
                .execution_namespace
                .clone()
                .unwrap_or(in_force.defaults.execution_namespace),
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

/// Describes the flags that a leader has published.
fn flags_of(published: &Published) -> String {
    let unknown: Vec<&str> = published.unknown().collect();
    if unknown.is_empty() {
        return "the leader's flags".to_owned();
    }
    format!("the leader's flags without {}, which this version does not know", unknown.join(", "))
}

/// Returns the content of the `ConfigMap`, and describes its source.
fn config_map_of(read: Read<ConfigMap>, place: &Place) -> (Option<Document>, String) {
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

/// Where the settings come from.
struct Sources<'a> {
    flags: Flags,
    flags_of: String,
    place: Place,
    /// The `ConfigMap` or the file.
    document: Option<Document>,
    document_of: String,
    /// What the leader has in force, whatever the `ConfigMap` says.
    by_leader: Option<&'a Published>,
}

impl Sources<'_> {
    /// Combines all values, and describes their sources.
    fn in_force(self, overrides: &Overrides) -> Result<(InForce, String, Config)> {
        let Self { flags, flags_of, place, document, document_of, by_leader } = self;
        let refused = document.as_ref().and_then(|document| flags.under(&place, Some(document)).err());
        let newest = document.as_ref().map(|document| document.version.clone());
        let keys_of_document = document.iter().flat_map(|document| document.values.keys());
        let unknown = keys_of_document.filter(|key| !keys().any(|known| known == *key)).cloned().collect();
        let (document, document_of) = match (by_leader, &refused) {
            (Some(leader), _) => (leader.document(), version_of(leader, &place, newest.as_deref(), refused.as_ref())),
            (None, Some(refused)) if overrides.0.is_empty() => {
                let why = format!("no keys, as the {place} is refused ({refused}) and no leader says what is in force");
                (None, why)
            }
            (None, _) => (document, document_of),
        };
        let mut document = document.unwrap_or_default();
        document.values.extend(overrides.0.iter().map(|(key, value)| (key.clone(), Ok(value.clone()))));
        let mut in_force =
            flags.under(&place, Some(&document)).map_err(|why| anyhow!("cannot use the values: {why}"))?;
        if overrides.0.iter().any(|(key, value)| key == "paused" && value == "true") {
            in_force.policy.paused_by = Some("--paused".into());
        }
        let given: Vec<String> = overrides.0.iter().map(|(key, _)| format!("--{key}")).collect();
        let given = if given.is_empty() { String::new() } else { format!("{} of yours, over ", given.join(", ")) };
        let config = Config { settings: in_force.settings.clone(), unknown, refused, is_unread: false };
        Ok((in_force, format!("{given}{document_of}, over {flags_of}"), config))
    }
}

/// Describes the version that the leader has in force, and why it is not the newest one.
fn version_of(leader: &Published, place: &Place, newest: Option<&str>, refused: Option<&Refused>) -> String {
    let shown = match leader.document() {
        Some(document) => format!("{place}, version {}", document.version),
        None => format!("no {place}"),
    };
    let newer = newest.filter(|newest| *newest != leader.version);
    match (newer, &leader.refused, refused) {
        (None, None, _) => shown,
        (_, _, Some(why)) => format!("{shown}, as version {} is refused ({why})", why.version),
        (_, Some(refused), None) => format!("{shown}, as version {refused} is refused"),
        (Some(newer), None, None) => format!("{shown}, and not yet version {newer}"),
    }
}

/// Finds the leader, and the settings that the last leader has published, or why they are not known.
async fn leader(connection: &Connection, args: &ViewArgs) -> Result<(Leader, Result<Published, String>)> {
    let (namespace, name) = (&args.operator.namespace, &args.operator.name);
    let deadline = Instant::now() + WATCHED_FOR;
    let mut first = None;
    loop {
        let (lease, published) = match get::<Lease>(&connection.client, namespace, name).await? {
            Read::Found(lease) => (lease.spec.unwrap_or_default(), published(&lease.metadata)),
            Read::Absent => {
                let why = format!("there is no Lease {namespace}/{name}");
                return Ok((without_election(connection, args, &why).await?, Err(why)));
            }
            Read::Denied => {
                let why = format!("you may not get the Lease {namespace}/{name} ({})", ask_in(namespace));
                return Ok((Leader::Unknown(format!("that one leads is assumed, as {why}")), Err(why)));
            }
        };
        let nobody = |why: String| Leader::Nobody(format!("no operator leads: {why}"));
        let now = connection.now();
        match held(&lease, now) {
            Held::By(holder) => return Ok((Leader::Is(holder), published)),
            Held::ByNobody => return Ok((nobody(format!("nobody holds the Lease {namespace}/{name}")), published)),
            Held::Ended(holder, renewed) => {
                let is_new = first.is_none();
                if *first.get_or_insert(renewed) != renewed {
                    return Ok((Leader::Is(holder), published)); // renewed meanwhile, so only the clocks differ
                }
                if now - renewed > CLEARLY_ENDED || Instant::now() + PAUSE >= deadline {
                    let since = beside(renewed, now);
                    let why = format!("{holder} has not renewed the Lease {namespace}/{name} since {since}");
                    return Ok((nobody(why), published));
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

/// Returns the settings that the last leader has published in the Lease, or why they are not known.
fn published(lease: &ObjectMeta) -> Result<Published, String> {
    let text = lease.annotations.as_ref().and_then(|all| all.get(ANNOTATION_SETTINGS));
    let text = text.ok_or("no leader has published its own")?;
    serde_json::from_str(text).map_err(|error| format!("those in the Lease cannot be read: {error}"))
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

/// Finds out from the Deployment whether an operator runs: without leader election, there is no Lease.
async fn without_election(connection: &Connection, args: &ViewArgs, why: &str) -> Result<Leader> {
    let (namespace, name) = (&args.operator.namespace, &args.operator.name);
    Ok(match get::<Deployment>(&connection.client, namespace, name).await? {
        Read::Found(it) if it.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default() > 0 => {
            Leader::Is(format!("Deployment {namespace}/{name}"))
        }
        Read::Denied => Leader::Nobody(format!(
            "no operator leads: {why}; one may run without leader election, which is not known, as you may not get the \
             Deployment {namespace}/{name} ({})",
            ask_in(namespace)
        )),
        Read::Found(_) | Read::Absent => Leader::Nobody(format!(
            "no operator leads: {why}; if yours is elsewhere, give --operator-namespace and --operator"
        )),
    })
}

fn ask_in(namespace: &str) -> String {
    format!("the Role wfe-explain of {namespace} gives the right")
}

fn file_name(file: &std::path::Path) -> String {
    format!("the file {}", file.display())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sources<'a>(document: Option<&[(&str, &str)]>, by_leader: Option<&'a Published>) -> Sources<'a> {
        let document = document.map(|keys| {
            let values = keys.iter().map(|(key, value)| ((*key).to_owned(), Ok((*value).to_owned()))).collect();
            Document { version: "8".to_owned(), values, ..Document::default() }
        });
        Sources {
            flags: Flags::of_run(["--cooldown-period=7m", "--start-deadline=2m"].map(str::to_owned)),
            flags_of: "F".to_owned(),
            place: Place { namespace: "ops".to_owned(), name: "c".to_owned() },
            document,
            document_of: "C".to_owned(),
            by_leader,
        }
    }

    #[test]
    fn the_config_map_wins_over_flags_and_what_the_caller_gives_over_both() {
        let by = |keys: Option<&[(&str, &str)]>, given: &[(&str, &str)]| {
            let given = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            sources(keys, None).in_force(&Overrides(given)).map(|(in_force, of, _)| (in_force.policy, of))
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
    fn what_the_leader_has_in_force_wins_over_the_newest_config_map() {
        let leader = |version: &str, refused: Option<&str>| Published {
            config_map: "c".to_owned(),
            version: version.to_owned(),
            refused: refused.map(str::to_owned),
            values: [("cooldown-period".to_owned(), "9m".to_owned())].into(),
            ..Published::default()
        };
        let (good, bad) = ([("cooldown-period", "9m")], [("cooldown-period", "-1m")]);
        let refused = "ConfigMap ops/c, version 7, as version 8 is refused (cooldown-period";
        for (published, read, minutes, said) in [
            (leader("8", None), Some(&good), 9, "ConfigMap ops/c, version 8, over F"),
            (leader("7", None), Some(&good), 9, "ConfigMap ops/c, version 7, and not yet version 8, over F"),
            (leader("7", Some("8")), Some(&bad), 9, refused),
            (leader("7", None), Some(&bad), 9, refused),
            // The caller may not read the ConfigMap.
            (leader("7", Some("8")), None, 9, "ConfigMap ops/c, version 7, as version 8 is refused, over F"),
            (leader("none", None), None, 7, "no ConfigMap ops/c, over F"),
        ] {
            let read = read.map(|keys| &keys[..]);
            let (in_force, of, config) = sources(read, Some(&published)).in_force(&Overrides::default()).unwrap();
            assert_eq!(in_force.policy.cooldown_period, Duration::from_mins(minutes), "{said}");
            assert!(of.starts_with(said), "{of}");
            assert_eq!(config.refused.is_some(), read == Some(&bad[..]), "{said}");
        }
    }

    #[test]
    fn what_is_not_published_is_assumed_and_said_to_be() {
        let lease = |text: &str| ObjectMeta {
            annotations: Some([(ANNOTATION_SETTINGS.to_owned(), text.to_owned())].into()),
            ..ObjectMeta::default()
        };
        assert_eq!(published(&ObjectMeta::default()).unwrap_err(), "no leader has published its own");
        let odd = published(&lease("{")).unwrap_err();
        assert!(odd.starts_with("those in the Lease cannot be read: "), "{odd}");
        let later = published(&lease(r#"{"flags": {"from-a-later-version": "1"}}"#)).unwrap();
        assert_eq!(
            flags_of(&later),
            "the leader's flags without from-a-later-version, which this version does not know"
        );
    }

    #[test]
    fn the_faults_of_a_config_map_are_kept() {
        let config = |keys: &[(&str, &str)]| sources(Some(keys), None).in_force(&Overrides::default()).unwrap().2;
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
