//! Spoils a part of an object, as a mistake in a handwritten object would.

use fastrand::Rng;
use serde_json::{Value, json};

/// Changes a value at one random position: removes, adds or replaces something there.
pub(super) fn spoil(random: &mut Rng, value: &mut Value) {
    let mut pointers = Vec::new();
    collect(value, "", &mut pointers);
    let Some(pointer) = random.choice(pointers).filter(|pointer| !pointer.is_empty()) else { return };
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    let Some(parent) = value.pointer_mut(parent) else { return };
    match parent {
        Value::Object(fields) => match random.u8(..8) {
            0 | 1 => drop(fields.remove(&name.replace("~1", "/"))),
            2 => drop(fields.insert("unknownField".to_owned(), json!({"a": 1}))),
            _ => drop(fields.insert(name.replace("~1", "/"), odd(random))),
        },
        Value::Array(items) => match random.u8(..3) {
            0 => drop(items.pop()),
            1 => items.extend(items.clone()),
            _ => items.push(odd(random)),
        },
        _ => {}
    }
}

fn collect(value: &Value, path: &str, pointers: &mut Vec<String>) {
    pointers.push(path.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                collect(field, &format!("{path}/{}", name.replace('/', "~1")), pointers);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{path}/{index}"), pointers);
            }
        }
        _ => {}
    }
}

fn odd(random: &mut Rng) -> Value {
    let odd = [
        json!(""),
        json!("x".repeat(400)),
        json!("ä".repeat(253)),
        json!("A-b_c"),
        json!("a.b-c"),
        json!("-"),
        json!("a/b"),
        json!("a/b/c"),
        json!("a/b/c/d"),
        json!("1h30m"),
        json!("-5s"),
        json!("25h"),
        json!("2026-01-02T03:04:05Z"),
        json!("2026-13-02T03:04:05Z"),
        json!("1969-01-02T03:04:05.5+01:00"),
        json!("2026-01-02"),
        json!("True"),
        json!("Failed"),
        json!("Completed"),
        json!("Unknown"),
        json!(0),
        json!(-1),
        json!(1),
        json!(3_000_000_000_i64),
        json!(0.5),
        json!(1.5),
        json!(true),
        json!(false),
        json!({}),
        json!({"A": "b"}),
        json!({"reason": "because", "requestedBy": "me", "clearedBy": "me"}),
        json!([]),
        json!(["a"]),
    ];
    random.choice(odd).unwrap_or_default()
}
