//! Code for the tests against the real control plane (`cluster/`), the soak (`soak/`), the recorder (`recorder/`) and
//! the benchmark (`bench/`).

pub mod chart;
pub mod outcomes;
mod quota;
mod stable;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wfe_auditor::{Change, Counts, Options, Policy, Report, Request};
use wfe_testkit::{Observed, Recording, World, record};

pub use quota::quota_of_none;
pub use stable::stable;

/// How old an operator's view may be, including the duration of a request. The proxy's faults delay both.
const LAG: Duration = Duration::from_secs(30);

/// Ends a recording, and has the auditor judge it together with the audit log (section 16). All executions must be at
/// rest. Returns the changes and the auditor's report.
pub async fn audit(world: &World, recording: Recording) -> Result<(Vec<Observed>, Report)> {
    audit_with(world, &[], recording).await
}

/// Audits as [`audit`] does while other worlds share the execution namespace. The recording must include their
/// executions.
pub async fn audit_with(world: &World, neighbours: &[&World], recording: Recording) -> Result<(Vec<Observed>, Report)> {
    let changes = recording.stop().await?;
    let mut requests = world.audit().await?;
    let mut operators = BTreeSet::from([world.operator_user()]);
    let seen_already = |user: &str, namespace: &str| {
        let places = [world.namespace().to_owned(), world.execution_namespace()];
        user == world.operator_user() || places.iter().any(|place| place == namespace)
    };
    for neighbour in neighbours {
        let more = neighbour.audit().await?;
        requests.extend(more.into_iter().filter(|entry| !seen_already(&entry.user, &entry.namespace)));
        operators.insert(neighbour.operator_user());
    }
    let options = Options { operators, settled: true, policy: policy(world)?, lag: LAG };
    let (judged, witnessed): (Vec<Change>, Vec<Request>) = (translate(&changes)?, translate(&requests)?);
    let report = wfe_auditor::audit(&judged, &witnessed, &options);
    if !report.is_clean() {
        keep(world, &changes)?;
    }
    Ok((changes, report))
}

/// Writes a recording beside the audit log, for the auditor's command line. `KEEP=1` keeps both files.
fn keep(world: &World, changes: &[Observed]) -> Result<()> {
    let path = world.control_plane().dir().join(format!("{}.watch.jsonl", world.namespace()));
    record::write(changes, BufWriter::new(File::create(path)?))
}

/// Counts what has happened so far according to a recording. The count blocks the runtime only for a copy of the
/// recording.
pub async fn count(world: &World, recording: &Recording) -> Result<Counts> {
    let (seen, options) = (recording.so_far(), Options { policy: policy(world)?, lag: LAG, ..Options::default() });
    let counting = move || {
        let changes: Vec<Change> = translate(&seen)?;
        anyhow::Ok(wfe_auditor::audit(&changes, &[], &options).counts)
    };
    tokio::task::spawn_blocking(counting).await.context("the count panicked")?
}

/// Returns the policy of all operators that were started in a world; `None` if their policies differ. It is read from
/// the flags, because no test sets a policy by the environment.
fn policy(world: &World) -> Result<Option<Policy>> {
    let mut all: Vec<Policy> = Vec::new();
    for flags in world.operator_flags() {
        let flags = flags.iter().map(|(flag, value)| (flag.as_str(), value.as_str()));
        all.push(Policy::of_flags(flags).map_err(|error| anyhow!(error))?);
    }
    all.dedup();
    Ok(all.pop().filter(|_| all.is_empty()))
}

/// Converts recorded changes or requests to the auditor's types. The auditor and the testkit share only the file
/// format.
fn translate<T: DeserializeOwned>(recorded: &[impl Serialize]) -> Result<Vec<T>> {
    // Each entry is converted separately. Otherwise a long recording would be in memory three times.
    recorded.iter().map(|one| Ok(serde_json::from_value(serde_json::to_value(one)?)?)).collect()
}
