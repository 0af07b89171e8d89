//! A path through the model as text, one sentence for each step.

use std::fmt;

use stateright::Path;

use crate::cluster::Cluster;
use crate::model::{Move, Setting, State};
use crate::object::{End, Kind, Phase, RunUid};
use crate::operator::{Fate, Operator};
use crate::request::{Fact, Premise, Read, Request, StatusWrite, Step};

/// A path as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The steps, with one sentence each.
    pub steps: Vec<String>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in (1..).zip(&self.steps) {
            writeln!(f, "  {number:2}. {step}")?;
        }
        Ok(())
    }
}

/// Describes a path as text.
#[must_use]
pub fn tell(setting: &Setting, path: Path<State, Move>) -> Trace {
    let steps = path.into_vec().into_iter().filter_map(|(state, next)| Some(sentence(setting, &state, next?)));
    Trace { steps: steps.collect() }
}

fn sentence(setting: &Setting, state: &State, next: Move) -> String {
    let cluster = &state.cluster;
    let who = |who: usize| state.operators.get(who).map_or('?', |operator| operator.label.0);
    match next {
        Move::Make => format!("w{} is made", cluster.executions.len()),
        Move::Remake(name) => format!("w{name} is made again"),
        Move::Unmake(id) => format!("somebody deletes {id}"),
        Move::AskToCancel(id) => format!("somebody asks to cancel {id}"),
        Move::Erase(run) => format!("somebody deletes {}", named(cluster, run)),
        Move::Touch(run) => format!("Tekton writes the status of {}", named(cluster, run)),
        Move::End(run, end) => format!("{} {}", named(cluster, run), ended(end)),
        Move::EndInPart(run, end) => format!("{} {}, and a pod of it is left", named(cluster, run), ended(end)),
        Move::Poke(run) => format!("somebody releases {}", named(cluster, run)),
        Move::Drain(run) => format!("the last pod of {} ends", named(cluster, run)),
        Move::Crash(at) => format!("{} dies", who(at)),
        Move::List(at) => format!("{} starts", who(at)),
        Move::Relist(at) => format!("{} lists the runs again", who(at)),
        Move::Deliver(at, kind) => {
            let what = match kind {
                Kind::Execution => "execution",
                Kind::Run => "run",
                Kind::Residue => "pod",
            };
            format!("{} sees the next {what} event", who(at))
        }
        Move::Perform(at, index, fate) => {
            let step = state.operators.get(at).and_then(|operator| step(setting, operator, index));
            let what = step.map(|step| describe(cluster, &step)).unwrap_or_default();
            format!("{} {what}{}", who(at), suffix(fate))
        }
        Move::Arrive(at) => format!("a late request arrives: {}", late(cluster, state.wire.get(at))),
        Move::Vanish(at) => format!("a late request is lost: {}", late(cluster, state.wire.get(at))),
    }
}

fn ended(end: End) -> &'static str {
    match end {
        End::Well => "ends",
        End::Unstarted => "fails before anything ran",
        End::Broken => "fails half way",
    }
}

fn step(setting: &Setting, operator: &Operator, index: usize) -> Option<Step> {
    operator.steps(setting.translation).get(index).cloned()
}

fn suffix(fate: Fate) -> &'static str {
    match fate {
        Fate::Answered => "",
        Fate::AnswerLost => ", and the answer is lost",
        Fate::Late => ", but the request is under way for long",
        Fate::Twice => ", and the request will arrive again",
        Fate::Refused => ", and the API server refuses",
    }
}

fn late(cluster: &Cluster, request: Option<&Request>) -> String {
    request.map(|request| write(cluster, *request)).unwrap_or_default()
}

fn describe(cluster: &Cluster, step: &Step) -> String {
    match step {
        Step::Write(premise, request) => {
            let premise = match premise {
                Premise::None => "",
                Premise::OwnersGone(_) => "reads that the owner is gone, and ",
                Premise::RunGone(_) => "reads that the run is gone, and ",
            };
            format!("{premise}{}", write(cluster, *request))
        }
        Step::ReadFirst { read: Read::NothingLeft(execution), .. } => {
            format!("reads that nothing is left of others than {execution}")
        }
        Step::ReadOwner(owner) => format!("reads {owner}"),
        Step::ReadFirst { read: Read::AllDrained, .. } => "reads that nothing is left".to_owned(),
        Step::ReadFirst { read: Read::Unchanged(execution, _), .. } => format!("reads that {execution} is unchanged"),
        Step::ReadFact { fact, skipped } => {
            let skipped: Vec<String> = skipped.iter().map(|(id, _)| id.to_string()).collect();
            let fact = match fact {
                Fact::Unfinished(run) => format!("{} is unfinished", named(cluster, *run)),
                Fact::Draining(run) => format!("a pod of {} is left", named(cluster, *run)),
                Fact::Holds(holder) => format!("{holder} holds the target"),
            };
            format!("reads that {fact}, to skip {}", skipped.join(" and "))
        }
    }
}

fn write(cluster: &Cluster, request: Request) -> String {
    match request {
        Request::Create { owner, number } => format!("creates run {number} for {owner}"),
        Request::Release { run, .. } => format!("releases {}", named(cluster, run)),
        Request::Delete { run, .. } => format!("deletes {}", named(cluster, run)),
        Request::Cancel { run, .. } => format!("cancels {}", named(cluster, run)),
        Request::Status { execution, write, .. } => match write {
            StatusWrite::Commit { run, .. } => format!("commits {execution} to {}", named(cluster, run)),
            StatusWrite::Retry { .. } => format!("writes that {execution} is tried again"),
            StatusWrite::GiveUp(number) => format!("writes that {execution} gives run {number} up"),
            StatusWrite::Finish { phase, .. } => {
                let phase = match phase {
                    Phase::Completed => "Completed",
                    Phase::Failed { ran: true } => "Failed, as an execution failure",
                    Phase::Failed { ran: false } => "Failed, nothing ran",
                    Phase::Undecided | Phase::Running(_) | Phase::Skipped => "?",
                };
                format!("writes that {execution} is {phase}")
            }
            StatusWrite::Freed => format!("writes that the target of {execution} has drained"),
            StatusWrite::Skip(_) => format!("skips {execution}"),
        },
    }
}

/// Names a run by its number and its owner.
fn named(cluster: &Cluster, uid: RunUid) -> String {
    match cluster.run(uid) {
        Some(run) => {
            let owner = run.owner.map_or_else(|| "a stranger's".to_owned(), |owner| format!("of {owner}"));
            format!("run {} ({owner})", run.number)
        }
        None => "a run that is gone".to_owned(),
    }
}
