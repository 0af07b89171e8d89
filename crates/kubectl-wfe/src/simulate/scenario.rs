//! A scenario: what arrives, how workflows end, which schedules there are and what people do.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::CommandFactory;
use wfe_core::Time;
use wfe_core::policy::Policy;
use wfe_core::reason::FailureReason;
use wfe_core::target::TargetName;
use wfe_settings::config::{Document, Flags, Place};
use wfe_settings::table::TABLE;
use wfe_view::index::{ExecutionRecord, ScheduleRecord};

use super::node::{Fault, unknown};

/// The most executions of a play.
pub(super) const MOST: u64 = 200_000;

/// A scenario.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// When it begins.
    pub(super) start: Time,
    /// The keys of the `ConfigMap`, with their lines.
    pub(super) keys: BTreeMap<String, (u64, String)>,
    /// The workflows, by name. Without any, every workflow takes a minute and completes.
    pub(super) workflows: BTreeMap<String, Workflow>,
    /// The executions that programs and people create.
    pub(super) arrivals: Vec<Arrival>,
    /// The schedules, copies included.
    pub(super) schedules: Vec<Planned>,
    /// What people do, and when.
    pub(super) people: Vec<(Duration, Act)>,
}

/// How runs of a workflow end.
#[derive(Clone, Debug)]
pub(super) struct Workflow {
    pub(super) version: String,
    pub(super) image: Option<String>,
    /// How long a run takes until it succeeds.
    pub(super) takes: Duration,
    /// How long tasks and pods outlive their run.
    pub(super) drains: Duration,
    /// When runs fail. The first entry that matches decides.
    pub(super) fails: Vec<Failing>,
}

/// Which runs of a workflow fail, and how.
#[derive(Clone, Debug)]
pub(super) struct Failing {
    pub(super) from: Duration,
    pub(super) to: Option<Duration>,
    pub(super) every: Option<u64>,
    pub(super) attempts: Option<u64>,
    /// The reason, one of seven.
    pub(super) reason: FailureReason,
    /// Whether a step of the workflow ran.
    pub(super) ran: bool,
    /// The exit code of the step that failed.
    pub(super) exit_code: Option<i32>,
    /// How long after its start the run fails.
    pub(super) after: Option<Duration>,
    /// What Tekton reports.
    pub(super) says: String,
    /// The results that conditions of a retry policy can ask about.
    pub(super) results: BTreeMap<String, String>,
}

/// Executions that are created one after the other.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) line: u64,
    /// The first of them; the others differ in name, target and time.
    pub(super) record: ExecutionRecord,
    /// The prefix of the names; the number of the execution follows it.
    pub(super) name: String,
    /// The target; `{n}` stands for the number of the execution, which begins again at 1 after `targets` executions.
    pub(super) on: String,
    /// After how many executions the numbers in targets begin anew.
    pub(super) targets: Option<u64>,
    /// When the first is created.
    pub(super) at: Duration,
    /// The time between two of them. None: all are created at once.
    pub(super) every: Option<Duration>,
    /// How many there are. None: there is no end.
    pub(super) times: Option<u64>,
}

/// A schedule, with what its children are made from.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// The schedule, as it is created.
    pub(super) record: ScheduleRecord,
    /// A child; the others differ in name, slot and time.
    pub(super) child: ExecutionRecord,
    /// `spec.interval` or `spec.cron`, as written.
    pub(super) every: String,
}

/// What a person does.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Clears a target.
    Clear(TargetName),
    /// Cancels an execution, as `namespace/name`.
    Cancel(String),
    /// Pauses a namespace, or everything (`all`).
    Pause(String),
    /// Ends a pause.
    Resume(String),
}

impl Scenario {
    /// Returns the policy, with another value of one key if that is given.
    pub(super) fn policy(&self, other: Option<(&str, &str)>) -> Result<Policy, Fault> {
        let own = self.keys.iter().map(|(key, (_, value))| (key.clone(), Ok(value.clone())));
        let other = other.map(|(key, value)| (key.to_owned(), Ok(value.to_owned())));
        let document = Document { values: own.chain(other).collect(), ..Document::default() };
        let place = Place { namespace: "the".to_owned(), name: "scenario".to_owned() };
        let in_force = defaults().under(&place, Some(&document)).map_err(|refused| {
            let line = refused.problems.iter().find_map(|it| self.keys.get(&it.key)).map_or(1, |(line, _)| *line);
            Fault { line, what: format!("policy: {refused}") }
        })?;
        let mut policy = in_force.policy;
        policy.paused_by = policy.paused_by.map(|_| "policy.paused".into());
        Ok(policy)
    }

    /// Returns the script of a workflow.
    pub(super) fn workflow(&self, name: &str) -> Workflow {
        self.workflows.get(name).cloned().unwrap_or_else(|| Workflow {
            version: "1".to_owned(),
            image: None,
            takes: Duration::from_mins(1),
            drains: Duration::ZERO,
            fails: Vec::new(),
        })
    }

    /// Checks that the arrivals until a time are few enough to be played.
    pub(super) fn check_size(&self, until: Duration) -> Result<(), Fault> {
        let mut all: u64 = 0;
        for arrival in &self.arrivals {
            all = all.saturating_add(arrival.count(until));
            if all > MOST {
                let what = format!(
                    "arrive: {all} executions are too many; at most {MOST} are played, because each is decided on as the \
                     operator does it: lower \"times\", raise \"every\" or give --until"
                );
                return Err(Fault { line: arrival.line, what });
            }
        }
        Ok(())
    }
}

impl Arrival {
    /// Returns how many executions are created until a time.
    pub(super) fn count(&self, until: Duration) -> u64 {
        let times = self.times.unwrap_or(u64::MAX);
        match (until.checked_sub(self.at), self.every) {
            (None, _) => 0,
            (Some(_), None) => times,
            (Some(left), Some(every)) => times.min(left.as_secs() / every.as_secs().max(1) + 1),
        }
    }

    /// Returns the target of the n-th execution, from 1.
    pub(super) fn target(&self, n: u64) -> Option<TargetName> {
        let number = self.targets.map_or(n, |targets| (n - 1) % targets + 1);
        TargetName::parse(&numbered(&self.on, number)).ok()
    }
}

impl Failing {
    /// Returns the failure of a run that Tekton ends at its time-out.
    pub(super) fn timed_out(ran: bool) -> Self {
        Self {
            from: Duration::ZERO,
            to: None,
            every: None,
            attempts: None,
            reason: FailureReason::DeadlineExceeded,
            ran,
            exit_code: None,
            after: None,
            says: "the run has reached its time-out".to_owned(),
            results: BTreeMap::new(),
        }
    }

    /// Returns whether a run fails: the `nth` run of its workflow, which is released this long after the start.
    pub(super) fn matches(&self, since_start: Duration, nth: u64, attempt: u64) -> bool {
        self.from <= since_start
            && self.to.is_none_or(|to| since_start < to)
            && self.every.is_none_or(|every| nth.is_multiple_of(every))
            && self.attempts.is_none_or(|attempts| attempt <= attempts)
    }
}

/// Makes the uid of the n-th object of a class. Later objects of a class have greater uids.
pub(super) fn uid(class: u8, n: u64) -> String {
    format!("0000000{class}-0000-4000-8000-{n:012x}")
}

/// Puts a number into a target.
pub(super) fn numbered(target: &str, n: u64) -> String {
    target.replace("{n}", &n.to_string())
}

/// Checks that a key exists, for a value that the command line gives.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    let known: Vec<&str> = TABLE.iter().map(|row| row.key).collect();
    if known.contains(&key) { Ok(()) } else { Err(unknown(key, " in the policy", &known)) }
}

/// Returns the operator's default flags. They are given as command-line arguments, so that no environment variable
/// counts.
fn defaults() -> Flags {
    let command = wfe_settings::cli::Cli::command();
    let run = command.find_subcommand("run");
    let flags = run.into_iter().flat_map(clap::Command::get_arguments).filter_map(|flag| {
        let (name, [default]) = (flag.get_long()?, flag.get_default_values()) else { return None };
        TABLE.iter().any(|row| row.key == name).then(|| format!("--{name}={}", default.to_string_lossy()))
    });
    Flags::of_run(flags.chain(["--namespace=kubernaut-system".to_owned()]))
}
