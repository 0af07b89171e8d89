//! Follows the logs of an execution until it ends.
//!
//! It polls for new lines. A stream would not work: the connection gives up a silent stream, and a step may be silent
//! for long.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use chrono::{DateTime, FixedOffset, SecondsFormat, SubsecRound, TimeDelta};
use kube::api::LogParams;
use tokio::time::Instant;

use super::read::{MOST_BYTES, bytes, said};
use super::{MOST_STEPS, Run, Step, prefix, runs, state, steps_of_run};
use crate::cli::LogsArgs;
use crate::connection::Connection;
use crate::execution::{End, Following};
use crate::output::{line, note, output};

/// The pause between two polls: each running step costs a request.
const PAUSE: Duration = Duration::from_secs(2);
/// How long an execution is followed: the longest time-out of a run, and the longest `maxDuration` of a retry.
const FOLLOWED_FOR: Duration = Duration::from_hours(24);

/// How far the log of a step was shown.
#[derive(Debug, Default)]
struct Shown {
    /// The time of the last line.
    last: Option<DateTime<FixedOffset>>,
    /// How many lines of that time were shown.
    count: usize,
    /// The end of the step was shown.
    is_over: bool,
}

/// Shows what the steps write until the execution ends. Yes: a line was shown, or a step has ended.
pub(super) async fn run(connection: &Connection, args: &LogsArgs) -> Result<bool> {
    let deadline = Instant::now() + FOLLOWED_FOR;
    let mut shown: BTreeMap<(String, String), Shown> = BTreeMap::new();
    let mut first = None;
    let mut following = Following::begin(connection, &args.name).await?;
    if runs(following.seen()).is_empty() && End::of(following.seen()).is_none() {
        note("waiting until it runs");
    }
    loop {
        let end = End::of(following.seen());
        let runs = runs(following.seen());
        if first.is_none() {
            first = runs.last().map(|run| run.attempt);
        }
        // Later attempts are followed too, unless one was asked for.
        let is_followed = |run: &&Run| match args.attempt {
            Some(attempt) => run.attempt == u64::from(attempt),
            None => first.is_some_and(|first| run.attempt >= first),
        };
        for run in runs.iter().filter(is_followed) {
            for step in steps_of_run(connection, run).await?.into_iter().take(MOST_STEPS) {
                let key = (step.pod.clone(), step.step.container.clone());
                let so_far = shown.entry(key).or_default();
                show(connection, run, &step, so_far, args.tail).await?;
            }
        }
        if let Some(end) = end {
            writeln!(output(), "{}", line(&end.told()))?;
            return Ok(shown.values().any(|it| it.is_over || it.last.is_some()));
        }
        if Instant::now() >= deadline {
            bail!("{} has not ended within 24 h; ask again", args.name);
        }
        following.changes(Instant::now() + PAUSE).await?;
    }
}

/// Shows the new lines of one step.
async fn show(connection: &Connection, run: &Run, step: &Step, so_far: &mut Shown, tail: u32) -> Result<()> {
    let prefix = prefix(&step.step.task, &step.step.name);
    let mut out = output();
    if so_far.is_over {
        return Ok(());
    }
    if step.step.state.has_log() {
        let bytes = match bytes(connection, run, step, so_far.params(tail)).await {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.code(), 401 | 403) => bail!("cannot read the log: {}", said(&error, run)),
            // The log is read again, unless the step is over.
            Err(error) => {
                if step.step.state.is_over() {
                    writeln!(out, "{prefix} (its log cannot be read: {})", line(&said(&error, run)))?;
                }
                Vec::new()
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        let news = so_far.news(&text);
        for said in &news {
            writeln!(out, "{prefix} {}", line(said))?;
        }
        if bytes.len() as u64 >= MOST_BYTES {
            if news.is_empty() {
                so_far.leave_out();
                writeln!(out, "{prefix} (more than 1 MiB in a second: lines are left out)")?;
            }
            return Ok(()); // the next poll reads the rest
        }
    }
    if step.step.state.is_over() {
        so_far.is_over = true;
        writeln!(out, "{prefix} {}", line(&state(&step.step.state)))?;
    }
    Ok(())
}

impl Shown {
    /// Asks for the last lines at first, and then for all from the second of the last line on.
    fn params(&self, tail: u32) -> LogParams {
        let since = self.last.map(|last| last.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true));
        LogParams {
            timestamps: true,
            since_time: since.and_then(|since| since.parse().ok()),
            tail_lines: self.last.is_none().then_some(i64::from(tail)),
            ..LogParams::default()
        }
    }

    /// Skips the rest of the current second.
    fn leave_out(&mut self) {
        self.last = self.last.map(|last| last.trunc_subsecs(0) + TimeDelta::seconds(1));
        self.count = 0;
    }

    /// Returns the lines that were not shown yet, without their times.
    fn news<'a>(&mut self, text: &'a str) -> Vec<&'a str> {
        let before = self.last;
        let (mut at_last, mut news) = (0, Vec::new());
        for whole in text.split_inclusive('\n').filter(|it| it.ends_with('\n')) {
            let Some((at, said)) = whole.trim_end_matches('\n').split_once(' ') else { continue };
            let Ok(at) = DateTime::parse_from_rfc3339(at) else { continue };
            if before.is_some_and(|before| at < before) {
                continue;
            }
            if before == Some(at) {
                at_last += 1;
                if at_last <= self.count {
                    continue;
                }
            }
            news.push((at, said));
        }
        for (at, _) in &news {
            match self.last {
                Some(last) if last == *at => self.count += 1,
                Some(last) if last > *at => {}
                _ => (self.last, self.count) = (Some(*at), 1),
            }
        }
        news.into_iter().map(|(_, said)| said).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_shown_once() {
        let mut shown = Shown::default();
        let at = |second: &str, said: &str| format!("2026-01-02T03:04:{second}Z {said}\n");
        let first = at("05.1", "a") + &at("05.2", "b") + &at("05.2", "c");
        assert_eq!(shown.news(&first), ["a", "b", "c"]);
        // A request begins at a whole second, so some lines are read again.
        assert_eq!(shown.news(&first), Vec::<&str>::new());
        let again = first.clone() + &at("05.2", "d") + &at("06", "e f") + "2026-01-02T03:04:07Z not whole";
        assert_eq!(shown.news(&again), ["d", "e f"]);
        assert_eq!(shown.news(&(at("06", "e f") + &at("06", "e f"))), ["e f"]);
        assert_eq!(shown.news("no time\n\n"), Vec::<&str>::new());
        shown.leave_out();
        assert_eq!(shown.news(&(at("06.9", "g") + &at("07", "h"))), ["h"]);
    }

    #[test]
    fn it_asks_for_the_last_lines_and_then_for_what_is_new() {
        let mut shown = Shown::default();
        let params = shown.params(200);
        assert_eq!((params.tail_lines, params.since_time.is_none(), params.timestamps), (Some(200), true, true));
        shown.news("2026-01-02T05:04:05.9+02:00 a\n");
        let params = shown.params(200);
        let since = params.since_time.map(|it| it.to_string());
        assert_eq!((params.tail_lines, since.as_deref()), (None, Some("2026-01-02T03:04:05Z")));
    }
}
