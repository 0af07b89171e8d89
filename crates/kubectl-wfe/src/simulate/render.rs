//! Shows a play: a line for each thing that happened, and the totals; or all of it as JSON, or as a page.

use std::fmt;
use std::time::Duration;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Value, json};
use wfe_core::duration;

use super::story::Story;
use super::timeline::Line;
use super::totals::Totals;
use crate::output::line;
use crate::page::Played;

/// The width that the lines of the totals keep to.
const WIDTH: usize = 80;
/// The widest column of names. A longer name moves its line to the right.
const WIDEST: usize = 28;
/// The widest column of what happened.
const WIDEST_WORD: usize = 11;

/// The story of a play, to be shown.
pub(super) struct Simulation<'a>(pub(super) &'a Story);

impl fmt::Display for Simulation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(story) = self;
        let width =
            |of: fn(&Story, &Line) -> usize| story.timeline.lines.iter().map(|line| of(story, line)).max().unwrap_or(0);
        let times = width(|story, line| story.time(line.at).len()).max(6);
        let subjects = width(|_, line| line.subjects().chars().count()).min(WIDEST);
        let words = width(|_, line| counted(line).len()).min(WIDEST_WORD);
        for it in &story.timeline.lines {
            let (at, what, detail) = (story.time(it.at), counted(it), detail(story, it));
            let (subject, detail) = (it.subjects(), line(&detail));
            let shown = format!("{at:>times$} {:<subjects$}  {what:<words$}  {detail}", line(&subject));
            writeln!(f, "{}", shown.trim_end())?;
        }
        if story.timeline.left_out > 0 {
            writeln!(f, "and {} further lines, which only the totals count", story.timeline.left_out)?;
        }
        writeln!(f)?;
        write!(f, "{}", story.totals)
    }
}

/// Returns what happened, and how often if more than once.
pub(super) fn counted(it: &Line) -> String {
    if it.times == 1 { it.what.to_owned() } else { format!("{} x{}", it.what, it.times) }
}

/// Returns which executions, why, and when it happened last. For several targets, the executions are left out.
pub(super) fn detail(story: &Story, it: &Line) -> String {
    let range = match (&it.execution, &it.last_execution) {
        _ if it.others > 0 => String::new(),
        (Some(first), Some(last)) if first != last => {
            // Names with a common beginning differ in their number.
            let begin = first.rfind('-').map_or("", |at| first.get(..=at).unwrap_or_default());
            format!("{first}..{}", last.strip_prefix(begin).unwrap_or(last))
        }
        (first, _) => first.clone().unwrap_or_default(),
    };
    let why = [range, it.why.clone()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    let last = if it.last_at > it.at { format!("last at {}", story.time(it.last_at)) } else { String::new() };
    let said = [why, last].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    let supposed = if it.is_supposed { " (supposed)" } else { "" };
    format!("{said}{supposed}").trim_start().to_owned()
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped: Vec<String> =
            self.skipped.by_reason().iter().filter(|(_, n)| *n > 0).map(|(why, n)| format!("{why} {n}")).collect();
        let skipped = if skipped.is_empty() { String::new() } else { format!(" ({})", skipped.join(", ")) };
        let mut parts = vec![
            format!("runs {}", self.runs),
            format!("failed {}", self.failed),
            format!("skipped {}{skipped}", self.skipped.all()),
        ];
        let more = [("held", self.held), ("slots missed", self.missed), ("not ended", self.open as u64)];
        parts.extend(more.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what} {n}")));
        parts.push(format!("needs a person: {}", self.people()));
        if let Some(at) = self.last_recovery_seconds {
            parts.push(format!("last recovery {}", duration::format(Duration::from_secs(at))));
        }
        let mut width = 0;
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                let breaks = width + part.len() + 3 > WIDTH;
                f.write_str(if breaks { " |\n" } else { " | " })?;
                width = if breaks { 0 } else { width + 3 };
            }
            f.write_str(part)?;
            width += part.len();
        }
        writeln!(f)
    }
}

impl Totals {
    /// Returns how many targets and schedules need a person.
    pub(super) fn people(&self) -> String {
        let counted = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            count => Some(format!("{count} {what}s")),
        };
        let all = [counted(self.blocked_targets.len(), "target"), counted(self.paused_schedules.len(), "schedule")];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    }
}

impl Serialize for Simulation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(story) = self;
        let events: Vec<Value> = story.timeline.lines.iter().map(|it| event(story, it)).collect();
        let mut fields = serializer.serialize_struct("Simulation", 3)?;
        fields.serialize_field("events", &events)?;
        fields.serialize_field("eventsLeftOut", &story.timeline.left_out)?;
        fields.serialize_field("totals", &story.totals)?;
        fields.end()
    }
}

fn event(story: &Story, it: &Line) -> Value {
    json!({
        "afterSeconds": story.seconds(it.at),
        "time": Story::date(it.at),
        "subject": it.subject,
        "otherSubjects": it.others,
        "what": it.what,
        "execution": it.execution,
        "why": it.why,
        "times": it.times,
        "lastExecution": it.last_execution,
        "lastTime": Story::date(it.last_at),
        "isSupposed": it.is_supposed,
    })
}

impl Story {
    /// Makes a page of a play that has ended.
    pub(super) fn page(mut self, title: String, condition: Option<String>, facts: Vec<(String, String)>) -> Played {
        let row = |it: &Line| [self.time(it.at), it.subjects(), counted(it), detail(&self, it)];
        let lines = self.timeline.lines.iter().map(row).collect();
        let is_well = !self.totals.needs_a_person();
        let (tracks, left_out) = std::mem::take(&mut self.drawing).end(self.ended);
        Played {
            title,
            condition,
            verdict: format!("needs a person: {}", self.totals.people()),
            is_well,
            from: self.start,
            to: self.ended,
            totals: self.totals.to_string().replace('\n', " ").trim_end().to_owned(),
            facts,
            tracks,
            left_out,
            lines,
        }
    }
}
