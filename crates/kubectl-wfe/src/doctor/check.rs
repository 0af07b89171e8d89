//! One check, and how checks are shown.

use std::fmt::Write as _;

use serde::Serialize;

use crate::output::line;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Verdict {
    Ok,
    Warning,
    Error,
    /// The caller may not read what the check needs.
    NotSeen,
}

/// One check.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    group: &'static str,
    pub(super) verdict: Verdict,
    says: String,
    /// What to do, or where to read about it.
    todo: Option<String>,
}

impl Verdict {
    fn mark(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "!",
            Self::Error => "x",
            Self::NotSeen => "-",
        }
    }
}

/// The checks of one group.
pub(super) struct Group<'a> {
    name: &'static str,
    checks: &'a mut Vec<Check>,
}

impl<'a> Group<'a> {
    pub(super) fn new(name: &'static str, checks: &'a mut Vec<Check>) -> Self {
        Self { name, checks }
    }

    pub(super) fn ok(&mut self, says: impl Into<String>) {
        self.add(Verdict::Ok, says.into(), None);
    }

    pub(super) fn warning(&mut self, says: impl Into<String>, todo: impl Into<String>) {
        self.add(Verdict::Warning, says.into(), Some(todo.into()));
    }

    pub(super) fn error(&mut self, says: impl Into<String>, todo: impl Into<String>) {
        self.add(Verdict::Error, says.into(), Some(todo.into()));
    }

    /// Adds a check that could not be made. `why` is the API server's answer, or another reason.
    pub(super) fn not_seen(&mut self, what: &str, why: &str) {
        self.add(Verdict::NotSeen, format!("not seen: {what}: {why}"), None);
    }

    fn add(&mut self, verdict: Verdict, says: String, todo: Option<String>) {
        self.checks.push(Check { group: self.name, verdict, says, todo });
    }
}

/// Counts the checks with a verdict.
pub(super) fn count(checks: &[Check], verdict: Verdict) -> usize {
    checks.iter().filter(|check| check.verdict == verdict).count()
}

/// Shows the checks, each group under its name.
pub(super) fn told(checks: &[Check]) -> String {
    let (mut text, mut before) = (String::new(), "");
    for Check { group, verdict, says, todo } in checks {
        let shown = if *group == before { "" } else { group };
        let _ = writeln!(text, "{shown:<11} {:<2}  {}", verdict.mark(), line(says));
        if let Some(todo) = todo {
            let _ = writeln!(text, "{:<11}     {}", "", line(todo));
        }
        before = group;
    }
    let many = |verdict, what: &str| {
        let count = count(checks, verdict);
        format!("{count} {what}{}", if count == 1 { "" } else { "s" })
    };
    let unseen = match count(checks, Verdict::NotSeen) {
        0 => String::new(),
        unseen => format!(", {unseen} not seen"),
    };
    let _ = writeln!(text, "{}, {}{unseen}", many(Verdict::Error, "error"), many(Verdict::Warning, "warning"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_its_name_once_and_each_fault_what_to_do() {
        let mut checks = Vec::new();
        let mut group = Group::new("cluster", &mut checks);
        group.ok("Kubernetes v1.36.3");
        group.error("no Tekton", "install it");
        let mut group = Group::new("people", &mut checks);
        group.warning("two\nlines", "bind it");
        group.not_seen("bindings", "forbidden");
        assert_eq!(
            told(&checks),
            "cluster     ok  Kubernetes v1.36.3\n\
             \x20           x   no Tekton\n\
             \x20               install it\n\
             people      !   two\\nlines\n\
             \x20               bind it\n\
             \x20           -   not seen: bindings: forbidden\n\
             1 error, 1 warning, 1 not seen\n"
        );
    }
}
