//! The text of `kubectl wfe schedule explain` about the latest triage and its changes. This module only describes them:
//! the rows of the decision judge.

use std::fmt::Write as _;

use serde::Serialize;
use wfe_core::duration;
use wfe_core::fingerprint::Fingerprint;
use wfe_core::schedule::Schedule;
use wfe_core::triage::{Adjust, Triage, Verdict};

use crate::moment::shown;
use crate::output::line;

/// The latest triage.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TriageSaid {
    /// The name of the triage, which is the name of the failed child.
    of: String,
    at: String,
    analyst: &'static str,
    state: &'static str,
    fingerprint: Option<String>,
    verdict: Option<&'static str>,
    why: Option<String>,
    fix: Option<String>,
    /// The changes that the analyst wanted and that were refused, each with the reason.
    refused: Vec<String>,
    /// The execution of the analyst, as `namespace/name`.
    run: Option<String>,
}

/// The values of a triage that apply in place of those of the spec.
#[derive(Debug, Serialize)]
pub(super) struct Adjusted {
    interval: Option<String>,
    timeout: Option<String>,
    /// The keys alone: a value may be a secret.
    parameters: Vec<String>,
}

impl TriageSaid {
    /// Reads it from the status.
    pub(super) fn of(schedule: &Schedule) -> Option<Self> {
        let triage = schedule.status.triage.as_deref()?;
        let Triage { of, at, analyst, run, fingerprint, evidence: _, verdict, why, fix, refused, state } = triage;
        let owned = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        Some(Self {
            of: of.to_string(),
            at: shown(*at),
            analyst: analyst.as_str(),
            state: state.as_str(),
            fingerprint: fingerprint.as_ref().map(Fingerprint::as_str).map(str::to_owned),
            verdict: verdict.map(Verdict::as_str),
            why: owned(why),
            fix: owned(fix),
            refused: refused.iter().map(ToString::to_string).collect(),
            run: run.as_ref().map(|(name, _)| format!("{}/{name}", schedule.id.namespace)),
        })
    }

    /// Writes it for people.
    pub(super) fn tell(&self, text: &mut String) {
        let Self { of, at, analyst, state, fingerprint, verdict, why, fix, refused, run } = self;
        let _ = write!(text, "  triage       of {}, begun at {at} by {analyst}: {state}", line(of));
        if let Some(verdict) = verdict {
            let _ = write!(text, " ({verdict})");
        }
        if let Some(why) = why {
            let _ = write!(text, ": {}", line(why));
        }
        text.push('\n');
        let further = [("cause", fingerprint), ("fix", fix), ("analyst", run)];
        for (name, said) in further.into_iter().filter_map(|(name, said)| Some((name, said.as_ref()?))) {
            let _ = writeln!(text, "  {name:<12} {}", line(said));
        }
        for refused in refused {
            let _ = writeln!(text, "  refused      {}", line(refused));
        }
    }
}

impl Adjusted {
    /// Reads it from the status.
    pub(super) fn of(schedule: &Schedule) -> Option<Self> {
        let Adjust { interval, timeout, parameters } = schedule.status.adjust.as_deref()?;
        Some(Self {
            interval: interval.map(duration::format),
            timeout: timeout.map(duration::format),
            parameters: parameters.keys().map(ToString::to_string).collect(),
        })
    }

    /// Writes it for people.
    pub(super) fn tell(&self, text: &mut String) {
        let interval = self.interval.iter().map(|it| format!("interval {it}"));
        let timeout = self.timeout.iter().map(|it| format!("timeout {it}"));
        let parameters = self.parameters.iter().map(|key| format!("parameters.{key}"));
        let all: Vec<_> = interval.chain(timeout).chain(parameters).collect();
        let _ = writeln!(text, "  adjusted     {}", line(&all.join(", ")));
    }
}
