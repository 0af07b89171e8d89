//! The settings in force: the flags, overridden by the keys of the `ConfigMap` (section 14).
//!
//! A key of the `ConfigMap` stands for the flag of the same name, and is parsed as if it were the last flag on the
//! command line. A value therefore has one parser, one error message and one order of precedence. This module does not
//! read the cluster, and does not report.

mod manifest;

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::OsString;
use std::fmt;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use wfe_api::limits::cut;
use wfe_core::policy::Policy;
use wfe_tekton::Defaults;

use crate::cli::{Cli, RunArgs};
use crate::table::{EXECUTION_NAMESPACE, LIMITS, keys};

/// Why the execution namespace must not be the operator's own.
const OWN_NAMESPACE: &str = "must not be the operator's own namespace: there, workflows could use the operator's \
                             service account and change its configuration";

/// The limit of a value, in bytes. The longest useful value besides `limits` is a log filter, which has a few hundred
/// bytes.
const LONGEST_VALUE: usize = 1024;
/// The limit of the value of `limits`, in bytes: twenty entries with the longest names have some twelve thousand bytes.
const LONGEST_LIMITS: usize = 16 * 1024;
/// The limit of a value or key in messages, in characters.
pub const SHOWN: u32 = 64;
/// The limit of unknown keys in a message: a `ConfigMap` can contain tens of thousands.
const NAMED: usize = 10;

/// The version that is shown without a `ConfigMap`.
pub const NO_VERSION: &str = "none";

/// The arguments of the command line, which are parsed again together with the keys of each `ConfigMap`.
#[derive(Clone, Debug)]
pub struct Flags(Vec<OsString>);

/// The namespace and name of the `ConfigMap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The operator's own namespace.
    pub namespace: String,
    /// The name of the `ConfigMap`.
    pub name: String,
}

/// The content of one version of the `ConfigMap`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The uid of the object.
    pub uid: String,
    /// The resourceVersion of the object.
    pub version: String,
    /// The keys with their texts, or the fault of a value that is not a text.
    pub values: BTreeMap<String, Result<String, &'static str>>,
}

/// All settings in force, as one immutable value.
#[derive(Clone, Debug)]
pub struct InForce {
    /// The resourceVersion of the `ConfigMap`, or [`NO_VERSION`].
    pub version: String,
    /// The `ConfigMap`, if there is one.
    pub object: Option<ConfigObject>,
    /// The policy of decisions.
    pub policy: Policy,
    /// The defaults of fields that a spec does not set.
    pub defaults: Defaults,
    /// The log filter, in the form that `telemetry` reads.
    pub log_filter: String,
    /// Each key with its value and the source of the value.
    pub settings: Vec<Setting>,
    /// Faults that do not prevent the settings from taking effect.
    pub warnings: Vec<String>,
}

/// The identity of the `ConfigMap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigObject {
    /// The namespace of the `ConfigMap`.
    pub namespace: String,
    /// The name of the `ConfigMap`.
    pub name: String,
    /// The uid of the `ConfigMap`.
    pub uid: String,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key.
    pub key: &'static str,
    /// The value as written.
    pub value: String,
    /// The source of the value.
    pub source: Source,
}

/// The source of a value. A later source in this list wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The default of the flag, because the value is not set.
    Default,
    /// The environment variable of the flag.
    Environment,
    /// The flag on the command line.
    Flag,
    /// The `ConfigMap`.
    ConfigMap,
}

/// All faults of an invalid version of the `ConfigMap`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Refused {
    /// The resourceVersion of the `ConfigMap`.
    pub version: String,
    /// The faults, key by key; at least one.
    pub problems: Vec<Problem>,
}

/// An invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key.
    pub key: String,
    /// The value, cut to the limit.
    pub value: String,
    /// The source of the value. A value that contradicts another one may come from a flag.
    pub source: Source,
    /// The fault.
    pub why: String,
}

// === impl Place ===

impl Place {
    /// Returns the namespace and name that the flags give.
    #[must_use]
    pub fn of(args: &RunArgs) -> Self {
        Self { namespace: args.namespace.clone(), name: args.config_map.clone() }
    }
}

// === impl Flags ===

impl Flags {
    /// Reads the command line of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::args_os().collect())
    }

    /// Takes the arguments of an operator, without the leading words `wfe-operator run`.
    pub fn of_run(arguments: impl IntoIterator<Item = String>) -> Self {
        let words = ["wfe-operator", "run"].into_iter().map(OsString::from);
        Self(words.chain(arguments.into_iter().map(OsString::from)).collect())
    }

    /// Parses the flags without a `ConfigMap`.
    ///
    /// # Errors
    /// Why the flags cannot be parsed.
    pub fn args(&self) -> Result<RunArgs, String> {
        self.parse(&[]).map(|(args, _)| args).map_err(|error| why(&error))
    }

    /// Combines the flags with a version of the `ConfigMap`.
    ///
    /// # Errors
    /// All faults of the version.
    pub fn under(&self, place: &Place, document: Option<&Document>) -> Result<InForce, Refused> {
        let object = document.map(|document| ConfigObject {
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            uid: document.uid.clone(),
        });
        let absent = Document { version: NO_VERSION.to_owned(), ..Document::default() };
        let document = document.unwrap_or(&absent);
        let refused = |problems| Refused { version: document.version.clone(), problems };
        let keys = self.read_keys(document).map_err(refused)?;
        let (args, matches) = self.parse(&keys).map_err(|error| {
            let problem = Problem::of(("(all keys together)", ""), Source::ConfigMap, &why(&error));
            refused(vec![problem])
        })?;
        let settings = settings(&matches, &keys);
        let mut policy = args.unchecked_policy();
        let mut problems: Vec<Problem> =
            policy.contradictions().map(|it| contradiction(it.flag, it.why, &settings)).collect();
        if args.execution_namespace == args.namespace {
            problems.push(contradiction(EXECUTION_NAMESPACE, OWN_NAMESPACE, &settings));
        }
        if !problems.is_empty() {
            return Err(refused(problems));
        }
        if args.policy.paused && keys.iter().any(|(key, _)| *key == "paused") {
            policy.paused_by = Some(place.to_string().into());
        }
        Ok(InForce {
            version: document.version.clone(),
            object,
            policy,
            defaults: Defaults {
                execution_namespace: args.execution_namespace,
                service_account: args.service_account,
                timeout: args.default_timeout,
            },
            log_filter: args.log_level,
            settings,
            warnings: warnings(document),
        })
    }

    /// Parses each key separately, so that all faults are reported together.
    fn read_keys<'a>(&self, document: &'a Document) -> Result<Vec<(&'static str, &'a str)>, Vec<Problem>> {
        let (mut values, mut problems) = (Vec::new(), Vec::new());
        for key in keys() {
            let Some(value) = document.values.get(key) else { continue };
            let longest = if key == LIMITS { LONGEST_LIMITS } else { LONGEST_VALUE };
            let read = match value {
                Ok(text) if text.len() > longest => Err(format!("is longer than {longest} bytes")),
                Ok(text) => self.parse(&[(key, text)]).map(|_| text.as_str()).map_err(|error| why(&error)),
                Err(why) => Err((*why).to_owned()),
            };
            match read {
                Ok(text) => values.push((key, text)),
                Err(why) => {
                    let text = value.as_deref().unwrap_or_default();
                    problems.push(Problem::of((key, text), Source::ConfigMap, &why));
                }
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    fn parse(&self, keys: &[(&str, &str)]) -> Result<(RunArgs, ArgMatches), clap::Error> {
        let keys = keys.iter().map(|(key, value)| OsString::from(format!("--{key}={value}")));
        let words = self.0.iter().cloned().chain(keys);
        // Later arguments win, so the ConfigMap wins over flags. Environment variables have the lowest precedence.
        let mut matches = Cli::command().args_override_self(true).try_get_matches_from(words)?;
        let matches = matches.remove_subcommand().map(|(_, matches)| matches).unwrap_or_default();
        Ok((RunArgs::from_arg_matches(&matches)?, matches))
    }
}

/// Returns every key with the value that wins.
fn settings(matches: &ArgMatches, values: &[(&str, &str)]) -> Vec<Setting> {
    let setting = |key: &'static str| {
        let flag = key.replace('-', "_");
        let value = matches.get_raw(&flag).and_then(Iterator::last).unwrap_or_default();
        let source = match matches.value_source(&flag) {
            _ if values.iter().any(|(set, _)| *set == key) => Source::ConfigMap,
            Some(ValueSource::CommandLine) => Source::Flag,
            Some(ValueSource::EnvVariable) => Source::Environment,
            _ => Source::Default,
        };
        Setting { key, value: value.to_string_lossy().into_owned(), source }
    };
    keys().map(setting).collect()
}

/// Returns a value as one line, because a list may have several.
#[must_use]
pub fn one_line(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns clap's error about a value, without clap's advice for command lines.
fn why(error: &clap::Error) -> String {
    if let Some(source) = error.source() {
        return source.to_string();
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(valid)) if !valid.is_empty() => format!("must be {}", valid.join(" or ")),
        _ => "cannot be read".to_owned(),
    }
}

fn contradiction(key: &'static str, why: &str, settings: &[Setting]) -> Problem {
    let setting = settings.iter().find(|setting| setting.key == key);
    let (value, source) = setting.map_or(("", Source::Default), |setting| (&setting.value, setting.source));
    Problem::of((key, value), source, why)
}

/// Returns a warning for each key that has no effect.
fn warnings(document: &Document) -> Vec<String> {
    let is_known = |key: &str| keys().any(|known| known == key);
    let unknown = document.values.keys().filter(|key| !is_known(key)).map(|key| format!("{:?}", cut(key, SHOWN)));
    let mut unknown: Vec<String> = unknown.collect();
    let mut warnings = Vec::new();
    if !unknown.is_empty() {
        let more = unknown.len().saturating_sub(NAMED);
        unknown.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        warnings.push(format!("unknown, and does nothing: {}{more}", unknown.join(", ")));
    }
    warnings
}

// === impl InForce ===

impl InForce {
    /// Keeps the values that are read only at the start, and warns if they differ from the present ones.
    pub fn keep_from(&mut self, start: &Self) {
        let wanted =
            std::mem::replace(&mut self.defaults.execution_namespace, start.defaults.execution_namespace.clone());
        if wanted == self.defaults.execution_namespace {
            return;
        }
        // Both lists have the same keys, in the same order.
        for (setting, started) in self.settings.iter_mut().zip(&start.settings) {
            if setting.key == EXECUTION_NAMESPACE {
                setting.clone_from(started);
            }
        }
        let kept = &self.defaults.execution_namespace;
        self.warnings.push(format!("{EXECUTION_NAMESPACE}: {wanted:?} takes a restart; until then it is {kept:?}"));
    }

    /// Returns the changed values, as text for people.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let changed = self.settings.iter().zip(&before.settings).filter(|(now, then)| now.value != then.value);
        let shown = |(now, then): (&Setting, &Setting)| {
            format!("{} {} -> {}", now.key, cut(&one_line(&then.value), SHOWN), cut(&one_line(&now.value), SHOWN))
        };
        changed.map(shown).collect()
    }
}

// === what people read ===

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigMap {}/{}", self.namespace, self.name)
    }
}

impl Setting {
    /// Returns the source of the value, such as `environment WFE_PAUSED`.
    #[must_use]
    pub fn origin(&self) -> String {
        match self.source {
            Source::Environment => format!("environment WFE_{}", self.key.to_uppercase().replace('-', "_")),
            source => source.to_string(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::Environment => "environment",
            Self::Flag => "flag",
            Self::ConfigMap => "ConfigMap",
        })
    }
}

impl Problem {
    fn of((key, value): (&str, &str), source: Source, why: &str) -> Self {
        Self { key: key.to_owned(), value: cut(value, SHOWN), source, why: cut(why, 4 * SHOWN) }
    }
}

/// Shows a fault, for example `max-cooldown-period: "10m" (default) must not be less than base-cooldown-period`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, source, why } = self;
        match source {
            Source::ConfigMap => write!(f, "{key}: {value:?} {why}"),
            _ => write!(f, "{key}: {value:?} ({source}) {why}"),
        }
    }
}

#[cfg(test)]
mod tests;
