//! Adds the results of the micro-benchmarks: criterion's estimates, and the bytes that an allocator has counted.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::results::Results;

/// Reads all estimates below a directory (`target/criterion`) in nanoseconds, with names such as `decide/idle/10`.
pub(crate) fn estimates(dir: &Path, results: &mut Results) -> Result<()> {
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir)?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            }
        }
        let (names, estimates) = (dir.join("benchmark.json"), dir.join("estimates.json"));
        if dir.ends_with("new") && names.is_file() && estimates.is_file() {
            let (names, estimates) = (json(&names)?, json(&estimates)?);
            let name = names["full_id"].as_str().context("criterion's benchmark.json names nothing")?;
            let median =
                estimates["median"]["point_estimate"].as_f64().context("criterion's estimates have no median")?;
            results.add(&format!("micro/{name}"), "ns", median);
        }
    }
    Ok(())
}

/// Reads byte counts: one JSON object with names and numbers on each line.
pub(crate) fn bytes(file: &Path, results: &mut Results) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let numbers: BTreeMap<String, f64> = serde_json::from_str(line)?;
        for (name, number) in numbers {
            results.add(&format!("index/{name}"), "bytes", number);
        }
    }
    Ok(())
}

fn json(path: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}
