//! The subject of a question, as written on the command line.

use kube::api::DynamicObject;
use wfe_core::target::TargetName;

/// A target, or an execution by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A target.
    Target(TargetName),
    /// The name of a `WorkflowExecution`.
    Execution(String),
}

impl Subject {
    /// Parses either. A name has no slash, except after the kind that `kubectl get --output name` writes before it.
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
}
