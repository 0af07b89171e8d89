//! The three reasons that name an earlier execution. It must have ended as the Skip says, and must be why the rule
//! applied.

use serde_json::Value;
use wfe_core::duration;

use super::{Flaw, named};
use crate::Evidence;
use crate::history::{Execution, Written, phase, text};
use crate::moment::{Seconds, seconds};
use crate::record::{End, Ledger, Past};
use crate::report::Counts;
use crate::section_6::{Ban, Reading, span};

/// The rules of flaws, the most informative first. If a Skip may be based on several views, only one flaw is reported.
const FLAWS: [&str; 3] = ["wrong-fact", "earlier-rule", "no-fact"];

pub(super) fn judge(
    evidence: &Evidence<'_>,
    ledger: Option<&Ledger<'_>>,
    execution: &Execution<'_>,
    ended: &Written<'_>,
    counts: &mut Counts,
) -> Option<Flaw> {
    as_it_says(evidence, execution, ended).or_else(|| by_rule(evidence, ledger?, execution, ended, counts))
}

/// Checks that the named execution had ended on this target before the skip, with the outcome and time in the skip.
fn as_it_says(evidence: &Evidence<'_>, execution: &Execution<'_>, ended: &Written<'_>) -> Option<Flaw> {
    let recent = &ended.status["skipDetails"]["recentRemediation"];
    let Some(name) = named(execution, recent) else {
        return Some(("no-fact", "it names no recent remediation".to_owned()));
    };
    let candidates = evidence.history.executions.values().filter(|other| {
        other.object.is_named(&name)
            && other.target == execution.target
            && other.gone.is_none_or(|gone| execution.created < gone)
    });
    let as_said = |other: &Execution<'_>| {
        let status = other.at(ended.at);
        phase(status).is_some_and(|phase| text(recent, "/outcome") == Some(phase.as_str()))
            && text(recent, "/completedAt") == text(status, "/completionTime")
    };
    let mut seen = 0;
    for other in candidates {
        seen += 1;
        if as_said(other) {
            return None;
        }
    }
    let what = if seen == 0 { "was not there" } else { "had not ended as it says" };
    Some(("no-fact", format!("{name} on the target {what}")))
}

/// Checks that the rule decides on a view on which the Skip may be based. All executions come from one watch, so a view
/// is the state at some moment between the version in the Skip's precondition and the Skip. None of rules 2 to 5 before
/// this rule may apply on that view. Rule 1 is not judged here, because runs come from another watch.
fn by_rule(
    evidence: &Evidence<'_>,
    ledger: &Ledger<'_>,
    execution: &Execution<'_>,
    ended: &Written<'_>,
    counts: &mut Counts,
) -> Option<Flaw> {
    let (policy, details) = (evidence.options.policy.as_ref()?, &ended.status["skipDetails"]);
    let now = seconds(details, "/skippedAt")?;
    let mut flaws = Vec::new();
    for view in ledger.views(ledger.oldest_view(&evidence.history, execution, ended.at), ended.at).into_iter().rev() {
        let record = ledger.at(view);
        let bans = Reading::of(&record, policy, now).bans(execution);
        let is_named = |ban: &&Ban<'_, '_>| details["reason"] == ban.rule.reason().as_str();
        // The first ban that is certain decides, or one before it.
        let deciding = bans.iter().position(|ban| ban.is_certain(now)).map_or(bans.len(), |at| at + 1);
        if !bans.iter().any(|ban| is_named(&ban)) {
            flaws.push(("no-fact", format!("by that rule it could run: {}", tell(&bans, now))));
        } else if !bans[..deciding].iter().any(|ban| is_named(&ban)) {
            flaws.push(("earlier-rule", format!("an earlier rule decides: {}", tell(&bans, now))));
        }
        for ban in bans[..deciding].iter().filter(is_named) {
            let Some(what) = misnamed(execution, ban, &details["recentRemediation"], now) else {
                counts.add(ban.rule.count());
                return None;
            };
            flaws.push(("wrong-fact", what));
        }
    }
    flaws.into_iter().min_by_key(|(rule, _)| FLAWS.iter().position(|flaw| flaw == rule))
}

fn tell(bans: &[Ban<'_, '_>], now: Seconds) -> String {
    let told = |ban: &Ban<'_, '_>| format!("by rule {}, {}", ban.rule.number(), ban.tell(now));
    bans.first().map_or_else(|| "nothing on record forbade it".to_owned(), told)
}

/// Returns what a Skip wrongly says about the execution that is its reason.
fn misnamed(execution: &Execution<'_>, ban: &Ban<'_, '_>, recent: &Value, now: Seconds) -> Option<String> {
    let said = text(recent, "/cooldownRemaining").map(duration::parse);
    let said = said.map(|said| said.ok().and_then(|said| Seconds::try_from(said.as_secs()).ok()));
    let remaining = ban.remaining(now);
    let is_right = match (remaining, said) {
        (Some((shortest, longest)), Some(Some(said))) => (shortest..=longest).contains(&said),
        (remaining, said) => remaining.is_none() && said.is_none(),
    };
    if !is_right {
        let remaining = remaining.map_or_else(|| "no time that is known".to_owned(), span);
        return Some(format!("what lifts it takes {remaining}, and it says {}", recent["cooldownRemaining"]));
    }
    if text(recent, "/targetResource") != Some(execution.shown_target().as_str()) {
        return Some("the target that it names is another".to_owned());
    }
    let flaws: Vec<&str> = ban.because.iter().filter_map(|past| misnames(execution, past, recent)).collect();
    let because: Vec<String> = ban.because.iter().map(|past| past.execution.object.to_string()).collect();
    (flaws.len() == because.len()).then(|| format!("the reason is {}: {}", because.join(" or "), flaws.join(", ")))
}

fn misnames(execution: &Execution<'_>, past: &Past<'_>, recent: &Value) -> Option<&'static str> {
    let object = &past.execution.object;
    let is_named = named(execution, recent).is_some_and(|name| object.is_named(&name));
    let outcome = if past.end == End::Completed { "Completed" } else { "Failed" };
    if !is_named {
        Some("it names another")
    } else if text(recent, "/workflowId") != Some(past.execution.workflow_id()) {
        Some("its workflow is another than it says")
    } else if text(recent, "/outcome") != Some(outcome) {
        Some("its outcome is another than it says")
    } else if past.ended.is_some() && seconds(recent, "/completedAt") != past.ended {
        Some("it ended at another time than it says")
    } else {
        None
    }
}
