//! The rights that the operators on all control planes of a test run have used, according to the audit logs.
//!
//! If `WFE_WITNESS` names a directory, each supervisor writes a file there. The file lists the rights that operators
//! have used on the supervisor's control plane. A supervisor may outlive the tests for a moment, and locks the file
//! until it is complete.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::audit::AuditEntry;
use crate::{random, rbac, rights};

/// The file of one supervisor.
#[derive(Debug)]
pub(crate) struct Witness(File);

impl Witness {
    /// Creates the file if `WFE_WITNESS` is set.
    pub(crate) fn begin() -> Result<Option<Self>> {
        let Some(dir) = std::env::var_os("WFE_WITNESS").map(PathBuf::from) else { return Ok(None) };
        let path = dir.join(random::letters(10));
        let file = File::create_new(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        file.lock()?;
        Ok(Some(Self(file)))
    }

    /// Writes the rights that were used according to the audit log, one on each line.
    pub(crate) fn end(mut self, audit_log: &Path) -> Result<()> {
        let lines: Vec<String> = used(audit_log)?.iter().map(|right| format!("{right}\n")).collect();
        self.0.write_all(lines.concat().as_bytes())?;
        Ok(())
    }
}

/// Reads which rights operators have used. The log of a long run may not fit into memory, and is read line by line.
fn used(audit_log: &Path) -> Result<BTreeSet<rights::Right>> {
    let mut used = BTreeSet::new();
    // Without a log, there was no request yet.
    let Ok(file) = File::open(audit_log) else { return Ok(used) };
    let by_operator = format!(":{}\"", rbac::OPERATOR);
    for line in BufReader::new(file).lines() {
        let line = line?;
        if !line.contains(&by_operator) {
            continue;
        }
        // The last line may be incomplete.
        let Ok(mut event) = serde_json::from_str(&line) else { continue };
        let entry = AuditEntry::of(&mut event);
        if rights::is_used_by_operator(&entry) {
            used.insert(rights::Right::of(&entry));
        }
    }
    Ok(used)
}

/// Fails if the shipped roles grant a right that is in no file of the directory and that no admission policy checks.
pub fn check(dir: &Path) -> Result<()> {
    let mut used = BTreeSet::new();
    let mut files = 0;
    for entry in std::fs::read_dir(dir).with_context(|| format!("{} cannot be read", dir.display()))? {
        let file = File::open(entry?.path())?;
        // The supervisor has the lock until the file is complete, or until the supervisor is killed.
        file.lock_shared()?;
        for line in BufReader::new(file).lines() {
            used.insert(line?);
        }
        files += 1;
    }
    ensure!(files > 0, "no control plane has left its witness in {}: run all tests with WFE_WITNESS", dir.display());
    let shipped = rights::shipped()?;
    let asked = rights::asked_by_policies(&shipped)?;
    let unused = shipped.difference(&asked).map(ToString::to_string).filter(|right| !used.contains(right));
    let unused: Vec<String> = unused.collect();
    if unused.is_empty() {
        return Ok(());
    }
    bail!(
        "config/rbac gives what no test has used: {}; take it out of the role, or write the test that needs it",
        unused.join(", ")
    )
}
