//! Checks whether the API server has stored a status that it accepted: it silently drops a field that the CRD lacks.

use kube::api::DynamicObject;
use serde_json::Value;
use wfe_api::crd::{EXECUTIONS_CRD, SCHEDULES_CRD, is_decisive};
use wfe_core::name::Version;
use wfe_view::index::Kind;

use super::{Learned, PerformError, Performer, Result, expect_object};

impl Performer {
    /// Compares a written status with the object that the API server returned. Returns what to await.
    ///
    /// # Errors
    /// A decisive field was not stored.
    pub(super) async fn take_stored(
        &self,
        kind: Kind,
        what: &str,
        written_to: &Version,
        sent: &Value,
        stored: &DynamicObject,
    ) -> Result<Vec<Learned>> {
        let dropped = dropped(sent, stored.data.get("status").unwrap_or(&Value::Null));
        let mut learned = expect_object(kind, stored);
        if dropped.is_empty() {
            return Ok(learned);
        }
        let (crd, is_execution) = match kind {
            Kind::Schedule => (SCHEDULES_CRD, false),
            _ => (EXECUTIONS_CRD, true),
        };
        let decisive: Vec<&str> =
            dropped.iter().filter(|field| is_execution && is_decisive(field)).map(String::as_str).collect();
        if !decisive.is_empty() {
            // If the CRD is the cause, this check makes the process stop deciding.
            self.crds.check().await;
            return Err(PerformError::Dropped { what: what.to_owned(), fields: decisive.join(", ") });
        }
        self.crds.note_dropped(crd, &dropped);
        if stored.metadata.resource_version.as_deref() == Some(written_to.as_str()) {
            learned.push(Learned::NothingStored);
        }
        Ok(learned)
    }
}

/// Returns the fields of a status that differ from what was sent.
fn dropped(sent: &Value, stored: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    compare(sent, stored, "status", &mut fields);
    fields.dedup();
    fields
}

fn compare(sent: &Value, stored: &Value, path: &str, fields: &mut Vec<String>) {
    match (sent, stored) {
        // A null removes a field.
        (Value::Null, _) => {}
        (Value::Object(sent), Value::Object(stored)) => {
            for (name, value) in sent {
                compare(value, stored.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"), fields);
            }
        }
        (Value::Array(sent), Value::Array(stored)) if sent.len() == stored.len() => {
            for (sent, stored) in sent.iter().zip(stored) {
                compare(sent, stored, path, fields);
            }
        }
        _ if sent == stored => {}
        _ => fields.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_not_stored_is_named_by_its_path() {
        let condition = |message: &str| json!({"type": "Waiting", "status": "True", "message": message});
        let sent = json!({
            "phase": "Running", "guard": "f00d", "runSequence": null, "failureDetails": {"message": "m", "exitCode": 1},
            "conditions": [condition("a"), condition("b")],
        });
        assert_eq!(dropped(&sent, &sent), Vec::<String>::new());
        let mut stored = sent.clone();
        stored["other"] = json!("what is there besides says nothing");
        stored.as_object_mut().unwrap().remove("guard");
        stored["failureDetails"] = json!({"message": "m"});
        assert_eq!(dropped(&sent, &stored), ["status.failureDetails.exitCode", "status.guard"]);
        stored["conditions"] = json!([condition("a"), {"type": "Waiting", "status": "True"}]);
        assert!(dropped(&sent, &stored).contains(&"status.conditions.message".to_owned()));
        stored["conditions"] = json!([condition("a")]);
        assert!(dropped(&sent, &stored).contains(&"status.conditions".to_owned()));
        assert!(is_decisive("status.conditions.message") && !is_decisive("status.guard"));
        assert_eq!(dropped(&json!({"phase": "Running"}), &Value::Null), ["status"]);
        assert!(is_decisive("status"));
    }
}
