//! Completion on the command line: scripts for shells, and the answers that kubectl asks a plugin for.

mod place;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{CommandFactory, FromArgMatches};
use clap_complete::Shell as Generator;
use kube::api::{Api, DynamicObject, ListParams};
use wfe_view::index::Kind;
use wfe_view::source::objects;

use crate::cli::{Cli, ClusterArgs, CompletionArgs, Shell};
use crate::connection::Connection;
use crate::execution::target;
use crate::object::{condition, text};
use crate::output::{Candidate, output};
use place::{Names, Place, place};

/// The file that makes kubectl ask this plugin. kubectl runs it with the words after `wfe`.
const KUBECTL: &str = "#!/bin/sh\n# kubectl runs this program to complete the words after `kubectl wfe`.\n\
                       exec kubectl-wfe __complete -- \"$@\"\n";
/// The first word of a call by that file. A word `--` follows it.
const ASKS: &str = "__complete";
/// How long a person waits after the tab key.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);
/// How many objects are listed: more than a person chooses from.
const MOST: u32 = 500;
/// The directives of kubectl: offer files if nothing fits, or do not.
const FILES: u8 = 0;
const NO_FILES: u8 = 4;

/// Writes the script for a shell. Always yes.
pub(crate) fn run(args: &CompletionArgs) -> Result<bool> {
    let shell = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Fish => Generator::Fish,
        Shell::Powershell => Generator::PowerShell,
        Shell::Zsh => Generator::Zsh,
        Shell::Kubectl => {
            output().script(KUBECTL)?;
            return Ok(true);
        }
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kubectl-wfe", &mut script);
    output().script(&String::from_utf8(script).context("the script is not text")?)?;
    Ok(true)
}

/// Returns the words to complete, if kubectl asks: those after `kubectl wfe`, and the last one may be unfinished.
pub(crate) fn asked(words: impl Iterator<Item = OsString>) -> Option<Vec<String>> {
    let mut words = words.skip(1);
    words.next().filter(|first| first == ASKS)?;
    Some(words.skip(1).map(|word| word.to_string_lossy().into_owned()).collect())
}

/// Answers kubectl: the words that may stand in place of the last one. If the cluster does not answer, no names of
/// objects are offered.
pub(crate) fn answer(words: &[String]) -> Result<u8> {
    let (last, before) = words.split_last().map_or(("", words), |(last, before)| (&**last, before));
    let mut root = Cli::command();
    root.build();
    let (candidates, directive) = match place(&root, before, last) {
        Place::Words(candidates) => (candidates, NO_FILES),
        Place::File => (Vec::new(), FILES),
        Place::Nothing => (Vec::new(), NO_FILES),
        Place::Names(names) => {
            let listed = async { tokio::time::timeout(ANSWERS_WITHIN, listed(before, names)).await };
            let listed = tokio::runtime::Runtime::new()?.block_on(listed);
            (listed.ok().and_then(Result::ok).unwrap_or_default(), NO_FILES)
        }
    };
    let fitting = candidates.into_iter().filter(|(word, _)| word.starts_with(last));
    output().candidates(fitting, directive)?;
    Ok(0)
}

/// Lists names in the cluster and the namespace of the other words.
async fn listed(words: &[String], names: Names) -> Result<Vec<Candidate>> {
    let words = std::iter::once("kubectl-wfe").chain(words.iter().map(String::as_str));
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(words)?;
    let connection = Connection::open(&ClusterArgs::from_arg_matches(&matches)?).await?;
    let (kind, namespace) = match names {
        Names::Namespaces => (Kind::Namespace, None),
        Names::Schedules => (Kind::Schedule, Some(&*connection.namespace)),
        _ => (Kind::Execution, Some(&*connection.namespace)),
    };
    let api: Api<DynamicObject> = objects(&connection.client, kind, namespace);
    let found = api.list(&ListParams::default().limit(MOST)).await?.items;
    Ok(candidates(&found, names).into_iter().collect())
}

/// Returns the names of objects, and what helps to choose one.
fn candidates(found: &[DynamicObject], names: Names) -> BTreeMap<String, String> {
    let mut candidates = BTreeMap::new();
    for object in found {
        let name = object.metadata.name.clone().unwrap_or_default();
        let phase = text(object, "/status/phase").unwrap_or("Pending");
        let on = target(object);
        match names {
            Names::Namespaces => {
                candidates.insert(name, String::new());
            }
            Names::Schedules => {
                let on = text(object, "/spec/template/spec/targetResource").unwrap_or_default();
                candidates.insert(name, on.to_owned());
            }
            Names::Workflows => {
                let workflow = text(object, "/spec/workflowRef/workflowId").unwrap_or_default();
                candidates.insert(workflow.to_owned(), String::new());
            }
            Names::Executions { prefix } => {
                candidates.insert(format!("{prefix}{name}"), format!("{phase} on {on}"));
            }
            Names::Targets => {
                candidates.insert(on.to_owned(), String::new());
            }
            Names::Blocked => {
                if condition(object, wfe_api::conditions::BLOCKED).is_some_and(|it| it["status"] == "True") {
                    candidates.insert(on.to_owned(), format!("blocked by {name}"));
                }
            }
            Names::Subjects => {
                candidates.insert(name, format!("{phase} on {on}"));
                candidates.entry(on.to_owned()).or_default();
            }
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_shell_has_a_script_that_knows_the_commands() {
        for shell in [Generator::Bash, Generator::Fish, Generator::PowerShell, Generator::Zsh] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kubectl-wfe", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("kubectl-wfe") && script.contains("needs-person"), "{shell}");
            assert!(!script.contains("__complete"), "{shell}: a hidden command");
        }
    }

    #[test]
    fn only_kubectl_asks_for_words() {
        let asked = |words: &[&str]| asked(words.iter().map(OsString::from));
        assert_eq!(
            asked(&["kubectl-wfe", "__complete", "--", "logs", "-n", ""]),
            Some(vec!["logs".to_owned(), "-n".to_owned(), String::new()])
        );
        assert_eq!(asked(&["kubectl-wfe", "logs", "__complete"]), None);
        assert_eq!(asked(&["kubectl-wfe"]), None);
    }

    #[test]
    fn names_are_offered_with_what_helps_to_choose() {
        let blocked = json!([{"type": "Blocked", "status": "True"}]);
        let found: Vec<DynamicObject> = serde_json::from_value(json!([
            {
                "metadata": {"name": "a"}, "spec": {"workflowRef": {"workflowId": "drain"}, "targetResource": "Node/n"},
                "status": {"phase": "Failed", "target": "node/n", "conditions": blocked},
            },
            {"metadata": {"name": "b"}, "spec": {"workflowRef": {"workflowId": "drain"}, "targetResource": "node/m"}},
        ]))
        .unwrap();
        let offered = |names| -> Vec<(String, String)> { candidates(&found, names).into_iter().collect() };
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned())).collect()
        };
        let both = [("wfe/a", "Failed on node/n"), ("wfe/b", "Pending on node/m")];
        for (names, expected) in [
            (Names::Executions { prefix: "wfe/" }, &both[..]),
            (Names::Targets, &[("node/m", ""), ("node/n", "")]),
            (Names::Blocked, &[("node/n", "blocked by a")]),
            (Names::Workflows, &[("drain", "")]),
            (Names::Subjects, &[("a", "Failed on node/n"), ("b", "Pending on node/m"), ("node/m", ""), ("node/n", "")]),
        ] {
            assert_eq!(offered(names), pairs(expected), "{names:?}");
        }
    }
}
