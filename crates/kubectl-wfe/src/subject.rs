//! The subject of a question, as written on the command line.

use kube::api::DynamicObject;
use wfe_core::target::TargetName;
use wfe_view::index::Kind;

/// A target, or an execution by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A target.
    Target(TargetName),
    /// The name of a `WorkflowExecution`.
    Execution(String),
}

impl Subject {
    /// Parses a target or a name. A name has no slash, except after the kind that `kubectl get --output name` writes
    /// before it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            None => Ok(Self::Execution(text.to_owned())),
            Some((kind, name)) if is_ours(kind) && !name.contains('/') => Ok(Self::Execution(name.to_owned())),
            Some(_) => Self::parse_target(text).map(Self::Target),
        }
    }

    /// Parses a target.
    pub(crate) fn parse_target(text: &str) -> Result<TargetName, String> {
        TargetName::parse(text).map_err(|error| format!("it {error}"))
    }
}

fn is_ours(kind: &str) -> bool {
    let kind = kind.split_once('.').map_or(kind, |(kind, _)| kind);
    ["wfe", "workflowexecution", "workflowexecutions"].iter().any(|ours| kind.eq_ignore_ascii_case(ours))
}

/// Parses the name of an execution. The kind may stand before the name.
pub(crate) fn parse_execution(text: &str) -> Result<String, String> {
    match Subject::parse(text) {
        Ok(Subject::Execution(name)) => Ok(name),
        _ => Err("it must be the name of a WorkflowExecution; see: kubectl get wfe".to_owned()),
    }
}

/// An object that is traced to its execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traced {
    /// Its kind: a pod, a TaskRun, a PipelineRun or an execution.
    pub(crate) kind: Kind,
    /// Its name.
    pub(crate) name: String,
}

impl Traced {
    /// Parses `KIND/NAME`, with the kinds as kubectl names them.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (kind, name) =
            text.split_once('/').filter(|(_, name)| !name.is_empty() && !name.contains('/')).ok_or(FORMS)?;
        let short = kind.split_once('.').map_or(kind, |(kind, _)| kind).to_ascii_lowercase();
        let kind = match &*short {
            "pod" | "pods" | "po" => Kind::Pod,
            "taskrun" | "taskruns" | "tr" => Kind::TaskRun,
            "pipelinerun" | "pipelineruns" | "pr" => Kind::Run,
            _ if is_ours(kind) => Kind::Execution,
            _ => return Err(FORMS.to_owned()),
        };
        Ok(Self { kind, name: name.to_owned() })
    }
}

const FORMS: &str = "it must be pod/NAME, taskrun/NAME, pipelinerun/NAME or wfe/NAME";

/// The schedule of a question.
pub(crate) enum AskedSchedule {
    /// A schedule that does not exist yet.
    New(Box<DynamicObject>),
    /// A schedule by name.
    Named { namespace: String, name: String },
}

impl AskedSchedule {
    /// Returns whether an object has the name of the asked schedule.
    pub(crate) fn names(&self, object: &DynamicObject) -> bool {
        let (namespace, name) = self.name();
        object.metadata.namespace.as_deref() == Some(namespace) && object.metadata.name.as_deref() == Some(name)
    }

    /// Returns namespace and name.
    pub(crate) fn name(&self) -> (&str, &str) {
        match self {
            Self::New(object) => {
                let meta = &object.metadata;
                (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
            }
            Self::Named { namespace, name } => (namespace, name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_slash_and_a_name_has_none() {
        for name in ["restart-1", "wfe/restart-1", "workflowexecution.kubernaut.ai/restart-1"] {
            assert_eq!(Subject::parse(name), Ok(Subject::Execution("restart-1".to_owned())), "{name}");
        }
        for (text, target) in [("node/worker-1", "node/worker-1"), ("a/deploy/b", "a/deployment/b")] {
            let name = Subject::parse(text);
            assert!(matches!(&name, Ok(Subject::Target(name)) if name.as_str() == target), "{text}: {name:?}");
        }
        assert!(Subject::parse("a/b/c/d").is_err_and(|error| error.contains("namespace/kind/name")));
        assert!(Subject::parse_target("restart-1").is_err());
        for (text, form) in
            [("deploy/api", "it must be namespace/deployment/api "), ("a/Nodes/b", "it must be node/b ")]
        {
            assert!(Subject::parse(text).is_err_and(|error| error.starts_with(form)), "{text}");
        }
    }
    #[test]
    fn an_object_is_traced_by_kind_and_name() {
        for (text, kind) in [
            ("pod/a", Kind::Pod),
            ("po/a", Kind::Pod),
            ("taskrun.tekton.dev/a", Kind::TaskRun),
            ("PipelineRuns/a", Kind::Run),
            ("wfe/a", Kind::Execution),
        ] {
            assert_eq!(Traced::parse(text), Ok(Traced { kind, name: "a".to_owned() }), "{text}");
        }
        for text in ["a", "pod/", "pod/a/b", "node/a"] {
            assert_eq!(Traced::parse(text), Err(FORMS.to_owned()), "{text}");
        }
        assert_eq!(parse_execution("wfe/a"), Ok("a".to_owned()));
        assert!(parse_execution("node/a").is_err());
    }
}
