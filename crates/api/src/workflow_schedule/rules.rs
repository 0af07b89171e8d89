//! Admission rules of a `WorkflowSchedule`. The API server evaluates them at every write.
//!
//! A rule that compares two durations accepts a malformed duration. The rule on the field itself refuses the malformed
//! duration; an error of `duration()` in the comparison would only hide the message of that rule.

use kube::core::{Reason, Rule};

use crate::limits;

/// Pattern of a duration in whole seconds: hours, minutes and seconds in this order, at least one of them, each with at
/// most five digits.
const DURATION: &str = "^([0-9]{1,5}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[0-9]{1,5}m([0-9]{1,5}s)?|[0-9]{1,5}s)$";

/// Patterns of a value in each of the five fields of a cron expression.
const CRON_VALUES: [&str; 5] = [
    "[0-5]?[0-9]",
    "([01]?[0-9]|2[0-3])",
    "(0?[1-9]|[12][0-9]|3[01])",
    "(0?[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)",
    "(0?[0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)",
];

/// Pattern of the key of a label or annotation. The pattern does not limit the length of the prefix.
const KEY: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
     [a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?$";

/// Pattern of the value of a label.
const LABEL: &str = "^([a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?)?$";

/// Pattern of the names of the fields that a triage may adjust.
const ADJUSTABLE: &str = "^(interval|timeout|parameters[.][A-Z][A-Z0-9_]{0,252})$";

/// Condition of a rule: the analyst is a workflow.
const ANALYST_IS_A_PIPELINE: &str = "has(self.analyst) && self.analyst == 'Pipeline'";

/// Limits the length of the name, because the names and a label of the children contain it.
pub(super) fn name_is_short() -> Rule {
    let limit = limits::SCHEDULE_NAME;
    let message = format!("metadata.name: must have at most {limit} characters, as it is a label of the executions");
    Rule::new(format!("self.metadata.name.size() <= {limit}")).message(message.as_str())
}

/// Requires a duration in whole seconds.
pub(super) fn duration(field: &str, least: &str, most: &str) -> Rule {
    let message = format!("{field}: must be a duration in whole seconds from {least} to {most}, e.g. 5m or 1h30m");
    let rule = format!(
        "self.matches(r'{DURATION}') && duration(self) >= duration('{least}') && duration(self) <= duration('{most}')"
    );
    Rule::new(rule).message(message.as_str())
}

/// Requires a time that every program can write.
pub(super) fn years(field: &str) -> Rule {
    Rule::new("self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('9999-01-01T00:00:00Z')")
        .message(format!("{field}: must lie in the years 1970 to 9998, e.g. 2026-01-02T03:04:05Z").as_str())
}

/// Requires a cron expression whose values are in their ranges. The operator checks whether a range ascends and whether
/// a day of the month exists, and reports it in the condition Ready.
pub(super) fn cron() -> Rule {
    let field = |value: &str| {
        let step = "(/0?[1-9]|/[1-9][0-9])?";
        let item = format!("([*]{step}|{value}(-{value}{step})?)");
        format!("{item}(,{item})*")
    };
    let form = CRON_VALUES.map(field).join(" ");
    Rule::new(format!("self.matches(r'^{form}$')")).message(
        "spec.cron: must be five fields with one blank between two of them: minute (0-59), hour (0-23), day of month \
         (1-31), month (1-12 or JAN-DEC), day of week (0-7 or SUN-SAT, 0 and 7 are Sunday), e.g. 0 2 * * MON-FRI; a step \
         follows * or a range, so write 10-59/15 and not 10/15; @daily is 0 0 * * *, names are in capitals, and ? is *",
    )
}

/// Requires a time zone that the API server knows. For an unknown zone the API server puts its own words before the
/// message.
pub(super) fn zone() -> Rule {
    Rule::new(
        "self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$') && self != 'Local' \
         && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",
    )
    .message("spec.timeZone: must be the IANA name of a time zone, e.g. Europe/Berlin or UTC")
}

/// Requires exactly one of interval and cron.
pub(super) fn one_plan() -> Rule {
    Rule::new("has(self.interval) != has(self.cron)")
        .message("spec.interval: exactly one of interval and cron must be set, e.g. interval: 5m, or cron: 0 2 * * *")
        .field_path(".interval")
}

/// Refuses a time zone without cron.
pub(super) fn zone_with_cron() -> Rule {
    Rule::new("!has(self.timeZone) || has(self.cron)")
        .message("spec.timeZone: may be set only with cron, as an interval knows no time of day; leave it out")
        .field_path(".timeZone")
        .reason(Reason::FieldValueForbidden)
}

/// Requires that spread is less than interval, so no slot is delayed past the next slot.
pub(super) fn spread_below_interval() -> Rule {
    compare("spread", "<", "interval", "spec.spread: must be less than interval", ".spread")
}

/// Requires that minInterval is not above interval: minInterval limits hints, and not the plan itself.
pub(super) fn min_not_above_interval() -> Rule {
    compare(
        "minInterval",
        "<=",
        "interval",
        "spec.minInterval: must not be above interval; lower it, or leave it out",
        ".minInterval",
    )
}

/// Requires that maxInterval is not below interval: maxInterval limits backoff and hints, and not the plan itself.
pub(super) fn max_not_below_interval() -> Rule {
    compare(
        "interval",
        "<=",
        "maxInterval",
        "spec.maxInterval: must not be below interval; raise it, or leave it out",
        ".maxInterval",
    )
}

/// Requires that minInterval is not above maxInterval in a schedule with cron. In a schedule with an interval, the
/// other rules already ensure this.
pub(super) fn clamps_of_cron() -> Rule {
    let malformed = |field: &str| format!("(has(self.{field}) && !{})", well_formed(field));
    let given = |field: &str, absent: &str| format!("duration(has(self.{field}) ? self.{field} : '{absent}')");
    let rule = format!(
        "has(self.interval) || {} || {} || {} <= {}",
        malformed("minInterval"),
        malformed("maxInterval"),
        given("minInterval", "1m"),
        given("maxInterval", "24h"),
    );
    Rule::new(rule)
        .message(
            "spec.maxInterval: must not be below minInterval; with cron, the one that is absent is 1m (minInterval) or \
             24h (maxInterval)",
        )
        .field_path(".maxInterval")
}

/// Requires exactly one of the two forms of a hint.
pub(super) fn one_hint() -> Rule {
    Rule::new("has(self.nextRunAt) != has(self.interval)")
        .message("spec.hint.nextRunAt: exactly one of nextRunAt and interval must be set")
        .field_path(".nextRunAt")
}

/// Refuses a hint that expires before the run that it asks for.
pub(super) fn hint_outlives_its_run() -> Rule {
    Rule::new("!has(self.nextRunAt) || self.expiresAt > self.nextRunAt")
        .message("spec.hint.expiresAt: must be after nextRunAt, as an expired hint is ignored")
        .field_path(".expiresAt")
}

/// Requires a workflow if the analyst is a workflow.
pub(super) fn pipeline_has_a_workflow() -> Rule {
    Rule::new(format!("!({ANALYST_IS_A_PIPELINE}) || has(self.workflowRef)"))
        .message("spec.triage.workflowRef: is required with analyst Pipeline; name the workflow that analyses")
        .field_path(".workflowRef")
        .reason(Reason::FieldValueRequired)
}

/// Refuses `field` of the triage unless the analyst is a workflow.
pub(super) fn with_pipeline_only(field: &str) -> Rule {
    Rule::new(format!("!has(self.{field}) || ({ANALYST_IS_A_PIPELINE})"))
        .message(format!("spec.triage.{field}: may be set only with analyst Pipeline; leave it out").as_str())
        .field_path(format!(".{field}"))
        .reason(Reason::FieldValueForbidden)
}

/// Requires the name of a service account.
pub(super) fn service_account(field: &str) -> Rule {
    let message = format!("{field}: must be a DNS subdomain (a-z, 0-9, - and .), e.g. kubernaut-workflow-runner");
    Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')")
        .message(message.as_str())
}

/// Requires the names of fields that can be adjusted.
pub(super) fn adjustable() -> Rule {
    Rule::new(format!("self.all(field, field.matches('{ADJUSTABLE}'))")).message(
        "spec.triage.allowAdjust: must list interval, timeout or parameters.<KEY> with a KEY of the template, e.g. \
         parameters.DISK_THRESHOLD",
    )
}

/// Refuses a name that is listed twice.
pub(super) fn adjustable_once() -> Rule {
    Rule::new("self.all(field, self.exists_one(other, other == field))")
        .message("spec.triage.allowAdjust: must list each field once")
}

/// Requires that the template has each parameter that may be adjusted: the author of the template has then chosen a
/// value.
pub(super) fn adjustable_parameters_exist() -> Rule {
    Rule::new(
        "!has(self.triage) || !has(self.triage.allowAdjust) || self.triage.allowAdjust.all(field, \
         !field.startsWith('parameters.') || (has(self.template.spec.parameters) \
         && field.substring(11) in self.template.spec.parameters))",
    )
    .message(
        "spec.triage.allowAdjust: parameters.<KEY> must name a key of spec.template.spec.parameters; add the parameter \
         there, or leave it out here",
    )
    .field_path(".triage.allowAdjust")
}

/// Refuses `interval` in allowAdjust of a schedule with cron. A schedule that was stored with both, before this rule
/// existed, keeps its list until a person edits the list. Otherwise even a suspension would require an edit of the
/// triage. The rule compares the lists as a whole. The API server assumes that a list in `oldSelf` has no size limit,
/// so a search in that list would exceed the cost budget of rules.
pub(super) fn no_interval_with_cron() -> Rule {
    let lists = |it: &str| format!("has({it}.cron) && has({it}.triage) && has({it}.triage.allowAdjust)");
    Rule::new(format!(
        "!({} && 'interval' in self.triage.allowAdjust) || (oldSelf.hasValue() && {} && self.triage.allowAdjust == \
         oldSelf.value().triage.allowAdjust)",
        lists("self"),
        lists("oldSelf.value()")
    ))
    .message(
        "spec.triage.allowAdjust: may list interval only beside spec.interval, as no verdict changes a cron expression; \
         leave it out",
    )
    .field_path(".triage.allowAdjust")
    .reason(Reason::FieldValueForbidden)
    .optional_old_self(true)
}

/// Refuses keys that only the operator writes.
pub(super) fn no_keys_of_ours(field: &str) -> Rule {
    Rule::new("self.all(key, !key.startsWith('kubernaut.ai/'))")
        .message(format!("{field}: keys must not begin with kubernaut.ai/, which the operator sets itself").as_str())
        .reason(Reason::FieldValueForbidden)
}

/// Requires keys that Kubernetes accepts.
pub(super) fn keys(field: &str) -> Rule {
    let message = format!(
        "{field}: keys must be at most 63 letters, digits, - _ and ., with a letter or digit at either end, after an \
         optional DNS subdomain and a slash, e.g. team or example.com/team"
    );
    Rule::new(format!("self.all(key, key.matches(r'{KEY}') && key.split('/')[0].size() <= {})", limits::NAME))
        .message(message.as_str())
}

/// Requires values that Kubernetes accepts for a label.
pub(super) fn values_of_labels(field: &str) -> Rule {
    let message = format!(
        "{field}: values must be at most 63 letters, digits, - _ and ., with a letter or digit at either end, or empty"
    );
    Rule::new(format!("self.all(key, self[key].matches(r'{LABEL}'))")).message(message.as_str())
}

/// Compares two durations of the spec, if both are given.
fn compare(left: &str, operator: &str, right: &str, message: &str, field_path: &str) -> Rule {
    let rule = format!(
        "!has(self.{left}) || !has(self.{right}) || !{} || !{} || duration(self.{left}) {operator} duration(self.{right})",
        well_formed(left),
        well_formed(right),
    );
    Rule::new(rule).message(message).field_path(field_path.to_owned())
}

/// Condition of a rule: the field has the form of a duration.
fn well_formed(field: &str) -> String {
    format!("self.{field}.matches(r'{DURATION}')")
}
