//! Who may resume a schedule that a triage has paused or adjusted, when, and in whose name.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;

use super::cast::{ADVISOR, Cast, IN_FORCE_WITHIN, WRITER};
use crate::admission::objects::{Refusal, expect, report, says};

const RESUME: &str = "resume.workflowschedules.kubernaut.ai";
/// The triage that the schedules of these tests have had.
const NOW: &str = "nightly-1767323045";
/// One before it.
const BEFORE: &str = "nightly-1767236645";

/// The cast, and somebody with the shipped role who may resume.
struct Stage {
    cast: Cast,
    sre: String,
}

impl Stage {
    async fn new() -> Result<Self> {
        let cast = Cast::new().await?;
        let sre = format!("sre-{}", cast.namespace());
        cast.bind(&sre, "wfe-clear", "wfe-clear", Some(cast.namespace())).await?;
        cast.await_virtual(&sre, "update workflowschedules/resume", Some(cast.namespace())).await?;
        let stage = Self { cast, sre };
        let paused = stage.with("Paused").await?;
        // Each one is another, so that the policy is asked.
        let mut n = 0;
        let ask = async || {
            n += 1;
            let resume = json!({"triage": NOW, "reason": n.to_string(), "resumedBy": ADVISOR});
            stage.resume(ADVISOR, &paused, resume).await
        };
        ask_until(IN_FORCE_WITHIN, "the policy of resumes is in force", ask, says(RESUME)).await?;
        Ok(stage)
    }

    /// Makes a schedule whose triage is in a state; the empty one is none.
    async fn with(&self, state: &str) -> Result<String> {
        let schedules = &self.cast.schedules;
        let name = schedules.create(self.cast.on("deployment/api")?).await?;
        if !state.is_empty() {
            self.record(&name, NOW, state).await?;
        }
        Ok(name)
    }

    /// Writes what the operator would.
    async fn record(&self, name: &str, of: &str, state: &str) -> Result<()> {
        let triage = json!({"of": of, "at": "2026-01-02T03:04:05Z", "analyst": "BuiltIn", "state": state});
        let patch = Patch::Merge(json!({"status": {"triage": triage}}));
        self.cast.schedules.api.patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn resume(&self, user: &str, name: &str, resume: Value) -> Result<Refusal> {
        self.cast.schedules.patch_as(user, name, json!({"spec": {"resume": resume}})).await
    }
}

fn resume(triage: &str, by: &str) -> Value {
    json!({"triage": triage, "reason": "the pull secret is renewed", "resumedBy": by})
}

#[tokio::test]
async fn only_who_may_resume_does_in_the_own_name_and_of_the_triage_that_is_there() -> Result<()> {
    let stage = Stage::new().await?;
    let (sre, namespace) = (stage.sre.as_str(), stage.cast.namespace());
    let right = format!(
        "ask for the right to update workflowschedules/resume (group kubernaut.ai) in namespace {namespace}, which an \
         administrator of the cluster gives by the ClusterRole wfe-clear"
    );
    let nobody = |user: &str| format!("spec.resume: {user} may not resume this WorkflowSchedule");
    let (advisor, writer) = (nobody(ADVISOR), nobody(WRITER));
    let own = format!("spec.resume.resumedBy: must be your own user name, {sre}");
    let outdated =
        format!("spec.resume.triage: must be {NOW}, which status.triage.of names now; read status.triage again");
    let only = "spec.resume: may be set only while status.triage.state is Paused or Adjusted; ";
    let is = |what: &str| format!("{only}that of this schedule is {what}, so there is nothing to resume");
    let elsewhere = ["Analysing", "Noted", "Filed", "Failed", "Over"].map(|what| (what, is(what)));
    let none = format!("{only}this schedule has had no triage, so there is nothing to resume");
    let mut rows: Vec<(&str, &str, Value, Vec<&str>)> = vec![
        ("Paused", sre, resume(NOW, sre), vec![]),
        ("Adjusted", sre, resume(NOW, sre), vec![]),
        ("Paused", ADVISOR, resume(NOW, ADVISOR), vec![RESUME, &advisor, &right]),
        ("Paused", ADVISOR, resume(NOW, sre), vec![RESUME, &advisor, &right]),
        ("Paused", WRITER, resume(NOW, WRITER), vec![RESUME, &writer, &right]),
        ("Paused", sre, resume(NOW, WRITER), vec![RESUME, &own]),
        ("Adjusted", sre, resume(NOW, "Sre"), vec![RESUME, &own]),
        ("Paused", sre, resume(BEFORE, sre), vec![RESUME, &outdated]),
        ("Adjusted", sre, resume("nightly", sre), vec![RESUME, &outdated]),
        ("", sre, resume(NOW, sre), vec![RESUME, &none]),
    ];
    rows.extend(elsewhere.iter().map(|(what, words)| (*what, sre, resume(NOW, sre), vec![RESUME, words.as_str()])));
    let mut failures = Vec::new();
    for (reached, user, resume, words) in rows {
        let name = stage.with(reached).await?;
        let row = format!("{reached}: {user}, {resume}");
        expect(&mut failures, &row, &words, stage.resume(user, &name, resume).await?);
    }
    report(&failures)
}

/// What an advisor may do is less than a resume, also beside one that is there.
#[tokio::test]
async fn whoever_may_patch_alone_suspends_and_hints_and_does_not_resume() -> Result<()> {
    let stage = Stage::new().await?;
    let (sre, name) = (stage.sre.as_str(), stage.with("Paused").await?);
    let mut failures = Vec::new();
    let hint = json!({"interval": "30m", "nextRunAt": null, "expiresAt": "2099-01-01T00:00:00Z"});
    let advice = [json!({"suspend": true}), json!({"hint": hint}), json!({"suspend": null, "hint": null})];
    for spec in &advice {
        let answer = stage.cast.schedules.patch_as(ADVISOR, &name, json!({"spec": spec})).await?;
        expect(&mut failures, &spec.to_string(), &[], answer);
    }
    let words = [RESUME, "advisor may not resume this WorkflowSchedule"];
    let both = json!({"spec": {"suspend": true, "resume": resume(NOW, ADVISOR)}});
    expect(&mut failures, "both", &words, stage.cast.schedules.patch_as(ADVISOR, &name, both).await?);

    expect(&mut failures, "resumed", &[], stage.resume(sre, &name, resume(NOW, sre)).await?);
    stage.record(&name, NOW, "Over").await?;
    // A resume that is there hinders nobody, and whoever repeats or removes it changes nothing.
    for spec in [json!({"suspend": true}), json!({"resume": resume(NOW, sre)}), json!({"resume": null})] {
        let answer = stage.cast.schedules.patch_as(ADVISOR, &name, json!({"spec": spec})).await?;
        expect(&mut failures, &format!("advisor, afterwards: {spec}"), &[], answer);
    }
    // Whoever may resume writes nothing else that an author has written.
    let words = ["author.workflowschedules.kubernaut.ai", "may not write this schedule"];
    let edit = json!({"spec": {"triage": {"after": 5}}});
    expect(&mut failures, "edit", &words, stage.cast.schedules.patch_as(sre, &name, edit).await?);
    report(&failures)
}

#[tokio::test]
async fn a_resume_is_replaced_for_a_later_triage() -> Result<()> {
    let stage = Stage::new().await?;
    let (sre, name) = (stage.sre.as_str(), stage.with("Adjusted").await?);
    let later = "nightly-1767409445";
    let mut failures = Vec::new();
    expect(&mut failures, "the first", &[], stage.resume(sre, &name, resume(NOW, sre)).await?);
    stage.record(&name, later, "Paused").await?;
    let words = [RESUME, "spec.resume.triage: must be nightly-1767409445, which status.triage.of names now"];
    let outdated = json!({"reason": "once more"});
    expect(&mut failures, "of the first", &words, stage.resume(sre, &name, outdated).await?);
    expect(&mut failures, "of the later", &[], stage.resume(sre, &name, resume(later, sre)).await?);
    report(&failures)
}
