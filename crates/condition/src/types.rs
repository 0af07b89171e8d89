//! Checks the names and types of a condition without values. The evaluator checks neither. It treats an operator
//! without an overload like any other error, and evaluates `503 == "503"` to false.
//!
//! Each node has a type. A type that cannot be known is [`Type::Dyn`], which fits everywhere. This applies to `data`
//! and its elements, the result of `dyn()`, and lists, maps and branches of several types.

use std::fmt;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, operators};

use crate::names;
use crate::unusable::Unusable;

/// The limit of a quoted name in a message, in characters.
const MAX_QUOTED: usize = 40;

/// The type of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Type {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Null,
    /// The type of types such as `int`, and of the result of `type()`.
    Meta,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Dyn,
}

/// Refuses unknown names, functions that are not allowed, wrong types, and conditions that cannot result in a boolean.
pub(crate) fn check(condition: &IdedExpr) -> Result<(), Unusable> {
    match type_of(condition)? {
        Type::Bool | Type::Dyn => Ok(()),
        other => Err(Unusable::NotBoolean(other.to_string())),
    }
}

/// Returns whether a condition reads `data`, whose type depends on its value.
pub(crate) fn reads_data(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Ident(name) => name == "data",
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).any(reads_data),
        Expr::Select(select) => reads_data(&select.operand),
        Expr::List(list) => list.elements.iter().any(reads_data),
        Expr::Map(map) => map.entries.iter().any(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => reads_data(&entry.key) || reads_data(&entry.value),
            EntryExpr::StructField(field) => reads_data(&field.value),
        }),
        Expr::Comprehension(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => false,
    }
}

/// Returns the type of a variable, or of the name of a type.
fn variable(name: &str) -> Option<Type> {
    Some(match name {
        "attempt" | "maxAttempts" | "exitCode" | "statusCode" => Type::Int,
        "success" | "wasExecutionFailure" => Type::Bool,
        "reason" | "error" | "nodeId" | "executionId" => Type::String,
        "result" => Type::Map(Box::new(Type::String), Box::new(Type::String)),
        "data" => Type::Dyn,
        "bool" | "double" | "int" | "list" | "map" | "null_type" | "string" => Type::Meta,
        _ => return None,
    })
}

fn type_of(node: &IdedExpr) -> Result<Type, Unusable> {
    match &node.expr {
        Expr::Ident(name) => variable(name).ok_or_else(|| Unusable::Variable { name: quoted(name) }),
        Expr::Literal(literal) => literal_type(literal),
        Expr::Call(call) => call_type(call),
        Expr::Select(select) => {
            let operand = type_of(&select.operand)?;
            let field = element(&operand, &Type::String)?;
            Ok(if select.test { Type::Bool } else { field })
        }
        Expr::List(list) => Ok(Type::List(Box::new(common(list.elements.iter().map(type_of))?))),
        Expr::Map(map) => map_type(map),
        Expr::Struct(_) => Err(Unusable::Construct("a message")),
        Expr::Comprehension(_) => Err(Unusable::Construct("a macro")),
        Expr::Unspecified => Err(Unusable::NotParsed),
    }
}

fn literal_type(literal: &LiteralValue) -> Result<Type, Unusable> {
    Ok(match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => return Err(Unusable::Construct("a bytes literal")),
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    })
}

fn map_type(map: &MapExpr) -> Result<Type, Unusable> {
    let mut keys = Vec::with_capacity(map.entries.len());
    let mut values = Vec::with_capacity(map.entries.len());
    for entry in &map.entries {
        let EntryExpr::MapEntry(entry) = &entry.expr else {
            return Err(Unusable::Construct("a message"));
        };
        let key = type_of(&entry.key)?;
        if !key.may_be_key() {
            return Err(Unusable::Key(key.to_string()));
        }
        keys.push(key);
        values.push(type_of(&entry.value)?);
    }
    let (key, value) = (common(keys.into_iter().map(Ok))?, common(values.into_iter().map(Ok))?);
    Ok(Type::Map(Box::new(key), Box::new(value)))
}

/// Returns the type that all nodes share, or `dyn`.
fn common(types: impl Iterator<Item = Result<Type, Unusable>>) -> Result<Type, Unusable> {
    let types = types.collect::<Result<Vec<_>, _>>()?;
    Ok(match types.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other == first) => first.clone(),
        _ => Type::Dyn,
    })
}

fn call_type(call: &CallExpr) -> Result<Type, Unusable> {
    let name = call.func_name.as_str();
    let form = form(name).ok_or_else(|| Unusable::Function { name: quoted(name) })?;
    if !form.fits(call) {
        return Err(Unusable::Form { name: form.name, usage: form.usage });
    }
    let operands = call.target.as_deref().into_iter().chain(&call.args).map(type_of).collect::<Result<Vec<_>, _>>()?;
    compare_reason(call)?;
    match (name, operands.as_slice()) {
        (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => equality(left, right),
        (operators::IN, [item, Type::List(items)]) => equality(item, items),
        (operators::IN, [key, Type::Map(keys, _)]) if key.may_be_lookup_key() => equality(key, keys),
        (operators::INDEX, [of, index]) => element(of, index),
        (_, operands) => overload(name, operands).ok_or_else(|| Unusable::Types {
            operator: symbol(name).to_owned(),
            operands: operands.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "),
        }),
    }
}

/// Refuses to compare `reason` with a text that is not a reason, because the answer would always be the same.
fn compare_reason(call: &CallExpr) -> Result<(), Unusable> {
    let is_reason = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == "reason");
    let with = match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::EQUALS | operators::NOT_EQUALS, [left, right]) if is_reason(left) => std::slice::from_ref(right),
        (operators::EQUALS | operators::NOT_EQUALS, [left, right]) if is_reason(right) => std::slice::from_ref(left),
        (operators::IN, [item, IdedExpr { expr: Expr::List(list), .. }]) if is_reason(item) => &list.elements,
        _ => return Ok(()),
    };
    let texts = with.iter().filter_map(|node| match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    });
    match texts.into_iter().find(|text| !names::REASONS.contains(text)) {
        Some(text) => Err(Unusable::Reason { name: quoted(text) }),
        None => Ok(()),
    }
}

/// Returns the type of a comparison for equality. Refuses a comparison that is always false.
fn equality(left: &Type, right: &Type) -> Result<Type, Unusable> {
    if left.may_equal(right) {
        Ok(Type::Bool)
    } else {
        Err(Unusable::NeverEqual { left: left.to_string(), right: right.to_string() })
    }
}

/// Returns the type of the result of an operator or function, if it accepts operands of these types.
fn overload(name: &str, operands: &[Type]) -> Option<Type> {
    use Type::{Bool, Double, Dyn, Int, List, Map, Meta, String, Uint};
    Some(match (name, operands) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [Bool | Dyn, Bool | Dyn])
        | (operators::LOGICAL_NOT, [Bool | Dyn])
        | (operators::IN, [_, Dyn])
        | ("contains" | "startsWith" | "endsWith", [String | Dyn, String | Dyn]) => Bool,
        (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [left, right]) => {
            (left.is_ordered() && right.is_ordered() && left.may_equal(right)).then_some(Bool)?
        }
        (operators::CONDITIONAL, [Bool | Dyn, yes, no]) if yes == no => yes.clone(),
        (operators::CONDITIONAL, [Bool | Dyn, _, _]) | ("dyn", [_]) => Dyn,
        (operators::ADD, [List(left), List(right)]) if left == right => List(left.clone()),
        (operators::ADD, [List(_), List(_) | Dyn] | [Dyn, List(_)]) => List(Box::new(Dyn)),
        (operators::ADD, [left, right]) => left.same(right, &[Int, Uint, Double, String])?,
        (operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE, [left, right]) => {
            left.same(right, &[Int, Uint, Double])?
        }
        (operators::MODULO, [left, right]) => left.same(right, &[Int, Uint])?,
        (operators::NEGATE, [value @ (Int | Double | Dyn)]) => value.clone(),
        ("size", [String | List(_) | Map(..) | Dyn]) | ("int", [Int | Uint | Double | String | Dyn]) => Int,
        ("double", [Int | Uint | Double | String | Dyn]) => Double,
        ("string", [Bool | Int | Uint | Double | String | Dyn]) => String,
        ("type", [_]) => Meta,
        _ => return None,
    })
}

/// Returns the type of the element that an index or a field reads from a list or a map.
fn element(of: &Type, by: &Type) -> Result<Type, Unusable> {
    match of {
        Type::List(item) if by.is_number() || *by == Type::Dyn => Ok((**item).clone()),
        Type::Map(key, value) if by.may_be_lookup_key() && by.may_equal(key) => Ok((**value).clone()),
        Type::Dyn if by.may_be_lookup_key() => Ok(Type::Dyn),
        _ => Err(Unusable::Element { of: of.to_string(), by: by.to_string() }),
    }
}

/// Returns how a user writes an operator: `>=` for the name `_>=_` in the tree.
fn symbol(name: &str) -> &str {
    match name {
        operators::IN => "in",
        operators::CONDITIONAL => "?:",
        _ => name.trim_matches('_'),
    }
}

/// The form in which a function must be called.
struct Form {
    name: &'static str,
    usage: &'static str,
    global: Option<usize>,
    member: Option<usize>,
}

impl Form {
    fn fits(&self, call: &CallExpr) -> bool {
        let arguments = if call.target.is_some() { self.member } else { self.global };
        arguments == Some(call.args.len())
    }
}

/// Returns the form of an allowed operator or function; `None` for any other.
fn form(name: &str) -> Option<Form> {
    let global = |name, usage, arguments| Form { name, usage, global: Some(arguments), member: None };
    let member = |name, usage| Form { name, usage, global: None, member: Some(1) };
    Some(match name {
        operators::LOGICAL_NOT | operators::NEGATE => global("an operator", "one operand", 1),
        operators::CONDITIONAL => global("an operator", "a ? b : c", 3),
        operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::ADD
        | operators::SUBSTRACT
        | operators::MULTIPLY
        | operators::DIVIDE
        | operators::MODULO
        | operators::INDEX
        | operators::IN => global("an operator", "two operands", 2),
        // The parser has replaced each correct call of `has` with a node of another kind.
        operators::HAS => Form { name: "has", usage: "has(data.field)", global: None, member: None },
        "size" => Form { name: "size", usage: "size(error)", global: Some(1), member: Some(0) },
        "contains" => member("contains", "error.contains('text')"),
        "startsWith" => member("startsWith", "error.startsWith('text')"),
        "endsWith" => member("endsWith", "error.endsWith('text')"),
        "int" => global("int", "int('75')", 1),
        "double" => global("double", "double('0.5')", 1),
        "string" => global("string", "string(statusCode)", 1),
        "dyn" => global("dyn", "dyn(statusCode)", 1),
        "type" => global("type", "type(data) == string", 1),
        _ => return None,
    })
}

impl Type {
    fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// Returns whether values of this type can be ordered.
    fn is_ordered(&self) -> bool {
        matches!(self, Self::Bool | Self::String | Self::Dyn) || self.is_number()
    }

    fn may_be_key(&self) -> bool {
        matches!(self, Self::Bool | Self::Int | Self::Uint | Self::String | Self::Dyn)
    }

    /// Returns whether this type can index a map. A double is no key, but finds the key of an equal int.
    fn may_be_lookup_key(&self) -> bool {
        self.may_be_key() || *self == Self::Double
    }

    /// Returns whether some values of both types are equal. Numbers of all types are compared by value.
    fn may_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::List(left), Self::List(right)) => left.may_equal(right),
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                key.may_equal(other_key) && value.may_equal(other_value)
            }
            (left, right) => left == right || left.is_number() && right.is_number(),
        }
    }

    /// Returns the type of both operands, if it is one of `allowed`.
    fn same(&self, other: &Self, allowed: &[Self]) -> Option<Self> {
        match (self, other) {
            (Self::Dyn, Self::Dyn) => Some(Self::Dyn),
            (Self::Dyn, known) | (known, Self::Dyn) => allowed.contains(known).then(|| known.clone()),
            (left, right) => (left == right && allowed.contains(left)).then(|| left.clone()),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Null => "null",
            Self::Meta => "type",
            Self::Dyn => "dyn",
            Self::List(item) => return write!(f, "list({item})"),
            Self::Map(key, value) => return write!(f, "map({key}, {value})"),
        })
    }
}

/// Quotes a name from the condition, cut to the limit.
fn quoted(name: &str) -> String {
    match name.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("`{}...`", &name[..end]),
        None => format!("`{name}`"),
    }
}
