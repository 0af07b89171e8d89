//! The CEL rules of a schema: `x-kubernetes-validations`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use cel::common::types::{CelBool, CelInt, CelString, LIST_TYPE};
use cel::common::value::CowVal;
use cel::objects::{Key, Map, OptionalValue};
use cel::{Context, Env, ExecutionError, Program, Value as Cel, extensions};
use regex::Regex;
use serde_json::Value;

use super::super::cause::Cause;
use super::{Form, Schema};

/// A rule of a node.
#[derive(Debug)]
pub(in super::super) struct Rule {
    /// The compiled rule, or the error if it cannot be compiled.
    program: Result<Program, String>,
    message: String,
    reason: String,
    /// The field that a violation names, relative to the node of the rule.
    field: String,
    /// Whether the rule uses the old value.
    compares: bool,
    /// Whether the rule is also evaluated without an old value.
    optional_old: bool,
}

/// The functions that rules can use: standard functions, those on strings, and others that the CRD needs.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // An error means that a function has two definitions. Rules that use the function then fail, and with them the
    // conformance test.
    drop(extensions::strings(&mut env));
    drop(env.add_member_overload("sum", "list_sum", LIST_TYPE, Vec::new(), sum));
    drop(cel::add_member_overload!(env, fn fits: (CelString, CelString) -> Result<CelBool>));
    Arc::new(env)
});

/// Computes `sum` as in Kubernetes' own functions on lists, for whole numbers.
#[expect(clippy::needless_pass_by_value, reason = "the signature that an environment takes")]
fn sum<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let wrong = || ExecutionError::function_error("sum", "not a list of whole numbers in range");
    let list = args.first().and_then(|list| list.as_iterable()).ok_or_else(wrong)?;
    let (mut items, mut sum) = (list.iter(), 0_i64);
    while let Some(item) = items.next() {
        let item = item.downcast_ref::<CelInt>().ok_or_else(wrong)?;
        sum = sum.checked_add(*item.inner()).ok_or_else(wrong)?;
    }
    Ok(CowVal::owned(CelInt::from(sum)))
}

/// Evaluates `matches`, but compiles each pattern only once. The crate compiles a pattern at every call, which takes
/// most of the time of a rule.
fn fits(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    static PATTERNS: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());
    let mut patterns = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
    let compiled = if let Some(compiled) = patterns.get(pattern.inner()) {
        compiled.clone()
    } else {
        let wrong = |error: regex::Error| ExecutionError::function_error("matches", error);
        let compiled = Regex::new(pattern.inner()).map_err(wrong)?;
        patterns.entry(pattern.inner().to_owned()).or_insert(compiled).clone()
    };
    drop(patterns);
    Ok(CelBool::from(compiled.is_match(text.inner())))
}

/// Compiles the rules of a node.
pub(super) fn read(rules: &Value) -> Vec<Rule> {
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    let rules = rules.as_array().into_iter().flatten();
    let rules = rules.map(|rule| {
        // The definition of `matches` in the environment cannot be replaced.
        let source = text(rule, "rule").replace(".matches(", ".fits(");
        let program = ENVIRONMENT.compile(&source).map_err(|error| error.to_string());
        let compares = program.as_ref().is_ok_and(|program| program.references().has_variable("oldSelf"));
        Rule {
            program,
            message: text(rule, "message"),
            reason: Some(text(rule, "reason"))
                .filter(|reason| !reason.is_empty())
                .unwrap_or("FieldValueInvalid".into()),
            field: text(rule, "fieldPath"),
            compares,
            optional_old: rule["optionalOldSelf"].as_bool().unwrap_or_default(),
        }
    });
    rules.collect()
}

/// Reports violations of the rules of a node, and of all nodes below it. Rules that require an old value are left out
/// if there is none.
pub(super) fn judge(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    if !schema.rules.is_empty() {
        let asked = Asked::of(schema, value, old);
        // A rule fails if it reads a list in place of a time. A rule does not read the list if the rule's result is the
        // same without the list.
        let readable = (readable(schema, value), old.and_then(|old| readable(schema, old)));
        let without = (readable.0.is_some() || readable.1.is_some())
            .then(|| Asked::of(schema, readable.0.as_ref().unwrap_or(value), readable.1.as_ref().or(old)));
        for rule in &schema.rules {
            if rule.compares && !rule.optional_old && old.is_none() {
                continue;
            }
            if !rule.compares && old.is_some_and(|old| schema.is_reordered(old, value)) {
                continue;
            }
            // A violated rule is reported at the field that it names. A rule that cannot be evaluated is reported at
            // its own node.
            let (failed, field) = match asked.answer(rule) {
                answer if without.as_ref().is_some_and(|without| without.answer(rule) != answer) => {
                    ("a time is a list".to_owned(), "")
                }
                Ok(true) => continue,
                Ok(false) if is_unreadable(schema, value, &rule.field) => ("its field is no time".to_owned(), ""),
                Ok(false) => (rule.message.clone(), rule.field.as_str()),
                Err(error) => (error, ""),
            };
            let field = format!("{path}{field}");
            causes.push(Cause::new(&rule.reason, field.trim_start_matches('.'), failed));
        }
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(below) = schema.properties.get(name).or(schema.additional.as_deref()) {
                    judge(below, value, old.and_then(|old| old.get(name)), &format!("{path}.{name}"), causes);
                }
            }
        }
        Value::Array(items) => {
            // An item has an old value only in a list with keys, by which the old item is found.
            let before = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for (index, item) in items.iter().enumerate() {
                if let Some(below) = &schema.items {
                    let was = schema.has_key(item).then(|| before.iter().find(|was| schema.is_same_item(was, item)));
                    judge(below, item, was.flatten(), &format!("{path}[{index}]"), causes);
                }
            }
        }
        _ => {}
    }
}

/// The input of the rules of a node.
struct Asked {
    value: Cel,
    was: Option<Cel>,
}

impl Asked {
    fn of(schema: &Schema, value: &Value, old: Option<&Value>) -> Self {
        Self { value: convert(schema, value, Side::Is), was: old.map(|old| convert(schema, old, Side::Was)) }
    }

    /// Returns the result of a rule, or the reason why it cannot be evaluated.
    fn answer(&self, rule: &Rule) -> Result<bool, String> {
        let program = rule.program.as_ref().map_err(|error| format!("the rule cannot be read: {error}"))?;
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        context.add_variable_from_value("self", self.value.clone());
        if rule.compares {
            let bound = match &self.was {
                Some(was) if rule.optional_old => Cel::Opaque(Arc::new(OptionalValue::of(was.clone()))),
                None => Cel::Opaque(Arc::new(OptionalValue::none())),
                Some(was) => was.clone(),
            };
            context.add_variable_from_value("oldSelf", bound);
        }
        let answer = program.execute(&context).map_err(|error| format!("{} ({error})", rule.message))?;
        Ok(answer == Cel::Bool(true))
    }
}

/// Returns a value without the lists that are in place of times; `None` if there are no such lists.
fn readable(schema: &Schema, value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let below = |name: &str| schema.properties.get(name).or(schema.additional.as_deref());
            let mut kept = serde_json::Map::new();
            let mut differs = false;
            for (name, field) in fields {
                if below(name).is_some_and(|below| below.form == Form::Moment) && field.is_array() {
                    differs = true;
                    continue;
                }
                let inner = below(name).and_then(|below| readable(below, field));
                differs |= inner.is_some();
                kept.insert(name.clone(), inner.unwrap_or_else(|| field.clone()));
            }
            differs.then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let inner: Vec<Option<Value>> =
                items.iter().map(|item| schema.items.as_ref().and_then(|below| readable(below, item))).collect();
            let differs = inner.iter().any(Option::is_some);
            let all = inner.into_iter().zip(items).map(|(inner, item)| inner.unwrap_or_else(|| item.clone()));
            differs.then(|| Value::Array(all.collect()))
        }
        _ => None,
    }
}

/// Returns whether a field is a list in place of a time. The schema accepts such a list, but a rule that reads it
/// fails.
fn is_unreadable(schema: &Schema, value: &Value, field: &str) -> bool {
    let name = field.trim_start_matches('.');
    schema.properties.get(name).is_some_and(|below| below.form == Form::Moment) && value[name].is_array()
}

/// Whether a value is the old or the new value of a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Is,
    Was,
}

/// Converts a value into the form that rules use.
fn convert(schema: &Schema, value: &Value, side: Side) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => match (schema.form, number.as_i64()) {
            (Form::Number, _) | (_, None) => Cel::Float(number.as_f64().unwrap_or_default()),
            (_, Some(whole)) => Cel::Int(whole),
        },
        Value::String(text) => match schema.form {
            Form::Moment => chrono::DateTime::parse_from_rfc3339(text).map_or(Cel::Null, Cel::Timestamp),
            _ => Cel::String(Arc::new(text.clone())),
        },
        // A list in place of a time is unequal to every value, even to the old value of its own field.
        Value::Array(_) if schema.form == Form::Moment => Cel::Bool(side == Side::Was),
        Value::Array(items) => {
            let any = Schema::default();
            let below = schema.items.as_deref().unwrap_or(&any);
            Cel::List(Arc::new(items.iter().map(|item| convert(below, item, side)).collect()))
        }
        Value::Object(fields) => {
            let any = Schema::default();
            let converted = fields.iter().map(|(name, value)| {
                let below = schema.properties.get(name).or(schema.additional.as_deref()).unwrap_or(&any);
                (Key::from(name.clone()), convert(below, &below.in_order(value), side))
            });
            Cel::Map(Map { map: Arc::new(converted.collect::<HashMap<_, _>>()) })
        }
    }
}
