//! The results of a benchmark run as JSON: every measure, with its unit and all samples.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use wfe_testkit::repository;

use crate::numbers::{median, range};

/// One measure with all its samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measure {
    /// The unit, such as `ms`.
    pub(crate) unit: String,
    /// The samples in the order of their measurement.
    pub(crate) samples: Vec<f64>,
}

impl Measure {
    /// Returns the median of the samples.
    pub(crate) fn median(&self) -> f64 {
        median(&self.samples)
    }

    /// Returns the smallest and the largest sample.
    pub(crate) fn range(&self) -> (f64, f64) {
        range(&self.samples)
    }
}

/// The results of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    /// When the run began (RFC 3339).
    pub(crate) taken_at: String,
    /// The duration of the run in seconds.
    pub(crate) took_seconds: u64,
    /// The measured commit, followed by `+` if the checkout had other changes.
    pub(crate) commit: String,
    /// Whether the run was short. A short run has fewer and smaller steps, and is not compared with others.
    pub(crate) quick: bool,
    /// The machine on which the benchmark ran.
    pub(crate) machine: BTreeMap<String, String>,
    /// The versions of the measured program and the tools.
    pub(crate) versions: BTreeMap<String, String>,
    /// The measures by name, such as `throughput/ratio`.
    pub(crate) measures: BTreeMap<String, Measure>,
    /// The disturbances of the run. Samples of a disturbed round do not count.
    pub(crate) disturbed: Vec<String>,
}

impl Results {
    /// Begins the results of a run with everything that is known beforehand.
    pub(crate) fn begin(quick: bool) -> Self {
        let dirty = !output("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty();
        let commit = output("git", &["rev-parse", "--short=12", "HEAD"]) + if dirty { "+" } else { "" };
        let cpu = field("/proc/cpuinfo", "model name");
        let memory = field("/proc/meminfo", "MemTotal");
        let cores = std::thread::available_parallelism().map_or_else(|_| String::new(), |cores| cores.to_string());
        let machine = [("cores", cores), ("processor", cpu), ("memory", memory), ("kernel", output("uname", &["-sr"]))];
        let versions = [("rustc", output("rustc", &["--version"])), ("operator", env!("CARGO_PKG_VERSION").to_owned())];
        Self {
            taken_at: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            commit,
            quick,
            machine: machine.map(|(name, value)| (name.to_owned(), value)).into(),
            versions: versions.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Self::default()
        }
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, name: &str, unit: &str, sample: f64) {
        let measure = self.measures.entry(name.to_owned()).or_default();
        unit.clone_into(&mut measure.unit);
        measure.samples.push((sample * 1e6).round() / 1e6);
    }

    /// Returns a measure by name.
    pub(crate) fn get(&self, name: &str) -> Option<&Measure> {
        self.measures.get(name)
    }

    /// Returns the measures whose names begin with a prefix, sorted by the number after it.
    pub(crate) fn curve(&self, prefix: &str) -> Vec<(f64, &Measure)> {
        let points = self.measures.iter().filter_map(|(name, measure)| {
            let number = name.strip_prefix(prefix)?.parse().ok()?;
            Some((number, measure))
        });
        let mut points: Vec<(f64, &Measure)> = points.collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        points
    }

    /// Reads the results of a run from a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is no run of the benchmark", path.display()))
    }

    /// Writes the results to a file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
    }

    /// Returns the measures that differ from an earlier run by more than the scatter of the samples in both runs.
    pub(crate) fn moved_since(&self, before: &Self) -> Vec<String> {
        let mut moved = Vec::new();
        for (name, now) in &self.measures {
            let Some(then) = before.get(name) else { continue };
            let (new, old) = (now.median(), then.median());
            let outside = |value: f64, (low, high): (f64, f64)| value < low || value > high;
            // One or two samples do not show the scatter. A tenth of the median is added to their range.
            let scatter = |measure: &Measure| {
                let (low, high) = measure.range();
                let slack = if measure.samples.len() < 3 { 0.1 * measure.median().abs() } else { 0.0 };
                (low - slack, high + slack)
            };
            if outside(new, scatter(then)) && outside(old, scatter(now)) {
                moved.push(format!("{name}: {old:.3} -> {new:.3} {}", now.unit));
            }
        }
        moved
    }
}

/// Runs a program in the repository, and returns its output. The output is empty if the program cannot run.
fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(repository()).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn field(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or_else(String::new, |line| line.trim_start_matches([' ', '\t', ':']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_what_leaves_the_noise_of_both_runs() {
        let run = |samples: &[f64]| {
            let mut results = Results::default();
            for sample in samples {
                results.add("a", "ms", *sample);
            }
            results
        };
        let before = run(&[10.0, 11.0, 12.0]);
        assert!(run(&[11.5, 11.9, 13.0]).moved_since(&before).is_empty(), "the new middle lies within the old run");
        assert_eq!(run(&[13.0, 14.0, 15.0]).moved_since(&before), ["a: 11.000 -> 14.000 ms"]);
        assert!(run(&[12.1]).moved_since(&before).is_empty(), "of one sample a tenth is noise");
        assert!(Results::default().moved_since(&before).is_empty());
    }

    #[test]
    fn a_curve_is_in_order_of_its_numbers() {
        let mut results = Results::default();
        for number in [10_000, 50_000, 0] {
            results.add(&format!("memory/{number}"), "MB", f64::from(number));
        }
        let numbers: Vec<f64> = results.curve("memory/").into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [0.0, 10_000.0, 50_000.0]);
    }
}
