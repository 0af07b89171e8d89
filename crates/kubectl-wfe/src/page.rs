//! The overview as a page: what needs a person, what runs and waits, and what happened on each target over time. A play
//! of `simulate` can be a page too.
//!
//! `status -o html` writes the overview to a file, and `dashboard` serves it. A page loads nothing, sends nothing, and
//! changes nothing: its buttons copy commands. Every text in it is escaped by the template ([`markup`]).

mod axis;
mod lane;
mod markup;
mod track;

use anyhow::Result;
use wfe_core::Time;
use wfe_core::schedule::{Every, Held, Schedule};

use self::axis::Axis;
pub(crate) use self::axis::Window;
use self::lane::Lanes;
pub(crate) use self::lane::{Kind, Span, Track};
pub(crate) use self::markup::policy;
use crate::circuits::Circuit;
use crate::cli::ClusterArgs;
use crate::moment::{since, span};
use crate::overview::{Overview, is_in};
use crate::view::{Lookout, Seen};

/// What the page shows, as it was read at one time.
pub(crate) struct Page {
    /// The name of the cluster.
    cluster: String,
    now: Time,
    overview: Overview,
    tracks: Vec<Track>,
    schedules: Vec<ScheduleRow>,
    circuits: Vec<Circuit>,
    /// What was assumed because it could not be read.
    assumed: Option<String>,
}

/// A schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ScheduleRow {
    name: String,
    target: String,
    every: String,
    last: String,
    next: String,
    /// What holds it or would hold it.
    held: Option<String>,
    /// The command that explains it.
    command: String,
    /// Held schedules first, and then by the next slot.
    order: (bool, Option<Time>),
}

impl Page {
    /// Reads it from the cluster.
    pub(crate) async fn read(lookout: &Lookout, cluster: &ClusterArgs) -> Result<Self> {
        let seen = lookout.look_at_circuits().await?;
        Ok(Self::of(&seen, lookout.cluster(), cluster.namespace.as_deref()))
    }

    fn of(seen: &Seen, cluster: &str, namespace: Option<&str>) -> Self {
        let held = seen.held_by_circuits();
        let schedules = seen.targets().flat_map(|target| {
            let of_target = target.schedules.values().filter(|it| is_in(Some(&it.id.namespace), namespace));
            of_target.map(|schedule| ScheduleRow::of(schedule, target.label(), seen.now))
        });
        let mut schedules: Vec<_> = schedules.collect();
        schedules.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
        Self {
            cluster: cluster.to_owned(),
            now: seen.now,
            overview: Overview::of(seen, namespace),
            tracks: track::tracks(seen, namespace),
            schedules,
            circuits: seen.circuits().open().map(|circuit| Circuit::of(circuit, held.as_ref())).collect(),
            assumed: seen.unread.clone(),
        }
    }

    /// Returns whether nothing needs a person.
    pub(crate) fn is_well(&self) -> bool {
        self.overview.is_well()
    }

    /// Writes the page. If `refreshes_after` is given, the page loads itself again after so many seconds. Without a
    /// window, the lanes reach back to the newest failure that needs a person.
    pub(crate) fn html(&self, refreshes_after: Option<u64>, window: Option<Window>) -> String {
        let newest = self.tracks.iter().filter_map(|track| track.needs_person).max();
        let axis = Axis::new(window.unwrap_or_else(|| Window::that_shows(newest, self.now)), self.now);
        let lanes = Lanes::of(&self.tracks, &axis);
        markup::document(self, &axis, &lanes, refreshes_after).into_string()
    }
}

impl ScheduleRow {
    fn of(schedule: &Schedule, target: &str, now: Time) -> Self {
        let id = &schedule.id;
        let every = schedule.plan.as_ref().map(|plan| match &plan.every {
            Every::Interval(interval) => span(*interval),
            Every::Cron(cron) => format!("{} {}", cron.expression(), cron.zone_name()),
        });
        let last = schedule.status.last_run.as_ref().map(|last| {
            let outcome = last.outcome.map_or("at work", wfe_core::schedule::Outcome::as_str);
            let ago = last.ended_at.map(|at| format!(" {} ago", since(at, now))).unwrap_or_default();
            format!("{outcome}{ago}")
        });
        let next = schedule.status.next.map(|next| next.at);
        let held = match (&schedule.plan, &schedule.status.held) {
            (Err(why), _) => Some(format!("its spec cannot be used: {why}")),
            (_, Held::By { reason, message }) => Some(format!("held, {}: {message}", reason.as_str())),
            (_, Held::Ahead(why)) => Some(format!("would be held, {why}")),
            (_, Held::Never | Held::Released) => None,
        };
        Self {
            name: id.to_string(),
            target: target.to_owned(),
            every: every.unwrap_or_default(),
            last: last.unwrap_or_default(),
            next: next.map(|at| format!("in {}", since(now, at))).unwrap_or_default(),
            order: (held.is_none(), next),
            held,
            command: format!("kubectl wfe schedule explain {} -n {}", id.name, id.namespace),
        }
    }
}

/// A play as a page: its lanes, and what happens line by line.
pub(crate) struct Played {
    /// The target or the file.
    pub(crate) title: String,
    /// The condition that is assumed for the target.
    pub(crate) condition: Option<String>,
    pub(crate) verdict: String,
    pub(crate) is_well: bool,
    pub(crate) from: Time,
    pub(crate) to: Time,
    pub(crate) totals: String,
    /// What the play assumes and depends on, each with a label.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) tracks: Vec<Track>,
    /// How many bars and marks are left out.
    pub(crate) left_out: usize,
    /// Time, subject, what happens, and details.
    pub(crate) lines: Vec<[String; 4]>,
}

impl Played {
    /// Writes the page.
    pub(crate) fn html(&self) -> String {
        let axis = Axis::of_play(self.from, self.to);
        let lanes = Lanes::of(&self.tracks, &axis);
        markup::played::document(self, &axis, &lanes).into_string()
    }
}

#[cfg(test)]
mod tests;
