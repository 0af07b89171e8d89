//! The operator's requests, which are recorded once. The floor client sends them with other names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use wfe_testkit::proxy::{Request, Verb};
use wfe_testkit::{Fault, Proxy, World};

use crate::player::{self, Player};
use crate::subject::Operator;

/// The recorded execution. Its name is part of its target, and of everything that is derived from the target.
const NAME: &str = "recorded";

/// One kind of request by the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Step {
    Create,
    Commit,
    Release,
    End,
    Skip,
    EventCreated,
    EventCompleted,
    EventSkipped,
}

impl Step {
    const ALL: [Self; 8] = [
        Self::Create,
        Self::Commit,
        Self::Release,
        Self::End,
        Self::Skip,
        Self::EventCreated,
        Self::EventCompleted,
        Self::EventSkipped,
    ];

    fn of(request: &Request) -> Option<Self> {
        let text = |pointer: &str| request.body.pointer(pointer).and_then(|value| value.as_str()).unwrap_or_default();
        match (request.verb, request.resource.as_str()) {
            (Verb::Create, "pipelineruns") => Some(Self::Create),
            (Verb::Patch, "pipelineruns") => Some(Self::Release),
            (Verb::Patch, "workflowexecutions") => match text("/status/phase") {
                "Running" => Some(Self::Commit),
                "Completed" => Some(Self::End),
                "Skipped" => Some(Self::Skip),
                _ => None,
            },
            (Verb::Create, "events") => match text("/reason") {
                "PipelineRunCreated" => Some(Self::EventCreated),
                "WorkflowCompleted" => Some(Self::EventCompleted),
                "Skipped" => Some(Self::EventSkipped),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The names that vary between requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub(crate) namespace: String,
    pub(crate) execution_namespace: String,
    pub(crate) wfe: String,
    pub(crate) wfe_uid: String,
    pub(crate) wfe_version: String,
    pub(crate) run: String,
    pub(crate) run_uid: String,
}

impl Names {
    /// Returns the names in the order in which a text is searched for them. A name that contains another name comes
    /// first.
    fn all(&self) -> [&str; 7] {
        [
            &self.execution_namespace,
            &self.namespace,
            &self.wfe_uid,
            &self.run_uid,
            &self.run,
            &self.wfe,
            &self.wfe_version,
        ]
    }
}

/// A text with placeholders for the names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Text(Vec<Piece>);

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Piece {
    Literal(String),
    Name(usize),
}

impl Text {
    /// Parses a text, in which each name becomes a placeholder.
    pub(crate) fn of(text: &str, names: &Names) -> Self {
        let mut pieces = vec![Piece::Literal(text.to_owned())];
        for (index, name) in names.all().into_iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            pieces = pieces.into_iter().flat_map(|piece| split(piece, name, index)).collect();
        }
        Self(pieces)
    }

    /// Replaces the placeholders by names.
    pub(crate) fn render(&self, names: &Names) -> String {
        let all = names.all();
        let texts = self.0.iter().map(|piece| match piece {
            Piece::Literal(text) => text.as_str(),
            Piece::Name(index) => all[*index],
        });
        texts.collect()
    }
}

fn split(piece: Piece, name: &str, index: usize) -> Vec<Piece> {
    let Piece::Literal(text) = piece else { return vec![piece] };
    let mut pieces = Vec::new();
    for (at, part) in text.split(name).enumerate() {
        if at > 0 {
            pieces.push(Piece::Name(index));
        }
        if !part.is_empty() {
            pieces.push(Piece::Literal(part.to_owned()));
        }
    }
    pieces
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) method: &'static str,
    pub(crate) uri: String,
    pub(crate) content: &'static str,
    pub(crate) body: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Template {
    uri: Text,
    body: Text,
}

/// The requests that the floor client sends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Templates(BTreeMap<Step, Template>);

impl Templates {
    /// Lets the operator run one execution and skip another one, and records its requests.
    pub(crate) async fn record(world: &World, program: &Path) -> Result<Self> {
        let sent: Arc<Mutex<BTreeMap<Step, Request>>> = Arc::default();
        let proxy = Proxy::start(world.control_plane()).await?;
        let to = Arc::clone(&sent);
        proxy.on(move |request| {
            if let Some(step) = Step::of(request) {
                to.lock().unwrap_or_else(PoisonError::into_inner).entry(step).or_insert_with(|| request.clone());
            }
            Fault::Pass
        });
        let operator = Operator::start(world, program, Some(&proxy)).await?;
        let target = format!("node/{NAME}");
        let wfe = player::execution(world, NAME, &target).create().await?;
        world.await_phase(NAME, "Running").await?;
        let skipped = player::execution(world, "skipped-one", &target).create().await?;
        world.await_phase("skipped-one", "Skipped").await?;
        let run = world.runs().await?.pop().context("no run")?;
        let player = Player::start(world.client(), &world.execution_namespace(), player::Mode::Plain);
        world.await_phase(NAME, "Completed").await?;
        world.await_event(NAME, "WorkflowCompleted").await?;
        world.await_event("skipped-one", "Skipped").await?;
        drop(player);
        operator.stop().await?;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let ran = Names {
            namespace: world.namespace().to_owned(),
            execution_namespace: world.execution_namespace(),
            wfe: NAME.to_owned(),
            wfe_uid: wfe.metadata.uid.unwrap_or_default(),
            wfe_version: "@WFE-VERSION@".to_owned(),
            run: text(&run["metadata"]["name"]),
            run_uid: text(&run["metadata"]["uid"]),
        };
        let waited = Names {
            wfe: "skipped-one".to_owned(),
            wfe_uid: skipped.metadata.uid.unwrap_or_default(),
            // Empty names get no placeholder, so every skip message names the recorded execution that ran.
            run: String::new(),
            run_uid: String::new(),
            ..ran.clone()
        };
        let sent = std::mem::take(&mut *sent.lock().unwrap_or_else(PoisonError::into_inner));
        let missing: Vec<Step> = Step::ALL.into_iter().filter(|step| !sent.contains_key(step)).collect();
        ensure!(missing.is_empty(), "the operator did not send {missing:?}");
        let template = |(step, request): (Step, Request)| {
            let names = if matches!(step, Step::Skip | Step::EventSkipped) { &waited } else { &ran };
            let mut body = (*request.body).clone();
            if body.pointer("/metadata/resourceVersion").is_some() {
                body["metadata"]["resourceVersion"] = json!(names.wfe_version);
            }
            (step, Template { uri: Text::of(&request.uri, names), body: Text::of(&body.to_string(), names) })
        };
        Ok(Self(sent.into_iter().map(template).collect()))
    }

    /// Renders a request.
    pub(crate) fn render(&self, step: Step, names: &Names) -> Result<Rendered> {
        let template = self.0.get(&step).with_context(|| format!("{step:?} was not recorded"))?;
        let (method, content) = match step {
            Step::Release => ("PATCH", "application/json-patch+json"),
            Step::Commit | Step::End | Step::Skip => ("PATCH", "application/merge-patch+json"),
            _ => ("POST", "application/json"),
        };
        Ok(Rendered { method, uri: template.uri.render(names), content, body: template.body.render(names) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_rendered_with_other_names() {
        let names = |letter: &str| Names {
            namespace: format!("ns-{letter}"),
            execution_namespace: format!("ns-{letter}-exec"),
            wfe: format!("wfe-{letter}"),
            wfe_uid: format!("uid-{letter}"),
            run: format!("wfe-{letter}-run"),
            ..Names::default()
        };
        let text = |n: &Names| {
            format!("/{}/{}/{} {}: {} of {}", n.namespace, n.execution_namespace, n.run, n.wfe, n.wfe_uid, n.wfe)
        };
        let recorded = Text::of(&text(&names("a")), &names("a"));
        assert_eq!(recorded.render(&names("b")), text(&names("b")));
    }
}
