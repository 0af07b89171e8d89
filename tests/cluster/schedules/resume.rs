//! Which users may resume a schedule that a triage has paused or adjusted, at which time, and under which name.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;

use super::cast::{ADVISOR, AUTHOR, Cast, HALF, IN_FORCE_WITHIN, TARGET, WRITER};
use super::objects::{but, good};
use crate::admission::objects::{Refusal, expect, report, says};

/// The current triage of the schedules in these tests.
const NOW: &str = "nightly-1767323045";
/// An earlier triage.
const BEFORE: &str = "nightly-1767236645";

/// The users and namespaces of a cast, and a user who may resume by the shipped role.
struct Stage {
    cast: Cast,
    sre: String,
}

impl Stage {
    async fn new() -> Result<Self> {
        let cast = Cast::new().await?;
        let sre = format!("sre-{}", cast.namespace());
        cast.bind(&sre, "wfe-clear", "wfe-clear", Some(cast.namespace())).await?;
        cast.await_virtual(&sre, "update workflowexecutions/clearance", Some(cast.namespace())).await?;
        let stage = Self { cast, sre };
        let paused = stage.with("Paused").await?;
        // Every resume differs from the one before, so that the policy has to check it.
        let mut n = 0;
        let ask = async || {
            n += 1;
            let resume = json!({"triage": NOW, "reason": n.to_string(), "resumedBy": ADVISOR});
            stage.resume(ADVISOR, &paused, resume).await
        };
        ask_until(IN_FORCE_WITHIN, "the policy of authors is in force", ask, says(AUTHOR)).await?;
        Ok(stage)
    }

    /// Creates a schedule with a triage in this state. An empty state means that there is no triage.
    async fn with(&self, state: &str) -> Result<String> {
        let schedules = &self.cast.schedules;
        let name = schedules.create(self.cast.on("deployment/api")?).await?;
        if !state.is_empty() {
            self.record(&name, NOW, state).await?;
        }
        Ok(name)
    }

    /// Writes the record of a triage as the operator would.
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
async fn a_resume_takes_the_rights_of_an_edit_or_to_clear_and_names_its_author_and_its_triage() -> Result<()> {
    let stage = Stage::new().await?;
    let (sre, namespace) = (stage.sre.as_str(), stage.cast.namespace());
    let right = format!(
        "ask for the right to create workflowexecutions (group kubernaut.ai) in namespace {namespace}, which an \
         administrator of the cluster gives by the ClusterRole wfe-edit; or for the right to update \
         workflowexecutions/clearance (group kubernaut.ai) in namespace {namespace}, which an administrator of the cluster \
         gives by the ClusterRole wfe-clear"
    );
    let nobody = |user: &str| format!("spec.resume: {user} may not resume this WorkflowSchedule");
    let (advisor, half) = (nobody(ADVISOR), nobody(HALF));
    let own = format!("spec.resume.resumedBy: must be your own user name, {sre}");
    let outdated =
        format!("spec.resume.triage: must be {NOW}, which status.triage.of names now; read status.triage again");
    let only =
        "spec.resume: may be set only while status.triage.state is Paused or Adjusted, or status.adjust is set; ";
    let is = |what: &str| format!("{only}that of this schedule is {what}, so there is nothing to resume");
    let elsewhere = ["Analysing", "Noted", "Filed", "Failed", "Over"].map(|what| (what, is(what)));
    let none = format!("{only}this schedule has had no triage, so there is nothing to resume");
    let mut rows: Vec<(&str, &str, Value, Vec<&str>)> = vec![
        ("Paused", sre, resume(NOW, sre), vec![]),
        ("Adjusted", sre, resume(NOW, sre), vec![]),
        ("Paused", ADVISOR, resume(NOW, ADVISOR), vec![AUTHOR, &advisor, &right]),
        ("Paused", ADVISOR, resume(NOW, sre), vec![AUTHOR, &advisor, &right]),
        ("Paused", HALF, resume(NOW, HALF), vec![AUTHOR, &half, &right]),
        ("Paused", WRITER, resume(NOW, WRITER), vec![]),
        ("Adjusted", WRITER, resume(NOW, WRITER), vec![]),
        ("Paused", WRITER, resume(BEFORE, WRITER), vec![AUTHOR, &outdated]),
        ("Paused", sre, resume(NOW, WRITER), vec![AUTHOR, &own]),
        ("Adjusted", sre, resume(NOW, "Sre"), vec![AUTHOR, &own]),
        ("Paused", sre, resume(BEFORE, sre), vec![AUTHOR, &outdated]),
        ("Adjusted", sre, resume("nightly", sre), vec![AUTHOR, &outdated]),
        ("", sre, resume(NOW, sre), vec![AUTHOR, &none]),
    ];
    rows.extend(elsewhere.iter().map(|(what, words)| (*what, sre, resume(NOW, sre), vec![AUTHOR, words.as_str()])));
    let mut failures = Vec::new();
    for (reached, user, resume, words) in rows {
        let name = stage.with(reached).await?;
        let row = format!("{reached}: {user}, {resume}");
        expect(&mut failures, &row, &words, stage.resume(user, &name, resume).await?);
    }
    // The adjusted values of a triage outlive the next triage, even if that one ends in another state.
    let name = stage.with("Noted").await?;
    let adjusted = Patch::Merge(json!({"status": {"adjust": {"interval": "1h"}}}));
    stage.cast.schedules.api.patch_status(&name, &PatchParams::default(), &adjusted).await?;
    expect(&mut failures, "values of an earlier triage", &[], stage.resume(sre, &name, resume(NOW, sre)).await?);
    report(&failures)
}

/// The permissions of an advisor do not include a resume, even if the schedule already has one.
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
    let words = [AUTHOR, "advisor may not resume this WorkflowSchedule"];
    let both = json!({"spec": {"suspend": true, "resume": resume(NOW, ADVISOR)}});
    expect(&mut failures, "both", &words, stage.cast.schedules.patch_as(ADVISOR, &name, both).await?);

    expect(&mut failures, "resumed", &[], stage.resume(sre, &name, resume(NOW, sre)).await?);
    stage.record(&name, NOW, "Over").await?;
    // An existing resume does not hinder other changes. Repeating or removing it has no effect.
    for spec in [json!({"suspend": true}), json!({"resume": resume(NOW, sre)}), json!({"resume": null})] {
        let answer = stage.cast.schedules.patch_as(ADVISOR, &name, json!({"spec": spec})).await?;
        expect(&mut failures, &format!("advisor, afterwards: {spec}"), &[], answer);
    }
    // The permission to clear allows no other change, even together with a resume.
    let words = [AUTHOR, "may not write this schedule"];
    stage.record(&name, NOW, "Paused").await?;
    let again = json!({"triage": NOW, "reason": "once more", "resumedBy": sre});
    for edit in [json!({"triage": {"after": 5}}), json!({"triage": {"after": 5}, "resume": again})] {
        let answer = stage.cast.schedules.patch_as(sre, &name, json!({"spec": edit})).await?;
        expect(&mut failures, &format!("edit: {edit}"), &words, answer);
    }
    report(&failures)
}

/// If the target is in another namespace, both permissions are required there too.
#[tokio::test]
async fn a_resume_of_a_schedule_on_a_target_elsewhere_takes_a_right_there() -> Result<()> {
    let stage = Stage::new().await?;
    let (cast, sre) = (&stage.cast, stage.sre.as_str());
    let everywhere = format!("clears-{}", cast.namespace());
    cast.bind(&everywhere, "wfe-clear", "wfe-clear", None).await?;
    cast.await_virtual(&everywhere, "update workflowexecutions/clearance", None).await?;
    let theirs = format!("{}/deployment/api", cast.other);
    let rows = [
        ("node/worker-1", "in the whole cluster".to_owned()),
        (&*theirs, format!("in namespace {} and in namespace {}", cast.namespace(), cast.other)),
    ];
    let mut failures = Vec::new();
    for (target, place) in rows {
        let name = cast.schedules.create(but(good(), &[(TARGET, json!(target))])?).await?;
        stage.record(&name, NOW, "Paused").await?;
        let half = format!("spec.resume: {sre} may not resume this WorkflowSchedule");
        let or = format!("or for the right to update workflowexecutions/clearance (group kubernaut.ai) {place}, which");
        let writer = format!("spec.resume: {WRITER} may not let workflows act on {target}");
        let rows: [(&str, &[&str]); 4] = [
            (sre, &[AUTHOR, &half, &or]),
            (WRITER, &[AUTHOR, &writer, &or]),
            (&cast.everywhere, &[]),
            (&everywhere, &[]),
        ];
        for (user, words) in rows {
            expect(
                &mut failures,
                &format!("{user} on {target}"),
                words,
                stage.resume(user, &name, resume(NOW, user)).await?,
            );
        }
    }
    report(&failures)
}

/// A backup of a resumed schedule contains `spec.resume` with the name of the user who resumed the schedule.
#[tokio::test]
async fn a_schedule_with_a_resume_is_created_by_who_may_write_it() -> Result<()> {
    let stage = Stage::new().await?;
    let own = stage.cast.on("deployment/api")?;
    let backup = but(own, &[("resume", resume(BEFORE, "somebody"))])?;
    let mut failures = Vec::new();
    let words = [AUTHOR, "may not write this schedule"];
    expect(&mut failures, "half", &words, stage.cast.schedules.try_create_as(HALF, backup.clone()).await?);
    expect(&mut failures, "writer", &[], stage.cast.schedules.try_create_as(WRITER, backup).await?);
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
    let words = [AUTHOR, "spec.resume.triage: must be nightly-1767409445, which status.triage.of names now"];
    let outdated = json!({"reason": "once more"});
    expect(&mut failures, "of the first", &words, stage.resume(sre, &name, outdated).await?);
    expect(&mut failures, "of the later", &[], stage.resume(sre, &name, resume(later, sre)).await?);
    report(&failures)
}
