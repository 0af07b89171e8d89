//! The flags of the commands for schedules.

// Doc comments here are the text of `--help`, where backticks would be noise.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use wfe_core::duration;

use super::{Format, ListFormat, ViewArgs, parse_why};

const EXPLAIN_SCHEDULE: &str = "\
Examples:
  kubectl wfe schedule explain nightly-disk-cleanup
  kubectl wfe schedule explain -f nightly.yaml     when would it run, if you created it now?

Exit code: 0 nothing holds the schedule; 1 something holds it, it has no next run, or no operator decides on it; 2 an \
error.";

const LIST_SCHEDULES: &str = "\
Examples:
  kubectl wfe schedule list
  kubectl wfe schedule list --all-namespaces --output json
  kubectl wfe schedule list --output name | xargs -n 1 kubectl wfe schedule suspend";

const NEXT_SCHEDULES: &str = "\
Examples:
  kubectl wfe schedule next -A                  which schedules run within a day, and which would be held?
  kubectl wfe schedule next --until 1h

Exit code: 0 all shown slots would run; 1 something holds a schedule, or no operator decides on it; 2 an error.";

const RUN_SCHEDULE: &str = "\
Example:
  kubectl wfe schedule run nightly-disk-cleanup --reason 'the disk is nearly full'

Sets spec.hint, and replaces an existing hint. Exit code: 0 the hint is set; 1 the schedule would not run, and nothing \
was written; 2 an error.";

const SUSPEND_SCHEDULE: &str = "\
Example:
  kubectl wfe schedule suspend nightly-disk-cleanup

Sets spec.suspend. Exit code: 0 the schedule is suspended; 2 an error.";

const RESUME_SCHEDULE: &str = "\
Examples:
  kubectl wfe schedule resume nightly-disk-cleanup                                          ends a suspension
  kubectl wfe schedule resume nightly-disk-cleanup --reason 'the pull secret is renewed'    ends the effect of a triage

Sets spec.suspend to false. If a triage has paused or adjusted the schedule, also sets spec.resume, which requires \
--reason and the permissions of the ClusterRole wfe-edit or wfe-clear. Exit code: 0 neither a suspension nor a triage \
holds the schedule any more; 2 an error.";

/// The commands for schedules.
#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List schedules, one per line: when each runs next and why, and what holds it.
    #[command(after_help = LIST_SCHEDULES)]
    List(ScheduleListArgs),
    /// Explain when a schedule runs next, which times were compared, and what holds it. Writes nothing.
    #[command(after_help = EXPLAIN_SCHEDULE)]
    Explain(Box<ScheduleExplainArgs>),
    /// Show all slots of the schedules until a time, and what each would do. Writes nothing.
    #[command(after_help = NEXT_SCHEDULES)]
    Next(ScheduleNextArgs),
    /// Ask for a run now, by a hint. A hint does not release a schedule that is held.
    #[command(after_help = RUN_SCHEDULE)]
    Run(ScheduleRunArgs),
    /// Suspend a schedule: it starts nothing new until you resume it. A run that has begun continues.
    #[command(after_help = SUSPEND_SCHEDULE)]
    Suspend(ScheduleNameArgs),
    /// Resume a schedule: lift a suspension, and the pause or the adjusted values of a triage. The plan begins anew,
    /// and missed slots are lost.
    #[command(after_help = RESUME_SCHEDULE)]
    Resume(ScheduleResumeArgs),
}

/// The flags of `schedule list`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleListArgs {
    /// List the schedules of all namespaces.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// The output format. Default: a table for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,
}

/// The flags of `schedule next`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleNextArgs {
    /// Show the slots of all namespaces.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// How far to look ahead, such as 1h or 24h.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration::parse)]
    pub(crate) until: Duration,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator and its settings.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// The flags of `schedule explain`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleExplainArgs {
    /// The name of a WorkflowSchedule.
    #[arg(value_name = "NAME", required_unless_present = "file", conflicts_with = "file")]
    pub(crate) name: Option<String>,

    /// A file with a WorkflowSchedule (YAML or JSON), or - for standard input. The schedule does not have to exist.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator and its settings.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// The flags of `schedule run`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleRunArgs {
    /// The name of the WorkflowSchedule.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The reason. It is stored in the hint.
    #[arg(long, value_name = "TEXT", default_value = "asked for by kubectl wfe schedule run", value_parser = parse_wish)]
    pub(crate) reason: String,
}

/// The flags of `schedule resume`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleResumeArgs {
    /// The name of the WorkflowSchedule.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The reason. It is required if a triage has paused or adjusted the schedule, and is then stored with your name.
    #[arg(long, value_name = "TEXT", value_parser = parse_resume)]
    pub(crate) reason: Option<String>,
}

/// The schedule.
#[derive(Debug, Args)]
pub(crate) struct ScheduleNameArgs {
    /// The name of the WorkflowSchedule.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Checks the reason of a requested run like the API server.
fn parse_wish(text: &str) -> Result<String, String> {
    parse_why(text, wfe_api::limits::HINT_REASON, "it is to run now")
}

/// Checks the reason of a resume like the API server.
fn parse_resume(text: &str) -> Result<String, String> {
    parse_why(text, wfe_api::limits::RESUME_REASON, "it may go on")
}
