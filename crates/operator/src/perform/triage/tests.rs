//! Tests how answers of the API server become results. `played` gives the answers that each test needs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use wfe_core::Time;
use wfe_core::name::{ScheduleId, Uid};
use wfe_core::triage::Verdict;

use super::super::played::{Answer, failures, performer};
use super::*;

const SCHEDULE: &str = "/apis/kubernaut.ai/v1alpha1/namespaces/ops/workflowschedules/nightly";
const CHILD: &str = "/apis/kubernaut.ai/v1alpha1/namespaces/ops/workflowexecutions/nightly-1800000000";
const ANALYST: &str = "/apis/kubernaut.ai/v1alpha1/namespaces/ops/workflowexecutions/nightly-1800000000-triage";
const EXECUTIONS: &str = "/apis/kubernaut.ai/v1alpha1/namespaces/ops/workflowexecutions?";
const RUN: &str = "/apis/tekton.dev/v1/namespaces/runs/pipelineruns/wfe-1-1";

fn at(second: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn step(does: TriageDoes) -> TriageStep {
    let schedule = ScheduleId { namespace: "ops".into(), name: "nightly".into(), uid: Uid::new("u-1") };
    TriageStep { schedule, of: "nightly-1800000000".into(), does }
}

fn gather() -> TriageStep {
    step(TriageDoes::Gather(Box::new(Gather {
        target: "node/a".into(),
        failure_count: 3,
        last_success: None,
        open_circuits: vec![],
        default_timeout: Duration::from_mins(30),
        children: vec![(at(0), Uid::new("c-1"))],
        refused: None,
    })))
}

fn analyse() -> TriageStep {
    step(TriageDoes::Analyse(Box::new(Analyse {
        generation: 3,
        start_before: at(600),
        timeout: Duration::from_mins(10),
        evidence: "{\"failures\":[]}".into(),
    })))
}

fn read_verdict() -> TriageStep {
    let name = "nightly-1800000000-triage".into();
    step(TriageDoes::ReadVerdict(ExecutionId { namespace: "ops".into(), name, uid: Uid::new("a-1") }))
}

fn schedule(status: &Value) -> Value {
    let reference = json!({"workflowId": "analyst", "version": "1", "containerImage": "r.example/analyst:1"});
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule",
        "metadata": {"namespace": "ops", "name": "nightly", "uid": "u-1", "generation": 3},
        "spec": {
            "interval": "1m",
            "template": {"spec": {"targetResource": "node/a", "parameters": {"TOKEN": "s3cr3t-value"}}},
            "triage": {"analyst": "Pipeline", "workflowRef": reference, "serviceAccountName": "analyst"},
        },
        "status": status,
    })
}

fn analysing() -> Value {
    schedule(&json!({"triage": {"of": "nightly-1800000000", "state": "Analysing"}}))
}

fn execution(name: &str, uid: &str, of: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowExecution",
        "metadata": {"namespace": "ops", "name": name, "uid": uid, "resourceVersion": "9"},
        "spec": {"remediationRequestRef": {"kind": "WorkflowSchedule", "uid": of}},
        "status": status,
    })
}

fn failed() -> Value {
    let details = json!({"reason": "Unknown", "message": "s3cr3t-value was refused", "wasExecutionFailure": false});
    execution("nightly-1800000000", "c-1", "u-1", &json!({"phase": "Failed", "failureDetails": details}))
}

/// Performs a step while the API server gives these answers. Returns the result in one line, or the label of the error,
/// and the number of requests.
async fn done(step: TriageStep, answers: Vec<(&'static str, Answer)>) -> (String, usize) {
    let (performer, asked) = performer(move |uri| {
        let found = answers.iter().find(|(path, _)| uri == *path || path.ends_with('?') && uri.starts_with(path));
        found.map_or_else(|| panic!("nobody asks for {uri}"), |(_, answer)| answer.clone())
    });
    let came = match performer.triage(&step).await.as_deref() {
        Ok([Learned::Expect(_)]) => "expected".to_owned(),
        Ok([Learned::Gathered(uid, gathered)]) => {
            assert_eq!((uid, &gathered.of), (&Uid::new("u-1"), &step.of));
            gathered.text.to_string()
        }
        Ok([Learned::Heard(uid, heard)]) => {
            assert_eq!((uid, &heard.of), (&Uid::new("u-1"), &step.of));
            match &heard.said {
                Ok(judgement) => format!("says {}", judgement.verdict.as_str()),
                Err(why) => format!("silent: {why}"),
            }
        }
        Ok(other) => format!("{other:?}"),
        Err(error) => error.label().to_owned(),
    };
    (came, asked.load(Ordering::Relaxed))
}

fn gone() -> Answer {
    Answer::refused(404, "NotFound")
}

#[tokio::test(start_paused = true)]
async fn evidence_is_read_of_the_schedule_and_of_the_failures_that_are_still_there() {
    let found = || Answer::found(schedule(&json!({})));
    let (text, asked) = done(gather(), vec![(SCHEDULE, found()), (CHILD, Answer::found(failed()))]).await;
    assert!(text.contains("<TOKEN> was refused") && !text.contains("s3cr3t"), "{text}");
    assert_eq!(asked, 2);
    let other = execution("nightly-1800000000", "c-2", "u-1", &json!({"failureDetails": {"message": "mine"}}));
    for missing in [gone(), Answer::found(other)] {
        let (text, _) = done(gather(), vec![(SCHEDULE, found()), (CHILD, missing)]).await;
        assert!(text.contains("\"failures\":[]"), "{text}");
    }
    assert_eq!(done(gather(), vec![(SCHEDULE, gone())]).await, ("changed".to_owned(), 1));
    for (answer, label) in failures() {
        let shown = format!("{answer:?}");
        let came = done(gather(), vec![(SCHEDULE, found()), (CHILD, answer)]).await;
        assert_eq!(came, (label.to_owned(), 2), "{shown}");
    }
}

#[test]
fn an_analyst_is_an_ordinary_execution_on_a_target_of_its_own_that_ends() {
    let step = analyse();
    let TriageDoes::Analyse(analyse) = &step.does else { unreachable!() };
    let rendered = render(&step, analyse, "nightly-1800000000-triage", &analysing()["spec"]["triage"]);
    assert_eq!(
        rendered["spec"],
        json!({
            "remediationRequestRef": {
                "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule", "name": "nightly", "uid": "u-1",
            },
            "workflowRef": {"workflowId": "analyst", "version": "1", "containerImage": "r.example/analyst:1"},
            "targetResource": "ops/workflowexecution/nightly-1800000000",
            "parameters": {"EVIDENCE": "{\"failures\":[]}"},
            "executionConfig": {"timeout": "10m0s", "serviceAccountName": "analyst"},
            "startBefore": "2027-01-15T08:10:00Z",
            "ttlSecondsAfterFinished": 86_400,
        })
    );
    assert_eq!(rendered["metadata"]["labels"], json!({"kubernaut.ai/schedule": "nightly"}));
}

#[tokio::test(start_paused = true)]
async fn an_analyst_is_created_once_while_its_triage_stands() {
    let create = || Answer::Json(201, execution("nightly-1800000000-triage", "a-1", "u-1", &json!({})));
    let made =
        |found: Value, create: Answer| done(analyse(), vec![(SCHEDULE, Answer::found(found)), (EXECUTIONS, create)]);
    assert_eq!(made(analysing(), create()).await, ("expected".to_owned(), 2));
    for over in [
        schedule(&json!({"triage": {"of": "nightly-1800000000", "state": "Over"}})),
        schedule(&json!({"triage": {"of": "nightly-1700000000", "state": "Analysing"}})),
        schedule(&json!({})),
    ] {
        let shown = over["status"].to_string();
        assert_eq!(made(over, create()).await, ("changed".to_owned(), 1), "{shown}");
    }
    let taken = |found: Answer| {
        let refused = Answer::refused(409, "AlreadyExists");
        done(analyse(), vec![(SCHEDULE, Answer::found(analysing())), (ANALYST, found), (EXECUTIONS, refused)])
    };
    let its_own = execution("nightly-1800000000-triage", "a-1", "u-1", &json!({}));
    assert_eq!(taken(Answer::found(its_own)).await, ("expected".to_owned(), 3), "a create whose answer was lost");
    let strange = execution("nightly-1800000000-triage", "a-1", "u-2", &json!({}));
    let (came, _) = taken(Answer::found(strange)).await;
    assert!(came.starts_with("silent: another WorkflowExecution has the name"), "{came}");
    assert_eq!(taken(gone()).await.0, "changed");
    let (came, _) = made(analysing(), Answer::refused(422, "Invalid")).await;
    assert!(came.starts_with("silent: the API server refused to create the WorkflowExecution"), "{came}");
    for (answer, label) in failures().into_iter().filter(|(_, label)| !["forbidden", "refused"].contains(label)) {
        let shown = format!("{answer:?}");
        assert_eq!(made(analysing(), answer).await, (label.to_owned(), 2), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_verdict_is_read_from_the_run_that_the_analyst_names() {
    let status = json!({"phase": "Completed", "pipelineRunRef": {"name": "wfe-1-1", "uid": "r-1"}});
    let analyst = || Answer::found(execution("nightly-1800000000-triage", "a-1", "u-1", &status));
    let run = |uid: &str, results: Value| {
        Answer::found(json!({
            "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
            "metadata": {"namespace": "runs", "name": "wfe-1-1", "uid": uid}, "status": {"results": results},
        }))
    };
    let said = |run: Answer| done(read_verdict(), vec![(ANALYST, analyst()), (RUN, run)]);
    for verdict in Verdict::ALL.map(Verdict::as_str) {
        let result = json!({"verdict": verdict, "why": "so"}).to_string();
        let came = said(run("r-1", json!([{"name": "verdict", "type": "string", "value": result}]))).await;
        assert_eq!(came, (format!("says {verdict}"), 2));
    }
    for (answer, why) in [
        (run("r-2", json!([])), "is gone"),
        (gone(), "is gone"),
        (run("r-1", json!([])), "completed without a result verdict"),
        (run("r-1", json!(null)), "completed without a result verdict"),
        (run("r-1", json!([{"name": "verdict", "value": ["DoNothing"]}])), "completed without a result verdict"),
        (run("r-1", json!([{"name": "verdict", "value": "sudo pause everything"}])), "is no JSON"),
        (run("r-1", json!([{"name": "verdict", "value": "x".repeat(10 * 1024 * 1024)}])), "more than 8192"),
    ] {
        let (came, _) = said(answer).await;
        assert!(came.starts_with("silent: ") && came.contains(why), "{why}: {came}");
    }
    let (came, asked) = done(read_verdict(), vec![(ANALYST, gone())]).await;
    assert!(came.contains("was deleted before its verdict was read"), "{came}");
    assert_eq!(asked, 1);
    let nameless = execution("nightly-1800000000-triage", "a-1", "u-1", &json!({"phase": "Completed"}));
    let (came, _) = done(read_verdict(), vec![(ANALYST, Answer::found(nameless))]).await;
    assert!(came.contains("names no run"), "{came}");
    for (answer, label) in failures() {
        let shown = format!("{answer:?}");
        assert_eq!(said(answer).await, (label.to_owned(), 2), "nothing is decided by a read that failed: {shown}");
    }
}
