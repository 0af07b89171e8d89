//! Lanes: what happened on each target over time, as bars and marks on an axis. Pure.

use std::collections::BTreeMap;

use wfe_core::Time;

use super::axis::Axis;
use crate::history::{Event, folded};
use crate::moment::since;

/// How many lanes are drawn: at 46 pixels each, more than a person compares.
const MOST_LANES: usize = 60;
/// How many events of a lane are listed, the latest. `kubectl wfe history` shows all.
const MOST_EVENTS: usize = 12;
/// Bars and marks of a kind that begin within the same part of the axis are one. The axis has 250 such parts, each
/// three pixels wide in a lane of 750 pixels.
const MERGED: i64 = 40;
/// The narrowest bar: two pixels.
const NARROWEST: i64 = 30;

/// What a bar or a mark stands for, in the order in which they are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// After a success, the same workflow waits.
    Cooldown,
    /// After a failure before anything ran, every execution waits.
    Backoff,
    /// A failure blocks the target.
    Blocked,
    /// An execution is undecided.
    Waiting,
    /// An execution ran and completed.
    Ran,
    /// An execution ran and failed.
    Failed,
    /// An execution runs.
    Runs,
    /// An execution was skipped.
    Skipped,
    /// A person cleared the target.
    Cleared,
    /// The next slot of a schedule.
    Slot,
    /// The next slot of a schedule, which is or would be held.
    HeldSlot,
}

/// Something on a target that began and ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) kind: Kind,
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// The execution, schedule or user, and what it did.
    pub(crate) said: String,
}

/// Everything that is known of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Track {
    pub(crate) target: String,
    /// Since when a person must act, if one must.
    pub(crate) needs_person: Option<Time>,
    pub(crate) spans: Vec<Span>,
    pub(crate) events: Vec<Event>,
}

/// A bar or a mark on the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) kind: Kind,
    /// Its place on the axis.
    pub(super) at: i64,
    /// Its width; a mark has none.
    pub(super) wide: i64,
    /// How many events it stands for.
    pub(super) count: usize,
    /// Its description.
    pub(super) title: String,
}

/// One target over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) target: String,
    pub(super) needs_person: bool,
    /// The state of the target now.
    pub(super) state: String,
    /// What happened within the window and comes next, for readers of text.
    pub(super) text: String,
    pub(super) drawn: Vec<Drawn>,
    /// The latest events, the oldest first.
    pub(super) events: Vec<Event>,
    /// How many earlier events are left out.
    pub(super) earlier: usize,
}

/// The lanes that are drawn.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lanes {
    pub(super) lanes: Vec<Lane>,
    /// How many targets have no lane, although they need a person or have an event in the window.
    pub(super) left_out: usize,
}

impl Kind {
    /// Returns its name in the style sheet and in the legend.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cooldown => "cooldown",
            Self::Backoff => "backoff",
            Self::Blocked => "blocked",
            Self::Waiting => "waiting",
            Self::Ran => "completed",
            Self::Failed => "failed",
            Self::Runs => "running",
            Self::Skipped => "skipped",
            Self::Cleared => "cleared",
            Self::Slot => "slot",
            Self::HeldSlot => "held",
        }
    }

    /// Returns whether it is a mark at a moment, and not a bar.
    pub(super) fn is_mark(self) -> bool {
        matches!(self, Self::Skipped | Self::Cleared | Self::Slot | Self::HeldSlot)
    }

    /// Returns whether this kind shows an event on the target, and not a slot or the effect of an earlier event.
    fn moves(self) -> bool {
        !matches!(self, Self::Cooldown | Self::Backoff | Self::Slot | Self::HeldSlot)
    }
}

impl Lanes {
    /// Draws the targets that need a person, and then the targets with an event in the window, the latest first.
    pub(super) fn of(tracks: &[Track], axis: &Axis) -> Self {
        let last_move = |track: &Track| {
            let moves = track.spans.iter().filter(|it| it.kind.moves() && axis.shows(it.from, it.to));
            moves.map(|it| it.to).max()
        };
        let mut shown: Vec<_> = tracks
            .iter()
            .filter_map(|track| match (track.needs_person, last_move(track)) {
                (Some(since), _) => Some(((0, since.timestamp()), track)),
                (None, moved) => Some(((1, -moved?.timestamp()), track)),
            })
            .collect();
        shown.sort_by(|(a, left), (b, right)| (a, &left.target).cmp(&(b, &right.target)));
        let left_out = shown.len().saturating_sub(MOST_LANES);
        let lanes = shown.into_iter().take(MOST_LANES).map(|(_, track)| Lane::of(track, axis)).collect();
        Self { lanes, left_out }
    }
}

impl Lane {
    fn of(track: &Track, axis: &Axis) -> Self {
        let mut events = folded(track.events.clone());
        let earlier = events.len().saturating_sub(MOST_EVENTS);
        events.drain(..earlier);
        Self {
            target: track.target.clone(),
            needs_person: track.needs_person.is_some(),
            state: state(&track.spans, axis.now),
            text: text(&track.spans, axis),
            drawn: drawn(&track.spans, axis),
            events,
            earlier,
        }
    }
}

/// Describes the state of a target now.
fn state(spans: &[Span], now: Time) -> String {
    let latest = |kind: Kind, is_now: bool| {
        let found = spans.iter().filter(|it| it.kind == kind && it.from <= now && (!is_now || it.to >= now));
        found.max_by_key(|it| it.to)
    };
    for (kind, word) in [(Kind::Blocked, "blocked"), (Kind::Runs, "running"), (Kind::Waiting, "waiting")] {
        if let Some(it) = latest(kind, true) {
            return format!("{word} for {}", since(it.from, now));
        }
    }
    for (kind, word) in [(Kind::Backoff, "backoff"), (Kind::Cooldown, "cooldown")] {
        if let Some(it) = latest(kind, true).filter(|it| it.to > now) {
            return format!("{word} ends in {}", since(now, it.to));
        }
    }
    let ended = [Kind::Ran, Kind::Failed, Kind::Skipped].into_iter().filter_map(|kind| latest(kind, false));
    match ended.max_by_key(|it| (it.to, it.kind)) {
        Some(it) => format!("{} {} ago", it.kind.name(), since(it.to, now)),
        None => "no execution yet".to_owned(),
    }
}

/// Describes what is drawn, for a person who does not see it.
fn text(spans: &[Span], axis: &Axis) -> String {
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    for span in spans.iter().filter(|it| it.to >= axis.from && it.from <= axis.now) {
        *counts.entry(span.kind).or_default() += 1;
    }
    let ended = [Kind::Ran, Kind::Failed, Kind::Skipped, Kind::Cleared];
    let said: Vec<String> =
        ended.iter().filter_map(|kind| Some(format!("{} {}", counts.get(kind)?, kind.name()))).collect();
    let said = if said.is_empty() { "nothing ended".to_owned() } else { said.join(", ") };
    let next = spans.iter().filter(|it| matches!(it.kind, Kind::Slot | Kind::HeldSlot) && it.from >= axis.now);
    let next = next.min_by_key(|it| it.from).map(|it| format!("; {} in {}", it.said, since(axis.now, it.from)));
    let name = axis.window.map_or_else(|| "In the play".to_owned(), |window| format!("Last {}", window.name()));
    format!("{name}: {said}{}", next.unwrap_or_default())
}

/// Places what is on the axis.
fn drawn(spans: &[Span], axis: &Axis) -> Vec<Drawn> {
    let mut spans: Vec<&Span> = spans.iter().filter(|it| axis.shows(it.from, it.to)).collect();
    spans.sort_by_key(|it| (it.kind, it.from, it.to));
    let mut drawn: Vec<Drawn> = Vec::new();
    for span in spans {
        let at = axis.place(span.from);
        let wide = if span.kind.is_mark() { 0 } else { (axis.place(span.to) - at).max(NARROWEST) };
        match drawn.last_mut() {
            Some(last) if last.kind == span.kind && at / MERGED == last.at / MERGED => {
                last.wide = last.wide.max(at + wide - last.at);
                last.count += 1;
            }
            _ => drawn.push(Drawn { kind: span.kind, at, wide, count: 1, title: title(span) }),
        }
    }
    for it in drawn.iter_mut().filter(|it| it.count > 1) {
        it.title = format!("{} and {} more", it.title, it.count - 1);
    }
    drawn
}

fn title(span: &Span) -> String {
    let clock = |time: Time| time.format("%H:%M:%S").to_string();
    let until =
        if span.kind.is_mark() || span.to == span.from { String::new() } else { format!(" to {}", clock(span.to)) };
    format!("{}{until} {}", clock(span.from), span.said)
}
