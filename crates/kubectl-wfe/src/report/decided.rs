//! The report on a decided execution, from its status.

use kube::api::DynamicObject;
use serde_json::Value;
use wfe_core::execution::Execution;
use wfe_core::name::ExecutionId;

use super::about::About;
use super::common::Common;
use super::words::{what_cancelling_did, what_clearing_did};
use super::{Named, Report};
use crate::moment::beside;
use crate::retries::OnAttempt;

impl Report {
    /// Reports on a decided execution from its status.
    pub(super) fn of_decided(about: &About, execution: &Execution, object: &DynamicObject) -> Self {
        let mut report = Self::about(about);
        let text = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let phase = text("/status/phase").filter(|phase| !phase.is_empty() && phase != "Pending");
        report.head = match phase.as_deref() {
            None => "is being deleted, and is not decided on any more".to_owned(),
            Some("Running") => {
                let waits = execution.next_attempt().map_or("", |_| ", and waits for its next attempt");
                let unknown = match &about.nobody_decides {
                    Some(why) => format!(" by its status, but {why}; what has become of its run since is not recorded"),
                    None => String::new(),
                };
                format!("is Running{waits}{unknown}")
            }
            Some(ended) => format!("is {ended}, and that does not change any more"),
        };
        let time = |pointer: &str| {
            let text = text(pointer)?;
            Some(text.parse().map_or(text, |time| beside(time, about.now)))
        };
        report.phase = phase;
        report.reason = text("/status/failureDetails/reason").or_else(|| text("/status/skipDetails/reason"));
        report.message = text("/status/failureDetails/message").or_else(|| text("/status/skipDetails/message"));
        report.attempt = OnAttempt::of(execution);
        let attempt = report.attempt.as_ref().zip(execution.retry.as_ref());
        let facts = [
            ("attempt", attempt.map(|(attempt, retry)| attempt.told(retry))),
            ("run", text("/status/pipelineRunRef/name")),
            ("started", time("/status/startTime")),
            ("waits for", execution.run_shown.awaits.as_ref().map(|it| format!("{}: {}", it.reason, it.message))),
            ("ended", time("/status/completionTime")),
            ("reason", report.reason.clone()),
            ("why", report.message.clone()),
            ("cleared by", text("/spec/clearance/clearedBy")),
            ("because", text("/spec/clearance/reason")),
            ("clearing it", what_clearing_did(object)),
            ("cancelling it", what_cancelling_did(object)),
        ];
        report.facts = facts.into_iter().filter_map(|(label, said)| Some((label, said?))).collect();
        report.in_the_way = Named::recorded(object);
        report.common = Common::of(execution);
        let is_in_the_way = |(of, _): &&(ExecutionId, Common)| report.in_the_way == Some(Named::of(of));
        if let Some((_, common)) = about.common.iter().find(is_in_the_way) {
            report.common = common.clone();
        }
        report.facts.extend(report.common.told());
        if about.blocks.iter().any(|block| block.remediation().is_some_and(|past| past.execution == execution.id)) {
            report.tell_block(about, execution, object);
        }
        report
    }

    /// Adds that a failed execution blocks its target, and what ends the block.
    pub(super) fn tell_block(&mut self, about: &About, execution: &Execution, object: &DynamicObject) {
        let how = if object.data["spec"]["clearance"].is_object() {
            let name = &execution.id.name;
            format!("its target, until another workflow repairs it (recoveryOf: {name}), or it is deleted")
        } else {
            format!("its target, until somebody clears it: kubectl wfe clear {} --reason ...", about.target)
        };
        self.facts.push(("blocks", how));
    }
}

impl Named {
    /// Reads the execution that a skipped one was skipped for.
    pub(super) fn recorded(object: &DynamicObject) -> Option<Self> {
        let details = object.data.pointer("/status/skipDetails")?;
        let past =
            [&details["conflictingWorkflow"], &details["recentRemediation"]].into_iter().find(|it| it.is_object())?;
        let name = past["name"].as_str()?;
        // Statuses of version 0.1 have "namespace/name" in the name, or no namespace where it is the same.
        let own = object.metadata.namespace.as_deref().unwrap_or_default();
        let (namespace, name) = name.split_once('/').unwrap_or((past["namespace"].as_str().unwrap_or(own), name));
        Some(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// Returns namespace and name of the execution that a skipped one was skipped for.
pub(crate) fn skipped_for(object: &DynamicObject) -> Option<(String, String)> {
    Named::recorded(object).map(|it| (it.namespace, it.name))
}
