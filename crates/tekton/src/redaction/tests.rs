use proptest::prelude::*;
use serde_json::json;

use super::*;

fn of(parameters: &[(&str, &str)]) -> Redaction {
    with_target(parameters, None)
}

fn with_target(parameters: &[(&str, &str)], target: Option<&str>) -> Redaction {
    let parameters = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Redaction::new(parameters, target.map(|target| TargetName::parse(target).unwrap()))
}

#[test]
fn a_value_is_replaced_where_it_stands_as_a_whole_token() {
    for (said, parameters, told) in [
        ("'s3cr3t' is no int", &[("TOKEN", "s3cr3t")][..], "'<TOKEN>' is no int"),
        ("s3cr3t", &[("TOKEN", "s3cr3t")], "<TOKEN>"),
        ("https://s3cr3t@x: s3cr3t-1_s3cr3t.", &[("TOKEN", "s3cr3t")], "https://<TOKEN>@x: <TOKEN>-1_<TOKEN>."),
        // Words that people and conditions need stay unchanged.
        ("\"step-fail\" exited with code 1", &[("FAILURE_MODE", "exit")], "\"step-fail\" exited with code 1"),
        ("reexit exits öexit exit7", &[("A", "exit")], "reexit exits öexit exit7"),
        // A value that begins or ends with a non-letter needs no word boundary on that side.
        ("a=-p4ss- a-p4ss-b", &[("A", "-p4ss-")], "a=<A> a<A>b"),
        // If several values begin at one position, the longest is replaced, whatever the order of the names.
        ("a secret word", &[("A", "secret"), ("B", "secret word")], "a <B>"),
        ("a secret word", &[("B", "secret"), ("A", "secret word")], "a <A>"),
        ("one two", &[("A", "one "), ("B", "<A>two")], "<A>two"),
        ("secret", &[("A_0000", "secret"), ("B", "0000")], "<A_0000>"),
        ("äöüß äöüß", &[("Ä", "äöüß")], "<Ä> <Ä>"),
        // A short value reveals nothing.
        ("abc 1", &[("SHORT", "abc"), ("NONE", ""), ("ONE", "1")], "abc 1"),
        ("", &[("A", "secret")], ""),
    ] {
        assert_eq!(of(parameters).apply(said), told, "{said}");
    }
}

#[test]
fn a_value_is_taken_out_as_go_and_json_quote_it() {
    let value = "s3cr3t\"pass\\word";
    for said in [
        format!("Invalid value: {value}: no"),
        "spec.params[0].value: Invalid value: \"s3cr3t\\\"pass\\\\word\": no".to_owned(),
        format!("{}: no", json!({ "TOKEN": value })),
    ] {
        let told = of(&[("TOKEN", value)]).apply(&said);
        assert!(told.contains("<TOKEN>") && !told.contains("s3cr3t") && !told.contains("word"), "{told}");
    }
    for (value, quoted) in [
        ("bell\u{7}", r"bell\a"),
        ("line\r\nbreak\t", r"line\r\nbreak\t"),
        ("null\0 del\u{7f}", r"null\x00 del\x7f"),
        ("zero\u{200b}width", r"zero\u200bwidth"),
        ("tag\u{e0001}s", r"tag\U000e0001s"),
        ("o'clock", "o'clock"),
        ("straße", "straße"),
        ("form\u{c}feed", r"form\ffeed"),
        ("a<b>&c", r"a\u003cb\u003e\u0026c"),
    ] {
        let told = of(&[("A", value)]).apply(&format!("\"{quoted}\""));
        assert_eq!(told, "\"<A>\"", "{quoted}");
    }
}

#[test]
fn a_value_of_several_lines_is_taken_out_line_by_line_as_well() {
    let key = of(&[("KEY", "-----BEGIN KEY-----\r\nMIIEowIBAAKCAQEA\nab\n-----END KEY-----\n")]);
    for (said, told) in [
        ("-----BEGIN KEY-----\r\nMIIEowIBAAKCAQEA\nab\n-----END KEY-----\n is none", "<KEY> is none"),
        (r#""-----BEGIN KEY-----\r\nMIIEowIBAAKCAQEA\nab\n-----END KEY-----\n" is none"#, "\"<KEY>\" is none"),
        ("line 2: MIIEowIBAAKCAQEA: no", "line 2: <KEY>: no"),
        ("line 3: ab", "line 3: ab"),
    ] {
        assert_eq!(key.apply(said), told);
    }
}

#[test]
fn the_target_stays() {
    let parameters = [
        ("NAMESPACE", "payment"),
        ("KIND", "deployment"),
        ("DEPLOYMENT_NAME", "payment-api"),
        ("WHOLE", "payment/deployment/payment-api"),
        ("TOKEN", "s3cr3t"),
    ];
    let said = "deployments.apps \"payment-api\" is forbidden: s3cr3t in the namespace \"payment\": \
                payment/deployment/payment-api";
    let told = with_target(&parameters, Some("payment/deployment/payment-api")).apply(said);
    assert_eq!(told, said.replace("s3cr3t", "<TOKEN>"));
    assert_eq!(
        of(&parameters[..1]).apply("in the namespace \"payment\""),
        "in the namespace \"<NAMESPACE>\"",
        "of an execution whose target cannot be read"
    );
}

#[test]
fn objects_are_read_whatever_their_shape() {
    let spec =
        json!({"targetResource": "node/worker-1", "parameters": {"TOKEN": "s3cr3t", "NODE": "worker-1", "N": 12345}});
    let said = "s3cr3t on worker-1 12345";
    assert_eq!(Redaction::of_execution(&spec).apply(said), "<TOKEN> on worker-1 12345");
    let run = json!({"params": [
        {"name": "TOKEN", "value": "s3cr3t"}, {"name": "NODE", "value": "worker-1"}, {"name": "LIST", "value": ["12345"]},
        {"name": "TARGET_RESOURCE", "value": "node/worker-1"}, "odd", {"name": 1},
    ]});
    assert_eq!(Redaction::of_run(&run).apply(said), "<TOKEN> on worker-1 12345");
    let schedule = json!({
        "spec": {"template": {"spec": spec}}, "status": {"adjust": {"parameters": {"TOKEN": "an0ther"}}},
    });
    assert_eq!(Redaction::of_schedule(&schedule).apply("s3cr3t and an0ther"), "<TOKEN> and <TOKEN>");
    for odd in [Value::Null, json!([]), json!({"parameters": 1, "params": {}, "spec": [], "targetResource": 2})] {
        for redaction in [Redaction::of_execution(&odd), Redaction::of_run(&odd), Redaction::of_schedule(&odd)] {
            assert_eq!(redaction.apply("m"), "m", "{odd}");
        }
    }
}

#[test]
fn no_value_is_printed_for_debugging() {
    assert_eq!(format!("{:?}", of(&[("TOKEN", "s3cr3t")])), r#"{"TOKEN"}"#);
}

#[test]
fn no_name_or_value_makes_a_text_longer_than_its_limit() {
    // The longest valid name, which contains the value many times.
    let name = |number| format!("P{number}{}", "_0000".repeat(50));
    let length = |said: &str, parameters: usize| {
        let parameters = (0..parameters).map(|number| (name(number).into(), "0000".into())).collect();
        Redaction::new(parameters, None).apply(said).chars().count()
    };
    for parameters in [1, 3, 5, 64] {
        assert_eq!(length("no image 0000", parameters), 9 + 254, "{parameters}");
        assert_eq!(length(&"0000 ".repeat(100_000), parameters), 1024, "{parameters}");
    }
    assert_eq!(of(&[]).apply(&"x".repeat(1024)), "x".repeat(1024));
    assert_eq!(of(&[]).apply(&"x".repeat(9999)), format!("{}…", "x".repeat(1023)));
    // A value that the limit would cut is not shown in part.
    let value = "s3cr3t".repeat(100);
    assert_eq!(of(&[("P", &value)]).apply(&format!("{} {value}", "x".repeat(1019))), "x".repeat(1019) + " <P>");
}

#[test]
fn a_value_that_was_cut_before_is_not_shown_in_part() {
    let value = "s3cr3t-and-much-longer";
    for (said, told) in [
        ("no: s3cr3t-and…", "no: <P>…"),
        ("no: s3cr3t-and-much-longer…", "no: <P>…"),
        ("no: s3c…", "no: s3c…"),
        ("no: s3cr3t-and", "no: s3cr3t-and"),
    ] {
        assert_eq!(of(&[("P", value)]).apply(said), told);
    }
}

proptest! {
    #[test]
    fn no_value_is_left_as_a_token(
        words in proptest::collection::vec("[ab]{1,8}", 0..40),
        values in proptest::collection::vec("[ab]{4,8}", 0..6),
    ) {
        let names: Vec<String> = (0..values.len()).map(|number| format!("P{number}")).collect();
        let parameters: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(values.iter().map(String::as_str)).collect();
        let told = of(&parameters).apply(&words.join(" "));
        let left: Vec<&str> = told.split(' ').collect();
        for word in &words {
            assert_eq!(left.contains(&word.as_str()), !values.contains(word), "{told}: {word}");
        }
    }
}
