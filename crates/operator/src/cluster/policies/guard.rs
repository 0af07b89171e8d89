//! Checks whether the policies for clearances and cancellations are in force ([ADR
//! 13](../../../../docs/adr/0013-unguarded-clearances.md)).

use std::pin::pin;
use std::time::Duration;

use kube::api::DynamicObject;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use wfe_core::guard::Guard;
use wfe_settings::policies::{Half, Shipped, guards};
use wfe_view::call::CallError;

use super::{ANSWERS_WITHIN, wrong_with};
use crate::cluster::client::Cluster;
use crate::verb::Verb;

/// Reads the policies of clearances and cancellations, and their bindings.
///
/// # Errors
/// The API server did not answer, or the operator has no permission to ask.
pub(super) async fn look(cluster: Cluster) -> Result<Guard, CallError> {
    for shipped in guards() {
        for half in Half::ALL {
            let api = cluster.admission(half);
            let answer = cluster.ask(Verb::Get, half.plural(), ANSWERS_WITHIN, api.get(&shipped.name)).await;
            match answer {
                Ok(object) => {
                    if !protects(shipped, half, object) {
                        return Ok(Guard::Missing);
                    }
                }
                Err(error) if error.code() == 404 => return Ok(Guard::Missing),
                // A missing permission of the operator proves nothing about the policies.
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Guard::InForce)
}

fn protects(shipped: &Shipped, half: Half, object: DynamicObject) -> bool {
    let is_leaving = object.metadata.deletion_timestamp.is_some();
    !is_leaving && matches!(wrong_with(shipped, half, Ok(object)), Ok(None))
}

/// Checks twice per interval, and publishes the result. The result becomes unknown if no check that began within the
/// interval was answered. Never returns.
pub(super) async fn follow<Look: Future<Output = Result<Guard, CallError>>>(
    within: Duration,
    told: watch::Sender<Guard>,
    look: impl Fn() -> Look,
) {
    // A zero interval would panic.
    let mut turns = interval((within / 2).max(Duration::from_millis(1)));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut known_until = Instant::now();
    loop {
        let mut next = pin!(async {
            turns.tick().await;
            (Instant::now(), look().await)
        });
        let (began, found) = loop {
            tokio::select! {
                found = &mut next => break found,
                () = sleep_until(known_until), if *told.borrow() != Guard::Unknown => publish(&told, Guard::Unknown),
            }
        };
        if let Ok(found) = found {
            known_until = began + within;
            publish(&told, if known_until > Instant::now() { found } else { Guard::Unknown });
        }
    }
}

fn publish(told: &watch::Sender<Guard>, guard: Guard) {
    if !told.send_if_modified(|told| std::mem::replace(told, guard) != guard) {
        return;
    }
    match guard {
        Guard::InForce => {
            tracing::info!("clearances and cancellations count, as their admission policies are in force");
        }
        Guard::Missing => {
            tracing::warn!("clearances and cancellations do not count until their admission policies are back");
        }
        _ => tracing::warn!("clearances and cancellations wait, as their admission policies cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::{Value, json};
    use tokio::time::sleep;

    use super::*;

    fn clearance() -> &'static Shipped {
        guards().iter().find(|it| it.name.starts_with("clearance.")).unwrap()
    }

    fn binding(meta: &Value) -> DynamicObject {
        let spec = json!({"policyName": clearance().name, "validationActions": ["Deny"]});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    }

    #[test]
    fn both_policies_of_what_a_person_sets_are_looked_at() {
        let names: Vec<&str> = guards().iter().map(|it| it.name.split('.').next().unwrap()).collect();
        assert_eq!(names, ["cancellation", "clearance"]);
    }

    #[test]
    fn a_binding_that_is_changed_or_is_being_deleted_does_not_protect() {
        let is = |object| protects(clearance(), Half::Binding, object);
        assert!(is(binding(&json!({"uid": "u"}))));
        assert!(!is(binding(&json!({"uid": "u", "deletionTimestamp": "2027-01-01T00:00:00Z"}))));
        let mut changed = binding(&json!({"uid": "u"}));
        changed.data["spec"]["validationActions"] = json!(["Audit"]);
        assert!(!is(changed));
    }

    /// Runs checks that each take a time and give a result, or no answer; the last check repeats. Returns the published
    /// result after each of these seconds.
    async fn known_after(seconds: &[u64], looks: &'static [(u64, Option<Guard>)]) -> Vec<Guard> {
        let (told, known) = watch::channel(Guard::Unknown);
        let nth = Cell::new(0);
        let look = || {
            let (takes, found) = looks[nth.replace(nth.get() + 1).min(looks.len() - 1)];
            async move {
                sleep(Duration::from_secs(takes)).await;
                found.ok_or(CallError::TimedOut(ANSWERS_WITHIN))
            }
        };
        let begin = Instant::now();
        let watch = async {
            let mut found = Vec::new();
            for second in seconds {
                sleep_until(begin + Duration::from_millis(second * 1000 + 500)).await;
                found.push(*known.borrow());
            }
            found
        };
        tokio::select! {
            found = watch => found,
            () = follow(Duration::from_mins(1), told, look) => Vec::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_found_is_known_for_as_long_as_a_look_may_be_old() {
        use Guard::{InForce, Missing, Unknown};
        // Checks begin at 0 s, 30 s and so on.
        let answers =
            known_after(&[0, 29, 31, 61], &[(0, Some(InForce)), (0, Some(Missing)), (0, Some(InForce))]).await;
        assert_eq!(answers, [InForce, InForce, Missing, InForce]);
        let silent = known_after(&[0, 31, 59, 60, 200], &[(0, Some(InForce)), (0, None)]).await;
        assert_eq!(silent, [InForce, InForce, InForce, Unknown, Unknown]);
        // A check may take longer than the interval; its answer may come too late.
        let slow =
            known_after(&[31, 61, 100, 121], &[(0, Some(InForce)), (65, Some(InForce)), (0, Some(Missing))]).await;
        assert_eq!(slow, [InForce, Unknown, Missing, Missing]);
        let begins = known_after(&[0, 31], &[(0, None), (0, Some(Missing))]).await;
        assert_eq!(begins, [Unknown, Missing]);
    }
}
