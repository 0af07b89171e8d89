//! A repeated failure is analysed once, on real Tekton. The analyst is the built-in table, or a pipeline that returns
//! each verdict or none (sections 13.2 to 13.4).

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use serde_json::{Value, json};
use wfe_testkit::{Metrics, Outcome, Pipeline, World, is_terminal, look};
use wfe_tests::quota_of_none;

use super::{await_failures, await_held, await_outcome, await_schedule, create, edit, end_child, hurry, moment};
use crate::audited::audited;
use crate::expect::{condition, text};
use crate::history::short;

/// The flag that allows one namespace more triages in an hour than by default.
const MANY: (&str, &str) = ("--triage-max-per-hour", "100");

/// Makes the API server refuse every run, so that executions fail before anything ran.
async fn refuse_runs(world: &World) -> Result<()> {
    quota_of_none(world, "count/pipelineruns.tekton.dev", &look::pipeline_runs()).await
}

/// Waits until the triage of a schedule is in a state.
pub(super) async fn await_triage(world: &World, name: &str, state: &str) -> Result<Value> {
    let what = format!("says that its triage is {state}");
    await_schedule(world, name, &what, |it| it["status"]["triage"]["state"] == state).await
}

/// Writes the resume by which a person ends a triage.
async fn resume(world: &World, name: &str, of: &Value) -> Result<()> {
    edit(world, name, json!({"resume": {"triage": of, "reason": "repaired", "resumedBy": "jo@example.com"}})).await
}

/// Pushes a pipeline that analyses. Its only task returns this verdict and has this outcome.
pub(super) async fn analyst(world: &World, name: &str, verdict: Option<&str>, outcome: Outcome) -> Result<String> {
    let pipeline = Pipeline::new().param("EVIDENCE").task("analyse", outcome).lasting("100ms");
    let Some(verdict) = verdict else {
        return Ok(world.push_objects(name, &[pipeline.render("workflow")]).await?.image);
    };
    let said = json!([{"key": "verdict", "value": verdict, "type": 1}]).to_string();
    let declares = |task: &mut Value| task["taskSpec"]["results"] = json!([{"name": "verdict", "type": "string"}]);
    let mut pipeline = pipeline.saying(&said).patch(declares).render("workflow");
    pipeline["spec"]["results"] = json!([{"name": "verdict", "value": "$(tasks.analyse.results.verdict)"}]);
    Ok(world.push_objects(name, &[pipeline]).await?.image)
}

/// Creates a schedule whose first failure a pipeline analyses. `triage` contains further fields.
pub(super) async fn analysed(world: &World, name: &str, bundle: &str, analyst: &str, triage: &Value) -> Result<()> {
    let reference = json!({"workflowId": "analyst", "version": "1", "containerImage": analyst});
    let mut spec = json!({
        "interval": "1h", "minInterval": "1s", "history": {"failed": 10},
        "triage": {"analyst": "Pipeline", "after": 1, "workflowRef": reference},
    });
    for (key, value) in triage.as_object().into_iter().flatten() {
        spec["triage"][key] = value.clone();
    }
    let template = json!({"spec": {
        "targetResource": format!("node/{name}"), "parameters": {"LEVEL": "1"},
        "workflowRef": {"workflowId": name, "version": "1.0.0", "containerImage": bundle},
    }});
    spec["template"] = template;
    create(world, name, "node/unused", bundle, &spec).await?;
    Ok(())
}

#[tokio::test]
async fn the_third_failure_in_a_row_is_analysed_once_and_the_schedule_backs_off_all_the_same() -> Result<()> {
    let world = World::new("triaged").await?;
    let recording = world.record_all().await?;
    refuse_runs(&world).await?;
    let bundle = short(&world).await?;
    let operator = world.operator().start().await?;
    let spec = json!({"interval": "60s", "minInterval": "1s", "history": {"failed": 10}});
    create(&world, "failing", "node/worker", &bundle, &spec).await?;
    for failures in 1..=3 {
        hurry(&world, "failing").await?;
        let failed = await_failures(&world, "failing", failures).await?;
        let is_early = failures < 3 && failed["status"]["triage"].is_object();
        assert!(!is_early, "after {failures}: {failed:#}");
    }
    let filed = await_triage(&world, "failing", "Filed").await?;
    let (status, triage) = (&filed["status"], &filed["status"]["triage"]);
    assert_eq!((&triage["analyst"], &triage["verdict"]), (&json!("BuiltIn"), &json!("FileFix")), "{triage:#}");
    assert_eq!(
        (&triage["of"], &triage["fingerprint"]),
        (&status["lastRun"]["name"], &json!("ResourceExhausted/cluster"))
    );
    assert!(text(&triage["fix"]).contains("quota") && text(&triage["evidence"]).len() == 64, "{triage:#}");
    assert_eq!((&triage["run"], condition(&filed, "Held")), (&Value::Null, condition(&filed, "absent")), "{filed:#}");
    let event = world.await_event("failing", "Triaged").await?;
    assert!(text(&event["note"]).starts_with("FileFix: "), "{event:#}");
    let child = text(&status["lastRun"]["name"]);
    let child = world.await_wfe(child, "has ended", is_terminal).await?;
    assert_eq!(child["status"]["failureDetails"]["fingerprint"], "ResourceExhausted/cluster", "{child:#}");

    // The schedule continues as before. It has no second triage within the cooldown.
    hurry(&world, "failing").await?;
    let fourth = await_failures(&world, "failing", 4).await?;
    assert_eq!(super::wait_after_end(&fourth)?, TimeDelta::seconds(960), "{fourth:#}");
    assert_eq!(fourth["status"]["triage"], *triage, "one shot");
    let metrics = operator.metrics().await?;
    let ended = [("analyst", "BuiltIn"), ("verdict", "FileFix"), ("state", "Filed")];
    assert!((metrics.value("workflow_triage_total", &ended) - 1.0).abs() < f64::EPSILON);
    let is_told =
        |metrics: &Metrics| metrics.value("workflow_triage_suppressed_total", &[("reason", "Cooldown")]) >= 1.0;
    operator.await_metrics("tell of the failure that began none", is_told).await?;

    // Editing the schedule ends the triage.
    edit(&world, "failing", json!({"interval": "90s", "hint": null})).await?;
    let over = await_triage(&world, "failing", "Over").await?;
    assert_eq!(over["status"]["failureCount"], 0, "{over:#}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn what_breaks_each_time_is_paused_until_a_person_resumes_it() -> Result<()> {
    let world = World::new("paused-by-triage").await?;
    let recording = world.record_all().await?;
    let bundle = world.push_pipeline("exit-3", &Pipeline::new().task("apply", Outcome::Exit(3))).await?;
    let _operator = world.operator().start().await?;
    let spec = json!({"interval": "1h", "minInterval": "1s", "triage": {"after": 1}});
    create(&world, "breaking", "node/worker", &bundle, &spec).await?;
    hurry(&world, "breaking").await?;
    let held = await_held(&world, "breaking", "TriagePaused").await?;
    let status = &held["status"];
    let (triage, count) = (&status["triage"], &status["failureCount"]);
    assert_eq!((&triage["state"], &triage["verdict"]), (&json!("Paused"), &json!("PauseAndNotify")), "{status:#}");
    assert_eq!((count, &status["nextRunTime"]), (&json!(1), &Value::Null), "{status:#}");
    assert_eq!(held["spec"].get("suspend"), None, "a person's spec is nobody else's");
    world.await_event("breaking", "Paused").await?;
    // A resume for the triage of another failure has no effect on this triage.
    resume(&world, "breaking", &json!("breaking-1")).await?;
    await_held(&world, "breaking", "TriagePaused").await?;
    crate::clearing::clear(&world, text(&triage["of"]), "looked").await?;
    resume(&world, "breaking", &triage["of"]).await?;
    let resumed = await_triage(&world, "breaking", "Over").await?;
    let status = &resumed["status"];
    assert_eq!(condition(&resumed, "Held"), "False Released", "{status:#}");
    assert_eq!(moment(&status["nextRunTime"])? - moment(&status["plannedFrom"])?, TimeDelta::hours(1), "{status:#}");
    world.await_event("breaking", "Resumed").await?;
    audited(&world, recording).await?;
    world.close().await
}

/// The name, verdict and outcome of an analyst, the resulting state of the triage, and words in its record.
type Row = (&'static str, Option<&'static str>, Outcome, &'static str, &'static str);

/// Verdicts that a pipeline returns, and answers that are invalid.
const VERDICTS: [Row; 8] = [
    ("nothing", Some(r#"{"verdict":"DoNothing","why":"it passes"}"#), Outcome::Ok, "Noted", "it passes"),
    ("fix", Some(r#"{"verdict":"FileFix","why":"so","fix":"ask the owner"}"#), Outcome::Ok, "Filed", "ask the owner"),
    (
        "forbidden",
        Some(r#"{"verdict":"AdjustConfig","why":"so","adjust":{"interval":"2h","parameters":{"ROOT":"yes"}}}"#),
        Outcome::Ok,
        "Noted",
        "parameters.ROOT: is not in",
    ),
    ("unknown", Some(r#"{"verdict":"DeleteEverything","why":"so"}"#), Outcome::Ok, "Failed", "is none of DoNothing"),
    ("garbage", Some("Sure! I have paused the schedule."), Outcome::Ok, "Failed", "is no JSON"),
    ("silent", None, Outcome::Ok, "Failed", "without a result verdict"),
    (
        "broken",
        Some(r#"{"verdict":"PauseAndNotify","why":"so"}"#),
        Outcome::Exit(1),
        "Failed",
        "ended without a verdict",
    ),
    (
        "lost",
        Some(r#"{"verdict":"PauseAndNotify","why":"so"}"#),
        Outcome::ImagePull,
        "Failed",
        "ended without a verdict",
    ),
];

#[tokio::test]
async fn each_verdict_of_a_pipeline_has_its_effect_and_no_verdict_has_none() -> Result<()> {
    let world = World::new("verdicts").await?;
    let recording = world.record_all().await?;
    let bundle = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let _operator = world.operator().arg(MANY.0, MANY.1).start().await?;
    for (name, verdict, outcome, ..) in VERDICTS {
        let image = analyst(&world, name, verdict, outcome).await?;
        analysed(&world, name, &bundle, &image, &json!({})).await?;
        hurry(&world, name).await?;
    }
    for (name, _, _, state, said) in VERDICTS {
        let found = await_triage(&world, name, state).await.with_context(|| name.to_owned())?;
        let (status, triage) = (&found["status"], &found["status"]["triage"]);
        assert!(triage.to_string().contains(said), "{name}: {triage:#}");
        assert_eq!(
            (&status["adjust"], triage["verdict"].is_string()),
            (&Value::Null, state != "Failed"),
            "{name}: {status:#}"
        );
        let run = text(&triage["run"]["name"]);
        assert_eq!(run, format!("{}-triage", text(&triage["of"])), "{name}: {triage:#}");
        let analyst = world.await_wfe(run, "has ended", is_terminal).await?;
        // The analyst neither blocks its target nor counts as a failure there, and circuits ignore it.
        assert_eq!(condition(&analyst, "Blocked"), condition(&analyst, "absent"), "{name}: {analyst:#}");
        let target = format!("{}/workflowexecution/{}", world.namespace(), text(&triage["of"]));
        assert_eq!(text(&analyst["status"]["target"]), target);
        assert!(text(&analyst["spec"]["parameters"]["EVIDENCE"]).contains("\"failureCount\":1"), "{analyst:#}");
    }
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_pipeline_may_pause_its_schedule_and_adjust_what_that_lists_until_a_person_ends_it() -> Result<()> {
    let world = World::new("adjusted").await?;
    let recording = world.record_all().await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().param("LEVEL").task("apply", Outcome::Hold)).await?;
    let _operator = world.operator().start().await?;
    let adjust = r#"{"verdict":"AdjustConfig","why":"slow","adjust":{"interval":"2h","timeout":"47m","parameters":{"LEVEL":"2"}}}"#;
    let pause = r#"{"verdict":"PauseAndNotify","why":"it does harm"}"#;
    let listed = json!({"allowAdjust": ["interval", "timeout", "parameters.LEVEL"]});
    for (name, verdict) in [("adjusts", adjust), ("pauses", pause)] {
        let image = analyst(&world, name, Some(verdict), Outcome::Ok).await?;
        analysed(&world, name, &bundle, &image, &listed).await?;
        hurry(&world, name).await?;
        let child = super::await_at_work(&world, name).await?;
        end_child(&world, &child, "exit-1").await?;
    }
    let paused = await_held(&world, "pauses", "TriagePaused").await?;
    assert!(text(&paused["status"]["triage"]["why"]).contains("it does harm"), "{paused:#}");

    let adjusted = await_triage(&world, "adjusts", "Adjusted").await?;
    let values = &adjusted["status"]["adjust"];
    assert_eq!((&values["parameters"], &values["timeout"]), (&json!({"LEVEL": "2"}), &json!("47m0s")), "{values:#}");
    assert_eq!(adjusted["spec"]["template"]["spec"]["parameters"], json!({"LEVEL": "1"}), "the spec stays as it is");
    world.await_event("adjusts", "Adjusted").await?;
    let of = adjusted["status"]["triage"]["of"].clone();
    crate::clearing::clear(&world, text(&of), "looked").await?;
    hurry(&world, "adjusts").await?;
    let child = super::await_at_work(&world, "adjusts").await?;
    let taken = world.await_wfe(&child, "is there", |_| true).await?;
    let spec = &taken["spec"];
    assert_eq!((&spec["parameters"], &spec["executionConfig"]["timeout"]), (&json!({"LEVEL": "2"}), &json!("47m0s")));
    end_child(&world, &child, "ok").await?;
    let well = await_outcome(&world, "adjusts", "Completed").await?;
    let status = &well["status"];
    // The run that the hint requested has not moved the slots.
    let wait = moment(&status["nextRunTime"])? - moment(&status["phase"])?;
    assert_eq!(wait, TimeDelta::hours(2), "a success ends no adjustment: {status:#}");
    resume(&world, "adjusts", &of).await?;
    let over = await_triage(&world, "adjusts", "Over").await?;
    assert_eq!(over["status"]["adjust"], Value::Null, "{over:#}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn an_analyst_that_is_deleted_gives_no_verdict() -> Result<()> {
    let world = World::new("deleted-analyst").await?;
    let recording = world.record_all().await?;
    let bundle = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let _operator = world.operator().start().await?;
    let image = analyst(&world, "hangs", Some("{}"), Outcome::Hold).await?;
    analysed(&world, "hangs", &bundle, &image, &json!({})).await?;
    hurry(&world, "hangs").await?;
    let named = |it: &Value| it["status"]["triage"]["run"]["name"].is_string();
    let analysing = await_schedule(&world, "hangs", "names its analyst", named).await?;
    let run = text(&analysing["status"]["triage"]["run"]["name"]);
    world.await_running_step().await?;
    world.delete_wfe(run).await?;
    let failed = await_triage(&world, "hangs", "Failed").await?;
    assert!(text(&failed["status"]["triage"]["why"]).contains("was deleted"), "{failed:#}");
    world.await_event("hangs", "Triaged").await?;
    // The operator cancels the analyst's run independently of the end of the triage. Either may happen first.
    world.await_run("is cancelled", |run| run["status"]["conditions"][0]["reason"] == "Cancelled").await?;
    audited(&world, recording).await?;
    world.close().await
}
