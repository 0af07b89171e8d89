//! The variables of a condition: the facts of one failed attempt, limited in size, and values derived from them.

use std::collections::{BTreeMap, HashMap};

use cel::Context;
use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString};
use cel::common::value::Val;
use serde_json::Value as Json;

/// The limit of entries of `result` that a condition can read.
pub const MAX_ENTRIES: usize = 64;

/// The limit of one entry of `result`, in bytes: its name and value together. Tekton limits all results of a step to 4
/// KiB by default.
pub const MAX_ENTRY: usize = 4 << 10;

/// The limit of all names and values of `result` together, in bytes.
pub const MAX_RESULT: usize = 64 << 10;

/// The limit of any other string that a condition can read, in bytes.
pub const MAX_VALUE: usize = 64 << 10;

/// Results that have their own variables, and are therefore kept first.
const STATUS_CODE: [&str; 2] = ["statusCode", "status_code"];
const DATA: &str = "data";

/// The facts of one failed attempt.
///
/// Three variables are derived, so they have no fields here.
///
/// - `success` is always false, because conditions are evaluated only after failures.
/// - `statusCode` is the result `statusCode` if it is an integer, else the result `status_code` if that is an integer,
///   else 0. Blanks around the integer are ignored.
/// - `data` is the result `data`, parsed if it is JSON, else as a string. It is null if there is no such result. A
///   number in JSON becomes an int if it fits into a signed 64-bit integer, else a double.
///
/// # Limits
///
/// - An entry of `result` whose name and value have more than [`MAX_ENTRY`] bytes is skipped.
/// - Of the other entries, `statusCode`, `status_code` and `data` come first, then the rest in the order of their
///   names. At most [`MAX_ENTRIES`] are kept. The first entry that exceeds [`MAX_RESULT`] bytes is skipped, and so are
///   all entries after it.
/// - Any other string is cut to [`MAX_VALUE`] bytes, without splitting a character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variables {
    /// `attempt`: the number of the attempt that failed, from 1.
    pub attempt: u32,
    /// `maxAttempts`: the largest possible number of attempts.
    pub max_attempts: u32,
    /// `reason`: the class of the failure, one of [`REASONS`](crate::REASONS).
    pub reason: String,
    /// `error`: the message of the failure.
    pub error: String,
    /// `exitCode`: the exit code of the failed container, -1 if no container exited.
    pub exit_code: Option<i32>,
    /// `wasExecutionFailure`: whether any part of the attempt ran, or may have run.
    pub was_execution_failure: bool,
    /// `nodeId`: the name of the failed pipeline task, or empty.
    pub node_id: String,
    /// `executionId`: the uid of the WorkflowExecution.
    pub execution_id: String,
    /// `result`: the results of the run.
    pub result: BTreeMap<String, String>,
}

impl Variables {
    /// Returns values on which a valid condition does not fail.
    pub(crate) fn harmless() -> Self {
        let result = [("statusCode", "500"), ("data", "{}")];
        Self {
            attempt: 1,
            max_attempts: 3,
            reason: "Unknown".to_owned(),
            error: "failed".to_owned(),
            exit_code: Some(1),
            was_execution_failure: true,
            node_id: "task".to_owned(),
            execution_id: "00000000-0000-0000-0000-000000000000".to_owned(),
            result: result.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    }

    /// Returns `result` within the limits of [`Variables`].
    pub(crate) fn limited_result(&self) -> BTreeMap<&str, &str> {
        let size = |(name, value): &(&str, &str)| name.len() + value.len();
        let entries = || self.result.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let is_first = |name: &str| name == DATA || STATUS_CODE.contains(&name);
        let first = entries().filter(|(name, _)| is_first(name));
        let rest = entries().filter(|(name, _)| !is_first(name));
        let mut bytes = 0;
        first
            .chain(rest)
            .filter(|entry| size(entry) <= MAX_ENTRY)
            .take(MAX_ENTRIES)
            .take_while(|entry| {
                bytes += size(entry);
                bytes <= MAX_RESULT
            })
            .collect()
    }
}

/// Reads `statusCode` from limited results.
fn status_code(result: &BTreeMap<&str, &str>) -> i64 {
    STATUS_CODE.iter().find_map(|name| result.get(name)?.trim().parse().ok()).unwrap_or(0)
}

/// Reads `data` from limited results.
pub(crate) fn data(result: &BTreeMap<&str, &str>) -> Json {
    let Some(text) = result.get(DATA) else {
        return Json::Null;
    };
    serde_json::from_str(text).unwrap_or_else(|_| Json::String((*text).to_owned()))
}

/// Adds all variables to the context of an evaluation. `types::variable` lists their types.
pub(crate) fn provide<'v>(
    context: &mut Context<'_, 'v>,
    variables: &'v Variables,
    result: &BTreeMap<&'v str, &'v str>,
    data: &'v Json,
) {
    let int = |value: i64| Box::new(CelInt::from(value));
    context.add_variable_as_val("attempt", int(variables.attempt.into()));
    context.add_variable_as_val("maxAttempts", int(variables.max_attempts.into()));
    context.add_variable_as_val("exitCode", int(variables.exit_code.unwrap_or(-1).into()));
    context.add_variable_as_val("statusCode", int(status_code(result)));
    context.add_variable_as_val("success", Box::new(CelBool::from(false)));
    context.add_variable_as_val("wasExecutionFailure", Box::new(CelBool::from(variables.was_execution_failure)));
    context.add_variable_as_val("reason", string(cut(&variables.reason)));
    context.add_variable_as_val("error", string(cut(&variables.error)));
    context.add_variable_as_val("nodeId", string(cut(&variables.node_id)));
    context.add_variable_as_val("executionId", string(cut(&variables.execution_id)));
    context.add_variable_as_val("result", map(result.iter().map(|(name, value)| (*name, string(value)))));
    context.add_variable_as_val("data", from_json(data));
}

/// Cuts a text to [`MAX_VALUE`] bytes.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_VALUE)]
}

fn string<'v>(text: &'v str) -> Box<dyn Val + 'v> {
    Box::new(CelString::from(text))
}

fn map<'v>(entries: impl Iterator<Item = (&'v str, Box<dyn Val + 'v>)>) -> Box<dyn Val + 'v> {
    let entries = entries.map(|(name, value)| (CelMapKey::String(CelString::from(name)), value));
    Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
}

/// Converts JSON. `serde_json` parses it to a depth of at most 128.
fn from_json(json: &Json) -> Box<dyn Val + '_> {
    match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(value) => Box::new(CelBool::from(*value)),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Box::new(CelInt::from(value)),
            // Without arbitrary precision, every other number of JSON is a double.
            None => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Json::String(text) => string(text),
        Json::Array(items) => Box::new(CelList::from(items.iter().map(from_json).collect::<Vec<_>>())),
        Json::Object(fields) => map(fields.iter().map(|(name, value)| (name.as_str(), from_json(value)))),
    }
}

#[cfg(test)]
mod tests;
