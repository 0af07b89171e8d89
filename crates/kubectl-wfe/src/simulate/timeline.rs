//! The lines of a story. Equal lines are folded into one: those of several targets at the same moment, and those of one
//! target that follow each other.

use std::collections::HashMap;

use chrono::TimeDelta;
use wfe_core::Time;

/// The longest time between the runs of several schedules that are folded into one line.
const CROWD: TimeDelta = TimeDelta::seconds(30);
/// How many of the last lines are searched for one into which such a run can be folded.
const NEAR: usize = 3;
/// The most lines that are kept. The totals count everything.
const MOST_LINES: usize = 20_000;

/// The lines, in order.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The lines.
    pub(super) lines: Vec<Line>,
    /// How many lines are left out.
    pub(super) left_out: u64,
    /// The lines of the present moment.
    moment: Vec<Line>,
    /// The lines of the moment, by subject, what happened, and why.
    places: HashMap<(String, &'static str, String), usize>,
    /// The last two lines of each subject.
    recent: HashMap<String, [Option<usize>; 2]>,
}

/// One or several equal things that happened to a target, a schedule or a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// When; of several, the first time.
    pub(super) at: Time,
    /// The target, schedule or circuit; of several, the first by name.
    pub(super) subject: String,
    /// To how many other subjects the same happened at the same moment.
    pub(super) others: usize,
    /// What happened, in a word.
    pub(super) what: &'static str,
    /// The execution; of several, the first.
    pub(super) execution: Option<String>,
    /// Why, and what comes next.
    pub(super) why: String,
    /// How often it happened.
    pub(super) times: u64,
    /// When it happened last.
    pub(super) last_at: Time,
    /// The last execution.
    pub(super) last_execution: Option<String>,
    /// Whether the execution is the child of a schedule.
    pub(super) is_scheduled: bool,
    /// Whether the line shows an assumption, and not a decision.
    pub(super) is_supposed: bool,
    /// Since when this lasts, if it began earlier.
    pub(super) since: Option<Time>,
    /// Until when the target cools down or backs off after it.
    pub(super) until: Option<Time>,
}

impl Line {
    /// Makes a line of something that happened once.
    pub(super) fn new(at: Time, subject: &str, what: &'static str, execution: Option<String>, why: String) -> Self {
        let (subject, last_execution) = (subject.to_owned(), execution.clone());
        Self {
            at,
            subject,
            others: 0,
            what,
            execution,
            why,
            times: 1,
            last_at: at,
            last_execution,
            is_scheduled: false,
            is_supposed: false,
            since: None,
            until: None,
        }
    }

    /// Returns the subject for people: `node/n-1 +39`.
    pub(super) fn subjects(&self) -> String {
        if self.others == 0 { self.subject.clone() } else { format!("{} +{}", self.subject, self.others) }
    }

    /// Folds in an equal line of the same or a later moment.
    fn fold(&mut self, later: Self) {
        self.times += later.times;
        (self.last_at, self.last_execution, self.why) = (later.last_at, later.last_execution, later.why);
    }
}

impl Timeline {
    /// Adds something that happened.
    pub(super) fn add(&mut self, line: Line) {
        if self.moment.first().is_some_and(|first| first.at != line.at) {
            self.flush();
        }
        let place = (line.subject.clone(), line.what, line.why.clone());
        if let Some(known) = self.places.get(&place).and_then(|place| self.moment.get_mut(*place)) {
            return known.fold(line);
        }
        self.places.insert(place, self.moment.len());
        self.moment.push(line);
    }

    /// Appends the lines of the present moment.
    pub(super) fn flush(&mut self) {
        self.places.clear();
        let mut groups: Vec<Line> = Vec::new();
        let mut known: HashMap<(&'static str, String, u64), usize> = HashMap::new();
        let by_length = |line: &Line| (line.subject.len(), line.subject.clone());
        for line in std::mem::take(&mut self.moment) {
            let same = known.entry((line.what, line.why.clone(), line.times)).or_insert(groups.len());
            match groups.get_mut(*same) {
                Some(group) => {
                    let others = group.others + 1;
                    let first = if by_length(&line) < by_length(group) { line } else { group.clone() };
                    *group = Line { others, ..first };
                }
                None => groups.push(line),
            }
        }
        for line in groups {
            self.append(line);
        }
    }

    /// Adds a line, or folds it into the last line of the same subject if that is equal. Runs and their successes
    /// alternate, so the last line but one counts for them too.
    fn append(&mut self, line: Line) {
        let recent = self.recent.entry(line.subjects()).or_default();
        let alternates = matches!(line.what, "runs" | "Completed");
        let is_equal = |it: &&mut Line| it.what == line.what && (it.why == line.why || line.what == "Completed");
        for place in recent.iter().take(if alternates { 2 } else { 1 }).flatten() {
            if let Some(equal) = self.lines.get_mut(*place).filter(is_equal) {
                return equal.fold(line);
            }
        }
        if line.is_scheduled && alternates {
            let is_near = |it: &&mut Line| it.what == line.what && it.why == line.why && line.at - it.last_at <= CROWD;
            let mut near = self.lines.iter_mut().rev().take(NEAR).filter(|it| it.is_scheduled && it.times == 1);
            if let Some(crowd) = near.find(is_near) {
                (crowd.others, crowd.last_at) = (crowd.others + 1 + line.others, line.last_at);
                return;
            }
        }
        if self.lines.len() >= MOST_LINES {
            self.left_out += 1;
            return;
        }
        *recent = [Some(self.lines.len()), recent[0]];
        self.lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(happens: &[(i64, &str, &'static str, &str)]) -> Vec<(i64, String, &'static str, u64)> {
        let mut timeline = Timeline::default();
        for (second, subject, what, why) in happens {
            let at = Time::from_timestamp(*second, 0).unwrap();
            timeline.add(Line::new(at, subject, what, None, (*why).to_owned()));
        }
        timeline.flush();
        timeline.lines.iter().map(|it| (it.at.timestamp(), it.subjects(), it.what, it.times)).collect()
    }

    #[test]
    fn equal_things_are_folded_over_targets_and_over_time() {
        assert_eq!(
            played(&[
                (0, "n-10", "runs", ""),
                (0, "n-9", "runs", ""),
                (1, "n-9", "failed", "x"),
                (2, "n-9", "failed", "x")
            ]),
            [(0, "n-9 +1".to_owned(), "runs", 1), (1, "n-9".to_owned(), "failed", 2)]
        );
        assert_eq!(played(&[(0, "a", "skipped", "x"), (0, "a", "skipped", "x")]), [(0, "a".to_owned(), "skipped", 2)]);
    }

    #[test]
    fn runs_and_their_successes_are_folded_although_they_alternate_and_other_things_are_not() {
        let alternate = |what: [&'static str; 2]| {
            let happens: Vec<_> = (0..6).map(|n| (n, "a", what[usize::try_from(n % 2).unwrap()], "")).collect();
            played(&happens).len()
        };
        assert_eq!((alternate(["runs", "Completed"]), alternate(["held", "released"])), (2, 6));
    }

    #[test]
    fn the_runs_of_many_schedules_within_a_minute_are_one_line() {
        let mut timeline = Timeline::default();
        for (second, subject) in [(0, "n-1"), (20, "n-2"), (50, "n-3"), (90, "n-4")] {
            let line = Line::new(Time::from_timestamp(second, 0).unwrap(), subject, "runs", None, String::new());
            timeline.add(Line { is_scheduled: true, ..line });
        }
        timeline.flush();
        let lines: Vec<_> = timeline.lines.iter().map(|it| (it.subjects(), it.last_at.timestamp())).collect();
        assert_eq!(lines, [("n-1 +2".to_owned(), 50), ("n-4".to_owned(), 90)]);
    }
}
