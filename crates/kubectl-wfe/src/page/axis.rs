//! The time axis of the lanes: the past on the left, and a part of the future on the right.

use chrono::TimeDelta;
use wfe_core::Time;

/// The length of the axis. Places on it are hundredths of a percent.
pub(super) const FULL: i64 = 10_000;
/// The part of the past that the axis shows for each part of the future.
const PAST_PER_FUTURE: i32 = 6;

/// The steps between two labels of a play, in seconds, and how such labels are written.
const STEPS: [(i64, &str); 12] = [
    (1, "%H:%M:%S"),
    (10, "%H:%M:%S"),
    (30, "%H:%M:%S"),
    (60, "%H:%M"),
    (300, "%H:%M"),
    (600, "%H:%M"),
    (1_800, "%H:%M"),
    (3_600, "%H:%M"),
    (7_200, "%H:%M"),
    (14_400, "%H:%M"),
    (43_200, "%d. %H:%M"),
    (86_400, "%d. %H:%M"),
];
/// How many labels fit.
const MOST_LABELS: i64 = 8;

/// How far back the lanes reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// An hour: the time that a person on call looks at first.
    Hour,
    /// Six hours.
    SixHours,
    /// A day: a nightly schedule has run once.
    Day,
}

impl Window {
    /// All windows, the shortest first.
    pub(crate) const ALL: [Self; 3] = [Self::Hour, Self::SixHours, Self::Day];

    /// Returns its name, as in the address of the page.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::SixHours => "6h",
            Self::Day => "24h",
        }
    }

    /// Finds a window by its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the shortest window that shows a moment; the shortest of all if none does.
    pub(super) fn that_shows(at: Option<Time>, now: Time) -> Self {
        let shows = |it: &Self| at.is_some_and(|at| at >= now - it.length());
        Self::ALL.into_iter().find(shows).unwrap_or(Self::Hour)
    }

    fn length(self) -> TimeDelta {
        match self {
            Self::Hour => TimeDelta::hours(1),
            Self::SixHours => TimeDelta::hours(6),
            Self::Day => TimeDelta::hours(24),
        }
    }

    /// Returns the time between two labels: about seven fit.
    fn step(self) -> i64 {
        match self {
            Self::Hour => 10 * 60,
            Self::SixHours => 60 * 60,
            Self::Day => 4 * 60 * 60,
        }
    }
}

/// A window that ends now, and the future beside it; or the whole of a play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// The window. None: a play, whose end counts as now.
    pub(super) window: Option<Window>,
    pub(super) from: Time,
    pub(super) now: Time,
    pub(super) to: Time,
    step: i64,
    format: &'static str,
}

impl Axis {
    /// Makes the axis of a window that ends now.
    pub(super) fn new(window: Window, now: Time) -> Self {
        let length = window.length();
        let (from, to) = (now - length, now + length / PAST_PER_FUTURE);
        Self { window: Some(window), from, now, to, step: window.step(), format: "%H:%M" }
    }

    /// Makes the axis of a play.
    pub(super) fn of_play(from: Time, to: Time) -> Self {
        let to = to.max(from + TimeDelta::seconds(1));
        let fits = |(step, _): &&(i64, &str)| (to - from).num_seconds() / step <= MOST_LABELS;
        let (step, format) = STEPS.iter().find(fits).copied().unwrap_or((86_400, "%d. %H:%M"));
        Self { window: None, from, now: to, to, step, format }
    }

    /// Returns whether a label fits: not too close to an end, or to the label of the present.
    pub(super) fn has_room(&self, place: i64) -> bool {
        match self.window {
            Some(_) => (300..8100).contains(&place) || (9000..9800).contains(&place),
            None => (0..9800).contains(&place),
        }
    }

    /// Names the time that the lanes show.
    pub(super) fn name(&self) -> String {
        self.window.map_or_else(|| "the play".to_owned(), |window| format!("the last {}", window.name()))
    }

    /// Returns whether a part of the time between two moments is on the axis.
    pub(super) fn shows(&self, from: Time, to: Time) -> bool {
        to >= self.from && from <= self.to
    }

    /// Returns the place of a moment. A moment beyond an end is placed at that end.
    pub(super) fn place(&self, at: Time) -> i64 {
        let seconds = (at - self.from).num_seconds().clamp(0, (self.to - self.from).num_seconds());
        seconds * FULL / (self.to - self.from).num_seconds()
    }

    /// Returns the round times on the axis, each with its place and label.
    pub(super) fn labels(&self) -> Vec<(i64, String)> {
        let step = self.step;
        let first = (self.from.timestamp() / step + 1) * step;
        let times = (0..).map(|nth| first + nth * step).map_while(|at| Time::from_timestamp(at, 0));
        let shown = times.take_while(|at| *at < self.to);
        shown.map(|at| (self.place(at), at.format(self.format).to_string())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        format!("2026-01-02T{text}Z").parse().unwrap()
    }

    #[test]
    fn a_moment_has_a_place_and_round_times_have_labels() {
        let axis = Axis::new(Window::Hour, at("18:47:00"));
        let places = ["17:00:00", "17:47:00", "18:47:00", "18:57:00", "23:00:00"].map(|it| axis.place(at(it)));
        assert_eq!(places, [0, 0, 8571, 10_000, 10_000]);
        let labels: Vec<String> = axis.labels().into_iter().map(|(place, label)| format!("{place} {label}")).collect();
        assert_eq!(
            labels,
            ["428 17:50", "1857 18:00", "3285 18:10", "4714 18:20", "6142 18:30", "7571 18:40", "9000 18:50"]
        );
        for window in Window::ALL {
            let count = Axis::new(window, at("18:47:00")).labels().len();
            assert!((6..=8).contains(&count), "{count} labels");
            assert_eq!(Window::named(window.name()), Some(window));
        }
    }

    #[test]
    fn a_play_fills_the_axis_with_few_labels() {
        let from = at("00:00:00");
        for (seconds, expected) in [
            (0, ""),
            (5, "00:00:01 00:00:02 00:00:03 00:00:04"),
            (1_740, "00:05 00:10 00:15 00:20 00:25"),
            (86_400, "04:00 08:00 12:00 16:00 20:00"),
            (604_800, "03. 00:00 04. 00:00 05. 00:00 06. 00:00 07. 00:00 08. 00:00"),
        ] {
            let axis = Axis::of_play(from, from + TimeDelta::seconds(seconds));
            let labels: Vec<String> = axis.labels().into_iter().map(|(_, label)| label).collect();
            assert_eq!(labels.join(" "), expected, "{seconds}");
            assert_eq!((axis.place(axis.from), axis.place(axis.now)), (0, FULL));
        }
    }

    #[test]
    fn the_window_is_as_long_as_the_newest_trouble_needs() {
        for (began, expected) in [
            (None, Window::Hour),
            (Some("18:00:00"), Window::Hour),
            (Some("17:46:59"), Window::SixHours),
            (Some("01:00:00"), Window::Day),
        ] {
            assert_eq!(Window::that_shows(began.map(at), at("18:47:00")), expected, "{began:?}");
        }
        let long_ago = "2025-12-01T00:00:00Z".parse().unwrap();
        assert_eq!(Window::that_shows(Some(long_ago), at("18:47:00")), Window::Hour, "no window shows it");
    }
}
