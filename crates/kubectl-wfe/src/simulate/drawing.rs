//! The lanes of a play, drawn from its lines before they are folded.

use std::collections::{BTreeMap, HashMap};

use wfe_core::Time;

use super::timeline::Line;
use crate::history::Event;
use crate::moment::shown;
use crate::page::{Kind, Span, Track};

/// The limit of bars and marks: enough for 60 lanes with one in each minute of a day.
const MOST_SPANS: usize = 100_000;

/// The lanes of a play.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    tracks: BTreeMap<String, Track>,
    /// The targets of schedules, by the name that a line has for the schedule.
    pub(super) of_schedules: HashMap<String, String>,
    /// When the runs began that have not ended, by target and execution.
    runs: BTreeMap<(String, String), Time>,
    /// Since when targets are blocked, and by which execution.
    blocked: BTreeMap<String, (Time, String)>,
    count: usize,
    left_out: usize,
}

impl Drawing {
    /// Draws something that happened.
    pub(super) fn take(&mut self, line: &Line) {
        let target = self.of_schedules.get(&line.subject).unwrap_or(&line.subject).clone();
        let name = line.execution.clone().unwrap_or_else(|| line.subject.clone());
        let run = (target.clone(), name.clone());
        let (kind, from, then) = match line.what {
            "runs" => {
                self.runs.insert(run, line.since.unwrap_or(line.at));
                return;
            }
            "Completed" => (Kind::Ran, self.runs.remove(&run), Some(Kind::Cooldown)),
            "failed" => (Kind::Failed, self.runs.remove(&run), Some(Kind::Backoff)),
            "waits" if line.until.is_some() => (Kind::Failed, self.runs.remove(&run), Some(Kind::Backoff)),
            "skipped" => (Kind::Skipped, None, None),
            "held" => (Kind::HeldSlot, None, None),
            "person" if line.why == "clears it" => (Kind::Cleared, None, None),
            _ => return,
        };
        let said = if line.why.is_empty() { line.what.to_owned() } else { format!("{}, {}", line.what, line.why) };
        let event = Event {
            at: shown(line.at),
            what: line.what.to_owned(),
            who: name.clone(),
            detail: line.why.clone(),
            count: 1,
            time: line.at,
        };
        self.span(&target, kind, (from.unwrap_or(line.at), line.at), format!("{name} {said}"));
        if let (Some(then), Some(until)) = (then, line.until.filter(|until| *until > line.at)) {
            self.span(&target, then, (line.at, until), format!("{name}: {}", then.name()));
        }
        if let Some(track) = self.tracks.get_mut(&target).filter(|_| self.left_out == 0) {
            track.events.push(event);
        }
    }

    /// A failure blocks a target.
    pub(super) fn blocks(&mut self, target: &str, since: Time, by: &str) {
        self.blocked.insert(target.to_owned(), (since, by.to_owned()));
    }

    /// A target is not blocked any more.
    pub(super) fn frees(&mut self, target: &str, at: Time) {
        if let Some((since, by)) = self.blocked.remove(target) {
            self.span(target, Kind::Blocked, (since, at), format!("{by} blocked the target"));
        }
    }

    /// Returns the lanes at the end of a play, and how many bars and marks are left out.
    pub(super) fn end(mut self, at: Time) -> (Vec<Track>, usize) {
        for ((target, execution), since) in std::mem::take(&mut self.runs) {
            self.span(&target, Kind::Runs, (since, at), format!("{execution} runs"));
        }
        for (target, (since, by)) in std::mem::take(&mut self.blocked) {
            self.span(&target, Kind::Blocked, (since, at), format!("{by} blocks the target"));
            if let Some(track) = self.tracks.get_mut(&target) {
                track.needs_person = Some(since);
            }
        }
        let named = |(target, track)| Track { target, ..track };
        (self.tracks.into_iter().map(named).collect(), self.left_out)
    }

    fn span(&mut self, target: &str, kind: Kind, (from, to): (Time, Time), said: String) {
        if self.count >= MOST_SPANS {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        self.tracks.entry(target.to_owned()).or_default().spans.push(Span { kind, from, to, said });
    }
}
