//! The steps of a triage other than status writes: gathering evidence, creating an analyst, and reading the analyst's
//! verdict (section 13.3).

mod announcement;
mod evidence;
mod verdict;

use serde_json::{Map, Value, json};
use wfe_api::labels::LABEL_SCHEDULE;
use wfe_api::limits;
use wfe_core::action::{Analyse, Gather, TriageDoes, TriageStep};
use wfe_core::duration;
use wfe_core::name::ExecutionId;
use wfe_core::schedule::{Heard, analyst_name, child_name};
use wfe_core::triage::State;
use wfe_tekton::{results, rfc3339};
use wfe_view::index::Kind;

use super::children::{Made, changed, made_for};
use super::examine::view;
use super::objects::is;
use super::{Learned, Performer, Result, expect_object};

/// How long an analyst is kept after its end, in seconds: a day, so that its logs can be read.
const TTL: u32 = 24 * 3600;
/// The parameter that contains the evidence.
const EVIDENCE: &str = "EVIDENCE";
/// The result that contains the verdict.
const VERDICT: &str = "verdict";

impl Performer {
    /// Carries out one step of a triage.
    pub(super) async fn triage(&self, step: &TriageStep) -> Result<Vec<Learned>> {
        match &step.does {
            TriageDoes::Gather(gather) => self.gather(step, gather).await,
            TriageDoes::Analyse(analyse) => self.analyse(step, analyse).await,
            TriageDoes::ReadVerdict(analyst) => self.read_verdict(step, analyst).await,
        }
    }

    /// Gathers the evidence for an analyst: the schedule and its last failures.
    async fn gather(&self, step: &TriageStep, gather: &Gather) -> Result<Vec<Learned>> {
        let schedule = &step.schedule;
        let found = self.read_schedule(schedule, None).await?.filter(|found| is(&found.metadata, &schedule.uid));
        let found = found.ok_or_else(|| changed(schedule))?;
        let mut failed = Vec::with_capacity(gather.children.len());
        for (slot, uid) in &gather.children {
            let name = child_name(&schedule.name, *slot);
            // A failed child that was deleted meanwhile is no longer evidence.
            failed.extend(self.read_child(schedule, &name).await?.filter(|child| is(&child.metadata, uid)));
        }
        let gathered = evidence::gathered(step, gather, &found, &failed);
        tracing::debug!(%schedule, of = &*step.of, failures = failed.len(), "evidence gathered");
        Ok(vec![Learned::Gathered(schedule.uid.clone(), Box::new(gathered))])
    }

    /// Creates the analyst of a triage, unless the triage is over by now. A create with an unknown outcome is repeated
    /// under the same name.
    async fn analyse(&self, step: &TriageStep, analyse: &Analyse) -> Result<Vec<Learned>> {
        let schedule = &step.schedule;
        let found = self.read_decided(schedule, analyse.generation, None).await?;
        let triage = &found.data["status"]["triage"];
        if triage["of"] != *step.of || triage["state"] != State::Analysing.as_str() {
            return Err(changed(schedule));
        }
        let name = analyst_name(&step.of);
        let rendered = render(step, analyse, &name, &found.data["spec"]["triage"]);
        match self.make(schedule, &found, &name, rendered).await? {
            Made::Now(created) => {
                tracing::info!(%schedule, wfe = name, "analyst created");
                Ok(expect_object(Kind::Execution, &created))
            }
            Made::Before(found) => Ok(expect_object(Kind::Execution, &found)),
            Made::Refused(message) => Ok(silent(step, message)),
        }
    }

    /// Reads the verdict of an analyst that completed from a result of its run.
    async fn read_verdict(&self, step: &TriageStep, analyst: &ExecutionId) -> Result<Vec<Learned>> {
        let found = self.read_child(&step.schedule, &analyst.name).await?;
        let Some(found) = found.filter(|found| is(&found.metadata, &analyst.uid)) else {
            return Ok(silent(step, format!("{analyst} was deleted before its verdict was read")));
        };
        let run = &found.data["status"]["pipelineRunRef"];
        let (Some(name), Some(uid)) = (run["name"].as_str(), run["uid"].as_str()) else {
            return Ok(silent(step, format!("{analyst} names no run")));
        };
        let Some(run) = self.read_run(name).await?.filter(|run| run.metadata.uid.as_deref() == Some(uid)) else {
            return Ok(silent(step, format!("the PipelineRun {name} of {analyst} is gone, and its verdict with it")));
        };
        let said = results(view(&run), &[], None);
        let judgement = match said.get(VERDICT) {
            None => Err(format!("{analyst} completed without a result {VERDICT}")),
            Some(text) => verdict::parse(text).map_err(|why| format!("{analyst}: {why}")),
        };
        Ok(match judgement {
            Ok(judgement) => vec![heard(step, Ok(judgement))],
            Err(why) => silent(step, why),
        })
    }
}

fn heard(step: &TriageStep, said: std::result::Result<wfe_core::triage::Judgement, Box<str>>) -> Learned {
    Learned::Heard(step.schedule.uid.clone(), Box::new(Heard { of: step.of.clone(), said }))
}

/// Returns the result that there is no verdict, with the reason.
fn silent(step: &TriageStep, why: impl AsRef<str>) -> Vec<Learned> {
    vec![heard(step, Err(limits::cut(why.as_ref(), limits::TRIAGE_WHY).into()))]
}

/// Makes the analyst. It runs on a target of its own, so neither the lock nor a block of the failing target stops it.
fn render(step: &TriageStep, analyse: &Analyse, name: &str, triage: &Value) -> Value {
    let schedule = &step.schedule;
    let mut config = Map::new();
    config.insert("timeout".to_owned(), json!(duration::format(analyse.timeout)));
    if let Some(account) = triage["serviceAccountName"].as_str() {
        config.insert("serviceAccountName".to_owned(), json!(account));
    }
    json!({
        "apiVersion": format!("{}/{}", wfe_api::GROUP, wfe_api::VERSION),
        "kind": "WorkflowExecution",
        "metadata": {
            "name": name,
            "namespace": &*schedule.namespace,
            "labels": {LABEL_SCHEDULE: &*schedule.name},
        },
        "spec": {
            "remediationRequestRef": made_for(schedule),
            "workflowRef": triage["workflowRef"],
            "targetResource": format!("{}/workflowexecution/{}", schedule.namespace, step.of),
            "parameters": {EVIDENCE: &*analyse.evidence},
            "executionConfig": config,
            "startBefore": rfc3339(analyse.start_before),
            "ttlSecondsAfterFinished": TTL,
        },
    })
}

#[cfg(test)]
mod tests;
