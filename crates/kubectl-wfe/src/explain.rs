//! `kubectl wfe explain`: whether an execution would run now, which rule decides, and when that changes.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use kube::api::DynamicObject;
use serde_json::Value;
use wfe_core::rules::Verdict;
use wfe_core::target::TargetName;

use crate::cli::ExplainArgs;
use crate::view::{Answer, Lookout, target};

/// Runs the command.
pub(crate) async fn run(args: ExplainArgs) -> Result<()> {
    let lookout = Lookout::open(&args.view).await?;
    let added = match (&args.file, args.subject.as_deref()) {
        (Some(file), _) => Some(from_file(&lookout, file)?),
        (None, Some(text)) if text.contains('/') => Some(lookout.hypothetical(&target(text)?, &args.view.workflow)?),
        _ => None,
    };
    let seen = lookout.look(added.as_ref()).await?;
    let object = match (&added, args.subject.as_deref()) {
        (Some(added), _) => added,
        (None, name) => {
            let (name, namespace) = (name.unwrap_or_default(), &lookout.namespace);
            seen.named(namespace, name).with_context(|| {
                format!(
                    "there is no WorkflowExecution {name} in the namespace {namespace}; choose another one with -n \
                     (kubectl get wfe --all-namespaces), or name a target: namespace/kind/name or kind/name"
                )
            })?
        }
    };
    let record = seen.record(object)?;
    let on = record.target.as_ref().map_or("the target", TargetName::as_str);
    let who = match (&args.file, &added) {
        (None, Some(_)) => format!("a new execution on {on}"),
        _ => format!("{} on {on}", record.execution.id),
    };
    let text = if record.execution.is_undecided() {
        render_answer(&who, on, &seen.answer(&record)?)
    } else {
        render_decided(&who, object)
    };
    print!("{text}");
    Ok(())
}

fn from_file(lookout: &Lookout, file: &Path) -> Result<DynamicObject> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}; check the path and its rights", file.display()))?;
    let object: Value =
        serde_saphyr::from_str(&text).with_context(|| format!("{} is not one YAML document", file.display()))?;
    anyhow::ensure!(
        object["kind"] == "WorkflowExecution",
        "{} holds no WorkflowExecution; give a file with one, and nothing else",
        file.display()
    );
    lookout.completed(object).with_context(|| format!("{} cannot be used", file.display()))
}

/// Says how an undecided execution fares: the answer first, then where it comes from.
pub(crate) fn render_answer(who: &str, target: &str, answer: &Answer) -> String {
    let Some(judgement) = &answer.judgement else {
        let why = answer.waiting.as_ref().map_or_else(
            || "its run has been released, and the operator is about to say so; look again in a moment".to_owned(),
            |waiting| format!("it waits, {}: {}", waiting.reason(), waiting.message()),
        );
        return format!("{who}: {why}\n");
    };
    let head = match (&judgement.verdict, &answer.waiting) {
        (Verdict::Run, Some(waiting)) => format!("would wait, {}: {}", waiting.reason(), waiting.message()),
        (Verdict::Run, None) => "would run now".to_owned(),
        (Verdict::Wait(waiting), _) => format!("would wait, {}", waiting.reason()),
        (Verdict::Skip { skip, .. }, _) => format!("would be skipped, {}", skip.reason()),
        (Verdict::Fail { reason, .. }, _) => format!("would fail, {reason}"),
    };
    let changes = match (judgement.until(), &judgement.verdict) {
        (Some(until), _) => format!("by time alone at {}", until.format("%Y-%m-%dT%H:%M:%SZ")),
        (None, Verdict::Run) => "not by time alone".to_owned(),
        (None, _) => "not by time alone: do what the last line says".to_owned(),
    };
    let mut text = format!("{who}: {head}\n\n  decided by   rule {}\n  changes      {changes}\n\n", judgement.rule());
    text.push_str("What each rule found, in order:\n");
    for line in judgement.explain(target).lines() {
        let _ = writeln!(text, "  {line}"); // a String takes all that is written to it
    }
    text
}

/// Says what the status of an execution says that is decided already.
pub(crate) fn render_decided(who: &str, object: &DynamicObject) -> String {
    let stands = match object.data["status"]["phase"].as_str() {
        None | Some("" | "Pending") => "is being deleted, and is not decided on any more".to_owned(),
        Some("Running") => "is Running".to_owned(),
        Some(ended) => format!("is {ended}, and that does not change any more"),
    };
    let mut text = format!("{who}: {stands}\n\n");
    for (label, pointer) in [
        ("run", "/status/pipelineRunRef/name"),
        ("started", "/status/startTime"),
        ("ended", "/status/completionTime"),
        ("reason", "/status/failureDetails/reason"),
        ("why", "/status/failureDetails/message"),
        ("reason", "/status/skipDetails/reason"),
        ("why", "/status/skipDetails/message"),
        ("cleared by", "/status/clearance/clearedBy"),
        ("because", "/status/clearance/reason"),
    ] {
        if let Some(said) = object.data.pointer(pointer).and_then(Value::as_str) {
            let _ = writeln!(text, "  {label:<12} {said}"); // a String takes all that is written to it
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wfe_core::action::Waiting;
    use wfe_core::explain::{Finding, Judgement};

    #[test]
    fn the_answer_comes_first_then_the_rule_and_the_time() {
        let until = "2026-01-02T03:04:05Z".parse().unwrap();
        let asked = vec![
            ("pause", Finding::Passes { because: "its namespace is not paused".into(), until: None }),
            ("4 backoff", Finding::Passes { because: "no failure".into(), until: Some(until) }),
        ];
        let judgement = Judgement { verdict: Verdict::Run, asked };
        let text = render_answer("it", "node/n", &Answer { judgement: Some(judgement.clone()), waiting: None });
        assert_eq!(
            text,
            "it: would run now\n\n  decided by   rule 6 otherwise\n  changes      by time alone at 2026-01-02T03:04:05Z\n\n\
             What each rule found, in order:\n  pause: its namespace is not paused\n  \
             4 backoff: no failure (until 2026-01-02T03:04:05Z)\n  6 otherwise: it runs\n"
        );
        let text = render_answer("it", "node/n", &Answer { judgement: Some(judgement), waiting: Some(Waiting::Turn) });
        assert!(text.starts_with("it: would wait, Turn: an older WorkflowExecution"), "{text}");
    }

    #[test]
    fn what_has_ended_says_what_its_status_says() {
        let object =
            json!({"status": {"phase": "Skipped", "skipDetails": {"reason": "ResourceBusy", "message": "busy"}}});
        let object: DynamicObject = serde_json::from_value(with_metadata(object)).unwrap();
        let text = render_decided("ns/a on node/n", &object);
        assert_eq!(
            text,
            "ns/a on node/n: is Skipped, and that does not change any more\n\n  reason       ResourceBusy\n  why          busy\n"
        );
    }

    fn with_metadata(mut object: Value) -> Value {
        object["metadata"] = json!({});
        object
    }
}
