//! Plans of requests to which a fake and a real API server must give equal answers.
//!
//! A [`Plan`] comes from a table or from a seed, without a server. Both servers get it through the same client. Values
//! that are random on a server (uids, versions, times) are renamed in the order of their first appearance. Everything
//! else must be equal: codes, reasons, refused fields, objects, pages, and the events of watches.

mod call;
mod generate;
mod names;
mod play;
mod schedule;
mod spoil;
mod status;
mod table;

pub use call::{Call, Place};
pub use generate::generated;
pub use play::{Line, play, prepare};
pub use table::{Row, rows, tabled, wrong_rows};

use serde_json::Value;

/// Requests in order, all of them in one namespace.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name of the plan in reports, such as `seed 7`.
    pub title: String,
    /// The namespace, which no other plan uses. It is created before the plan.
    pub namespace: String,
    /// The requests.
    pub calls: Vec<Call>,
}

/// How many differing answers of a plan are described. Later differences mostly follow from the first one.
const DESCRIBED: usize = 3;
/// How many characters of a request a description shows.
const SHOWN: usize = 600;

/// Describes how the answers of a real and a fake server differ. `None` if they are equal.
#[must_use]
pub fn difference(plan: &Plan, real: &[Line], fake: &[Line]) -> Option<String> {
    let differing = real.iter().zip(fake).enumerate().filter(|(_, (real, fake))| real != fake);
    let mut described: Vec<String> = differing
        .take(DESCRIBED)
        .map(|(index, (real, fake))| {
            let mut said = Vec::new();
            compare("", &real.said, &fake.said, &mut said);
            if real.title != fake.title {
                said.push(format!("fake: {}", fake.title));
            }
            let title = &real.title[..real.title.floor_char_boundary(SHOWN)];
            format!("{}, line {index}: {title}\n    {}", plan.title, said.join("\n    "))
        })
        .collect();
    if described.is_empty() && real.len() != fake.len() {
        described.push(format!("{}: {} lines of the real server, {} of the fake", plan.title, real.len(), fake.len()));
    }
    (!described.is_empty()).then(|| described.join("\n"))
}

fn compare(path: &str, real: &Value, fake: &Value, said: &mut Vec<String>) {
    match (real, fake) {
        _ if real == fake => {}
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            for key in keys {
                let side = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&format!("{path}/{key}"), &side(a), &side(b), said);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}/{index}"), a, b, said);
            }
        }
        _ => {
            let shown = |value: &Value| value.to_string().chars().take(SHOWN).collect::<String>();
            said.push(format!("{path}: real {}, fake {}", shown(real), shown(fake)));
        }
    }
}
