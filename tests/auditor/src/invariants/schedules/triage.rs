//! Invariant 13: at most one triage for each schedule and cooldown, and none for the failure of a triage. Also what a
//! triage may do (sections 13.2 to 13.4).
//!
//! A triage's record is judged by the status that it replaced, which is the version in its precondition. An analyst is
//! made after a live read, so its record existed within the lag.

use serde_json::{Map, Value};
use wfe_core::duration;

use super::fold::is_lifted;
use super::{Finding, replaced, views};
use crate::history::{ANALYST, Execution, LastRun, Schedule, failure_count, planned_from, text};
use crate::moment::{Seconds, seconds};
use crate::report::{Counts, Moment, Violation};
use crate::section_7::whole;
use crate::{Evidence, Policy};

/// The default number of failures before a triage begins.
const AFTER: u64 = 3;
/// The period in which triages are counted, in seconds.
const HOUR: Seconds = 60 * 60;

/// The rule that a record breaks, and a clause that follows the name of the schedule.
type Flaw = (&'static str, String);

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (schedule, before, after) in replaced(evidence) {
        let object = schedule.object_at(after.at);
        let step = Step { evidence, schedule, object, before: before.status, after: after.status, at: after.at };
        found.extend(step.flaws(counts).into_iter().map(|(rule, what)| {
            Finding::new(13, rule, format!("{} {what}", schedule.object)).of_schedule(schedule, after.at)
        }));
    }
    found.extend(evidence.history.executions.values().filter_map(|execution| analyst(evidence, execution, counts)));
    found
}

/// A status and the status that it replaced.
struct Step<'j, 'e> {
    evidence: &'j Evidence<'e>,
    schedule: &'j Schedule<'e>,
    /// The schedule with the new status. The write was decided on this spec.
    object: &'e Value,
    before: &'e Value,
    after: &'e Value,
    at: Moment,
}

impl Step<'_, '_> {
    fn flaws(&self, counts: &mut Counts) -> Vec<Flaw> {
        let (was, is) = (&self.before["triage"], &self.after["triage"]);
        let (adjusted, adjusts) = (&self.before["adjust"], &self.after["adjust"]);
        if planned_from(self.before) != planned_from(self.after) {
            return self.anew().into_iter().collect();
        }
        if was == is {
            return (adjusted != adjusts)
                .then(|| ("adjusted", "was adjusted by no triage".to_owned()))
                .into_iter()
                .collect();
        }
        let begins = is["of"] != was["of"];
        let mut flaws = Vec::new();
        if begins {
            counts.add("triages");
            flaws.extend(self.begins(was, is));
        } else if !goes_on(was, is) {
            flaws.push(("triage-fixed", format!("changed the record of the triage of {}, which was over", was["of"])));
        }
        if !is["verdict"].is_null() && (begins || was["verdict"].is_null()) {
            counts.add("verdicts");
        }
        flaws.extend(verdict(is));
        flaws.extend(self.is_over(is));
        if adjusted != adjusts {
            flaws.extend(self.adjusts(is));
        }
        flaws
    }

    /// Checks that a triage's effect ends when the plan is edited, or when a person resumes this triage. Suspending and
    /// resuming the schedule does not end the effect.
    fn anew(&self) -> Option<Flaw> {
        let (was, is) = (&self.before["triage"], &self.after["triage"]);
        let is_edited = self.before["revision"] != self.after["revision"];
        if is_edited || is_lifted(&self.object["spec"], self.before) {
            let is_over = was.is_null() && is.is_null() || is["of"] == was["of"] && is["state"] == "Over";
            let is_undone = is_over && self.after["adjust"].is_null();
            return (!is_undone).then(|| ("triage-over", "began its plan anew, and its triage is not over".to_owned()));
        }
        let mut kept = was.clone();
        // If a clock was ahead, the recorded beginning of the triage is corrected.
        if seconds(was, "/at") > planned_from(self.after) {
            kept["at"] = self.after["plannedFrom"].clone();
        }
        let is_kept = kept == *is && self.before["adjust"] == self.after["adjust"];
        (!is_kept).then(|| ("triage-fixed", "began its plan anew, and nobody had ended its triage".to_owned()))
    }

    /// Checks the requirements for the beginning of a triage. The first that is not met is reported.
    fn begins(&self, was: &Value, is: &Value) -> Option<Flaw> {
        let (spec, policy) = (&self.object["spec"], self.evidence.options.policy.as_ref());
        let flaw = |rule: &'static str, what: String| Some((rule, format!("began a triage, and {what}")));
        if is.is_null() {
            return Some(("triage-fixed", "forgot its triage".to_owned()));
        }
        let analyst = text(spec, "/triage/analyst").unwrap_or("BuiltIn");
        if analyst == "Off" || is["analyst"] != analyst {
            return flaw("triage-analyst", format!("its analyst is {analyst}, and not {}", is["analyst"]));
        }
        let is_idle = spec["suspend"] == true || text(self.object, "/metadata/deletionTimestamp").is_some();
        if is_idle || was["state"] == "Paused" {
            return flaw("triage-idle", "it makes no children".to_owned());
        }
        let (count, least) = (failure_count(self.after), spec["triage"]["after"].as_u64().unwrap_or(AFTER));
        if count < least {
            return flaw("triage-early", format!("it had failed {count} times of {least}"));
        }
        if !self.is_of_last_failure(is) {
            return flaw("triage-of", format!("{} is not its child that failed last", is["of"]));
        }
        if was["state"] == "Analysing" {
            return flaw("triage-cooldown", "another was at work".to_owned());
        }
        let (policy, at) = (policy?, seconds(is, "/at")?);
        let until = seconds(was, "/at").map(|was| was + whole(policy.triage_cooldown.as_nanos()));
        if let Some(until) = until.filter(|until| at < *until) {
            return flaw("triage-cooldown", format!("the one before it lets none begin for {} s more", until - at));
        }
        let is_counted = analyst == "Pipeline";
        self.too_many(policy, at).filter(|_| is_counted).and_then(|what| flaw("triage-many", what))
    }

    /// Returns whether the triage examines the child that failed last.
    fn is_of_last_failure(&self, is: &Value) -> bool {
        let last = LastRun::read(self.after);
        let failed = last.filter(|last| matches!(last.outcome, Some("Failed" | "Refused")));
        let failed = failed.filter(|last| Some(last.slot) > planned_from(self.after));
        failed.is_some_and(|last| is["of"] == format!("{}-{}", self.schedule.object.name, last.slot))
    }

    /// Counts other schedules' triages that had begun within the hour on every view. Triages in the same namespace
    /// count twice: a namespace may begin a triage only while more places are free than it has used.
    fn too_many(&self, policy: &Policy, at: Seconds) -> Option<String> {
        let versions = |other: &Schedule<'_>| other.versions.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        let mine = &self.schedule.object;
        let others = self.evidence.history.schedules.values().filter(|it| it.object.uid != mine.uid);
        let had_begun = |other: &&Schedule<'_>| {
            let views = views(self.evidence, self.at, versions(other).into_iter().chain(other.gone));
            let begun = |view: &Moment| {
                let triage = &other.object_at(*view)["status"]["triage"];
                seconds(triage, "/at").filter(|_| triage["analyst"] == "Pipeline")
            };
            views.iter().all(|view| begun(view).is_some_and(|begun| at - HOUR < begun && begun <= at))
        };
        let is_beside = |other: &Schedule<'_>| other.object.namespace == mine.namespace;
        let begun: u64 = others.filter(had_begun).map(|other| if is_beside(other) { 2 } else { 1 }).sum();
        let most = u64::from(policy.triage_max_per_hour);
        (begun >= most).then(|| format!("others had {begun} of {most} places within the hour, its namespace's doubled"))
    }

    /// Checks that a verdict on failures that have ended has no effect, even if another failure follows.
    fn is_over(&self, is: &Value) -> Option<Flaw> {
        let acts = matches!(is["state"].as_str(), Some("Filed" | "Paused" | "Adjusted"));
        let begun = seconds(is, "/at").filter(|_| acts)?;
        let succeeded = seconds(self.after, "/lastSuccessTime").is_some_and(|at| at > begun);
        let is_over = succeeded || planned_from(self.after).is_some_and(|since| since > begun);
        is_over.then(|| ("verdict", format!("is {} for failures that had ended", is["state"])))
    }

    /// Checks that a triage adjusts only the fields that the schedule allows.
    fn adjusts(&self, is: &Value) -> Option<Flaw> {
        let (was, now, spec) = (&self.before["adjust"], &self.after["adjust"], &self.object["spec"]);
        if is["state"] != "Adjusted" || now.is_null() {
            return Some(("adjusted", "was adjusted by a triage that adjusts nothing".to_owned()));
        }
        let (none, allowed) = (Map::new(), spec["triage"]["allowAdjust"].as_array().map_or(&[][..], Vec::as_slice));
        let parameters = now["parameters"].as_object().unwrap_or(&none);
        let changed = parameters.iter().filter(|(key, value)| was["parameters"][key.as_str()] != **value);
        let changed = changed.map(|(key, _)| format!("parameters.{key}"));
        let fields = ["interval", "timeout"].into_iter().filter(|field| was[*field] != now[*field]);
        let changed: Vec<String> = fields.map(str::to_owned).chain(changed).collect();
        if let Some(field) = changed.iter().find(|field| !allowed.contains(&Value::from(field.as_str()))) {
            return Some(("adjusted", format!("lets no triage change {field}")));
        }
        let length = |value: &Value| duration::parse(value.as_str()?).ok();
        let (interval, least) = (length(&now["interval"]), length(&spec["minInterval"]));
        let is_below = interval.zip(least).is_some_and(|(interval, least)| interval < least);
        let is_above = interval.zip(length(&spec["maxInterval"])).is_some_and(|(interval, most)| interval > most);
        (is_below || is_above).then(|| ("adjusted", "was adjusted beyond its clamps".to_owned()))
    }
}

/// Returns whether the change to a record is legal. A record may change only while the analyst works: it gets the name
/// of the analyst's execution once, and the verdict.
fn goes_on(was: &Value, is: &Value) -> bool {
    let is_same = |field: &str| was[field] == is[field];
    let is_named_once = was["run"].is_null() || is_same("run");
    was["state"] == "Analysing" && is["state"] != "Over" && is_same("at") && is_same("analyst") && is_named_once
}

/// Checks that each verdict has its own effect, and that there is no effect without a verdict.
fn verdict(is: &Value) -> Option<Flaw> {
    let state = is["state"].as_str().unwrap_or_default();
    let is_its_own = matches!(
        (state, is["verdict"].as_str()),
        ("Analysing" | "Failed", None)
            | ("Noted", Some(_))
            | ("Filed", Some("FileFix"))
            | ("Paused", Some("PauseAndNotify"))
            | ("Adjusted", Some("AdjustConfig"))
    );
    (!is_its_own).then(|| ("verdict", format!("is {state} by the verdict {}", is["verdict"])))
}

/// Checks that an analyst is made once, for the triage in its schedule's status.
fn analyst(evidence: &Evidence<'_>, execution: &Execution<'_>, counts: &mut Counts) -> Option<Violation> {
    let analysed = execution.analyses?;
    if evidence.authors.is_strangers(execution.created) {
        return None;
    }
    counts.add("analysts");
    let schedule = evidence.history.schedules.get(analysed.schedule)?;
    let of = execution.object.name.strip_suffix(ANALYST)?;
    let awaits = |view: &Moment| {
        let triage = &schedule.object_at(*view)["status"]["triage"];
        let is_awaited = triage["state"] == "Analysing" && triage["analyst"] == "Pipeline" && triage["run"].is_null();
        triage["of"] == of && is_awaited
    };
    let changes = schedule.versions.iter().map(|(at, _)| *at).chain(schedule.gone);
    if views(evidence, execution.created, changes).iter().any(awaits) {
        return None;
    }
    let text = format!("{} was made, and no triage of {} awaited it", execution.object, schedule.object);
    let objects = vec![execution.object.clone(), schedule.object.clone()];
    Some(Finding::new(13, "analyst", text).on(execution.shown_target(), objects, &[execution.created]))
}
