//! Applies a judgement (section 13.4); nothing else gives a verdict an effect. Even a deceived analyst can only pause
//! its own schedule, or change values that the schedule lists. Everything else is advice.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Adjust, FIX, Field, Judgement, PARAMETER_VALUE, REFUSED, State, TriageSpec, Verdict, WHY, Wanted};
use crate::duration;
use crate::text::cut;

/// The effect of a judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The new state of the triage.
    pub state: State,
    /// The reason for the verdict, cut to the limit of a status.
    pub why: Box<str>,
    /// What a person can do, cut to the limit of a status.
    pub fix: Option<Box<str>>,
    /// The values that replace those of the spec from now on; `None` if no value does.
    pub adjust: Option<Adjust>,
    /// The refused requests, each with the reason.
    pub refused: Vec<Box<str>>,
}

/// The longest time-out that a verdict may set (section 13.4).
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

/// The bounds of the values that a verdict may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The intervals that the schedule allows; `None` if it runs by cron.
    pub intervals: Option<RangeInclusive<Duration>>,
    /// The time-out of the template, or the default. A verdict may lengthen but not shorten it (section 13.4).
    pub timeout: Duration,
}

/// Applies a judgement within the limits that a schedule sets. `so_far` contains the values that already replace those
/// of the spec. If the schedule does not fail any more, the judgement is only recorded.
#[must_use]
pub fn apply(
    judgement: &Judgement,
    spec: &TriageSpec,
    bounds: &Bounds,
    so_far: Option<&Adjust>,
    fails: bool,
) -> Applied {
    let applied = Applied {
        state: State::Noted,
        why: cut(&judgement.why, WHY).into(),
        fix: judgement.fix.as_deref().map(|fix| cut(fix, FIX).into()),
        adjust: so_far.cloned(),
        refused: Vec::new(),
    };
    if !fails {
        return applied;
    }
    match judgement.verdict {
        Verdict::DoNothing => applied,
        Verdict::FileFix => Applied { state: State::Filed, ..applied },
        Verdict::PauseAndNotify => Applied { state: State::Paused, ..applied },
        Verdict::AdjustConfig => {
            let (adjust, refused) = adjusted(&judgement.adjust, spec, bounds, so_far);
            let changes = Some(&adjust) != so_far && adjust != Adjust::default();
            let state = if changes { State::Adjusted } else { State::Noted };
            Applied { state, adjust: if changes { Some(adjust) } else { so_far.cloned() }, refused, ..applied }
        }
    }
}

/// Merges the allowed changes into the current ones, and returns the refused ones with the reason.
fn adjusted(wanted: &Wanted, spec: &TriageSpec, bounds: &Bounds, so_far: Option<&Adjust>) -> (Adjust, Vec<Box<str>>) {
    let mut adjust = so_far.cloned().unwrap_or_default();
    let mut refused = Vec::new();
    let Wanted { interval, timeout, parameters } = wanted;
    if let Some(text) = interval {
        match allowed(spec, &Field::Interval).and_then(|()| read_interval(text, bounds)) {
            Ok(interval) => adjust.interval = Some(interval),
            Err(why) => refused.push(format!("interval: {why}")),
        }
    }
    if let Some(text) = timeout {
        let read = || {
            seconds(text, &(bounds.timeout..=LONGEST_TIMEOUT))
                .ok_or("must be a duration in whole seconds, from the time-out of the template to 24h")
        };
        match allowed(spec, &Field::Timeout).and_then(|()| read()) {
            Ok(timeout) => adjust.timeout = Some(timeout),
            Err(why) => refused.push(format!("timeout: {why}")),
        }
    }
    for (key, value) in parameters {
        match allowed(spec, &Field::Parameter(key.clone())).and_then(|()| fits(key, value, &adjust, spec.room)) {
            Ok(()) => {
                adjust.parameters.insert(key.clone(), value.clone());
            }
            // The value is not quoted, because it may be a secret that the evidence revealed.
            Err(why) => refused.push(format!("parameters.{}: {why}", cut(key, 64))),
        }
    }
    if wanted == &Wanted::default() {
        refused.push("adjust: the verdict names no value".to_owned());
    }
    refused.truncate(REFUSED);
    (adjust, refused.into_iter().map(Into::into).collect())
}

fn allowed(spec: &TriageSpec, field: &Field) -> Result<(), &'static str> {
    let is_listed = spec.allow_adjust.contains(field);
    is_listed
        .then_some(())
        .ok_or("is not in spec.triage.allowAdjust, or not in the template; edit the schedule by hand")
}

/// Returns why a parameter value is too long, if it is. The API would refuse the execution, or the status, for ever.
fn fits(key: &str, value: &str, so_far: &Adjust, room: usize) -> Result<(), &'static str> {
    let length = value.chars().count();
    let others = so_far.parameters.iter().filter(|(known, _)| ***known != *key);
    let all = others.map(|(_, value)| value.chars().count()).sum::<usize>() + length;
    if length > PARAMETER_VALUE {
        Err("is longer than the 8192 characters that a parameter may have")
    } else if all > room {
        Err("makes the parameters longer than the 65536 characters that they may have together")
    } else {
        Ok(())
    }
}

fn read_interval(text: &str, bounds: &Bounds) -> Result<Duration, &'static str> {
    let intervals = bounds.intervals.as_ref().ok_or("the schedule runs by cron, which no verdict changes")?;
    seconds(text, intervals).ok_or("must be a duration in whole seconds from minInterval to maxInterval")
}

fn seconds(text: &str, range: &RangeInclusive<Duration>) -> Option<Duration> {
    let duration = duration::parse(text).ok()?;
    (duration.subsec_nanos() == 0 && range.contains(&duration)).then_some(duration)
}
