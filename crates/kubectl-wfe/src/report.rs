//! The report of `explain`, for people and for programs.

mod about;
mod alone;
mod common;
mod decided;
mod recorded;
mod words;

use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::Value;
use wfe_core::Time;
use wfe_core::ending::Skip;
use wfe_core::explain::Judgement;
use wfe_core::name::ExecutionId;
use wfe_core::target::{Target, TargetName};
use wfe_core::verdict::Verdict;
use wfe_view::index::ExecutionRecord;

use crate::installation::Installation;
use crate::moment::{beside, shown};
use crate::recorded::Recorded;
use crate::retries::OnAttempt;
use crate::view::{Answer, Seen};
use about::{About, Basis};
use common::Common;
use words::{in_the_way, told_of_history};

pub(crate) use decided::skipped_for;
pub(crate) use words::{what_cancelling_did, what_clearing_did};

/// The reason for waiting that only this tool gives: a working operator writes another one.
const NO_OPERATOR: &str = "NoOperator";

/// The workflows of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The execution's own workflow.
    One,
    /// Each workflow that has run on the target, and a made-up one that stands for all others.
    EachWorkflow,
}

/// A report. `-o json` shows what is serialized.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    target: String,
    namespace: String,
    name: Option<String>,
    verdict: Word,
    /// Set if the execution has already been decided.
    phase: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    /// The execution that this one is skipped for.
    in_the_way: Option<Named>,
    /// What the execution's failure has in common with others. For a skipped execution: the failure for which it is
    /// skipped.
    #[serde(flatten)]
    common: Common,
    /// The rule that decides.
    rule: Option<&'static str>,
    /// When the verdict changes without any event.
    changes_at: Option<String>,
    rules: Vec<Rule>,
    blocks: Vec<Block>,
    /// The outlook of each workflow that has run on the target, if the command named no workflow.
    workflows: Vec<OfWorkflow>,
    /// The source of the policy.
    policy: Option<String>,
    /// The leader, or why there is none, or what is assumed.
    operator: Option<String>,
    /// Whether the admission policies protect, or why that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<String>,
    /// The current attempt of a Running execution with a retry policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<OnAttempt>,
    /// What is wrong with the kind of the target, if the cluster does not serve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unserved: Option<String>,
    /// Why only the execution itself was read; then `blocks` is empty whatever blocks the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_seen: Option<String>,
    #[serde(skip)]
    head: String,
    /// The outlook of a workflow that has not run on the target, if the outlooks differ.
    #[serde(skip)]
    other_workflows: String,
    /// The facts of the answer, each with its label.
    #[serde(skip)]
    facts: Vec<(&'static str, String)>,
    /// What the answer depends on, each with its label.
    #[serde(skip)]
    basis: Vec<(&'static str, String)>,
}

/// The outlook of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Word {
    Run,
    Wait,
    Skip,
    Fail,
    /// The execution was decided; its phase has the result.
    Decided,
    /// The workflows differ.
    Depends,
}

/// The outlook of one workflow.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OfWorkflow {
    workflow_id: String,
    verdict: Word,
    reason: Option<String>,
    message: Option<String>,
    rule: Option<&'static str>,
    changes_at: Option<String>,
    #[serde(skip)]
    outlook: String,
}

/// An execution by its name.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Named {
    namespace: String,
    name: String,
}

/// The finding of one rule.
#[derive(Debug, Serialize)]
struct Rule {
    name: &'static str,
    found: String,
    until: Option<String>,
}

/// A block that only a person ends.
#[derive(Debug, Serialize)]
struct Block {
    reason: &'static str,
    execution: Option<Named>,
    message: String,
}

impl Report {
    /// Reports on an execution on a target as it was seen; without its `object`, on a made-up one.
    pub(crate) fn on(
        seen: &Seen,
        target: &Target,
        record: &ExecutionRecord,
        object: Option<&DynamicObject>,
        scope: Scope,
    ) -> Self {
        let id = &record.execution.id;
        let about = About {
            namespace: id.namespace.to_string(),
            name: object.map(|_| id.name.to_string()),
            target: record.target.as_ref().map_or("the target", TargetName::as_str).to_owned(),
            blocks: seen.blocks(target),
            common: Common::of_all(target),
            history: told_of_history(seen, target, id, object.is_some()),
            nobody_decides: seen.installation.nobody_decides_in(&id.namespace),
            plan: seen.plan(&record.execution).filter(|_| record.execution.is_undecided()),
            basis: Basis { owners: seen.unread.clone(), ..Basis::of(&seen.installation) },
            recorded: object.and_then(|object| Recorded::of(object, seen.now)),
            stuck: seen.stuck_on(target, id),
            log: seen.installation.log.clone(),
            now: seen.now,
        };
        if let Some(object) = object.filter(|_| !record.execution.is_undecided()) {
            return Self::of_decided(&about, &record.execution, object);
        }
        let mut report = Self::of_answer(&about, &seen.answer(target, id));
        if scope == Scope::EachWorkflow {
            let answers = seen.answers_by_workflow(target, id).into_iter();
            report.tell_apart(answers.map(|(workflow, answer)| (workflow, Self::of_answer(&about, &answer))));
        }
        report
    }

    /// Reports that no operator decides on an execution, because the operator does not watch its namespace.
    pub(crate) fn unseen(
        installation: &Installation,
        namespace: &str,
        object: &DynamicObject,
        is_named: bool,
        now: Time,
    ) -> Self {
        let mut about = About::of_object(installation, namespace, object, now);
        about.name = about.name.filter(|_| is_named);
        let mut report = Self::about(&about);
        let text = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let why = installation.nobody_decides_in(namespace).unwrap_or_default();
        match text("/status/phase") {
            "" | "Pending" => report.wait_for_nobody(&why),
            phase => {
                report.head = format!("is {phase}, but {why}");
                report.phase = Some(phase.to_owned());
            }
        }
        report
    }

    /// Adds the outlooks of the workflows that have run on the target, and marks whether they differ.
    fn tell_apart(&mut self, others: impl Iterator<Item = (Box<str>, Self)>) {
        let of_workflow = |(workflow_id, report): (Box<str>, Self)| OfWorkflow {
            workflow_id: workflow_id.into(),
            verdict: report.verdict,
            outlook: report.outlook(),
            reason: report.reason,
            message: report.message,
            rule: report.rule,
            changes_at: report.changes_at,
        };
        self.workflows = others.map(of_workflow).collect();
        if self.workflows.iter().any(|it| (it.verdict, &it.reason) != (self.verdict, &self.reason)) {
            self.other_workflows = self.outlook();
            self.verdict = Word::Depends;
            "depends on the workflow".clone_into(&mut self.head);
        }
    }

    /// Reports on an undecided execution.
    fn of_answer(about: &About, answer: &Answer) -> Self {
        let mut report = Self::about(about);
        report.say(answer, &about.target);
        if let Some(why) = &about.nobody_decides
            && report.verdict == Word::Run
            && answer.judgement.is_some()
        {
            report.wait_for_nobody(why);
        }
        // If no operator decides, the record is old, so the prediction stays first.
        let is_overruled = match (&about.recorded, &about.nobody_decides) {
            (Some(recorded), None) => report.put_first(recorded, &about.log),
            (Some(recorded), Some(_)) => {
                report.facts.push(("last known", recorded.told()));
                false
            }
            (None, _) => false,
        };
        if let Some(judgement) = &answer.judgement {
            if !is_overruled {
                report.tell_rule(judgement, about);
            }
            let told = judgement.told(&about.target).into_iter();
            report.rules =
                told.map(|told| Rule { name: told.rule, found: told.text, until: told.until.map(shown) }).collect();
        }
        let is_in_the_way = |(of, _): &&(ExecutionId, Common)| report.in_the_way == Some(Named::of(of));
        if let Some((_, common)) = about.common.iter().find(is_in_the_way) {
            report.common = common.clone();
        }
        report.facts.extend(report.common.told());
        report.facts.extend(about.stuck.clone().map(|stuck| ("stuck too", stuck)));
        report.facts.extend(about.plan.clone().map(|plan| ("retry", plan)));
        report.facts.extend(answer.behind.iter().map(|line| ("goes before", line.clone())));
        report.facts.extend(about.history.clone().map(|history| ("history", history)));
        // The lines after the rule that decides.
        let in_the_way = report.in_the_way.as_ref().map(Named::to_string);
        for block in about.blocks.iter().filter(|_| report.verdict != Word::Run) {
            if in_the_way != block.remediation().map(|past| Named::of(&past.execution).to_string()) {
                report.facts.push(("blocked too", format!("{}: {}", block.reason(), block.message(&about.target))));
            }
        }
        report.basis = about.basis.told().collect();
        report
    }

    /// Names the rule that decides, and when that changes.
    fn tell_rule(&mut self, judgement: &Judgement, about: &About) {
        self.rule = Some(judgement.rule());
        self.changes_at = judgement.until().map(shown);
        self.facts.push(("decided by", format!("rule {}", judgement.rule())));
        let changes = match (judgement.until(), self.verdict) {
            (Some(until), _) => format!("by time alone at {}", beside(until, about.now)),
            (None, Word::Run) => "not by time alone".to_owned(),
            (None, Word::Wait) if about.nobody_decides.is_some() => "when an operator decides".to_owned(),
            (None, _) => "not by time alone: do what the last line says".to_owned(),
        };
        self.facts.push(("changes", changes));
    }

    fn about(about: &About) -> Self {
        let block = |skip: &Skip| Block {
            reason: skip.reason(),
            execution: skip.remediation().map(|past| Named::of(&past.execution)),
            message: skip.message(&about.target),
        };
        Self {
            target: about.target.clone(),
            namespace: about.namespace.clone(),
            name: about.name.clone(),
            verdict: Word::Decided,
            phase: None,
            reason: None,
            message: None,
            in_the_way: None,
            rule: None,
            changes_at: None,
            rules: Vec::new(),
            blocks: about.blocks.iter().map(block).collect(),
            workflows: Vec::new(),
            policy: about.basis.policy.clone(),
            operator: about.nobody_decides.clone().or(about.basis.operator.clone()),
            policies: about.basis.policies.clone(),
            attempt: None,
            common: Common::default(),
            unserved: None,
            not_seen: None,
            head: String::new(),
            other_workflows: String::new(),
            facts: Vec::new(),
            basis: Vec::new(),
        }
    }

    fn say(&mut self, answer: &Answer, target: &str) {
        let (verdict, head) = match (answer.judgement.as_ref().map(|it| &it.verdict), &answer.waiting) {
            (Some(Verdict::Fail { reason, message, .. }), _) => {
                self.reason = Some(reason.to_string());
                self.message = Some(message.to_string());
                (Word::Fail, format!("would fail, {reason}"))
            }
            (Some(Verdict::Skip { skip, .. }), _) => {
                self.reason = Some(skip.reason().to_owned());
                self.message = Some(skip.message(target));
                self.in_the_way = Some(Named::of(in_the_way(skip)));
                if matches!(skip, Skip::Backoff { .. }) {
                    let no_block = "a backoff is none: it ends by itself, and a clearance would have no effect";
                    self.facts.push(("block", no_block.to_owned()));
                }
                (Word::Skip, format!("would be skipped, {}", skip.reason()))
            }
            (Some(Verdict::Wait(waiting)), _) | (_, Some(waiting)) => {
                self.reason = Some(waiting.reason().to_owned());
                self.message = Some(waiting.message());
                (Word::Wait, format!("would wait, {}: {}", waiting.reason(), waiting.message()))
            }
            (Some(Verdict::Run), None) => (Word::Run, "would run now".to_owned()),
            (None, None) => (Word::Run, "runs already: its status does not show that yet; look again".to_owned()),
        };
        (self.verdict, self.head) = (verdict, head);
    }

    fn wait_for_nobody(&mut self, why: &str) {
        self.verdict = Word::Wait;
        self.reason = Some(NO_OPERATOR.to_owned());
        self.message = Some(why.to_owned());
        self.head = format!("would wait, {NO_OPERATOR}: {why}");
    }

    /// Sets what is wrong with the kind of the target. The report shows this before everything else.
    pub(crate) fn is_unserved(&mut self, why: Option<String>) {
        self.unserved = why;
    }

    /// Returns whether a new execution would end without a run, or its target does not exist.
    pub(crate) fn is_refused(&self) -> bool {
        self.unserved.is_some() || matches!(self.verdict, Word::Skip | Word::Fail)
    }

    /// Returns whether the execution runs, would run, or has completed.
    pub(crate) fn is_yes(&self) -> bool {
        self.unserved.is_none() && self.verdict == Word::Run
            || matches!(self.phase.as_deref(), Some("Running" | "Completed"))
    }
}

impl Named {
    fn of(id: &ExecutionId) -> Self {
        Self { namespace: id.namespace.to_string(), name: id.name.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wfe_api::conditions::CLEARANCE_INEFFECTIVE;
    use wfe_core::ending::Remediation;
    use wfe_core::explain::{Finding, Judgement};
    use wfe_core::name::{Uid, Version};
    use wfe_core::verdict::Fact;
    use wfe_core::waiting::Waiting;

    fn about(name: Option<&str>, blocks: Vec<Skip>) -> About {
        let (namespace, target) = ("ns".to_owned(), "node/n".to_owned());
        let (name, basis) = (name.map(str::to_owned), Basis::default());
        let (common, now) = (vec![], "2026-01-02T03:05:05Z".parse().unwrap());
        let (recorded, stuck, log) = (None, None, "kubectl logs".to_owned());
        let (history, nobody_decides, plan) = (None, None, None);
        About {
            namespace,
            name,
            target,
            blocks,
            common,
            history,
            nobody_decides,
            plan,
            recorded,
            stuck,
            log,
            now,
            basis,
        }
    }

    fn id() -> ExecutionId {
        ExecutionId { namespace: "ns".into(), name: "broken".into(), uid: Uid::new("u") }
    }

    fn block() -> Skip {
        let failed = Remediation {
            execution: id(),
            workflow_id: "scale".into(),
            completed_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            completed: false,
            is_dated: true,
        };
        Skip::PreviousExecutionFailed { failed, is_repeated: false }
    }

    fn judged(verdict: Verdict, asked: Vec<(&'static str, Finding)>) -> Answer {
        Answer { judgement: Some(Judgement { verdict, asked }), waiting: None, behind: vec![] }
    }

    #[test]
    fn the_answer_comes_first_then_the_rule_and_the_time() {
        let until = "2026-01-02T03:04:05Z".parse().unwrap();
        let asked = vec![
            ("pause", Finding::Passes { because: "its namespace is not paused".into(), until: None }),
            ("4 backoff", Finding::Passes { because: "no failure".into(), until: Some(until) }),
        ];
        let mut answer = judged(Verdict::Run, asked);
        let report = Report::of_answer(&about(None, vec![]), &answer);
        assert!(report.is_yes());
        assert_eq!(
            report.to_string(),
            "a new execution on node/n: would run now\n\n  decided by   rule 6 otherwise\n  \
             changes      by time alone at 2026-01-02T03:04:05Z (1m ago)\n\nWhat each rule found, in order:\n  \
             pause: its namespace is not paused\n  4 backoff: no failure (until 2026-01-02T03:04:05Z)\n  \
             6 otherwise: it runs\n"
        );
        answer.waiting = Some(Waiting::Turn(Box::new(id())));
        answer.behind = vec!["ns/broken: has its turn".to_owned()];
        let report = Report::of_answer(&about(Some("a"), vec![]), &answer);
        assert!(!report.is_yes());
        let text = report.to_string();
        assert!(text.starts_with("ns/a on node/n: would wait, Turn: WorkflowExecution ns/broken on"), "{text}");
        assert!(text.contains("  goes before  ns/broken: has its turn\n"), "{text}");
    }

    #[test]
    fn a_program_is_told_the_same() {
        let verdict = Verdict::Skip { skip: block(), fact: Fact::Stands(id()) };
        let decides = Finding::Decides { verdict: verdict.clone(), until: None };
        let report = Report::of_answer(&about(None, vec![block()]), &judged(verdict, vec![("2 previous", decides)]));
        let (message, named) = (block().message("node/n"), json!({"namespace": "ns", "name": "broken"}));
        let reason = "PreviousExecutionFailed";
        let expected = json!({
            "target": "node/n", "namespace": "ns", "name": null, "verdict": "Skip", "phase": null, "reason": reason,
            "message": message, "inTheWay": named, "rule": "2 previous", "changesAt": null,
            "rules": [{"name": "2 previous", "found": format!("skipped, {reason}: {message}"), "until": null}],
            "blocks": [{"reason": reason, "execution": named, "message": message}],
            "workflows": [], "policy": null, "operator": null,
        });
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        assert!(!report.to_string().contains("blocked too"), "{report}");
    }

    #[test]
    fn a_block_behind_the_rule_that_decides_is_told_too() {
        let wait = Verdict::Wait(Waiting::PausedEverywhere("upgrade".into()));
        let answer = judged(wait.clone(), vec![("pause", Finding::Decides { verdict: wait, until: None })]);
        let text = Report::of_answer(&about(None, vec![block()]), &answer).to_string();
        assert!(text.contains("  blocked too  PreviousExecutionFailed: ns/broken (workflow scale) failed"), "{text}");
    }

    #[test]
    fn what_a_failure_has_in_common_with_others_is_told_of_it_and_of_what_it_stands_in_the_way_of() {
        let fingerprint = "ImagePullBackOff/registry/registry.example";
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "broken", "namespace": "ns", "uid": "u"}, "spec": {},
            "status": {"phase": "Failed", "failureDetails": {"fingerprint": fingerprint, "sharedOutage": true}},
        }))
        .unwrap();
        let execution = wfe_view::observe::observe_execution(&object, "runs").unwrap().execution;
        let ended = Report::of_decided(&about(Some("broken"), vec![]), &execution, &object);
        let common = vec![(execution.id.clone(), Common::of(&execution))];
        let verdict = Verdict::Skip { skip: block(), fact: Fact::Stands(id()) };
        let skipped = Report::of_answer(&About { common, ..about(None, vec![]) }, &judged(verdict, vec![]));
        for report in [ended, skipped] {
            let said = format!("\n  fingerprint  {fingerprint}; others failed likewise, so it does not count\n");
            assert!(report.to_string().contains(&said), "{report}");
            let json = serde_json::to_value(&report).unwrap();
            assert_eq!((&json["fingerprint"], &json["sharedOutage"]), (&json!(fingerprint), &json!(true)));
        }
    }

    #[test]
    fn what_has_ended_says_what_its_status_says() {
        let decided = |status: Value, blocks| {
            let object =
                json!({"metadata": {}, "spec": {"clearance": {"reason": "ok", "clearedBy": "jo"}}, "status": status});
            let execution =
                wfe_core::execution::Execution::undecided(id(), Version::new("1"), wfe_core::Time::UNIX_EPOCH);
            Report::of_decided(&about(Some("broken"), blocks), &execution, &serde_json::from_value(object).unwrap())
        };
        let skipped = decided(json!({"phase": "Skipped", "skipDetails": {"reason": "R", "message": "m"}}), vec![]);
        assert_eq!(
            skipped.to_string(),
            "ns/broken on node/n: is Skipped, and that does not change any more\n\n  reason       R\n  why          m\n  \
             cleared by   jo\n  because      ok\n  clearing it  no operator has recorded it yet\n"
        );
        assert!(!skipped.is_yes() && decided(json!({"phase": "Completed"}), vec![]).is_yes());
        let in_vain = json!({"type": CLEARANCE_INEFFECTIVE, "status": "True", "reason": "NothingBlocked",
            "message": "why", "lastTransitionTime": "2026-01-02T03:04:05Z"});
        let failed = decided(json!({"phase": "Failed", "conditions": [in_vain]}), vec![block()]).to_string();
        assert!(failed.contains("has had no effect (ClearanceIneffective): why"), "{failed}");
        assert!(failed.contains("blocks       its target, until another workflow repairs it"), "{failed}");
    }

    fn runs() -> Answer {
        judged(Verdict::Run, vec![])
    }

    /// A prediction never contradicts what the operator itself has recorded.
    #[test]
    fn what_an_operator_has_recorded_comes_first_whatever_is_predicted() {
        let waits = |reason: &str| Recorded::Waits {
            reason: reason.to_owned(),
            message: "what ends it".to_owned(),
            age: "1m50s".to_owned(),
        };
        let skip = || judged(Verdict::Skip { skip: block(), fact: Fact::Stands(id()) }, vec![]);
        let turn = Answer { judgement: None, waiting: Some(Waiting::Turn(Box::new(id()))), behind: vec![] };
        let report = |recorded, answer: &Answer| {
            Report::of_answer(&About { recorded: Some(recorded), ..about(Some("a"), vec![]) }, answer)
        };
        for reason in Waiting::REASONS {
            for answer in [&runs(), &skip(), &turn] {
                let report = report(waits(reason), answer);
                let text = report.to_string();
                let head = format!("ns/a on node/n: waits for 1m50s, {reason}: what ends it\n");
                assert!(text.starts_with(&head) && !report.is_yes(), "{text}");
                assert_eq!((report.verdict, report.reason.as_deref()), (Word::Wait, Some(reason)));
                assert!(!text.contains("decided by   rule 6"), "{text}");
            }
        }
        let text = report(waits("ApiErrors"), &skip()).to_string();
        assert!(text.contains("  by now       would be skipped, PreviousExecutionFailed\n"), "{text}");
        let text = report(Recorded::Nothing { age: "20s".to_owned() }, &runs()).to_string();
        let head = "ns/a on node/n: has not been decided for 20s, although it would run now: the operator does not act";
        assert!(text.starts_with(head) && text.contains("  ask it       kubectl logs"), "{text}");
    }

    #[test]
    fn a_skipped_one_names_what_is_in_the_way() {
        let named = |details: Value| {
            let metadata = json!({"name": "a", "namespace": "ns"});
            let object = json!({"metadata": metadata, "status": {"phase": "Skipped", "skipDetails": details}});
            Named::recorded(&serde_json::from_value(object).unwrap()).map(|it| it.to_string())
        };
        for (details, expected) in [
            (json!({"conflictingWorkflow": {"namespace": "b", "name": "c"}}), Some("b/c")),
            (json!({"recentRemediation": {"namespace": "b", "name": "c"}}), Some("b/c")),
            (json!({"recentRemediation": {"name": "c"}}), Some("ns/c")),
            (json!({"recentRemediation": {"name": "b/c"}}), Some("b/c")),
            (json!({}), None),
        ] {
            assert_eq!(named(details.clone()).as_deref(), expected, "{details}");
        }
    }

    #[test]
    fn where_nobody_decides_nothing_runs_and_what_is_skipped_says_so_too() {
        let nobody = |answer: &Answer| {
            let why = "no operator leads: nobody holds the Lease a/b".to_owned();
            let basis =
                Basis { policy: Some("the ConfigMap".to_owned()), operator: Some(why.clone()), ..Basis::default() };
            Report::of_answer(&About { nobody_decides: Some(why), basis, ..about(None, vec![]) }, answer)
        };
        let report = nobody(&runs());
        assert!(!report.is_yes());
        let text = report.to_string();
        assert!(
            text.starts_with("a new execution on node/n: would wait, NoOperator: no operator leads: nobody"),
            "{text}"
        );
        assert!(text.contains("  changes      when an operator decides\n  policy       the ConfigMap\n"), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["verdict"], &json["reason"]), (&json!("Wait"), &json!("NoOperator")));
        let verdict = Verdict::Skip { skip: block(), fact: Fact::Stands(id()) };
        let text = nobody(&judged(verdict, vec![])).to_string();
        assert!(text.starts_with("a new execution on node/n: would be skipped, PreviousExecutionFailed"), "{text}");
        assert!(text.contains("  operator     no operator leads: nobody holds the Lease a/b"), "{text}");
    }

    #[test]
    fn workflows_that_fare_differently_are_told_apart() {
        let cooldown = |until: &str| Verdict::Skip {
            skip: Skip::Cooldown {
                last: Remediation { completed: true, ..block().remediation().unwrap().clone() },
                cooldown: std::time::Duration::from_mins(5),
                until: Some(until.parse().unwrap()),
            },
            fact: Fact::Stands(id()),
        };
        let on = |answers: Vec<(&str, Answer)>| {
            let mut report = Report::of_answer(&about(None, vec![]), &runs());
            let about = about(None, vec![]);
            report.tell_apart(answers.into_iter().map(|(name, it)| (name.into(), Report::of_answer(&about, &it))));
            report
        };
        let same = on(vec![("scale", runs())]);
        assert!(same.is_yes() && same.to_string().starts_with("a new execution on node/n: would run now\n"), "{same}");
        let report = on(vec![("restart", runs()), ("scale", judged(cooldown("2026-01-02T03:04:05Z"), vec![]))]);
        assert!(!report.is_yes());
        let text = report.to_string();
        assert!(
            text.starts_with(
                "a new execution on node/n: depends on the workflow\n\n  restart: would run now.\n  \
                 scale: would be skipped, RecentlyRemediated: cooldown: "
            ),
            "{text}"
        );
        assert!(text.contains("\n  any other: would run now.\n\nAny other workflow:\n\n  decided by "), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["verdict"], &json["workflows"][1]["verdict"]), (&json!("Depends"), &json!("Skip")));
        assert_eq!(json["workflows"][1]["workflowId"], "scale");
    }

    #[test]
    fn a_running_one_says_its_attempt_and_what_it_waits_for() {
        let run = json!({"name": "wfe-x-1", "uid": "r", "namespace": "runs"});
        let ended = json!({
            "attempt": 1, "pipelineRun": "wfe-x-1", "startTime": "2026-01-02T03:04:05Z", "started": "False",
            "completionTime": "2026-01-02T03:05:05Z", "reason": "ImagePullBackOff", "message": "no image",
        });
        let report = |attempts: Value| {
            let object: DynamicObject = serde_json::from_value(json!({
                "metadata": {"name": "broken", "namespace": "ns", "uid": "u"},
                "spec": {"retry": {"maxAttempts": 3, "maxDuration": "1h"}},
                "status": {
                    "phase": "Running", "startTime": "2026-01-02T03:04:05Z", "pipelineRunRef": run, "attempts": attempts,
                },
            }))
            .unwrap();
            let execution = wfe_view::observe::observe_execution(&object, "runs").unwrap().execution;
            Report::of_decided(&about(Some("broken"), vec![]), &execution, &object)
        };
        let first = json!({"attempt": 1, "pipelineRun": "wfe-x-1", "startTime": "2026-01-02T03:04:05Z"});
        let runs = report(json!([first]));
        assert!(runs.is_yes() && runs.to_string().contains("is Running\n\n  attempt      1 of 3\n"), "{runs}");
        let waits = report(json!([ended, {"attempt": 2, "delay": "1s", "notBefore": "2026-01-02T03:05:07Z"}]));
        let text = waits.to_string();
        assert!(text.contains(": is Running, and waits for its next attempt\n"), "{text}");
        let said = "  attempt      waits for 2 of 3, which begins at 2026-01-02T03:05:07Z, and ends by \
                    2026-01-02T04:04:05Z without it; attempt 1 failed, ImagePullBackOff: no image\n";
        assert!(text.contains(said), "{text}");
        let attempt = json!({
            "number": 2, "of": 3, "notBefore": "2026-01-02T03:05:07Z", "endsBy": "2026-01-02T04:04:05Z",
        });
        assert_eq!(serde_json::to_value(&waits).unwrap()["attempt"], attempt);
    }

    #[test]
    fn what_is_not_decided_yet_says_its_plan() {
        let about = About { plan: Some("3 attempts".to_owned()), ..about(Some("a"), vec![]) };
        let text = Report::of_answer(&about, &runs()).to_string();
        assert!(text.contains("\n  retry        3 attempts\n"), "{text}");
    }
}
