//! The answer to "what if" about a target of the cluster, for people and for programs.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_core::target::TargetName;

use super::cluster::End;
use super::render::{Simulation, counted, detail};
use super::story::Story;
use super::timeline::Line;
use crate::cli::Condition;
use crate::moment::{shown, since, span};
use crate::output::line;
use crate::table::table;

/// What will happen on a target, if a condition is met.
pub(super) struct Outlook<'a> {
    pub(super) target: &'a TargetName,
    pub(super) condition: &'a Condition,
    pub(super) until: Duration,
    pub(super) ends: &'a [End],
    /// What else is assumed.
    pub(super) assumed: &'a [String],
    /// The source of the policy.
    pub(super) policy: &'a str,
    pub(super) story: &'a Story,
}

impl Outlook<'_> {
    /// Returns the headline: the period, and the condition of the "what if".
    pub(super) fn headline(&self) -> String {
        format!("the next {}, if {}", span(self.until), self.condition.told())
    }

    /// Returns what the play assumes and depends on, each with a label.
    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let ends = self.ends.iter().map(|end| (end.workflow.clone(), format!("{} (supposed)", end.told())));
        let assumed = self.assumed.iter().map(|assumed| ("assumed".to_owned(), assumed.clone()));
        ends.chain([("policy".to_owned(), self.policy.to_owned())]).chain(assumed).collect()
    }

    fn row(&self, it: &Line) -> [String; 4] {
        let detail = detail(self.story, it);
        let subject = it.subjects();
        let of_other = subject != self.target.as_str();
        let detail = if of_other && !detail.is_empty() { format!("{subject}: {detail}") } else { detail };
        [shown(it.at), in_(self.story.start, it.at), counted(it), detail]
    }
}

/// Returns how far ahead a time is.
fn in_(now: Time, at: Time) -> String {
    if at <= now { "now".to_owned() } else { since(now, at) }
}

impl fmt::Display for Outlook<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = line(self.target.as_str());
        writeln!(f, "{target}, {}:\n", line(&self.headline()))?;
        let names = self.ends.iter().map(|end| end.workflow.chars().count()).max().unwrap_or_default();
        for end in self.ends {
            writeln!(f, "  {:<names$}  {} (supposed)", line(&end.workflow), end.told())?;
        }
        if !self.ends.is_empty() {
            writeln!(f)?;
        }
        let lines = &self.story.timeline.lines;
        if lines.is_empty() {
            writeln!(f, "Nothing happens.")?;
        } else {
            f.write_str(&table(["AT", "IN", "WHAT", "DETAIL"], lines.iter().map(|it| self.row(it))))?;
        }
        writeln!(f, "\n{}", self.story.totals)?;
        writeln!(f, "  policy       {}", line(self.policy))?;
        for assumed in self.assumed {
            writeln!(f, "  assumed      {}", line(assumed))?;
        }
        Ok(())
    }
}

/// The outlook for programs: a simulation, with the question and the assumptions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutlookJson<'a> {
    target: &'a str,
    #[serde(rename = "if")]
    condition: String,
    until: String,
    supposed: Vec<Value>,
    assumed: &'a [String],
    policy: &'a str,
    #[serde(flatten)]
    simulation: Simulation<'a>,
}

impl<'a> Outlook<'a> {
    pub(super) fn json(&'a self) -> OutlookJson<'a> {
        let end = |end: &End| {
            json!({
                "workflowId": end.workflow,
                "completes": end.fails.is_none(),
                "takesSeconds": end.takes.as_secs(),
                "message": end.told(),
            })
        };
        OutlookJson {
            target: self.target.as_str(),
            condition: self.condition.to_string(),
            until: shown(self.story.start + self.until),
            supposed: self.ends.iter().map(end).collect(),
            assumed: self.assumed,
            policy: self.policy,
            simulation: Simulation(self.story),
        }
    }
}
