//! The part of Prometheus' text format that tests read.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

/// The samples of one scrape.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    samples: Vec<Sample>,
}

/// One line: a name, labels and a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Such as `workflowexecution_total`, or `..._bucket`.
    pub name: String,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

impl Metrics {
    /// Parses a scrape.
    pub fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let samples = lines
            .map(|line| parse_line(line).with_context(|| format!("not a sample: {line}")))
            .collect::<Result<_>>()?;
        Ok(Self { samples })
    }

    /// Returns the sum of the samples with this name and at least these labels; 0 if there are none.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(name, labels).map(|sample| sample.value).sum()
    }

    /// Returns whether a sample has this name and at least these labels.
    #[must_use]
    pub fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        self.matching(name, labels).next().is_some()
    }

    /// Returns all samples, in the order of the scrape.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    fn matching(&self, name: &str, labels: &[(&str, &str)]) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| {
            sample.name == name
                && labels.iter().all(|(key, value)| sample.labels.get(*key).is_some_and(|found| found == value))
        })
    }
}

fn parse_line(line: &str) -> Option<Sample> {
    let name_end = line.find(['{', ' '])?;
    let name = line[..name_end].to_owned();
    let mut rest = &line[name_end..];
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (key, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.insert(key.trim_start_matches([',', ' ']).to_owned(), value);
            rest = after.trim_start_matches([',', ' ']);
        }
        rest = &rest[1..];
    }
    // A timestamp may follow the value.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name, labels, value })
}

/// Reads up to the closing quote. Returns the unescaped text, and the rest after the quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name_and_labels() {
        let text = "# HELP a b\na_total{outcome=\"Completed\",x=\"q \\\"y\\\", }\"} 3\na_total{outcome=\"Failed\"} 1.5\nup 1\n";
        let metrics = Metrics::parse(text).unwrap();
        let close = |left: f64, right: f64| (left - right).abs() < 1e-9;
        assert!(close(metrics.value("a_total", &[("outcome", "Completed")]), 3.0));
        assert!(close(metrics.value("a_total", &[]), 4.5));
        assert!(close(metrics.value("absent", &[]), 0.0));
        assert_eq!(metrics.samples()[0].labels["x"], "q \"y\", }");
        assert!(metrics.has("up", &[]) && !metrics.has("up", &[("a", "b")]));
    }
}
