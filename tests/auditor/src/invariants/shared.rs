//! Invariant 8, of failures that are shared: `sharedOutage` stands in those that end while a circuit of their kind is
//! open (section 13.5), and in no others; in none of what a schedule has made. Such a failure counts for nobody, so one
//! that is wrongly called shared would keep a target from being exhausted.

use wfe_api::FailureReason;

use super::Finding;
use super::schedules::views;
use crate::Evidence;
use crate::history::{Execution, Written, text};
use crate::moment::seconds;
use crate::record::is_cancelled;
use crate::report::{Counts, Violation};
use crate::section_13::Shared;

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let Some(policy) = &evidence.options.policy else { return Vec::new() };
    let shared = Shared::read(&evidence.history, policy);
    let mut found = Vec::new();
    for execution in evidence.history.executions.values() {
        let Some(ended) = execution.ended().filter(|ended| !evidence.authors.is_strangers(ended.at)) else { continue };
        let said = ended.status["failureDetails"]["sharedOutage"] == true;
        if said {
            counts.add("shared");
        }
        found.extend(flaw(evidence, &shared, execution, &ended, said).map(|what| {
            let text = format!("{} says sharedOutage {said}, and {what}", execution.object);
            Finding::new(8, "shared-outage", text).about(execution, ended.at)
        }));
    }
    found
}

fn flaw(
    evidence: &Evidence<'_>,
    shared: &Shared<'_>,
    execution: &Execution<'_>,
    ended: &Written<'_>,
    said: bool,
) -> Option<String> {
    let details = &ended.status["failureDetails"];
    let is_late =
        details["reason"] == FailureReason::DeadlineExceeded.as_str() && ended.status["runSequence"].is_null();
    let may_be = details["wasExecutionFailure"] == false && !is_cancelled(ended.status) && !is_late;
    if !may_be {
        return said.then(|| "that is none which others can share".to_owned());
    }
    if execution.child.is_some() || execution.analyses.is_some() {
        return said.then(|| "a schedule made it".to_owned());
    }
    let failed = seconds(details, "/failedAt")?;
    // What was told when all was known says the same.
    if said == shared.is_open_at(failed) && !said {
        return None;
    }
    let Some(fingerprint) = text(details, "/fingerprint") else {
        return said.then(|| "it has no fingerprint".to_owned());
    };
    let oldest = execution.version_before(ended.at);
    let known = views(evidence, ended.at, shared.changes());
    let older = shared.changes().filter(|at| oldest <= *at && *at < ended.at);
    let agrees = known
        .into_iter()
        .chain(older)
        .any(|view| shared.known_at(view).iter().any(|circuits| circuits.share(fingerprint, failed) == said));
    let what = if said { "no circuit of its kind was open" } else { "a circuit of its kind was open" };
    (!agrees).then(|| what.to_owned())
}
