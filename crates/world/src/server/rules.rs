//! The CEL rules of a schema: `x-kubernetes-validations`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use cel::common::types::{CelBool, CelInt, CelString, LIST_TYPE};
use cel::common::value::CowVal;
use cel::objects::{Key, Map, OptionalValue};
use cel::{Context, Env, ExecutionError, Program, Value as Cel, extensions};
use regex::Regex;
use serde_json::Value;

use super::answer::Cause;
use super::schema::{Form, Schema};

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// What is wrong with the rule itself, where it cannot be used.
    program: Result<Program, String>,
    message: String,
    reason: String,
    /// Which field it is about, below the one that has it.
    field: String,
    /// It compares with what was there before.
    compares: bool,
    /// It is asked also where nothing was there before.
    optional_old: bool,
}

/// What rules may use: the standard functions, those on strings, and what else the CRD needs.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // It fails where a function has two definitions: then the rules that use it fail, and the conformance test with
    // them.
    drop(extensions::strings(&mut env));
    drop(env.add_member_overload("sum", "list_sum", LIST_TYPE, Vec::new(), sum));
    drop(cel::add_member_overload!(env, fn fits: (CelString, CelString) -> Result<CelBool>));
    Arc::new(env)
});

/// `sum` of Kubernetes' own functions on lists, for whole numbers.
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

/// `matches`, with each pattern compiled once: the crate compiles it at every call, which takes most of the time of a
/// rule.
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

/// Reads the rules of a node.
pub(super) fn read(rules: &Value) -> Vec<Rule> {
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    let rules = rules.as_array().into_iter().flatten();
    let rules = rules.map(|rule| {
        // The environment cannot give `matches` a second definition.
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

/// Says what the rules of a node, and of all below it, do not allow. Rules that compare need something to compare with.
pub(super) fn judge(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    if !schema.rules.is_empty() {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        context.add_variable_from_value("self", convert(schema, value));
        let was = old.map(|old| convert(schema, old));
        for rule in &schema.rules {
            if rule.compares && !rule.optional_old && was.is_none() {
                continue;
            }
            if !rule.compares && old.is_some_and(|old| schema.is_reordered(old, value)) {
                continue;
            }
            if rule.compares {
                let bound = match &was {
                    Some(was) if rule.optional_old => Cel::Opaque(Arc::new(OptionalValue::of(was.clone()))),
                    None => Cel::Opaque(Arc::new(OptionalValue::none())),
                    Some(was) => was.clone(),
                };
                context.add_variable_from_value("oldSelf", bound);
            }
            // What a rule says no to is its field; what it cannot judge is the node that has the rule.
            let (failed, field) = match &rule.program {
                Ok(program) => match program.execute(&context) {
                    Ok(Cel::Bool(true)) => continue,
                    Ok(_) if is_unreadable(schema, value, &rule.field) => ("its field is no time".to_owned(), ""),
                    Ok(_) => (rule.message.clone(), rule.field.as_str()),
                    Err(error) => (format!("{} ({error})", rule.message), ""),
                },
                Err(error) => (format!("the rule cannot be read: {error}"), ""),
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
            // An item has something to be compared with where keys say which one it was.
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

/// Tells whether a field is a list in place of a time: the schema lets that pass, and a rule that reads it fails.
fn is_unreadable(schema: &Schema, value: &Value, field: &str) -> bool {
    let name = field.trim_start_matches('.');
    schema.properties.get(name).is_some_and(|below| below.form == Form::Moment) && value[name].is_array()
}

/// Makes of a value what a rule sees.
fn convert(schema: &Schema, value: &Value) -> Cel {
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
        Value::Array(items) => {
            let any = Schema::default();
            let below = schema.items.as_deref().unwrap_or(&any);
            Cel::List(Arc::new(items.iter().map(|item| convert(below, item)).collect()))
        }
        Value::Object(fields) => {
            let any = Schema::default();
            let converted = fields.iter().map(|(name, value)| {
                let below = schema.properties.get(name).or(schema.additional.as_deref()).unwrap_or(&any);
                (Key::from(name.clone()), convert(below, value))
            });
            Cel::Map(Map { map: Arc::new(converted.collect::<HashMap<_, _>>()) })
        }
    }
}
