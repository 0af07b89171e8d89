//! What is in force: the flags, and over them the keys of the `ConfigMap` (section 14).
//!
//! A key of the `ConfigMap` is the flag of that name, and is read as if it stood behind all others on the command line:
//! so there is one way to read a value, one message where it is bad, and one order of precedence.
//! Where the versions of the `ConfigMap` come from, and who shows what becomes of them, is not known here.

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
use crate::table::{EXECUTION_NAMESPACE, keys};

/// Why the execution namespace must not be the operator's own.
const OWN_NAMESPACE: &str = "must not be the operator's own namespace: there, workflows could use the operator's \
                             service account and change its configuration";

/// How long a value may be, in bytes: the longest that makes sense, a log filter, has some hundred.
const LONGEST_VALUE: usize = 1024;
/// How much of a value or of a key is shown, in characters.
pub const SHOWN: u32 = 64;
/// How many unknown keys are named: a `ConfigMap` has room for tens of thousands.
const NAMED: usize = 10;

/// The version that is in force where there is no `ConfigMap`.
pub const NO_VERSION: &str = "none";

/// The words of a command line, to be read again with the keys of a `ConfigMap` behind them.
#[derive(Clone, Debug)]
pub struct Flags(Vec<OsString>);

/// Which `ConfigMap` it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The operator's own namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What one version of the `ConfigMap` holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The uid of the object.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// Its keys, with their texts, or what is wrong where one is none.
    pub values: BTreeMap<String, Result<String, &'static str>>,
}

/// All that is in force, as one value that never changes.
#[derive(Clone, Debug)]
pub struct InForce {
    /// The resourceVersion of the `ConfigMap`, or [`NO_VERSION`].
    pub version: String,
    /// The `ConfigMap`, where there is one.
    pub object: Option<ConfigObject>,
    /// The policy of decisions.
    pub policy: Policy,
    /// What it holds for a spec that is silent.
    pub defaults: Defaults,
    /// How much is logged: a filter, as `telemetry` reads it.
    pub log_filter: String,
    /// Each key with its value, and where that comes from.
    pub settings: Vec<Setting>,
    /// What is odd about it, and keeps nothing from being in force.
    pub warnings: Vec<String>,
}

/// Which `ConfigMap` it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigObject {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key.
    pub key: &'static str,
    /// The value, as somebody has written it.
    pub value: String,
    /// Where it comes from.
    pub source: Source,
}

/// Where a value comes from. A later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody has set it.
    Default,
    /// The environment variable of its flag.
    Environment,
    /// Its flag.
    Flag,
    /// The `ConfigMap`.
    ConfigMap,
}

/// Why a version of the `ConfigMap` cannot be used: all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Refused {
    /// The resourceVersion of the `ConfigMap`.
    pub version: String,
    /// What is wrong, key by key; at least one.
    pub problems: Vec<Problem>,
}

/// A value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key.
    pub key: String,
    /// The value, cut.
    pub value: String,
    /// Where it comes from: a contradiction may lie in a flag.
    pub source: Source,
    /// What is wrong with it.
    pub why: String,
}

// === impl Place ===

impl Place {
    /// Returns the place that the flags name.
    #[must_use]
    pub fn of(args: &RunArgs) -> Self {
        Self { namespace: args.namespace.clone(), name: args.config_map.clone() }
    }
}

// === impl Flags ===

impl Flags {
    /// Takes the command line of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::args_os().collect())
    }

    /// Takes the arguments that an operator is run with, without the words `wfe-operator run`.
    pub fn of_run(arguments: impl IntoIterator<Item = String>) -> Self {
        let words = ["wfe-operator", "run"].into_iter().map(OsString::from);
        Self(words.chain(arguments.into_iter().map(OsString::from)).collect())
    }

    /// Reads the flags as they are without a `ConfigMap`.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn args(&self) -> Result<RunArgs, String> {
        self.parse(&[]).map(|(args, _)| args).map_err(|error| why(&error))
    }

    /// Puts a version of the `ConfigMap` over the flags.
    ///
    /// # Errors
    /// All that is wrong with it.
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

    /// Reads each key for itself, so that all that are bad are told at once.
    fn read_keys<'a>(&self, document: &'a Document) -> Result<Vec<(&'static str, &'a str)>, Vec<Problem>> {
        let (mut values, mut problems) = (Vec::new(), Vec::new());
        for key in keys() {
            let Some(value) = document.values.get(key) else { continue };
            let read = match value {
                Ok(text) if text.len() > LONGEST_VALUE => Err(format!("is longer than {LONGEST_VALUE} bytes")),
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
        // What comes later wins: the ConfigMap over flags. Variables come last, whatever the order.
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

/// Says what clap has against a value, without its advice for command lines.
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

/// Returns which keys do nothing.
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
    /// Keeps what is read at the start alone as it was then, and warns where that is not what is wanted now.
    pub fn keep_from(&mut self, start: &Self) {
        let wanted =
            std::mem::replace(&mut self.defaults.execution_namespace, start.defaults.execution_namespace.clone());
        if wanted == self.defaults.execution_namespace {
            return;
        }
        // Both have the same keys, in the same order.
        for (setting, started) in self.settings.iter_mut().zip(&start.settings) {
            if setting.key == EXECUTION_NAMESPACE {
                setting.clone_from(started);
            }
        }
        let kept = &self.defaults.execution_namespace;
        self.warnings.push(format!("{EXECUTION_NAMESPACE}: {wanted:?} takes a restart; until then it is {kept:?}"));
    }

    /// Returns what is another value than before, as people read it.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let changed = self.settings.iter().zip(&before.settings).filter(|(now, then)| now.value != then.value);
        let shown = |(now, then): (&Setting, &Setting)| {
            format!("{} {} -> {}", now.key, cut(&then.value, SHOWN), cut(&now.value, SHOWN))
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
    /// Returns where the value comes from, such as `environment WFE_PAUSED`.
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

/// As `max-cooldown-period: "10m" (default) must not be less than base-cooldown-period`.
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
