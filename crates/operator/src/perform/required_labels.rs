//! Checks the labels and annotations by which a run is recognized. If a run loses one of them on its way through
//! admission, it has no owner.
//!
//! A mutating admission webhook can remove labels and annotations. Such a run is deleted at once, and its execution
//! ends, because the next run would lose them, too. If the execution continued, each delivery of the watch would create
//! a new run.

use std::collections::BTreeMap;

use kube::api::DynamicObject;
use wfe_api::limits::cut;
use wfe_core::name::{Uid, Version};
use wfe_core::reason::FailureReason;
use wfe_tekton::MAX_MESSAGE;
use wfe_view::call::CallError;
use wfe_view::index::{Expected, Kind};

use super::objects::is;
use super::{Creation, Learned, Performer, if_unchanged, written};
use crate::verb::Verb;

/// The prefix of all our labels and annotations.
const OURS: &str = "kubernaut.ai/";
/// How many times a deletion is tried: Tekton may write the status of a new run meanwhile, which changes the run's
/// version.
const TRIES: u32 = 3;

/// Returns the first of our labels and annotations that a run lacks, or whose value differs from the one that was sent.
pub(super) fn missing(sent: &DynamicObject, found: &DynamicObject) -> Option<String> {
    let lacks = |what: &str, sent: &Option<BTreeMap<String, String>>, found: &Option<BTreeMap<String, String>>| {
        let ours = sent.iter().flatten().filter(|(key, _)| key.starts_with(OURS));
        let has = |key: &String, value: &String| found.as_ref().and_then(|found| found.get(key)) == Some(value);
        let mut lacking = ours.filter(|(key, value)| !has(key, value)).map(|(key, _)| format!("{what} {key}"));
        lacking.next()
    };
    let (sent, found) = (&sent.metadata, &found.metadata);
    lacks("annotation", &sent.annotations, &found.annotations).or_else(|| lacks("label", &sent.labels, &found.labels))
}

impl Performer {
    /// Deletes a run that was stored without one of our labels or annotations, and refuses its execution.
    pub(super) async fn refuse_unmarked(&self, creation: &Creation, run: &DynamicObject, mark: &str) -> Vec<Learned> {
        let name = run.metadata.name.as_deref().unwrap_or_default();
        let mut learned = Vec::new();
        let fate = match self.delete_pending(run).await {
            Ok(()) => {
                // The watch may have delivered the run already, and no execution may commit to it.
                learned.extend(written(Kind::Run, run).map(|object| Learned::Expect(Expected::Absence { object })));
                "it is deleted".to_owned()
            }
            Err(error) => format!("delete it, as the operator could not ({error})"),
        };
        let message = format!(
            "PipelineRun {name} was created and lacks the {mark}: a mutating admission webhook, or a controller, takes it \
             off; find it with kubectl get mutatingwebhookconfigurations, and exempt the namespace {}; {fate}",
            self.cluster.execution_namespace()
        );
        tracing::warn!(wfe = %creation.execution, run = name, mark, "{message}");
        learned.push(creation.refused(FailureReason::ConfigurationError, &cut(&message, MAX_MESSAGE)));
        learned
    }

    /// Deletes a run, by its uid and version, if it is still pending.
    async fn delete_pending(&self, run: &DynamicObject) -> Result<(), CallError> {
        let runs = self.cluster.runs();
        let name = run.metadata.name.clone().unwrap_or_default();
        let uid = Uid::new(run.metadata.uid.as_deref().unwrap_or_default());
        let version_of =
            |run: &DynamicObject| Version::new(run.metadata.resource_version.as_deref().unwrap_or_default());
        let mut version = version_of(run);
        for attempt in 1.. {
            let params = if_unchanged(&uid, &version);
            match self.cluster.call(Verb::Delete, wfe_tekton::PLURAL, runs.delete(&name, &params)).await {
                Ok(_) => return Ok(()),
                Err(error) if error.code() == 404 => return Ok(()),
                Err(error) if error.code() == 409 && attempt < TRIES => {
                    let found = self.cluster.call(Verb::Get, wfe_tekton::PLURAL, runs.get_opt(&name)).await?;
                    let pending =
                        |run: &DynamicObject| run.data.pointer("/spec/status") == Some(&wfe_tekton::PENDING.into());
                    match found.map(|found| found.object).filter(|found| is(&found.metadata, &uid)) {
                        None => return Ok(()),
                        Some(found) if pending(&found) => version = version_of(&found),
                        Some(_) => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wfe_api::labels;

    use super::*;

    fn run(labels: &[&str], annotations: &[&str]) -> DynamicObject {
        let all =
            |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), json!("v"))).collect::<serde_json::Map<_, _>>();
        let metadata = json!({"name": "wfe-x-1", "labels": all(labels), "annotations": all(annotations)});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn a_run_that_lost_a_mark_of_ours_is_told_from_one_that_has_them_all() {
        let (label, uid) = (labels::LABEL_WORKFLOW_EXECUTION, labels::ANNOTATION_UID);
        let sent = run(&[label, labels::LABEL_MANAGED_BY], &[uid]);
        assert_eq!(missing(&sent, &run(&[label], &[uid, "more"])), None, "what is not ours may change");
        assert_eq!(missing(&sent, &run(&[label], &[])), Some(format!("annotation {uid}")));
        assert_eq!(missing(&sent, &run(&[], &[uid])), Some(format!("label {label}")));
    }
}
