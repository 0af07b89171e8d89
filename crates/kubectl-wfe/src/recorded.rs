//! What the status of an undecided execution says. This record goes before a prediction: the operator knows what the
//! execution waits for, and a prediction does not.

use chrono::TimeDelta;
use kube::api::DynamicObject;
use serde_json::Value;
use wfe_api::conditions::WAITING;
use wfe_core::Time;

use crate::moment::since;
use crate::object::condition;

/// How old an execution may be without a decision and without a reason: a working operator needs about a second.
const DECIDED_WITHIN: TimeDelta = TimeDelta::seconds(10);
/// The reason for waiting that only this tool gives: a working operator would have decided, or recorded another one.
const UNDECIDED: &str = "Undecided";

/// What an operator has recorded of an undecided execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The condition `Waiting`.
    Waits { reason: String, message: String, age: String },
    /// Nothing, for longer than an operator needs.
    Nothing { age: String },
}

impl Recorded {
    /// Reads what was recorded. None if the execution is too new for that.
    pub(crate) fn of(object: &DynamicObject, now: Time) -> Option<Self> {
        let waits = condition(object, WAITING).filter(|it| it["status"] == "True");
        let text = |waits: &Value, key: &str| waits[key].as_str().unwrap_or_default().to_owned();
        if let Some(waits) = waits {
            let at: Option<Time> = waits["lastTransitionTime"].as_str().and_then(|at| at.parse().ok());
            let (reason, message) = (text(waits, "reason"), text(waits, "message"));
            return Some(Self::Waits { reason, message, age: at.map_or_else(String::new, |at| since(at, now)) });
        }
        let created = Time::from_timestamp(object.metadata.creation_timestamp.as_ref()?.0.as_second(), 0)?;
        (now - created > DECIDED_WITHIN).then(|| Self::Nothing { age: since(created, now) })
    }

    /// Describes a waiting execution that is not the subject of the report.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Waits { reason, message, age } => format!("waits for {age}, {reason}: {message}"),
            Self::Nothing { age } => format!("is undecided for {age}"),
        }
    }

    /// Returns whether the operator has a problem, and does not just wait for an execution or a person.
    pub(crate) fn is_trouble(&self) -> bool {
        !matches!(
            self.reason(),
            "Turn" | "RivalUndecided" | "OwnerLate" | "Draining" | "Paused" | "Withdrawn" | "Deleting" | "Limit"
        )
    }

    /// Returns the reason, as `-o json` and the condition have it.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Waits { reason, .. } => reason,
            Self::Nothing { .. } => UNDECIDED,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_condition_is_read_and_silence_counts_after_a_while() {
        let now: Time = "2026-01-02T03:05:55Z".parse().unwrap();
        let recorded = |created: &str, conditions: Value| {
            let object = json!({
                "metadata": {"name": "a", "namespace": "ns", "creationTimestamp": created},
                "status": {"conditions": conditions},
            });
            Recorded::of(&serde_json::from_value(object).unwrap(), now)
        };
        let condition = |status: &str| {
            json!([{
                "type": "Waiting", "status": status, "reason": "Turn", "message": "b goes first",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }])
        };
        let waits = recorded("2026-01-02T03:04:05Z", condition("True")).unwrap();
        assert_eq!(waits.told(), "waits for 1m50s, Turn: b goes first");
        assert!(!waits.is_trouble());
        let silent = recorded("2026-01-02T03:04:05Z", condition("False")).unwrap();
        assert_eq!((silent.told().as_str(), silent.is_trouble()), ("is undecided for 1m50s", true));
        assert_eq!(recorded("2026-01-02T03:05:45Z", json!([])), None);
    }
}
