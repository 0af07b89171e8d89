//! Checks whether the CRDs in the cluster have the fields that this operator reads and writes.
//!
//! The API server silently drops a field that its CRD lacks. If a decisive field is missing, an execution could look
//! like a different one, so the operator does not decide and does not lead. If another field is missing, the operator
//! reports it and continues.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use wfe_api::crd::{EXECUTIONS_CRD, Lacking, SCHEDULES_CRD, in_short, lacking, lacking_in_schema};
use wfe_view::call::CallError;
use wfe_view::index::Kind;

use crate::cluster::client::Cluster;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::verb::Verb;

/// The time-out of reading a CRD.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How long the operator waits before it relies on a repaired CRD: the API server uses a new CRD about a second after
/// storing it.
const SETTLES_IN: Duration = Duration::from_secs(2);
/// The limit of remembered dropped fields, each of which is logged once: somewhat more than a status has fields.
const REMEMBERED: usize = 100;

/// Whether the operator can decide with the CRD of executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fitness {
    /// The CRD was not read yet.
    #[default]
    Unknown,
    /// The CRD has every decisive field, or the operator has no permission to read it.
    Fit,
    /// The CRD lacks decisive fields; the text names them.
    Unfit(Arc<str>),
}

/// The known state of the CRDs. Cheap to clone.
#[derive(Clone)]
pub struct Crds {
    cluster: Cluster,
    health: Health,
    metrics: Metrics,
    fitness: watch::Sender<Fitness>,
    found: Arc<Mutex<Found>>,
}

#[derive(Default)]
struct Found {
    /// How often the CRD of executions was found unfit.
    times_unfit: u64,
    /// When the CRD was first seen repaired.
    repaired: Option<Instant>,
    /// The missing fields of each CRD, without the decisive ones.
    missing: BTreeMap<&'static str, Vec<String>>,
    /// The fields that the API server did not store, even if the CRD seems to have them.
    dropped: BTreeSet<String>,
    /// Whether the missing permission to read CRDs was logged.
    told_unreadable: bool,
}

/// Why a watch must not begin now.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnfitCrd(Arc<str>);

impl Crds {
    /// Makes the record of a process that has read no CRD yet.
    #[must_use]
    pub fn new(cluster: Cluster, health: Health, metrics: Metrics) -> Self {
        Self { cluster, health, metrics, fitness: watch::Sender::default(), found: Arc::default() }
    }

    /// Returns the receiver of the fitness of the CRD of executions.
    #[must_use]
    pub fn fitness(&self) -> watch::Receiver<Fitness> {
        self.fitness.subscribe()
    }

    /// Reads both CRDs. If a read fails, the earlier knowledge remains.
    pub async fn check(&self) {
        for crd in [EXECUTIONS_CRD, SCHEDULES_CRD] {
            if let Err(error) = self.read(crd).await {
                tracing::debug!(crd, %error, "the CRD cannot be read now");
            }
        }
    }

    /// Reads the CRD of a watch before the watch begins. Returns how often the CRD has been unfit so far: if that
    /// number has grown, the watch must begin with a list.
    ///
    /// # Errors
    /// Why the watch must not begin.
    pub async fn admit(&self, kind: Kind) -> kube::Result<u64> {
        let crd = match kind {
            Kind::Execution => EXECUTIONS_CRD,
            Kind::Schedule => SCHEDULES_CRD,
            _ => return Ok(0),
        };
        self.read(crd).await.map_err(unanswered)?;
        let fitness = self.fitness.borrow().clone();
        match fitness {
            Fitness::Unfit(why) if kind == Kind::Execution => Err(kube::Error::Service(Box::new(UnfitCrd(why)))),
            _ => Ok(self.found().times_unfit),
        }
    }

    /// Records fields that the API server did not store, and logs each field once.
    pub fn note_dropped(&self, crd: &'static str, fields: &[String]) {
        let mut found = self.found();
        for field in fields {
            if found.dropped.len() < REMEMBERED && found.dropped.insert(field.clone()) {
                tracing::warn!(crd, field, "the API server accepted a status and did not store this field");
            }
        }
        self.show(&found);
    }

    /// Reads one CRD and records which fields it lacks.
    async fn read(&self, crd: &'static str) -> Result<(), CallError> {
        let crds = self.cluster.crds();
        let request = crds.get(crd);
        let found = self.cluster.ask(Verb::Get, "customresourcedefinitions", ANSWERS_WITHIN, request).await;
        let lacks = match found {
            Ok(found) => lacking(crd, &found.data),
            // The watch reports a missing CRD, with advice.
            Err(error) if error.code() == 404 => return Ok(()),
            Err(error) if error.code() == 403 => match self.read_published(crd).await {
                Ok(Some(lacks)) => lacks,
                // The published schemas do not contain a new CRD yet.
                Ok(None) => {
                    self.note_unreadable(crd, &error);
                    return Ok(());
                }
                Err(published) if matches!(published.code(), 403 | 404) => {
                    self.note_unreadable(crd, &error);
                    return Ok(());
                }
                Err(published) => return Err(published),
            },
            Err(error) => return Err(error),
        };
        self.take_in(crd, lacks);
        Ok(())
    }

    /// Determines the missing fields from the schemas that the API server publishes to every user.
    async fn read_published(&self, crd: &'static str) -> Result<Option<Lacking>, CallError> {
        let request = self.cluster.published_schemas();
        let published = self.cluster.ask(Verb::Get, "openapi", ANSWERS_WITHIN, request).await?;
        let kind = if crd == EXECUTIONS_CRD { "WorkflowExecution" } else { "WorkflowSchedule" };
        let schemas = published.pointer("/components/schemas").and_then(Value::as_object).into_iter().flatten();
        let is_ours = |schema: &Value| schema.pointer("/x-kubernetes-group-version-kind/0/kind") == Some(&kind.into());
        let schema = schemas.map(|(_, schema)| schema).find(|schema| is_ours(schema));
        Ok(schema.map(|schema| lacking_in_schema(crd, schema)))
    }

    /// Logs the missing permission once, and continues: an operator that may not read CRDs must still work, as older
    /// versions did.
    fn note_unreadable(&self, crd: &'static str, error: &CallError) {
        if !std::mem::replace(&mut self.found().told_unreadable, true) {
            tracing::warn!(crd, %error, "cannot see whether the CRD has all fields, working on");
        }
        if crd == EXECUTIONS_CRD {
            self.fitness.send_if_modified(|fitness| {
                *fitness == Fitness::Unknown && std::mem::replace(fitness, Fitness::Fit) == Fitness::Unknown
            });
        }
    }

    fn take_in(&self, crd: &'static str, lacks: Lacking) {
        let Lacking { decisive, others } = lacks;
        let mut found = self.found();
        if crd == EXECUTIONS_CRD {
            self.judge(&mut found, &decisive);
        }
        let before = found.missing.insert(crd, others);
        let now = found.missing.get(crd).map(Vec::as_slice).unwrap_or_default();
        if before.as_deref().unwrap_or_default() != now && !now.is_empty() {
            tracing::warn!(crd, "the CRD lacks {}, which is dropped; apply the CRD of this version", in_short(now));
        }
        self.show(&found);
    }

    /// Decides whether the CRD of executions has all decisive fields.
    fn judge(&self, found: &mut Found, decisive: &[String]) {
        let was_unfit = matches!(*self.fitness.borrow(), Fitness::Unfit(_));
        if !decisive.is_empty() {
            let why = format!(
                "the CRD {EXECUTIONS_CRD} lacks {}, so nothing is decided; apply the CRD of this version: wfe-operator \
                 crd | kubectl apply -f -",
                in_short(decisive)
            );
            (found.repaired, found.times_unfit) = (None, found.times_unfit.saturating_add(1));
            if !was_unfit {
                tracing::error!("{why}");
            }
            self.health.unfit(Some(why.clone()));
            self.fitness.send_replace(Fitness::Unfit(why.into()));
            return;
        }
        if was_unfit && found.repaired.get_or_insert_with(Instant::now).elapsed() < SETTLES_IN {
            return;
        }
        if was_unfit {
            tracing::info!("the CRD {EXECUTIONS_CRD} has every decisive field again");
        }
        self.health.unfit(None);
        self.fitness.send_if_modified(|fitness| std::mem::replace(fitness, Fitness::Fit) != Fitness::Fit);
    }

    fn show(&self, found: &Found) {
        for (crd, missing) in &found.missing {
            let dropped = if *crd == EXECUTIONS_CRD { found.dropped.len() } else { 0 };
            self.metrics.crd_fields_missing(crd, missing.len().max(dropped));
        }
        let said = found.missing.iter().filter(|(_, missing)| !missing.is_empty());
        let mut said: Vec<String> =
            said.map(|(crd, missing)| format!("the CRD {crd} lacks {}", in_short(missing))).collect();
        if said.is_empty() && !found.dropped.is_empty() {
            let dropped: Vec<String> = found.dropped.iter().cloned().collect();
            said.push(format!("the API server does not store {}", in_short(&dropped)));
        }
        self.health.outdated((!said.is_empty()).then(|| said.join("; ")));
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts a failed read of a CRD into an error of its watch.
fn unanswered(error: CallError) -> kube::Error {
    match error {
        CallError::Refused(status) => kube::Error::Api(status),
        CallError::Transport(error) => *error,
        CallError::TimedOut(_) | CallError::NotLeading => {
            kube::Error::ReadEvents(io::Error::new(io::ErrorKind::TimedOut, error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::cluster::leadership::Leadership;
    use crate::cluster::staleness::Staleness;

    /// Makes the record. The tests pass in the answers, so no API server is called.
    fn crds() -> (Crds, Health) {
        let (health, metrics) = (Health::new(), Metrics::new().unwrap());
        health.engine_alive(true, None);
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let leadership = Leadership::without_election();
        let cluster = Cluster::connect(config, "runs", leadership, metrics.clone(), Staleness::default()).unwrap();
        (Crds::new(cluster, health.clone(), metrics), health)
    }

    fn lacks(decisive: &[&str], others: &[&str]) -> Lacking {
        let all = |fields: &[&str]| fields.iter().map(|&field| field.to_owned()).collect();
        Lacking { decisive: all(decisive), others: all(others) }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_decisive_field_it_is_unfit_until_the_repaired_crd_has_settled() {
        let (crds, health) = crds();
        let fitness = crds.fitness();
        assert_eq!(*fitness.borrow(), Fitness::Unknown);
        crds.take_in(EXECUTIONS_CRD, lacks(&[], &[]));
        assert_eq!(*fitness.borrow(), Fitness::Fit);
        crds.take_in(EXECUTIONS_CRD, lacks(&["status.phase"], &[]));
        let Fitness::Unfit(why) = fitness.borrow().clone() else { panic!("it is fit") };
        assert!(why.contains("status.phase") && health.ready() == Err(why.to_string()), "{why}");
        crds.take_in(EXECUTIONS_CRD, lacks(&[], &[]));
        assert!(matches!(*fitness.borrow(), Fitness::Unfit(_)), "the API server may go by the other one still");
        advance(SETTLES_IN).await;
        crds.take_in(EXECUTIONS_CRD, lacks(&[], &[]));
        assert_eq!((fitness.borrow().clone(), health.ready()), (Fitness::Fit, Ok(())));
        assert_eq!(crds.found().times_unfit, 1, "the next watch begins with a list");
    }

    #[tokio::test]
    async fn an_older_crd_is_worked_with_and_named() {
        let (crds, health) = crds();
        crds.take_in(EXECUTIONS_CRD, lacks(&[], &["spec.retry", "status.guard"]));
        crds.take_in(SCHEDULES_CRD, lacks(&[], &[]));
        assert_eq!((crds.fitness().borrow().clone(), health.ready()), (Fitness::Fit, Ok(())));
        assert_eq!(health.notes().unwrap(), format!("the CRD {EXECUTIONS_CRD} lacks spec.retry, status.guard"));
        crds.take_in(EXECUTIONS_CRD, lacks(&[], &[]));
        assert_eq!(health.notes(), None);
        crds.note_dropped(EXECUTIONS_CRD, &["status.guard".to_owned()]);
        assert_eq!(health.notes().unwrap(), "the API server does not store status.guard");
    }

    #[test]
    fn a_few_fields_are_named_and_the_others_counted() {
        let fields = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(in_short(&fields[..3]), "a, b, c");
        assert_eq!(in_short(&fields), "a, b, c and 2 more fields");
    }
}
