//! A structural schema, read from a CRD. It decides which fields are dropped, and which are refused.

mod rules;

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use self::rules::Rule;
use super::cause::Cause;

/// Causes that prevent the evaluation of rules: fields that a rule reads may be missing or have another type.
const BLOCKING: [&str; 5] =
    ["FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"];

/// A node of a schema, with all nodes below it.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) form: Form,
    pub(super) properties: BTreeMap<String, Schema>,
    pub(super) additional: Option<Box<Schema>>,
    pub(super) items: Option<Box<Schema>>,
    required: Vec<String>,
    allowed: Vec<Value>,
    pattern: Option<Regex>,
    length: Range<u64>,
    size: Range<u64>,
    amount: Range<f64>,
    multiple: Option<f64>,
    preserve: bool,
    nullable: bool,
    /// The value of the field if the field is absent.
    default: Option<Value>,
    /// The fields that identify an item of a list.
    keys: Vec<String>,
    pub(super) rules: Vec<Rule>,
}

/// The form of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    #[default]
    Any,
    Object,
    Array,
    Text,
    Moment,
    Int32,
    Int64,
    Number,
    Truth,
}

#[derive(Debug, Default)]
struct Range<T> {
    least: Option<T>,
    most: Option<T>,
}

impl<T: PartialOrd> Range<T> {
    fn holds(&self, value: &T) -> bool {
        self.least.as_ref().is_none_or(|least| value >= least) && self.most.as_ref().is_none_or(|most| value <= most)
    }
}

impl Schema {
    /// Reads the schema from a version of a CRD.
    pub(super) fn read(schema: &Value) -> Self {
        let text = |key: &str| schema[key].as_str().unwrap_or_default();
        let count = |key: &str| schema[key].as_u64();
        let nodes = |key: &str| schema[key].as_object().into_iter().flatten();
        let texts = |key: &str| -> Vec<String> {
            let all = schema[key].as_array().into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let below = |key: &str| schema[key].is_object().then(|| Box::new(Self::read(&schema[key])));
        Self {
            form: match (text("type"), text("format")) {
                ("object", _) => Form::Object,
                ("array", _) => Form::Array,
                ("string", "date-time") => Form::Moment,
                ("string", _) => Form::Text,
                ("integer", "int32") => Form::Int32,
                ("integer", _) => Form::Int64,
                ("number", _) => Form::Number,
                ("boolean", _) => Form::Truth,
                _ => Form::Any,
            },
            properties: nodes("properties").map(|(name, node)| (name.clone(), Self::read(node))).collect(),
            additional: below("additionalProperties"),
            items: below("items"),
            required: texts("required"),
            allowed: schema["enum"].as_array().cloned().unwrap_or_default(),
            pattern: schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok()),
            length: Range { least: count("minLength"), most: count("maxLength") },
            size: match text("type") {
                "array" => Range { least: count("minItems"), most: count("maxItems") },
                _ => Range { least: count("minProperties"), most: count("maxProperties") },
            },
            amount: Range { least: schema["minimum"].as_f64(), most: schema["maximum"].as_f64() },
            multiple: schema["multipleOf"].as_f64(),
            preserve: schema["x-kubernetes-preserve-unknown-fields"].as_bool().unwrap_or_default(),
            default: schema.get("default").cloned(),
            nullable: schema["nullable"].as_bool().unwrap_or_default(),
            keys: texts("x-kubernetes-list-map-keys"),
            rules: rules::read(&schema["x-kubernetes-validations"]),
        }
    }

    /// Returns whether a field has a default.
    pub(super) fn has_default(&self, field: &str) -> bool {
        self.properties.get(field).is_some_and(|schema| schema.default.is_some())
    }

    /// Drops unknown fields, and nulls where the schema does not allow nulls. Then fills in defaults. Metadata is
    /// unchanged.
    pub(super) fn prune(&self, object: &mut Value) {
        self.prune_below(object, true);
    }

    fn prune_below(&self, value: &mut Value, is_root: bool) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, value| {
                    if is_root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                        return true;
                    }
                    let Some(schema) = self.properties.get(name).or(self.additional.as_deref()) else {
                        return self.preserve || self.form != Form::Object;
                    };
                    schema.prune_below(value, false);
                    !(value.is_null() && !schema.nullable && self.properties.contains_key(name))
                });
                let absent = self.properties.iter().filter_map(|(name, schema)| Some((name, schema.default.as_ref()?)));
                for (name, default) in absent {
                    if !fields.contains_key(name) {
                        fields.insert(name.clone(), default.clone());
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    if let Some(schema) = &self.items {
                        schema.prune_below(item, false);
                    }
                }
            }
            _ => {}
        }
    }

    /// Reports violations of the schema, and then of its rules. The rules are evaluated only if the types are right.
    pub(super) fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
        let before = causes.len();
        self.check_below(object, "", causes);
        if !causes[before..].iter().any(|cause| BLOCKING.contains(&cause.reason.as_str())) {
            rules::judge(self, object, old, "", causes);
        }
    }

    fn check_below(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let mut refuse = |reason: &str, what: &str| {
            causes.push(Cause::new(reason, path.trim_start_matches('.'), format!("Invalid value: {what}")));
        };
        if !self.fits(value) {
            refuse("FieldValueTypeInvalid", "of another type");
            if value.is_number() && matches!(self.form, Form::Int32 | Form::Int64) {
                causes.push(not_of_format(path));
            }
            return;
        }
        if !self.allowed.is_empty() && !self.allowed.contains(value) {
            refuse("FieldValueNotSupported", "not among the supported values");
        }
        match value {
            Value::String(text) => {
                let length = text.chars().count() as u64;
                if self.length.most.is_some_and(|most| length > most) {
                    refuse("FieldValueTooLong", "it is too long");
                } else if !self.length.holds(&length) {
                    refuse("FieldValueInvalid", "it is too short");
                }
                if self.pattern.as_ref().is_some_and(|pattern| !pattern.is_match(text)) {
                    refuse("FieldValueInvalid", "it does not match the pattern");
                }
                if self.form == Form::Moment && chrono::DateTime::parse_from_rfc3339(text).is_err() {
                    refuse("FieldValueTypeInvalid", "it is no time");
                }
            }
            Value::Number(number) => {
                if !number.as_f64().is_some_and(|number| self.amount.holds(&number)) {
                    refuse("FieldValueInvalid", "it is out of range");
                }
                let rest = number.as_f64().zip(self.multiple).map(|(number, of)| number % of);
                if rest.is_some_and(|rest| rest != 0.0) {
                    refuse("FieldValueInvalid", "it is no multiple");
                }
                let wide = number.as_i64().is_none_or(|whole| i32::try_from(whole).is_err());
                if self.form == Form::Int32 && wide {
                    causes.push(not_of_format(path));
                }
            }
            Value::Object(fields) => {
                if !self.size.holds(&(fields.len() as u64)) {
                    refuse("FieldValueTooMany", "its size is out of range");
                }
                for name in self.required.iter().filter(|name| !fields.contains_key(*name)) {
                    let field = format!("{path}.{name}");
                    causes.push(Cause::new("FieldValueRequired", field.trim_start_matches('.'), "Required value"));
                }
                for (name, value) in fields {
                    if let Some(schema) = self.properties.get(name).or(self.additional.as_deref()) {
                        schema.check_below(value, &format!("{path}.{name}"), causes);
                    }
                }
            }
            Value::Array(items) => {
                if !self.size.holds(&(items.len() as u64)) {
                    refuse("FieldValueTooMany", "its size is out of range");
                }
                for (index, item) in items.iter().enumerate() {
                    let at = format!("{path}[{index}]");
                    let is_same = |earlier: &Value| self.is_same_item(earlier, item);
                    if !self.keys.is_empty() && items[..index].iter().any(is_same) {
                        causes.push(Cause::new("FieldValueDuplicate", at.trim_start_matches('.'), "Duplicate value"));
                    }
                    if let Some(schema) = &self.items {
                        schema.check_below(item, &at, causes);
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Returns whether a list with keys has the same items in any order. The real server treats such a list as
    /// unchanged, and evaluates a rule again only if the rule uses the old value.
    pub(super) fn is_reordered(&self, old: &Value, new: &Value) -> bool {
        let (Some(old), Some(new)) = (old.as_array(), new.as_array()) else { return false };
        !self.keys.is_empty() && old.len() == new.len() && new.iter().all(|item| old.contains(item))
    }

    /// Returns a list with keys, sorted by the keys, so that the order does not affect equality.
    pub(super) fn in_order<'a>(&self, value: &'a Value) -> Cow<'a, Value> {
        let Some(items) = value.as_array().filter(|_| !self.keys.is_empty()) else { return Cow::Borrowed(value) };
        let mut items = items.clone();
        items.sort_by_cached_key(|item| self.keys.iter().map(|key| item[key].to_string()).collect::<Vec<_>>());
        Cow::Owned(Value::Array(items))
    }

    /// Returns whether the real server can track the managers of all fields in an object. It cannot if a type is wrong,
    /// even in a part that the write ignores, such as the spec in a write of the status. It then drops `managedFields`
    /// for ever, which changes the object.
    pub(super) fn is_typed(&self, value: &Value) -> bool {
        match (self.form, value) {
            (Form::Any, _) | (_, Value::Null) => true,
            (Form::Object, Value::Object(fields)) => fields.iter().all(|(name, value)| {
                let below = self.properties.get(name).or(self.additional.as_deref());
                below.is_none_or(|below| below.is_typed(value))
            }),
            (Form::Array, Value::Array(items)) => items.iter().all(|item| {
                let has_keys = self.keys.iter().all(|key| item.get(key).is_some());
                has_keys && self.items.as_ref().is_none_or(|below| below.is_typed(item))
            }),
            (Form::Text | Form::Moment, value) => value.is_string(),
            (Form::Int32 | Form::Int64 | Form::Number, value) => value.is_number(),
            (Form::Truth, value) => value.is_boolean(),
            (Form::Object | Form::Array, _) => false,
        }
    }

    /// Returns whether an item of a list with keys contains all keys.
    pub(super) fn has_key(&self, item: &Value) -> bool {
        !self.keys.is_empty() && self.keys.iter().all(|key| item.get(key).is_some())
    }

    /// Returns whether two items of a list have the same values for the keys.
    pub(super) fn is_same_item(&self, one: &Value, other: &Value) -> bool {
        self.keys.iter().all(|key| one.get(key) == other.get(key))
    }

    fn fits(&self, value: &Value) -> bool {
        match self.form {
            Form::Any => true,
            Form::Object => value.is_object(),
            Form::Array => value.is_array(),
            Form::Text => value.is_string(),
            // The real server also accepts a list in place of a text with a format.
            Form::Moment => value.is_string() || value.is_array(),
            Form::Int32 | Form::Int64 => value.is_i64() || value.is_u64(),
            Form::Number => value.is_number(),
            Form::Truth => value.is_boolean(),
        }
    }
}

/// Reports a number that its format cannot represent. The real server names `status` as the field, or outside of the
/// status no field.
fn not_of_format(path: &str) -> Cause {
    let field = if path.starts_with(".status") { "status" } else { "<nil>" };
    Cause::new("FieldValueInvalid", field, "Invalid value: the format does not hold it")
}
