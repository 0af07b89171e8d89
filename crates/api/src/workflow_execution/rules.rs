//! Admission rules that are the same for several fields, or that read more than one field. The API server evaluates
//! them at every write.
//!
//! The rules use `has(...)` instead of optionals. The API server does not know the size of an optional, and would
//! refuse a rule with an optional as too costly.

use kube::core::{Reason, Rule};

use crate::{limits, variable};

/// The message of every rule on `phase`.
const PHASE_MESSAGE: &str = "status.phase: may go from none to Pending, Running, Failed or Skipped, from Pending to Running, \
     Failed or Skipped, from Running to Completed or Failed, and is then final";

/// Condition of a rule: the old phase is final.
const WAS_TERMINAL: &str = "has(oldSelf.phase) && oldSelf.phase in ['Completed', 'Failed', 'Skipped']";

/// Limits the sum of the parameters, in characters as `maxLength` counts them. An operator that starts holds the
/// parameters of every undecided execution in memory.
pub(super) fn parameters_fit() -> Rule {
    let limit = limits::PARAMETERS_SIZE;
    let message = format!(
        "spec.parameters: keys and values must have at most {limit} characters together; pass large inputs by reference, \
         e.g. the name of a ConfigMap"
    );
    Rule::new(format!("self.map(key, key.size() + self[key].size()).sum() <= {limit}")).message(message.as_str())
}

/// Refuses a value that contains a Tekton variable: Tekton would replace it by another text.
pub(super) fn no_variables() -> Rule {
    let words = variable::FIRST_WORDS.join("|");
    let message = format!("spec.parameters: {}", variable::REFUSAL);
    // The second bracket is escaped, because some regular expression engines do not accept it unescaped in a class.
    Rule::new(format!(r"self.all(key, !self[key].matches('[$][(]({words})[.\\[]'))")).message(message.as_str())
}

/// Refuses any change of `field` of a spec. Each field has its own rule, because some fields may be added later.
pub(super) fn immutable(field: &str) -> Rule {
    forbidden(
        field,
        unchanged(field),
        format!("spec.{field}: is immutable once created; create another WorkflowExecution"),
    )
}

/// Refuses any change of `retry`. The field has no type, and so no rule can name it. A rule can compare the spec as a
/// whole: if the spec has changed and no other field has, `retry` has changed. `others` are the fields that never
/// change, `later` those that a person adds.
///
/// The rule accepts a write that also changes another field. A change of a field in `others` is refused by the rule of
/// that field. After a field in `later` is set, no attempt is repeated, and the changed `retry` has no effect.
pub(super) fn retry_is_immutable(others: &[&str], later: &[&str]) -> Rule {
    let others = others.iter().map(|field| format!("!({})", unchanged(field)));
    let later = later.iter().map(|field| format!("has(self.{field}) != has(oldSelf.{field})"));
    let rule: Vec<String> = std::iter::once("self == oldSelf".to_owned()).chain(others).chain(later).collect();
    forbidden("retry", rule.join(" || "), "spec.retry: is immutable once created; create another WorkflowExecution")
}

/// Refuses `field` of a spec when the object is created. A person sets it later. `instead` says what to do.
pub(super) fn comes_later(field: &str, instead: &str) -> Rule {
    forbidden(
        field,
        format!("oldSelf.hasValue() || !has(self.{field})"),
        format!("spec.{field}: may not be set when the object is created; {instead}"),
    )
    .optional_old_self(true)
}

/// Refuses a change or removal of a `field` of a spec that a person has set. `instead` says what to do.
pub(super) fn stays(field: &str, instead: &str) -> Rule {
    forbidden(field, kept(field), format!("spec.{field}: may not change or be removed once set; {instead}"))
}

/// Refuses Completed as the first phase. The rule is at the root, because rules on `status` that read the old status do
/// not run if there was none.
pub(super) fn phase_begins() -> Rule {
    forbidden(
        "status.phase",
        "!has(self.status) || !has(self.status.phase) || self.status.phase != 'Completed' \
         || (has(oldSelf.status) && has(oldSelf.status.phase))",
        PHASE_MESSAGE,
    )
}

/// Refuses a `null` or absent status where there was one. The rule is at the root, because rules on `status` do not run
/// when it is removed.
pub(super) fn status_stays() -> Rule {
    forbidden("status", "!has(oldSelf.status) || has(self.status)", "status: may not be removed once written")
}

/// Refuses every change of `phase` except those that the message lists.
pub(super) fn phase_moves_forward() -> Rule {
    forbidden(
        "phase",
        "!has(oldSelf.phase) || (has(self.phase) && (self.phase == oldSelf.phase \
         || (oldSelf.phase == 'Pending' && self.phase in ['Running', 'Failed', 'Skipped']) \
         || (oldSelf.phase == 'Running' && self.phase in ['Completed', 'Failed'])))",
        PHASE_MESSAGE,
    )
}

/// Refuses any change of `field` once the phase is final.
pub(super) fn frozen(field: &str) -> Rule {
    forbidden(
        field,
        format!("!({WAS_TERMINAL}) || ({})", unchanged(field)),
        format!("status.{field}: may not change once phase is Completed, Failed or Skipped"),
    )
}

/// Refuses any change of `field` once it is set, whatever the phase.
pub(super) fn set_once(field: &str) -> Rule {
    forbidden(field, kept(field), format!("status.{field}: may not change or be removed once set"))
}

/// Refuses the removal of the run of an execution that was Running.
pub(super) fn run_stays() -> Rule {
    forbidden(
        "pipelineRunRef",
        "!(has(oldSelf.phase) && oldSelf.phase == 'Running' && has(oldSelf.pipelineRunRef)) || has(self.pipelineRunRef)",
        "status.pipelineRunRef: may not be removed while phase is Running",
    )
}

/// Refuses a different run, unless it is the run of an attempt that was waiting. An attempt thus never has two runs,
/// and an execution without a retry policy has one run.
pub(super) fn run_is_of_the_next_attempt() -> Rule {
    forbidden(
        "pipelineRunRef",
        "!has(oldSelf.pipelineRunRef) || !has(self.pipelineRunRef) || self.pipelineRunRef == oldSelf.pipelineRunRef \
         || (has(oldSelf.attempts) && has(self.attempts) && oldSelf.attempts.exists(was, has(was.notBefore) \
         && !has(was.startTime) && !has(was.completionTime) && self.attempts.exists(is, is.attempt == was.attempt \
         && has(is.pipelineRun) && is.pipelineRun == self.pipelineRunRef.name)))",
        "status.pipelineRunRef: may change only to the run of an attempt that was waited for",
    )
}

/// Refuses the removal of the attempts. The rule is at the status, because rules on the list do not run when it is
/// removed.
pub(super) fn attempts_stay() -> Rule {
    forbidden(
        "attempts",
        "!has(oldSelf.attempts) || has(self.attempts)",
        "status.attempts: may not be removed once written",
    )
}

/// Requires that attempts are numbered from 1, each in its place. A write that changes only their order is accepted:
/// the API server regards a reordered list with a key as unchanged and does not evaluate the rule. A reader therefore
/// sorts the attempts.
pub(super) fn attempts_are_counted() -> Rule {
    Rule::new("self.all(it, it.attempt <= size(self) && self[it.attempt - 1].attempt == it.attempt)")
        .message("status.attempts: must be in the order of their numbers, from 1 without a gap")
}

/// Refuses a list that has become shorter.
pub(super) fn no_attempt_goes() -> Rule {
    Rule::new("size(self) >= size(oldSelf)")
        .message("status.attempts: none may be removed")
        .reason(Reason::FieldValueForbidden)
}

/// Requires that all attempts except the last have ended.
pub(super) fn only_the_last_attempt_goes_on() -> Rule {
    Rule::new("self.all(it, it.attempt == size(self) || has(it.completionTime))")
        .message("status.attempts: all but the last must have a completionTime")
}

/// Refuses any change of an attempt that has ended.
pub(super) fn ended_attempt_stays() -> Rule {
    Rule::new("!has(oldSelf.completionTime) || self == oldSelf")
        .message("status.attempts: one that has a completionTime may not change")
        .reason(Reason::FieldValueForbidden)
}

/// Refuses any change of `field` of an attempt once it is set.
pub(super) fn set_once_in_attempt(field: &str) -> Rule {
    forbidden(field, kept(field), format!("status.attempts.{field}: may not change or be removed once set"))
}

/// Requires `field` of an attempt if `other` is present, and refuses `field` otherwise.
pub(super) fn together_in_attempt(field: &str, other: &str) -> Rule {
    Rule::new(format!("has(self.{field}) == has(self.{other})"))
        .message(format!("status.attempts.{field}: must be present exactly when {other} is").as_str())
        .field_path(format!(".{field}"))
}

/// Requires `field` in the phase `phase`, and refuses `field` in any other phase.
pub(super) fn exactly_with(phase: &str, field: &str) -> Rule {
    Rule::new(format!("has(self.{field}) == (has(self.phase) && self.phase == '{phase}')"))
        .message(format!("status.{field}: must be present exactly when phase is {phase}").as_str())
        .field_path(format!(".{field}"))
}

/// Refuses `field` in the phase Skipped.
pub(super) fn never_skipped(field: &str) -> Rule {
    Rule::new(format!("!has(self.{field}) || !has(self.phase) || self.phase != 'Skipped'"))
        .message(format!("status.{field}: must be absent when phase is Skipped, nothing ran").as_str())
        .field_path(format!(".{field}"))
}

/// Requires `completionTime` in a final phase.
pub(super) fn end_has_a_time() -> Rule {
    Rule::new("has(self.completionTime) || !has(self.phase) || !(self.phase in ['Completed', 'Failed', 'Skipped'])")
        .message("status.completionTime: is required when phase is Completed, Failed or Skipped")
        .field_path(".completionTime")
        .reason(Reason::FieldValueRequired)
}

/// Condition of a rule: `field` has its old value, or is still absent.
fn unchanged(field: &str) -> String {
    format!("has(self.{field}) ? (has(oldSelf.{field}) && self.{field} == oldSelf.{field}) : !has(oldSelf.{field})")
}

/// Condition of a rule: `field` has its old value, if it had one.
fn kept(field: &str) -> String {
    format!("!has(oldSelf.{field}) || (has(self.{field}) && self.{field} == oldSelf.{field})")
}

fn forbidden(field: &str, rule: impl Into<String>, message: impl AsRef<str>) -> Rule {
    Rule::new(rule).message(message.as_ref()).field_path(format!(".{field}")).reason(Reason::FieldValueForbidden)
}
