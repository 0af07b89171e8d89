//! `kubectl wfe config`: the settings in force, where each value comes from, and what is wrong with the `ConfigMap`.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;
use wfe_api::limits::cut;
use wfe_settings::config::{SHOWN, Setting};
use wfe_settings::table::keys;

use crate::cli::{ClusterArgs, ConfigArgs, Format};
use crate::connection::Connection;
use crate::installation::{Config, Installation};
use crate::nearest::{did_you_mean, nearest};
use crate::output::{line, output};
use crate::table::table;

/// The answer. `-o json` shows all of it.
#[derive(Debug, Serialize)]
struct Report {
    /// What the settings depend on.
    policy: String,
    settings: Vec<Row>,
    unknown: Vec<Unknown>,
    /// Why the operator refuses the `ConfigMap`; empty if it does not.
    refused: Vec<String>,
}

/// A setting.
#[derive(Debug, Serialize)]
struct Row {
    key: &'static str,
    value: String,
    from: String,
}

/// A key that no operator of this version knows.
#[derive(Debug, Serialize)]
struct Unknown {
    key: String,
    nearest: Option<&'static str>,
}

/// Runs the command. Yes: the operator does not refuse the `ConfigMap`.
pub(crate) async fn run(cluster: &ClusterArgs, args: &ConfigArgs) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    let installation = Installation::read(&connection, &args.operator.view()).await?;
    let report = Report::of(&installation.config, installation.policy_of);
    match args.output {
        Some(Format::Json) => output().json("Config", &report)?,
        None => write!(output(), "{}", report.told())?,
    }
    Ok(report.refused.is_empty())
}

/// Returns the answer for programs.
pub(crate) fn answer(installation: &Installation) -> Result<serde_json::Value> {
    Ok(serde_json::to_value(Report::of(&installation.config, installation.policy_of.clone()))?)
}

impl Report {
    fn of(config: &Config, policy: String) -> Self {
        let row = |it: &Setting| Row { key: it.key, value: cut(&it.value, SHOWN), from: it.origin() };
        let unknown = |key: &String| Unknown { key: cut(key, SHOWN), nearest: nearest(key, keys()) };
        let problems = config.refused.iter().flat_map(|refused| &refused.problems);
        Self {
            policy,
            settings: config.settings.iter().map(row).collect(),
            unknown: config.unknown.iter().map(unknown).collect(),
            refused: problems.map(ToString::to_string).collect(),
        }
    }

    fn told(&self) -> String {
        let rows = self.settings.iter().map(|it| [it.key.to_owned(), it.value.clone(), it.from.clone()]);
        let mut text = table(["KEY", "VALUE", "FROM"], rows);
        let _ = writeln!(text, "\n  policy   {}", line(&self.policy));
        for problem in &self.refused {
            let _ = writeln!(text, "x refused  {}", line(problem));
        }
        for Unknown { key, .. } in &self.unknown {
            let _ = writeln!(text, "! unknown  {}", line(&unknown(key)));
        }
        text
    }
}

/// Describes an unknown key of the `ConfigMap`.
pub(crate) fn unknown(key: &str) -> String {
    format!("{:?} does nothing{}", cut(key, SHOWN), did_you_mean(key, keys()))
}

#[cfg(test)]
mod tests {
    use wfe_settings::config::{Problem, Refused, Source};

    use super::*;

    #[test]
    fn each_setting_has_its_source_and_each_fault_its_line() {
        let setting = |key, value: &str, source| Setting { key, value: value.to_owned(), source };
        let problem = Problem {
            key: "start-deadline".to_owned(),
            value: "soon".to_owned(),
            source: Source::ConfigMap,
            why: "is not a duration".to_owned(),
        };
        let config = Config {
            settings: vec![
                setting("cooldown-period", "8m", Source::ConfigMap),
                setting("paused", "false", Source::Default),
            ],
            unknown: vec!["cool-down".to_owned(), "x\n".to_owned()],
            refused: Some(Refused { version: "7".to_owned(), problems: vec![problem] }),
            is_unread: false,
        };
        let report = Report::of(&config, "ConfigMap a/b".to_owned());
        assert_eq!(
            report.told(),
            "KEY              VALUE  FROM\n\
             cooldown-period  8m     ConfigMap\n\
             paused           false  default\n\
             \n  policy   ConfigMap a/b\n\
             x refused  start-deadline: \"soon\" is not a duration\n\
             ! unknown  \"cool-down\" does nothing: did you mean cooldown-period?\n\
             ! unknown  \"x\\n\" does nothing\n"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["unknown"][0], serde_json::json!({"key": "cool-down", "nearest": "cooldown-period"}));
    }
}
