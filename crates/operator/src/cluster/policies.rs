//! Checks periodically that the cluster has the shipped admission policies, unchanged, and reports each fault.
//!
//! Without the policies, every user with write access to the objects can clear, cancel and use any target. The operator
//! has no permission to write policies, so it cannot restore one. A fault is shown in a metric, in `/readyz` and in the
//! log. The engine learns whether the policies for clearances and cancellations are in force.

mod guard;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use wfe_core::guard::Guard;
use wfe_settings::policies::{Half, Shipped};
use wfe_view::call::CallError;
use wfe_view::printable::line;

use crate::cluster::client::Cluster;
use crate::cluster::crds::Crds;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::verb::Verb;

/// The time-out of a read. A check reads two objects for each policy, one after the other, so that a slow API server
/// has only one read at a time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Checks the policies periodically.
pub struct Lookout {
    cluster: Cluster,
    crds: Crds,
    shipped: Vec<Shipped>,
    every: Duration,
    health: Health,
    metrics: Metrics,
    /// The known fault of each policy, by name.
    wrong: BTreeMap<String, String>,
    /// Where the check sends whether the policies for clearances and cancellations are in force; the engine receives
    /// it.
    told: watch::Sender<Guard>,
}

impl Lookout {
    /// Checks these policies once per interval, by reading some two dozen small objects by name. A watch would require
    /// permission to read all policies of the cluster. The same loop checks whether the policies for clearances and
    /// cancellations are in force.
    #[must_use]
    pub fn new(
        cluster: Cluster,
        crds: Crds,
        shipped: Vec<Shipped>,
        every: Duration,
        health: Health,
        metrics: Metrics,
    ) -> (Self, watch::Receiver<Guard>) {
        let (told, guard) = watch::channel(Guard::Unknown);
        (Self { cluster, crds, shipped, every, health, metrics, wrong: BTreeMap::new(), told }, guard)
    }

    /// Checks until the process ends.
    ///
    /// # Errors
    /// Never.
    pub async fn run(mut self) -> Result<(), Infallible> {
        for Shipped { name, .. } in &self.shipped {
            self.metrics.policy_missing(name, false);
        }
        let (told, cluster) = (self.told.clone(), self.cluster.clone());
        // The check of the guards runs beside the full check, because the full check can take longer than a result of
        // the guards remains valid.
        let guards = guard::follow(self.every, told, move || guard::look(cluster.clone()));
        tokio::join!(guards, self.look_on());
        Ok(())
    }

    /// Checks all policies periodically.
    async fn look_on(&mut self) {
        let mut turns = interval(self.every);
        // If a check takes longer than the interval, missed checks are not repeated.
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            turns.tick().await;
            self.crds.check().await;
            self.look().await;
        }
    }

    /// Checks all policies once.
    async fn look(&mut self) {
        for place in 0..self.shipped.len() {
            let (name, found) = (self.shipped[place].name.clone(), self.judge(&self.shipped[place]).await);
            // After a failed read, the last known fault stays.
            let Ok(wrong) = found else { continue };
            self.metrics.policy_missing(&name, wrong.is_some());
            match wrong {
                Some(why) if self.wrong.get(&name) != Some(&why) => {
                    tracing::warn!(policy = name, "an admission policy does not protect: {why}; apply it again");
                    self.wrong.insert(name, why);
                }
                None if self.wrong.remove(&name).is_some() => {
                    tracing::info!(policy = name, "the admission policy is as it ships again");
                }
                _ => {}
            }
        }
        self.health.unprotected(told(&self.wrong, self.shipped.len()));
    }

    /// Returns the fault of a policy or its binding, if there is one.
    async fn judge(&self, shipped: &Shipped) -> Result<Option<String>, Unanswered> {
        let mut wrong = Vec::new();
        for half in Half::ALL {
            let api = self.cluster.admission(half);
            let request = api.get(&shipped.name);
            let found = self.cluster.ask(Verb::Get, half.plural(), ANSWERS_WITHIN, request).await;
            wrong.extend(wrong_with(shipped, half, found)?);
        }
        Ok((!wrong.is_empty()).then(|| wrong.join(", and ")))
    }
}

/// The API server did not answer, so the state of a policy is unknown.
#[derive(Debug, PartialEq, Eq)]
struct Unanswered;

/// Returns the fault of one object of a policy, if there is one.
fn wrong_with(
    shipped: &Shipped,
    half: Half,
    found: Result<DynamicObject, CallError>,
) -> Result<Option<String>, Unanswered> {
    let kind = half.kind();
    match found {
        Ok(object) => {
            let spec = object.data.get("spec").unwrap_or(&Value::Null);
            Ok(shipped.difference(half, spec).map(|place| format!("the {kind} is not as it ships, at {place}")))
        }
        Err(CallError::Refused(status)) if status.code == 404 => Ok(Some(format!("there is no {kind}"))),
        // The object may be gone, and the operator cannot see whether it is.
        Err(error) if error.code() == 403 => {
            Ok(Some(format!("the {kind} cannot be read: {}", line(&error.to_string()))))
        }
        Err(error) => {
            tracing::debug!(policy = shipped.name, %error, "an admission policy cannot be read now");
            Err(Unanswered)
        }
    }
}

/// The limit of policies that `/readyz` lists by name.
const NAMED: usize = 3;

/// Returns the line of `/readyz`.
fn told(wrong: &BTreeMap<String, String>, of: usize) -> Option<String> {
    let named: Vec<String> = wrong.iter().take(NAMED).map(|(name, why)| format!("{name}: {why}")).collect();
    let more = match wrong.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!named.is_empty())
        .then(|| format!("{} of {of} admission policies do not protect: {}{more}", wrong.len(), named.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wfe_settings::policies::shipped;

    fn refused(code: u16, message: &str) -> Result<DynamicObject, CallError> {
        let status = kube::core::Status { code, message: message.to_owned(), ..Default::default() };
        Err(CallError::Refused(Box::new(status)))
    }

    #[test]
    fn what_is_missing_changed_or_unreadable_does_not_protect() {
        let shipped = &shipped().unwrap()[0];
        let said = |found| wrong_with(shipped, Half::Binding, found);
        let gone = said(refused(404, "not found")).unwrap().unwrap();
        assert_eq!(gone, "there is no ValidatingAdmissionPolicyBinding");
        let unread = said(refused(403, "cannot get resource")).unwrap().unwrap();
        assert!(unread.contains("cannot be read: cannot get resource"), "{unread}");
        let spec = json!({"policyName": shipped.name, "validationActions": ["Audit"]});
        let object = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        let changed = said(Ok(object)).unwrap().unwrap();
        assert_eq!(changed, "the ValidatingAdmissionPolicyBinding is not as it ships, at spec.validationActions[0]");
    }

    #[test]
    fn an_api_server_that_does_not_answer_says_nothing_of_a_policy() {
        let shipped = &shipped().unwrap()[0];
        for found in [refused(503, "busy"), refused(429, "slow down"), Err(CallError::TimedOut(ANSWERS_WITHIN))] {
            assert_eq!(wrong_with(shipped, Half::Policy, found), Err(Unanswered));
        }
    }

    #[test]
    fn a_few_are_named_and_the_others_counted() {
        let wrong = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "gone".to_owned())).collect();
        assert_eq!(told(&wrong(&[]), 9), None);
        assert_eq!(told(&wrong(&["a"]), 9).unwrap(), "1 of 9 admission policies do not protect: a: gone");
        let many = "5 of 9 admission policies do not protect: a: gone; b: gone; c: gone; and 2 more";
        assert_eq!(told(&wrong(&["e", "d", "c", "b", "a"]), 9).unwrap(), many);
    }
}
