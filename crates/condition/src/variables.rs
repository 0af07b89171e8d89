//! What a condition can ask about: the facts of one failed attempt, limited in size, and what is derived from them.

use std::collections::{BTreeMap, HashMap};

use cel::Context;
use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString};
use cel::common::value::Val;
use serde_json::Value as Json;

/// How many entries of `result` a condition sees.
pub const MAX_ENTRIES: usize = 64;

/// How many bytes the name and the value of one entry of `result` may have together. Tekton limits all results of a
/// step to 4 KiB unless it is told otherwise.
pub const MAX_ENTRY: usize = 4 << 10;

/// How many bytes the names and values of `result` may have together.
pub const MAX_RESULT: usize = 64 << 10;

/// How many bytes of any other string a condition sees.
pub const MAX_VALUE: usize = 64 << 10;

/// Results that conditions have variables for. They are kept first.
const STATUS_CODE: [&str; 2] = ["statusCode", "status_code"];
const DATA: &str = "data";

/// The facts of one failed attempt.
///
/// Three variables are not here. `success` is always false, as conditions are asked about failures alone. `statusCode`
/// is the first of the results `statusCode` and `status_code` that is an integer, blanks around it ignored, and 0 where
/// neither is. `data` is the result `data`: parsed where it is JSON, else the string, and null where there is none. A
/// number in JSON becomes an int if it is one of 64 bits, else a double.
///
/// # Limits
///
/// - An entry of `result` whose name and value have more than [`MAX_ENTRY`] bytes is left out.
/// - Of the others, `statusCode`, `status_code` and `data` are kept first, then the rest in the order of their names,
///   up to [`MAX_ENTRIES`] in all. The first that does not fit into [`MAX_RESULT`] bytes is left out, with all behind.
/// - Any other string is cut to [`MAX_VALUE`] bytes, at the beginning of a character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variables {
    /// `attempt`: which attempt failed, from 1.
    pub attempt: u32,
    /// `maxAttempts`: how many attempts there may be.
    pub max_attempts: u32,
    /// `reason`: why the attempt failed, in a word.
    pub reason: String,
    /// `error`: why the attempt failed, in words for people.
    pub error: String,
    /// `exitCode`: how the container that failed has exited, -1 where none has.
    pub exit_code: Option<i32>,
    /// `wasExecutionFailure`: whether something of the attempt ran.
    pub was_execution_failure: bool,
    /// `nodeId`: the pipeline task that failed, or empty.
    pub node_id: String,
    /// `executionId`: identifies the execution.
    pub execution_id: String,
    /// `result`: the results of the run.
    pub result: BTreeMap<String, String>,
}

impl Variables {
    /// Makes up facts that no condition has a reason to fail on.
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

    /// Applies the limits to `result`, as the type describes them.
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

/// Gives all variables to the context of an evaluation. `types::variable` lists them with their types.
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

/// Converts JSON, which `serde_json` parses to a depth of 128 and no further.
fn from_json(json: &Json) -> Box<dyn Val + '_> {
    match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(value) => Box::new(CelBool::from(*value)),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Box::new(CelInt::from(value)),
            // Every number of JSON without arbitrary precision is a double, too.
            None => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Json::String(text) => string(text),
        Json::Array(items) => Box::new(CelList::from(items.iter().map(from_json).collect::<Vec<_>>())),
        Json::Object(fields) => map(fields.iter().map(|(name, value)| (name.as_str(), from_json(value)))),
    }
}

#[cfg(test)]
mod tests;
