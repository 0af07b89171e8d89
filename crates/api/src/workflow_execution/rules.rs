//! Admission rules that follow one pattern for several fields, or look at more than one. The API server evaluates them
//! at every write.
//!
//! They ask `has(...)` instead of using optionals: of an optional the API server does not know the size, and refuses
//! the rule as too costly.

use kube::core::{Reason, Rule};

use crate::{limits, variable};

/// What every rule on `phase` answers.
const PHASE_MESSAGE: &str = "status.phase: may go from none to Pending, Running, Failed or Skipped, from Pending to Running, \
     Failed or Skipped, from Running to Completed or Failed, and is then final";

/// Condition of a rule: the old phase is final.
const WAS_TERMINAL: &str = "has(oldSelf.phase) && oldSelf.phase in ['Completed', 'Failed', 'Skipped']";

/// Limits the parameters together, in characters as `maxLength` counts them: an operator that starts holds the
/// parameters of every execution that is undecided.
pub(super) fn parameters_fit() -> Rule {
    let limit = limits::PARAMETERS_SIZE;
    let message = format!(
        "spec.parameters: keys and values must have at most {limit} characters together; pass large inputs by reference, \
         e.g. the name of a ConfigMap"
    );
    Rule::new(format!("self.map(key, key.size() + self[key].size()).sum() <= {limit}")).message(message.as_str())
}

/// Refuses a value in which Tekton would put another text in the place of a variable.
pub(super) fn no_variables() -> Rule {
    let words = variable::FIRST_WORDS.join("|");
    let message = format!("spec.parameters: {}", variable::REFUSAL);
    // The second bracket is escaped, since not every kind of regular expression takes it in a class as it is.
    Rule::new(format!(r"self.all(key, !self[key].matches('[$][(]({words})[.\\[]'))")).message(message.as_str())
}

/// Refuses any change of `field` of a spec. One rule per field, since one of them may come later.
pub(super) fn immutable(field: &str) -> Rule {
    forbidden(
        field,
        unchanged(field),
        format!("spec.{field}: is immutable once created; create another WorkflowExecution"),
    )
}

/// Refuses any change of `retry`, which has no type, so that no rule can name it. But the spec as a whole can be
/// compared: where it has changed and no other field has, `retry` has. `others` are the fields that never change,
/// `later` those that a person adds.
///
/// A change in one write with another field passes this rule. That of a field of `others` is refused for that field.
/// That of a field of `later` has no effect, because nothing is tried again after it.
pub(super) fn retry_is_immutable(others: &[&str], later: &[&str]) -> Rule {
    let others = others.iter().map(|field| format!("!({})", unchanged(field)));
    let later = later.iter().map(|field| format!("has(self.{field}) != has(oldSelf.{field})"));
    let rule: Vec<String> = std::iter::once("self == oldSelf".to_owned()).chain(others).chain(later).collect();
    forbidden("retry", rule.join(" || "), "spec.retry: is immutable once created; create another WorkflowExecution")
}

/// Refuses `field` of a spec, what a person asks for later, before there is an execution to ask it of; `instead` says
/// what to do.
pub(super) fn comes_later(field: &str, instead: &str) -> Rule {
    forbidden(
        field,
        format!("oldSelf.hasValue() || !has(self.{field})"),
        format!("spec.{field}: may not be set when the object is created; {instead}"),
    )
    .optional_old_self(true)
}

/// Refuses to take back what a person has asked for in `field` of a spec, or to put it into another mouth; `instead`
/// says what to do.
pub(super) fn stays(field: &str, instead: &str) -> Rule {
    forbidden(field, kept(field), format!("spec.{field}: may not change or be removed once set; {instead}"))
}

/// Refuses a first phase that is not a beginning; stands at the root, since rules on `status` that look at the old
/// status do not run when there was none.
pub(super) fn phase_begins() -> Rule {
    forbidden(
        "status.phase",
        "!has(self.status) || !has(self.status.phase) || self.status.phase != 'Completed' \
         || (has(oldSelf.status) && has(oldSelf.status.phase))",
        PHASE_MESSAGE,
    )
}

/// Refuses a `null` or absent status where there was one; stands at the root, rules on `status` do not see it go.
pub(super) fn status_stays() -> Rule {
    forbidden("status", "!has(oldSelf.status) || has(self.status)", "status: may not be removed once written")
}

/// Refuses every step of `phase` but the ones that the message lists.
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

/// Refuses to forget the run of an execution that was Running.
pub(super) fn run_stays() -> Rule {
    forbidden(
        "pipelineRunRef",
        "!(has(oldSelf.phase) && oldSelf.phase == 'Running' && has(oldSelf.pipelineRunRef)) || has(self.pipelineRunRef)",
        "status.pipelineRunRef: may not be removed while phase is Running",
    )
}

/// Refuses another run than that of an attempt that was waited for: by this, no attempt has two runs, and an execution
/// without a retry policy has one.
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

/// Refuses to forget the attempts; stands at the status, rules on the list do not see it go.
pub(super) fn attempts_stay() -> Rule {
    forbidden(
        "attempts",
        "!has(oldSelf.attempts) || has(self.attempts)",
        "status.attempts: may not be removed once written",
    )
}

/// Demands that attempts are numbered from 1, each in its place. A write that changes nothing but their order passes:
/// of a list with a key the API server takes that for no change, and judges no rule anew. So a reader sorts them.
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

/// Demands that all attempts but the last have ended.
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

/// Demands `field` of an attempt with `other`, and refuses it without.
pub(super) fn together_in_attempt(field: &str, other: &str) -> Rule {
    Rule::new(format!("has(self.{field}) == has(self.{other})"))
        .message(format!("status.attempts.{field}: must be present exactly when {other} is").as_str())
        .field_path(format!(".{field}"))
}

/// Demands `field` with `phase`, and refuses it with any other.
pub(super) fn exactly_with(phase: &str, field: &str) -> Rule {
    Rule::new(format!("has(self.{field}) == (has(self.phase) && self.phase == '{phase}')"))
        .message(format!("status.{field}: must be present exactly when phase is {phase}").as_str())
        .field_path(format!(".{field}"))
}

/// Refuses `field` of an execution that never got its turn.
pub(super) fn never_skipped(field: &str) -> Rule {
    Rule::new(format!("!has(self.{field}) || !has(self.phase) || self.phase != 'Skipped'"))
        .message(format!("status.{field}: must be absent when phase is Skipped, nothing ran").as_str())
        .field_path(format!(".{field}"))
}

/// Demands `completionTime` of an execution that has ended.
pub(super) fn end_has_a_time() -> Rule {
    Rule::new("has(self.completionTime) || !has(self.phase) || !(self.phase in ['Completed', 'Failed', 'Skipped'])")
        .message("status.completionTime: is required when phase is Completed, Failed or Skipped")
        .field_path(".completionTime")
        .reason(Reason::FieldValueRequired)
}

/// Condition of a rule: `field` is what it was, or absent as it was.
fn unchanged(field: &str) -> String {
    format!("has(self.{field}) ? (has(oldSelf.{field}) && self.{field} == oldSelf.{field}) : !has(oldSelf.{field})")
}

/// Condition of a rule: `field` is what it was, if it was there.
fn kept(field: &str) -> String {
    format!("!has(oldSelf.{field}) || (has(self.{field}) && self.{field} == oldSelf.{field})")
}

fn forbidden(field: &str, rule: impl Into<String>, message: impl AsRef<str>) -> Rule {
    Rule::new(rule).message(message.as_ref()).field_path(format!(".{field}")).reason(Reason::FieldValueForbidden)
}
