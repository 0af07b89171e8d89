//! Which words are valid at a position of the command line.

use clap::{Arg, Command};

use crate::output::Candidate;

/// What may stand in place of the last word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// One of these words.
    Words(Vec<Candidate>),
    /// Names of objects in the cluster.
    Names(Names),
    /// The path of a file.
    File,
    /// Nothing that is known.
    Nothing,
}

/// Names of objects in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Executions, after this prefix.
    Executions { prefix: &'static str },
    /// Schedules.
    Schedules,
    /// Namespaces.
    Namespaces,
    /// Workflows that have run.
    Workflows,
    /// Targets of executions.
    Targets,
    /// Targets that an execution blocks.
    Blocked,
    /// Executions and targets.
    Subjects,
}

/// Finds the place from the words before the last one. The command must be built: each subcommand then knows the global
/// flags.
pub(super) fn place(root: &Command, before: &[String], last: &str) -> Place {
    let mut command = root;
    let mut path: Vec<&str> = Vec::new();
    let mut arguments = 0_usize;
    let mut awaits: Option<&Arg> = None;
    for word in before {
        if awaits.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            awaits = flag(command, word).filter(|_| !word.contains('='));
        } else if let Some(found) = command.find_subcommand(word).filter(|_| arguments == 0) {
            command = found;
            path.push(found.get_name());
        } else {
            arguments += 1;
        }
    }
    if let Some(flag) = awaits {
        return value_of(flag);
    }
    if last.starts_with('-') {
        let flags = command.get_arguments().filter(|it| !it.is_hide_set());
        let words = flags.filter_map(|it| Some((format!("--{}", it.get_long()?), help(it.get_help()))));
        return Place::Words(words.collect());
    }
    if command.has_subcommands() {
        let commands = command.get_subcommands();
        return Place::Words(commands.map(|it| (it.get_name().to_owned(), help(it.get_about()))).collect());
    }
    match (&*path, arguments) {
        (["schedule", _], 0) => Place::Names(Names::Schedules),
        (["logs" | "cancel" | "wait" | "watch"], 0) => Place::Names(Names::Executions { prefix: "" }),
        (["trace"], 0) => Place::Names(Names::Executions { prefix: "wfe/" }),
        (["explain" | "status"], 0) => Place::Names(Names::Subjects),
        (["clear"], 0) => Place::Names(Names::Blocked),
        (["history"], 0) => Place::Names(Names::Targets),
        (["run"], 0) => Place::Names(Names::Workflows),
        (["pause" | "resume"], 0) => Place::Names(Names::Namespaces),
        (["simulate"], 0) => Place::File,
        (["completion"], 0) => command.get_positionals().next().map_or(Place::Nothing, value_of),
        _ => Place::Nothing,
    }
}

/// Returns the flag that a word names, if the flag has a value.
fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let mut flags = command.get_arguments().filter(|it| it.get_action().takes_values());
    match word.strip_prefix("--") {
        Some(long) => flags.find(|it| it.get_long() == Some(long)),
        None => flags.find(|it| it.get_short().is_some_and(|short| word.chars().eq(['-', short]))),
    }
}

/// Returns what may be the value of a flag.
fn value_of(flag: &Arg) -> Place {
    let values = flag.get_possible_values();
    if !values.is_empty() {
        return Place::Words(values.iter().map(|it| (it.get_name().to_owned(), help(it.get_help()))).collect());
    }
    match flag.get_id().as_str() {
        "file" | "files" | "policy" | "kubeconfig" => Place::File,
        "like" | "recover" => Place::Names(Names::Executions { prefix: "" }),
        "on" | "from_cluster" => Place::Names(Names::Targets),
        "namespace" | "operator-namespace" | "watch_namespace" | "execution_namespace" => {
            Place::Names(Names::Namespaces)
        }
        "workflow" => Place::Names(Names::Workflows),
        _ => Place::Nothing,
    }
}

/// Returns the first sentence of a help text.
fn help(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.split_once(". ").map_or(&*text, |(first, _)| first).trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn at(words: &[&str]) -> Place {
        let mut root = Cli::command();
        root.build();
        let (last, before) = words.split_last().unwrap();
        let before: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        place(&root, &before, last)
    }

    fn words(place: Place) -> Vec<String> {
        match place {
            Place::Words(words) => words.into_iter().map(|(word, _)| word).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn commands_and_flags_are_offered() {
        let commands = words(at(&[""]));
        for command in ["status", "run", "schedule", "completion"] {
            assert!(commands.contains(&command.to_owned()), "{commands:?}");
        }
        assert!(words(at(&["-n", "payment", "schedule", "l"])).contains(&"next".to_owned()));
        let flags = words(at(&["list", "-A", "--"]));
        assert!(flags.contains(&"--needs-person".to_owned()) && flags.contains(&"--namespace".to_owned()), "{flags:?}");
        assert_eq!(words(at(&["list", "-o", ""])), ["wide", "name", "json", "yaml"]);
        assert_eq!(words(at(&["completion", ""])), ["bash", "fish", "kubectl", "powershell", "zsh"]);
    }

    #[test]
    fn each_command_is_offered_the_names_that_it_takes() {
        let executions = || Place::Names(Names::Executions { prefix: "" });
        for (words, expected) in [
            (&["logs", ""][..], executions()),
            (&["-n", "payment", "wait", "--timeout", "1h", "a"], executions()),
            (&["--namespace=payment", "cancel", ""], executions()),
            (&["logs", "a", ""], Place::Nothing),
            (&["trace", ""], Place::Names(Names::Executions { prefix: "wfe/" })),
            (&["explain", ""], Place::Names(Names::Subjects)),
            (&["clear", ""], Place::Names(Names::Blocked)),
            (&["history", ""], Place::Names(Names::Targets)),
            (&["schedule", "run", ""], Place::Names(Names::Schedules)),
            (&["run", "w", "--on", ""], Place::Names(Names::Targets)),
            (&["run", "--like", ""], executions()),
            (&["pause", ""], Place::Names(Names::Namespaces)),
            (&["status", "-n", ""], Place::Names(Names::Namespaces)),
            (&["lint", "-f", ""], Place::File),
            (&["simulate", ""], Place::File),
            (&["simulate", "--from-cluster", ""], Place::Names(Names::Targets)),
            (&["logs", "a", "--tail", ""], Place::Nothing),
        ] {
            assert_eq!(at(words), expected, "{words:?}");
        }
    }
}
