//! Tests the values derived from results, and which results are skipped.

use super::*;

fn with_results(result: impl IntoIterator<Item = (String, String)>) -> Variables {
    Variables { result: result.into_iter().collect(), ..Variables::harmless() }
}

fn with(name: &str, value: &str) -> Variables {
    with_results([(name.to_owned(), value.to_owned())])
}

#[test]
fn the_status_code_is_an_integer_or_zero() {
    for (results, code) in [
        (vec![], 0),
        (vec![("statusCode", "503")], 503),
        (vec![("statusCode", " 503\n")], 503),
        (vec![("statusCode", "-1")], -1),
        (vec![("status_code", "404")], 404),
        (vec![("statusCode", "503"), ("status_code", "404")], 503),
        (vec![("statusCode", "none"), ("status_code", "404")], 404),
        (vec![("statusCode", "")], 0),
        (vec![("statusCode", "5e2")], 0),
        (vec![("statusCode", "9223372036854775808")], 0),
        (vec![("StatusCode", "503")], 0),
    ] {
        let variables = with_results(results.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        assert_eq!(status_code(&variables.limited_result()), code, "{results:?}");
    }
}

#[test]
fn data_is_json_or_a_string_or_null() {
    for (value, condition) in [
        ("null", "data == null"),
        (" {\"a\": 1}\n", "data == {'a': 1}"),
        ("true", "data"),
        ("\"text\"", "data == 'text'"),
        ("text", "data == 'text'"),
        ("", "data == ''"),
        ("{\"a\": 1", "data == '{\"a\": 1'"),
        ("9223372036854775807", "data == 9223372036854775807 && type(data) == int"),
        ("9223372036854775808", "type(data) == double && data > 9.2e18"),
        ("-9223372036854775808", "type(data) == int"),
        ("1.0", "type(data) == double"),
        // Too large for a double, so the text is not parsed as JSON.
        ("1e400", "data == '1e400'"),
        ("[[], {\"a\": [null]}]", "data == [[], {'a': [null]}]"),
    ] {
        assert_eq!(crate::ask(condition, &with("data", value)), Ok(true), "{value}");
    }
    assert_eq!(crate::ask("data == null", &with_results([])), Ok(true));
}

#[test]
fn deeply_nested_json_stays_a_string() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(crate::ask("type(data) == list", &with("data", &nested(127))), Ok(true));
    assert_eq!(crate::ask("type(data) == string", &with("data", &nested(128))), Ok(true));
    assert_eq!(crate::ask("type(data) == string", &with("data", &nested(2000))), Ok(true));
    let objects = format!("{}1{}", "{\"a\":".repeat(600), "}".repeat(600));
    assert_eq!(crate::ask("type(data) == string", &with("data", &objects)), Ok(true));
}

#[test]
fn results_are_limited_in_the_order_of_their_names() {
    // The largest entry has one byte of name and 4,095 bytes of value.
    let largest = |name: &str| (name.to_owned(), "x".repeat(MAX_ENTRY - name.len()));
    let names = |variables: &Variables| -> Vec<String> {
        variables.limited_result().into_keys().map(ToOwned::to_owned).collect()
    };

    let (name, mut value) = largest("a");
    assert_eq!(names(&with(&name, &value)), ["a"]);
    value.push('x');
    assert_eq!(names(&with_results([(name, value), ("b".to_owned(), String::new())])), ["b"], "too large by a byte");

    // Sixteen of the largest entries fit. Entries with their own variables come first.
    let sixteen = ('a'..='p').map(|name| largest(&name.to_string()));
    let mut many: Vec<_> = sixteen.chain([("q".to_owned(), String::new())]).collect();
    assert_eq!(names(&with_results(many.clone())).concat(), "abcdefghijklmnop");
    many.push(("statusCode".to_owned(), "503".to_owned()));
    assert_eq!(names(&with_results(many)).concat(), "abcdefghijklmnostatusCode");

    let hundred = (0..100).map(|n| (format!("r{n:02}"), String::new()));
    let hundred = with_results(hundred.chain([("status_code".to_owned(), String::new())]));
    let kept = names(&hundred);
    assert_eq!((kept.len(), kept[62].as_str(), kept[63].as_str()), (MAX_ENTRIES, "r62", "status_code"));
}

#[test]
fn long_strings_are_cut_at_the_beginning_of_a_character() {
    let text = format!("a{}", "é".repeat(MAX_VALUE));
    assert_eq!(cut(&text).len(), MAX_VALUE - 1);
    assert_eq!(cut("short"), "short");
    let variables = Variables { error: text, ..Variables::harmless() };
    assert_eq!(crate::ask("size(error) == 32768", &variables), Ok(true));
}

#[test]
fn an_exit_code_that_nobody_knows_is_minus_one() {
    let variables = Variables { exit_code: None, ..Variables::harmless() };
    assert_eq!(crate::ask("exitCode == -1", &variables), Ok(true));
}
