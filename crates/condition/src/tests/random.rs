//! Tests random conditions and random texts. Every accepted condition can be evaluated, and fails only with errors that
//! its types allow.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::variables::Variables;
use crate::{RunError, Unusable, ask, check};

/// The number of conditions that each of the three tests tries. With `WFE_TEST_ALL=1` it is `LONG`: 225,000 conditions
/// together.
const SHORT: u64 = 2_000;
const LONG: u64 = 75_000;

fn count() -> u64 {
    if std::env::var_os("WFE_TEST_ALL").is_some_and(|value| value == "1") { LONG } else { SHORT }
}

const LEAVES: [&str; 40] = [
    "attempt",
    "maxAttempts",
    "reason",
    "error",
    "success",
    "exitCode",
    "wasExecutionFailure",
    "nodeId",
    "executionId",
    "result",
    "statusCode",
    "data",
    "true",
    "false",
    "null",
    "0",
    "1",
    "-1",
    "503",
    "9223372036854775807",
    "1u",
    "0.0",
    "1.5",
    "1e308",
    "''",
    "'a'",
    "'75'",
    "'ü'",
    "\"x\"",
    "[]",
    "{}",
    "int",
    "string",
    "map",
    "list",
    "x",
    "b'a'",
    "-0.0",
    "'statusCode'",
    "-9223372036854775808",
];

const BINARY: [&str; 15] = ["||", "&&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", " in ", " == "];

const FUNCTIONS: [&str; 14] = [
    "size",
    "int",
    "double",
    "string",
    "dyn",
    "type",
    "has",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "bool",
    "all",
    "map",
];

fn pick<T: Copy>(random: &mut Rng, from: &[T]) -> T {
    from[random.usize(..from.len())]
}

/// Generates an expression up to this depth, without regard to types.
fn expression(random: &mut Rng, depth: u32) -> String {
    let leaf = |random: &mut Rng| pick(random, &LEAVES).to_owned();
    if depth == 0 {
        return leaf(random);
    }
    let inner = |random: &mut Rng| {
        let depth = random.u32(..depth);
        expression(random, depth)
    };
    match random.u32(..14) {
        0 => leaf(random),
        1..=5 => {
            let (left, right) = (inner(random), inner(random));
            format!("({left}{}{right})", pick(random, &BINARY))
        }
        6 => format!("{}({})", pick(random, &["!", "-"]), inner(random)),
        7 => format!("({} ? {} : {})", inner(random), inner(random), inner(random)),
        8 => format!("{}[{}]", inner(random), inner(random)),
        9 => format!("{}.{}", inner(random), pick(random, &["a", "b", "statusCode"])),
        10 => format!("[{}, {}]", inner(random), inner(random)),
        11 => format!("{{{}: {}}}", inner(random), inner(random)),
        12 => format!("{}({})", pick(random, &FUNCTIONS), inner(random)),
        _ => format!("{}.{}({})", inner(random), pick(random, &FUNCTIONS), inner(random)),
    }
}

/// Generates an expression whose types mostly fit, so most are accepted.
fn typed(random: &mut Rng, depth: u32, kind: &str) -> String {
    let leaves: &[&str] = match kind {
        "bool" => &["true", "false", "success", "wasExecutionFailure", "dyn(success)", "data.a", "has(data.a)"],
        "int" => &["attempt", "maxAttempts", "exitCode", "statusCode", "0", "1", "503", "-1", "data.a", "size(result)"],
        "double" => &["0.0", "1.5", "-1e300", "double(attempt)", "data.b"],
        "string" => &["error", "reason", "nodeId", "''", "'a'", "'75'", "result['a']", "result.statusCode", "data.s"],
        _ => &["[]", "[1]", "['a']", "result", "{}", "{1: 2}", "data", "data.l"],
    };
    if depth == 0 {
        return pick(random, leaves).to_owned();
    }
    let any = pick(random, &["bool", "int", "double", "string", "other"]);
    let inner = |random: &mut Rng, kind: &str| {
        let depth = random.u32(..depth);
        typed(random, depth, kind)
    };
    let scalar = pick(random, &["int", "double", "string"]);
    match (kind, random.u32(..6)) {
        (_, 0) => format!("({} ? {} : {})", inner(random, "bool"), inner(random, kind), inner(random, kind)),
        ("bool", 1) => format!("({} == {})", inner(random, any), inner(random, any)),
        ("bool", 2) => format!("({} && {})", inner(random, "bool"), inner(random, "bool")),
        ("bool", 3) => format!("({} || !{})", inner(random, "bool"), inner(random, "bool")),
        ("bool", 4) => format!("({} < {})", inner(random, "int"), inner(random, "double")),
        ("bool", _) => format!("({} in {})", inner(random, any), inner(random, "other")),
        ("int" | "double", 1) => {
            let operator = pick(random, &["+", "-", "*", "/"]);
            format!("({} {operator} {})", inner(random, kind), inner(random, kind))
        }
        ("int", 2) => format!("({} % {})", inner(random, "int"), inner(random, "int")),
        ("int", 3) => format!("size({})", inner(random, "other")),
        ("int" | "double", _) => format!("{kind}({})", inner(random, scalar)),
        ("string", 1 | 2) => format!("({} + {})", inner(random, "string"), inner(random, "string")),
        ("string", _) => format!("string({})", inner(random, scalar)),
        (_, 1) => format!("[{}, {}]", inner(random, any), inner(random, any)),
        (_, 2) => format!("{{{}: {}}}", inner(random, "string"), inner(random, any)),
        (_, 3) => format!("({} + [{}])", inner(random, "other"), inner(random, any)),
        _ => format!("{}[{}]", inner(random, "other"), inner(random, "int")),
    }
}

fn variables(random: &mut Rng) -> Variables {
    let data =
        ["", "null", "true", "3", "1e999", r#"{"a": true, "b": 1.5, "s": "t", "l": [1, "a"]}"#, "[1, 2]", "no JSON"];
    let mut result = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    if random.bool() {
        result.insert("data".to_owned(), pick(random, &data).to_owned());
    }
    if random.bool() {
        result.insert("statusCode".to_owned(), random.i64(-1..600).to_string());
    }
    Variables {
        attempt: random.u32(1..4),
        max_attempts: 3,
        reason: pick(random, &["Unknown", ""]).to_owned(),
        error: pick(random, &["", "75", "ü", "1e5"]).to_owned(),
        exit_code: random.bool().then(|| random.i32(..)),
        was_execution_failure: random.bool(),
        node_id: String::new(),
        execution_id: "0b1c".to_owned(),
        result,
    }
}

/// Checks and evaluates a condition, and returns whether it was accepted.
fn examine(condition: &str, variables: &Variables) -> bool {
    let start = Instant::now();
    let checked = check(condition);
    let answer = ask(condition, variables);
    assert!(start.elapsed() < Duration::from_secs(5), "{condition} took {:?}", start.elapsed());
    assert!(!matches!(checked, Err(Unusable::NotEvaluated | Unusable::NotExamined)), "{condition}: {checked:?}");
    assert!(!matches!(answer, Err(RunError::Other | RunError::NoThread)), "{condition}: {answer:?}");
    if checked.is_err() {
        return false;
    }
    assert!(!matches!(answer, Err(RunError::Unusable(_))), "{condition} was accepted: {answer:?}");
    // Only two values can have a wrong type at run time: one whose type is not known before, and a double that is NaN.
    let is_typed = !["data", "dyn", "[", "{", "?", "double", "1e"].iter().any(|part| condition.contains(part));
    assert!(!(is_typed && matches!(answer, Err(RunError::Overload | RunError::NotBoolean))), "{condition}: {answer:?}");
    true
}

#[test]
fn random_conditions_are_refused_or_evaluated() {
    let mut random = Rng::with_seed(3);
    let mut accepted = 0;
    for _ in 0..count() {
        let depth = random.u32(1..5);
        let condition = expression(&mut random, depth);
        accepted += u64::from(examine(&condition, &variables(&mut random)));
    }
    assert!(accepted * 100 > count(), "only {accepted} were accepted");
}

#[test]
fn random_conditions_of_the_right_types_are_evaluated() {
    let mut random = Rng::with_seed(11);
    let mut accepted = 0;
    for _ in 0..count() {
        let depth = random.u32(1..5);
        let condition = typed(&mut random, depth, "bool");
        accepted += u64::from(examine(&condition, &variables(&mut random)));
    }
    assert!(accepted * 4 > count(), "only {accepted} were accepted");
}

#[test]
fn random_texts_are_refused_or_evaluated() {
    let pieces = [
        "(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "'", "\"", "'''", "\\", "r'", "b'", "\\u", "\\x", "//", "\n",
        "\r", "\u{0}", "\u{c}", "ü", "🐱", "`", "@", "#", "0x", "1.", "e9", "u", "has", "size", "in", " ", "-", "!",
        "=",
    ];
    let mut random = Rng::with_seed(17);
    for _ in 0..count() {
        let mut text = String::new();
        for _ in 0..random.u32(1..40) {
            let lists = [&pieces[..], &LEAVES, &BINARY, &FUNCTIONS];
            let list = pick(&mut random, &lists);
            text.push_str(pick(&mut random, list));
        }
        examine(&text, &variables(&mut random));
    }
}
