//! A fixture in another format than the recorder's current one is refused, with the file and the line.

use wfe_simulation::cluster::scripts::Story;

const RUN: &str = concat!(
    r#"{"change":"ADDED","kind":"PipelineRun","name":"a","object":{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","#,
    r#""metadata":{"name":"a","namespace":"n","uid":"u"}}}"#,
);

fn error(text: &str) -> String {
    Story::parse("v0", "broken", "v0/broken/story.jsonl", text).unwrap_err().to_string()
}

#[test]
fn a_fixture_of_another_tekton_is_refused_with_its_line() {
    for (line, problem) in [
        ("{", "EOF"),
        ("[]", "no object"),
        ("{}", "no change"),
        (r#"{"change":"BOOKMARK","kind":"Pod","name":"a"}"#, "the change BOOKMARK"),
        (r#"{"change":"ADDED","kind":"Run","name":"a","object":{}}"#, "the kind Run"),
        (r#"{"change":"ADDED","kind":"TaskRun","name":"a","object":{"apiVersion":"tekton.dev/v2"}}"#, "version"),
        (r#"{"change":"ADDED","kind":"Pod","name":"a","object":{"apiVersion":"v1"}}"#, "without its name"),
        (r#"{"change":"MODIFIED","kind":"Pod","name":"a","patch":{}}"#, "was not added"),
        (r#"{"change":"MODIFIED","kind":"PipelineRun","name":"a"}"#, "no patch"),
        (r#"{"change":"MODIFIED","kind":"PipelineRun","name":"a","patch":{},"at":1}"#, "the field at"),
    ] {
        let said = error(&format!("{RUN}\n{line}"));
        assert!(said.starts_with("v0/broken/story.jsonl:2: unknown format"), "{said}");
        assert!(said.contains(problem), "{said}");
    }
}

#[test]
fn a_story_begins_with_its_run() {
    assert!(error("").starts_with("v0/broken/story.jsonl:1:"));
    let pod = RUN.replace("PipelineRun", "Pod").replace("tekton.dev/v1", "v1");
    assert!(error(&pod).contains("begins with its run"));
    assert!(Story::parse("v0", "short", "short", RUN).is_ok());
}
