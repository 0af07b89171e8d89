//! What is found in one document.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Level {
    /// The API server refuses the object, or its run fails.
    Error,
    /// It may be a mistake.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// The field, such as `spec.tasks[0].name`.
    pub(super) field: String,
    /// The whole sentence. It never has the value of a parameter in it.
    pub(super) says: String,
}

/// The findings of one document, in the order in which they were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    /// Adds an error.
    pub(super) fn error(&mut self, field: impl Into<String>, says: impl Into<String>) {
        self.0.push(Finding { level: Level::Error, field: field.into(), says: says.into() });
    }

    /// Adds a warning.
    pub(super) fn warning(&mut self, field: impl Into<String>, says: impl Into<String>) {
        self.0.push(Finding { level: Level::Warning, field: field.into(), says: says.into() });
    }

    /// Adds an error about a field, unless this field, or one above or below it, has an error already. Two checks may
    /// find the same fault.
    pub(super) fn error_unless_known(&mut self, field: &str, problem: &str) {
        let is_below = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        if !self.0.iter().any(|it| is_below(&it.field, field) || is_below(field, &it.field)) {
            self.error(field, format!("{field}: {problem}"));
        }
    }

    /// Returns whether there is an error.
    pub(super) fn has_error(&self) -> bool {
        self.0.iter().any(|it| it.level == Level::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_two_checks_find_is_one() {
        let mut found = Findings::default();
        for field in ["spec.cron", "spec.cron", "spec.cronTab", "spec.template.spec", "spec.template.spec.retry"] {
            found.error_unless_known(field, "is wrong");
        }
        let fields: Vec<&str> = found.0.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["spec.cron", "spec.cronTab", "spec.template.spec"]);
        assert_eq!(found.0[0].says, "spec.cron: is wrong");
    }
}
