//! Tests accepted conditions with their answers, refused conditions with their messages, and conditions that fail at
//! run time with the class of the error.

mod random;

use std::time::{Duration, Instant};

use crate::variables::Variables;
use crate::{RunError, Unusable, ask, check};

/// Returns the failure of a task that exited with 75 after its service had answered 503.
fn failure() -> Variables {
    let result = [
        ("statusCode", "503\n"),
        ("a", "bcd"),
        ("state", "changed nothing"),
        ("data", r#"{"a": 4, "tags": ["x", "y"]}"#),
    ];
    Variables {
        attempt: 2,
        max_attempts: 3,
        reason: "Unknown".to_owned(),
        error: "task deploy failed: exit code 75".to_owned(),
        exit_code: Some(75),
        was_execution_failure: true,
        node_id: "deploy".to_owned(),
        execution_id: "0b1c".to_owned(),
        result: result.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
    }
}

/// Returns the same failure with another result.
fn with(name: &str, value: &str) -> Variables {
    let mut variables = failure();
    variables.result.insert(name.to_owned(), value.to_owned());
    variables
}

fn without(name: &str) -> Variables {
    let mut variables = failure();
    variables.result.remove(name);
    variables
}

#[test]
fn answers_what_is_asked() {
    for (condition, answer) in [
        // The examples of issue 003.
        ("statusCode >= 500 || error != ''", true),
        ("statusCode == 200 && success", false),
        ("!wasExecutionFailure || exitCode == 75", true),
        ("reason != 'ConfigurationError'", true),
        // Further examples from the page docs/conditions.md.
        ("reason in ['ImagePullBackOff', 'ResourceExhausted']", false),
        ("error.contains('no space left') || error.contains('read-only file system')", false),
        ("reason == 'OOMKilled' && attempt >= 2", false),
        ("'state' in result && result['state'].startsWith('retry')", false),
        ("type(data) == map && has(data.retryable) && data.retryable > 3", false),
        ("'free' in result && int(result['free']) > 10", false),
        // Each variable.
        ("attempt == 2", true),
        ("attempt < maxAttempts", true),
        ("maxAttempts == 3", true),
        ("reason == 'Unknown'", true),
        ("error.contains('exit code 75')", true),
        ("success", false),
        ("exitCode == 75", true),
        ("wasExecutionFailure", true),
        ("nodeId == 'deploy'", true),
        ("executionId == '0b1c'", true),
        ("statusCode == 503", true),
        ("result['a'] == 'bcd'", true),
        ("result.a == 'bcd'", true),
        ("data.a == 4", true),
        // Each operator.
        ("statusCode in [502, 503, 504]", true),
        ("reason in ['Unknown', 'OOMKilled']", true),
        ("'x' in result", false),
        ("'x' in data.tags", true),
        ("'a' in data && !('b' in data)", true),
        ("exitCode > 74 && exitCode >= 75 && exitCode < 76 && exitCode <= 75", true),
        ("exitCode != 1 && !(exitCode == 2)", true),
        ("exitCode + 1 == 76 && exitCode - 1 == 74 && exitCode * 2 == 150", true),
        ("statusCode / 100 == 5 && statusCode % 100 == 3", true),
        ("-exitCode == -75", true),
        ("error + reason == 'task deploy failed: exit code 75Unknown'", true),
        ("attempt < 2 ? true : statusCode == 503", true),
        ("[1, 2] + [3] == [1, 2, 3]", true),
        ("[exitCode, 1][0] == 75", true),
        ("{'Unknown': 3}[reason] == 3", true),
        ("{'a': {'b': [7]}}.a['b'][0] == 7", true),
        ("{1: 'one'}[1.0] == 'one'", true),
        ("success < wasExecutionFailure", true),
        ("'a' < 'b'", true),
        // Numbers of several types compare by value.
        ("statusCode > 502.5 && statusCode == 503.0 && statusCode == 503u", true),
        // Each function.
        ("has(data.a) && data.a > 3", true),
        ("has(data.b)", false),
        ("has(result.state) && !has(result.other)", true),
        ("result['a'].startsWith('b')", true),
        ("result['a'].endsWith('cd')", true),
        ("result['state'].contains('nothing')", true),
        ("size(error) > 10 && error.size() > 10", true),
        ("size(data.tags) == 2 && data.tags.size() == 2 && size(result) == 4", true),
        ("int('75') == exitCode && int(74.9) == 74", true),
        ("double(attempt) / 4.0 == 0.5 && double('0.5') == 0.5", true),
        ("string(exitCode) == '75'", true),
        ("dyn(exitCode) == '75'", false),
        ("dyn(statusCode) == 503", true),
        ("type(data) == map && type(data.a) == int && type(data.tags) == list", true),
        ("type(error) == type('')", true),
        // An error on one side is ignored if the other side decides.
        ("1 / (statusCode - 503) == 0 || true", true),
        ("data.b.c == 1 && false", false),
        ("true || result['x'] == ''", true),
        ("result['x'] == '' || true", true),
        // Text is Unicode, and its length counts characters.
        ("size('Grüße, 世界') == 9", true),
        ("'\\u00fc' == 'ü' && r'\\n' != '\\n'", true),
        // Blanks and comments are ignored.
        ("  exitCode\n  == 75 // tempfail", true),
        // Two minus signs cancel each other out, and so do two exclamation marks.
        ("!!wasExecutionFailure && --exitCode == 75", true),
    ] {
        assert_eq!(check(condition), Ok(()), "{condition}");
        assert_eq!(ask(condition, &failure()), Ok(answer), "{condition}");
    }
}

#[test]
fn every_variable_that_messages_list_has_a_type_and_a_value() {
    let names: Vec<&str> = crate::names::VARIABLES.split([',', ' ']).filter(|name| !name.is_empty()).collect();
    let (and, names): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| *name == "and");
    assert_eq!((and.len(), names.len()), (1, 12));
    for name in names {
        let condition = format!("{name} == {name}");
        assert_eq!(check(&condition), Ok(()), "{name}");
        assert_eq!(ask(&condition, &failure()), Ok(true), "{name}");
    }
}

/// Asserts that each condition is refused with its message, and is not evaluated.
fn assert_refused<T: AsRef<str>>(cases: &[(&str, T)]) {
    for (condition, message) in cases {
        assert_eq!(
            check(condition).map_err(|error| error.to_string()),
            Err(message.as_ref().to_owned()),
            "{condition}"
        );
        let error = ask(condition, &failure()).expect_err("answers what is refused");
        assert!(
            matches!(error, RunError::Unusable(_) | RunError::NotBoolean | RunError::Overload),
            "{condition}: {error}"
        );
    }
}

#[test]
fn refuses_what_is_empty_or_too_long() {
    let nodes = |nodes: usize| {
        format!("has {nodes} names, literals, operators and calls, at most 128 are allowed: use fewer terms")
    };
    assert_refused(&[
        ("", "is empty: write an expression such as statusCode >= 500, or leave the field out".to_owned()),
        (&" ".repeat(513), "has 513 characters, at most 512 are allowed".to_owned()),
        (&format!("'{}' == ''", "ü".repeat(506)), "has 514 characters, at most 512 are allowed".to_owned()),
        (&["1"; 256].join("+"), nodes(511)),
        (&["1<2"; 60].join("||"), nodes(239)),
        (&format!("[{}] == []", ["1"; 126].join(",")), nodes(129)),
    ]);
    assert_eq!(check(&format!("[{}] == []", ["1"; 125].join(","))), Ok(()));
    assert_eq!(check(&format!("'{}' == ''", "ü".repeat(504))), Ok(()), "512 characters, and more bytes");
}

#[test]
fn refuses_what_is_no_expression() {
    for (condition, line, column) in [
        (" ", 1, 2),
        ("1 +", 1, 4),
        ("exitCode = 75", 1, 10),
        ("exitCode ==\n75 and success", 2, 4),
        ("'open", 1, 1),
        ("for", 1, 1),
        ("99999999999999999999 > 1", 1, 1),
        ("1e400 > 1.0", 1, 1),
        // Optional values.
        ("data.?a", 1, 5),
        ("[?data]", 1, 2),
        ("data[?'a'] == 1", 1, 5),
        // Columns are counted in characters.
        ("'世界' == '🐱' and", 1, 13),
    ] {
        let message = format!("is not a CEL expression: syntax error at line {line}, column {column}");
        assert_refused(&[(condition, message)]);
    }
}

#[test]
fn refuses_names_that_are_no_variables() {
    let long = "x".repeat(100);
    for (condition, name) in [
        ("x == 1", "`x`"),
        ("true || x", "`x`"),
        (".error == ''", "`.error`"),
        ("type(data) == uint", "`uint`"),
        ("optional", "`optional`"),
        (&long, "`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...`"),
    ] {
        let message = format!(
            "uses {name}, which is not a variable: the variables are attempt, maxAttempts, reason, error, success, \
             exitCode, wasExecutionFailure, nodeId, executionId, result, statusCode and data"
        );
        assert_refused(&[(condition, message)]);
    }
}

#[test]
fn refuses_functions_and_macros_that_are_not_allowed() {
    for (condition, name) in [
        ("error.matches('a')", "matches"),
        ("[1].all(i, true)", "all"),
        ("[1].exists(i, true)", "exists"),
        ("data.exists_one(i, true)", "exists_one"),
        ("size(data.map(i, i)) == 1", "map"),
        ("data.filter(i, true) == []", "filter"),
        ("bool('true')", "bool"),
        ("duration('1s') == duration('1s')", "duration"),
        ("timestamp(error) == timestamp(error)", "timestamp"),
        ("bytes(error) == bytes(error)", "bytes"),
        ("uint(1) == 1u", "uint"),
        (".size(error) == 1", ".size"),
        ("optional.of(1) == 1", "of"),
    ] {
        let message = format!(
            "calls `{name}`, which is not allowed: the functions are has, size, contains, startsWith, endsWith, int, \
             double, string, dyn, type, and the operator in"
        );
        assert_refused(&[(condition, message)]);
    }
    for (condition, name, usage) in [
        ("has(data)", "has", "has(data.field)"),
        ("has(data['a'])", "has", "has(data.field)"),
        ("has(has(data.a))", "has", "has(data.field)"),
        ("has()", "has", "has(data.field)"),
        ("data.has(a)", "has", "has(data.field)"),
        ("contains(error, 'a')", "contains", "error.contains('text')"),
        ("error.startsWith()", "startsWith", "error.startsWith('text')"),
        ("error.endsWith('a', 'b')", "endsWith", "error.endsWith('text')"),
        ("size() == 0", "size", "size(error)"),
        ("'75'.int() == 75", "int", "int('75')"),
        ("type(1, 2) == int", "type", "type(data) == string"),
    ] {
        assert_refused(&[(condition, format!("calls {name} in a form that it does not have: write {usage}"))]);
    }
}

#[test]
fn refuses_what_else_conditions_do_not_need() {
    assert_refused(&[
        ("b'a' == b'a'", "contains a bytes literal, which is not allowed: use strings, numbers, lists and maps"),
        ("Message{a: 1} == 1", "contains a message, which is not allowed: use strings, numbers, lists and maps"),
        ("{1.5: 1} == {}", "has a map with a key of type double: keys are bool, int or string"),
    ]);
}

#[test]
fn refuses_comparisons_that_are_always_false() {
    let number = ", as in '503', or convert with int() or double()";
    let types = "; the types are bool, double, int, list, map, null_type and string";
    for (condition, left, right, hint) in [
        ("statusCode == \"503\"", "int", "string", ", as in 503"),
        ("statusCode != '503'", "int", "string", ", as in 503"),
        ("statusCode in ['503']", "int", "string", ", as in 503"),
        ("exitCode == error", "int", "string", ", as in 503"),
        ("result['code'] == 75", "string", "int", number),
        ("result.code in [75]", "string", "int", number),
        ("1 in result", "int", "string", ", as in 503"),
        ("error != null", "string", "null", "; only data can be null"),
        ("type(data) == 'map'", "type", "string", types),
        ("success == 'false'", "bool", "string", ""),
        ("[1] == ['a']", "list(int)", "list(string)", ""),
        ("{'a': 1} == result", "map(string, int)", "map(string, string)", ""),
    ] {
        let message = format!("compares {left} with {right}, which are never equal: compare values of one type{hint}");
        assert_refused(&[(condition, message)]);
    }
}

#[test]
fn refuses_reasons_that_are_none() {
    let known = "which it never is: the reasons are OOMKilled, DeadlineExceeded, Forbidden, ResourceExhausted, \
                 ConfigurationError, ImagePullBackOff, Unknown";
    for (condition, name) in [
        ("reason == 'ImagePullBackoff'", "`ImagePullBackoff`"),
        ("'unknown' != reason", "`unknown`"),
        ("reason in ['OOMKilled', 'OomKilled']", "`OomKilled`"),
        ("!(reason == '') && attempt < 3", "``"),
    ] {
        assert_refused(&[(condition, format!("compares reason with {name}, {known}"))]);
    }
    for condition in
        ["reason == 'Unknown' || reason == error", "reason.startsWith('Image')", "error == 'ImagePullBackoff'"]
    {
        assert_eq!(check(condition), Ok(()), "{condition}");
    }
}

#[test]
fn refuses_operands_of_the_wrong_types() {
    let (convert, compare) = ("convert with int(), double() or string()", "compare first, as in statusCode >= 500");
    let contains = "it takes a list or a map, and contains() finds a part of a text";
    for (condition, operator, operands, remedy) in [
        ("error > 3", ">", "string and int", convert),
        ("true || error > 3", ">", "string and int", convert),
        ("result['a'] > 3", ">", "string and int", convert),
        ("size(error * 2) == 1", "*", "string and int", convert),
        ("statusCode / 2.0 > 1.0", "/", "int and double", convert),
        ("5.0 % 2.0 == 1.0", "%", "double and double", convert),
        ("error + 1 == ''", "+", "string and int", convert),
        ("-error == ''", "-", "string", convert),
        ("exitCode.contains('7')", "contains", "int and string", convert),
        ("int(success) == 1", "int", "bool", convert),
        ("string(result) == ''", "string", "map(string, string)", convert),
        ("null < null", "<", "null and null", convert),
        ("'x' in error", "in", "string and string", contains),
        ("null in result", "in", "null and map(string, string)", contains),
        ("!exitCode", "!", "int", compare),
        ("exitCode && true", "&&", "int and bool", compare),
        ("true || error", "||", "bool and string", compare),
        ("error ? true : false", "?:", "string and bool and bool", compare),
        ("size(exitCode) == 1", "size", "int", "it takes a text, a list or a map"),
    ] {
        let message = format!("applies {operator} to {operands}, which it does not take: {remedy}");
        assert_refused(&[(condition, message)]);
    }
    for (condition, of, by) in [
        ("error.code == 1", "string", "string"),
        ("has(error.code)", "string", "string"),
        ("has(data.a).b", "bool", "string"),
        ("error[0] == 'a'", "string", "int"),
        ("[1]['a'] == 1", "list(int)", "string"),
        ("result[0] == ''", "map(string, string)", "int"),
        ("data[null] == 1", "dyn", "null"),
    ] {
        let elements = "a list has elements by int, result by string, and data may have any";
        assert_refused(&[(condition, format!("reads an element of {of} by {by}: {elements}"))]);
    }
}

#[test]
fn refuses_what_yields_no_boolean() {
    for (condition, kind) in [
        ("1", "int"),
        ("error", "string"),
        ("attempt < 2 ? 1 : 2", "int"),
        ("[true]", "list(bool)"),
        ("null", "null"),
        ("int", "type"),
    ] {
        let message = format!("yields {kind}, not true or false: compare it, as in statusCode >= 500");
        assert_refused(&[(condition, message)]);
    }
    // Mistakes that only the trial evaluation finds.
    let hidden = "fails when it is tried, as types do not fit: leave dyn() out, and compare values of one type";
    assert_refused(&[
        ("dyn(1)", hidden),
        ("dyn(error) > 3", hidden),
        ("attempt < 9 ? dyn(1) : true", hidden),
        ("[1, 'a'][1] > 1", hidden),
        ("0.0 / 0.0 > 1.0", hidden),
    ]);
}

#[test]
fn refuses_what_is_nested_too_deeply() {
    let nested = |open: &str, depth, close: &str| format!("{}1{} == 1", open.repeat(depth), close.repeat(depth));
    for condition in [
        nested("(", 96, ")"),
        nested("(", 100, ")"),
        nested("(", 250, ")"),
        nested("[", 96, "]"),
        nested("-(", 150, ")"),
        nested("size(", 96, ""),
        "(".repeat(512),
    ] {
        assert_refused(&[(&condition, "has brackets nested deeper than 95 levels: simplify it")]);
    }
    assert_eq!(check(&nested("(", 95, ")")), Ok(()));
}

#[test]
fn tells_errors_of_a_run_by_class() {
    for (condition, variables, error) in [
        ("1 / statusCode == 0", with("statusCode", "0"), RunError::DivisionByZero),
        ("5 % statusCode == 0", with("statusCode", "0"), RunError::DivisionByZero),
        ("data.a > 3", with("data", "not JSON"), RunError::Overload),
        ("data.a > 3", without("data"), RunError::Overload),
        ("has(data.a)", without("data"), RunError::Overload),
        ("data.b > 3", failure(), RunError::NoSuchKey),
        ("data > 3", failure(), RunError::Overload),
        ("data", failure(), RunError::NotBoolean),
        ("data && true", failure(), RunError::Overload),
        ("data.tags[2] == 'x'", failure(), RunError::IndexOutOfBounds),
        ("data.tags[-1] == 'x'", failure(), RunError::IndexOutOfBounds),
        ("data.tags['x'] == 'x'", failure(), RunError::Overload),
        ("result['x'] == ''", failure(), RunError::NoSuchKey),
        ("result.x == ''", failure(), RunError::NoSuchKey),
        ("int(error) > 0", failure(), RunError::Conversion),
        ("double(error) > 0.0", failure(), RunError::Conversion),
        ("int(1e300) > 0", failure(), RunError::Conversion),
        ("exitCode + 9223372036854775807 > 0", failure(), RunError::Overflow),
        ("{'a': 1, 'a': 2} == {}", failure(), RunError::RepeatedKey),
    ] {
        assert_eq!(check(condition), Ok(()), "{condition}");
        assert_eq!(ask(condition, &variables), Err(error), "{condition}");
    }
    assert_eq!(ask("x == 1", &failure()), Err(RunError::Unusable(Unusable::Variable { name: "`x`".to_owned() })));
}

#[test]
fn no_message_quotes_a_value() {
    let secret = "s3cr3t";
    let mut variables = failure();
    variables.error = secret.to_owned();
    variables.result.insert("a".to_owned(), secret.to_owned());
    variables.result.insert("data".to_owned(), format!(r#"{{"a": "{secret}"}}"#));
    for condition in [
        "int(error) > 0",
        "double(result['a']) > 0.0",
        "result[error] == ''",
        "data[error] == ''",
        "{error: 1, error: 2} == {}",
        "{'a': 1}[result.a] == 1",
        "data.a > 3",
        "data.a.b == 1",
        "data + error == ''",
        "-data.a == 1",
        "data.a",
        "data.a in data.a",
        "[1][data.a] == 1",
        "data.a && true",
        "data.a ? true : false",
        "size(data.a + 1) == 1",
        "data.a.startsWith(1)",
        "int(data) == 1",
        "dyn(error) > 3",
        "dyn(error)",
    ] {
        let error = ask(condition, &variables).expect_err(condition);
        assert!(!error.to_string().contains(secret), "{condition}: {error}");
        assert!(!format!("{error:?}").contains(secret), "{condition}: {error:?}");
        assert!(!matches!(error, RunError::Other), "{condition} has no class");
    }
}

#[test]
fn the_largest_values_are_evaluated_in_time() {
    let mut variables = failure();
    variables.error = "é".repeat(1 << 20);
    variables.result = (0..100).map(|n| (format!("result-{n:03}"), "r".repeat(1000))).collect();
    variables.result.insert("data".to_owned(), format!("[{}0]", "0,".repeat(1900)));
    let sum = ["error"; 60].join("+");
    let nested = format!("{}error{}", "(error+".repeat(40), ")".repeat(40));
    let lists = format!("size({}) == 0", ["[error,error]"; 20].join("+"));
    let results = format!("size([{}]) == 50", ["result"; 50].join(","));
    let data = format!("[{}] == [{}]", ["data"; 40].join(","), ["data"; 40].join(","));
    // 60 times 64 KiB of characters with two bytes each.
    for (condition, answer) in [
        (format!("size({sum}) == {}", 60 << 15), true),
        (format!("size({nested}) == {}", 41 << 15), true),
        (format!("({sum}).contains('e' + error)"), false),
        (lists, false),
        (results, true),
        (data, true),
    ] {
        let start = Instant::now();
        assert_eq!(ask(&condition, &variables), Ok(answer), "{condition}");
        assert!(start.elapsed() < Duration::from_secs(10), "{condition} took {:?}", start.elapsed());
    }
}

/// Texts that take the parser longest: ambiguous, nested, or invalid at every position.
#[test]
fn no_text_takes_long_to_parse() {
    for part in [
        "(", "[", "{", "{1:", "a?", "a?b:", "-(", "!(", "-", "!", "a.", "a[", "a(", "a{b:", "'", "\"\"\"", "1+", "a||",
        "a&&", "a==", "[1,", "{'a':1},", "\\", "`", "\u{0}", "世", "🐱", "//", ")", "1.", "0x", "1e", "b'", "in ",
        "f(a,", "has(", "a.b(",
    ] {
        for length in [511, 512] {
            let text: String = part.chars().cycle().take(length).collect();
            let start = Instant::now();
            let _ = check(&text);
            assert!(start.elapsed() < Duration::from_secs(10), "{part:?} repeated took {:?}", start.elapsed());
        }
    }
}

/// The page docs/conditions.md shows conditions in code blocks. Each of them is accepted, and the tests above cover its
/// answer.
#[test]
fn the_examples_of_the_page_are_accepted() {
    let page = include_str!("../../../docs/conditions.md");
    let mut in_example = false;
    let mut examples = 0;
    for line in page.lines() {
        if line.starts_with("```") {
            in_example = line == "```cel";
        } else if in_example && !line.is_empty() {
            assert_eq!(check(line), Ok(()), "{line}");
            examples += 1;
        }
    }
    assert!(examples >= 10, "the page has {examples} examples");
}
