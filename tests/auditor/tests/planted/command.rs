//! The command line.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use wfe_auditor::Request;

use crate::story::{NODE, OPERATOR, Story};

/// The files of one test. They are deleted with this value.
struct Files(PathBuf);

impl Files {
    fn of(name: &str) -> Self {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn tell(&self, story: &Story) -> (String, String) {
        let watch: Vec<String> = story.changes.iter().map(|change| serde_json::to_string(change).unwrap()).collect();
        let audit: Vec<String> = story.requests.iter().map(|request| event(request).to_string()).collect();
        (self.write("watch.jsonl", &watch.join("\n")), self.write("audit.log", &(audit.join("\n") + "\n")))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns a request in the format of the API server's audit log.
fn event(request: &Request) -> Value {
    json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "verb": request.verb,
        "user": {"username": request.user},
        "objectRef": {
            "apiGroup": request.group,
            "resource": request.resource,
            "subresource": request.subresource,
            "namespace": request.namespace,
            // As in a real log, only the object contains the name of a created object.
            "name": if request.verb == "create" { "" } else { &request.name },
        },
        "responseStatus": {"code": request.code},
        "requestObject": request.request,
        "responseObject": request.response,
        "requestReceivedTimestamp": request.received_at,
    })
}

fn auditor(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_auditor")).args(args).output().unwrap()
}

fn code(args: &[&str]) -> i32 {
    auditor(args).status.code().unwrap()
}

fn bad() -> Story {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.create("one", 1);
    story.release("one", 1);
    story
}

#[test]
fn a_clean_recording_is_code_0() {
    let files = Files::of("clean");
    let (watch, audit) = files.tell(&Story::good());
    let output = auditor(&["--watch", &watch, "--audit", &audit, "--operator", OPERATOR, "--settled"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("ResourceBusy                   3\n"), "{text}");
    assert!(text.ends_with("no violation\n"), "{text}");
}

#[test]
fn a_violation_is_code_1_and_is_told_with_its_objects_and_times() {
    let files = Files::of("violation");
    let (watch, _) = files.tell(&bad());
    let output = auditor(&["--watch", &watch]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = "\
VIOLATION of invariant 8 (uncommitted) on node/worker-node-1: PipelineRun \
kubernaut-workflows/wfe-ac45b7d6911e97a5-1 was released, and its execution never committed to it
    PipelineRun kubernaut-workflows/wfe-ac45b7d6911e97a5-1 uid run-one-1
    WorkflowExecution ops/one uid uid-one
    at resourceVersion 3, 0.030 s
1 violation
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn the_report_as_json() {
    let files = Files::of("json");
    let (watch, audit) = files.tell(&bad());
    let output = auditor(&["--watch", &watch, "--audit", &audit, "--operator", OPERATOR, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["counts"]["runs"], 1);
    assert_eq!(report["violations"][0]["invariant"], 8);
    assert_eq!(report["violations"][0]["rule"], "uncommitted");
    assert_eq!(report["violations"][0]["at"][0], json!({"resource_version": 3, "at_ms": 30}));
    assert_eq!(report["gaps"], json!([]));
}

#[test]
fn a_recording_that_shows_too_little_is_code_1() {
    let files = Files::of("require");
    let (watch, _) = files.tell(&Story::good());
    assert_eq!(code(&["--watch", &watch, "--require", "runs=5,ResourceBusy=3", "--require", "withdrawn=1"]), 0);
    let output = auditor(&["--watch", &watch, "--require", "runs=5,ResourceBusy=20"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text, "auditor: ResourceBusy is 3, and at least 20 is required\n");
    for wrong in ["ResourceBsy=1", "runs", "runs=many"] {
        assert_eq!(code(&["--watch", &watch, "--require", wrong]), 2, "{wrong}");
    }
}

#[test]
fn what_cannot_be_read_or_is_incomplete_is_code_2() {
    let files = Files::of("unreadable");
    let (watch, audit) = files.tell(&Story::good());
    assert_eq!(code(&[]), 2);
    assert_eq!(code(&["--watch", "/nowhere"]), 2);
    let torn = files.write("torn", "{\"kind\": ");
    let output = auditor(&["--watch", &torn]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("line 1 is not a change"), "{text}");
    assert_eq!(code(&["--watch", &watch, "--audit", &torn]), 0, "an audit log may end in half a line");
    let broken = files.write("broken", "{\"kind\": \n{}\n");
    assert_eq!(code(&["--watch", &watch, "--audit", &broken]), 2);
    assert_eq!(code(&["--watch", &watch, "--audit", &audit, "--operator", "nobody"]), 2, "nobody asked for anything");
    let mut late = bad();
    late.changes.remove(1);
    let (watch, _) = files.tell(&late);
    assert_eq!(code(&["--watch", &watch]), 2, "incomplete, whatever was found");
}

#[test]
fn a_recording_in_two_files_is_one() {
    let files = Files::of("two-files");
    let story = Story::good();
    let (first, second) = story.changes.split_at(story.changes.len() / 2);
    let lines = |changes: &[wfe_auditor::Change]| {
        changes.iter().map(|change| serde_json::to_string(change).unwrap()).collect::<Vec<_>>().join("\n")
    };
    let (first, second) = (files.write("1", &lines(first)), files.write("2", &lines(second)));
    assert_eq!(code(&["--watch", &second, "--watch", &first, "--settled"]), 0);
    assert_eq!(code(&["--watch", &second]), 2);
}
