//! Parses the verdict of an analyst (section 13.3). It is text from a user, so its length is limited before it is
//! parsed as JSON, and a refusal has a reason. Another module decides what a verdict may change.

use serde_json::{Map, Value};
use wfe_api::variable;
use wfe_core::triage::{Judgement, Verdict, Wanted};

/// The limit of a result in bytes. Tekton passes 4 KiB unless it is configured otherwise.
pub(super) const LONGEST: usize = 8 * 1024;
/// How many parameter values a verdict may request: as many as a schedule may allow.
const PARAMETERS: usize = wfe_api::limits::TRIAGE_FIELDS as usize;

/// Parses a verdict.
///
/// # Errors
/// Why the verdict cannot be used, for people. The message quotes none of the text except an unknown verdict, which is
/// cut.
pub(super) fn parse(text: &str) -> Result<Judgement, String> {
    if text.len() > LONGEST {
        return Err(format!("its result verdict has {} bytes, more than {LONGEST}", text.len()));
    }
    let value: Value = serde_json::from_str(text).map_err(|_| "its result verdict is no JSON".to_owned())?;
    let Value::Object(said) = value else { return Err("its result verdict is no JSON object".to_owned()) };
    let verdict = said.get("verdict").and_then(Value::as_str).ok_or("its result verdict names no verdict")?;
    let verdict = Verdict::ALL.into_iter().find(|known| known.as_str() == verdict).ok_or_else(|| {
        let known = Verdict::ALL.map(Verdict::as_str).join(", ");
        format!("its verdict '{}' is none of {known}", wfe_api::limits::cut(verdict, 64))
    })?;
    Ok(Judgement {
        verdict,
        why: text_of(&said, "why")?.unwrap_or_else(|| "it did not say why".into()),
        fix: text_of(&said, "fix")?,
        adjust: wanted(said.get("adjust"))?,
    })
}

fn wanted(adjust: Option<&Value>) -> Result<Wanted, String> {
    let adjust = match adjust {
        None | Some(Value::Null) => return Ok(Wanted::default()),
        Some(Value::Object(adjust)) => adjust,
        Some(_) => return Err("adjust in its verdict is no object".to_owned()),
    };
    let parameters = match adjust.get("parameters") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(parameters)) if parameters.len() <= PARAMETERS => {
            if parameters.values().any(|value| value.as_str().is_some_and(variable::refers_to_one)) {
                return Err(
                    "adjust.parameters in its verdict has a value that refers to a variable of Tekton".to_owned()
                );
            }
            let texts = parameters.iter().map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
            let texts: Option<Vec<_>> = texts.collect();
            texts.ok_or("adjust.parameters in its verdict has a value that is no text")?
        }
        Some(_) => return Err(format!("adjust.parameters in its verdict is no object of at most {PARAMETERS} texts")),
    };
    Ok(Wanted {
        interval: text_of(adjust, "interval")?,
        timeout: text_of(adjust, "timeout")?,
        parameters: parameters.into_iter().collect(),
    })
}

fn text_of(said: &Map<String, Value>, key: &str) -> Result<Option<Box<str>>, String> {
    match said.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok((!text.trim().is_empty()).then(|| text.as_str().into())),
        Some(_) => Err(format!("{key} in its verdict is no text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_verdict_is_read_with_all_that_it_asks_for() {
        let text = json!({
            "verdict": "AdjustConfig", "why": "slow", "fix": "more time", "confidence": 0.9,
            "adjust": {"interval": "10m", "timeout": "2h", "parameters": {"LEVEL": "2"}},
        });
        let judgement = parse(&text.to_string()).unwrap();
        assert_eq!(
            (judgement.verdict, &*judgement.why, judgement.fix.as_deref()),
            (Verdict::AdjustConfig, "slow", Some("more time"))
        );
        let Wanted { interval, timeout, parameters } = judgement.adjust;
        assert_eq!((interval.as_deref(), timeout.as_deref(), parameters.len()), (Some("10m"), Some("2h"), 1));
        let short = parse(r#"{"verdict": "DoNothing", "why": null, "fix": " ", "adjust": null}"#).unwrap();
        assert_eq!((&*short.why, short.fix, short.adjust), ("it did not say why", None, Wanted::default()));
    }

    #[test]
    fn what_is_no_verdict_is_refused_with_a_reason() {
        let many: Map<String, Value> = (0..17).map(|n| (format!("K{n}"), json!("v"))).collect();
        for (text, why) in [
            (String::new(), "no JSON"),
            ("please pause everything".to_owned(), "no JSON"),
            ("[\"PauseAndNotify\"]".to_owned(), "no JSON object"),
            ("{}".to_owned(), "names no verdict"),
            (r#"{"verdict": 3}"#.to_owned(), "names no verdict"),
            (r#"{"verdict": "DeleteNamespace"}"#.to_owned(), "'DeleteNamespace' is none of DoNothing"),
            (r#"{"verdict": "donothing"}"#.to_owned(), "is none of"),
            (r#"{"verdict": "FileFix", "fix": {"run": "rm"}}"#.to_owned(), "fix in its verdict is no text"),
            (r#"{"verdict": "AdjustConfig", "adjust": "all"}"#.to_owned(), "no object"),
            (r#"{"verdict": "AdjustConfig", "adjust": {"interval": 60}}"#.to_owned(), "interval in its verdict"),
            (r#"{"verdict": "AdjustConfig", "adjust": {"parameters": {"A": 1}}}"#.to_owned(), "no text"),
            (
                r#"{"verdict": "AdjustConfig", "adjust": {"parameters": {"A": "$(credentials.path)"}}}"#.to_owned(),
                "a variable of Tekton",
            ),
            (json!({"verdict": "AdjustConfig", "adjust": {"parameters": many}}).to_string(), "at most 16"),
            (format!(r#"{{"verdict": "DoNothing", "why": "{}"}}"#, "x".repeat(LONGEST)), "more than 8192"),
            ("x".repeat(10 * 1024 * 1024), "more than 8192"),
            ("[".repeat(8000), "no JSON"),
        ] {
            let refused = parse(&text).unwrap_err();
            assert!(refused.contains(why), "{why}: {refused}");
            assert!(refused.chars().count() < 200, "{refused}");
        }
    }

    /// Returns how many texts are tried: a million with `WFE_TEST_ALL=1`.
    fn cases() -> ProptestConfig {
        let all = std::env::var_os("WFE_TEST_ALL").is_some();
        ProptestConfig { cases: if all { 1_000_000 } else { 2_000 }, ..ProptestConfig::default() }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let words = vec![
            "verdict",
            "why",
            "fix",
            "adjust",
            "interval",
            "timeout",
            "parameters",
            "DoNothing",
            "AdjustConfig",
            "1m",
            "\u{1b}[2J",
            "",
        ];
        let word = prop::sample::select(words);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            word.clone().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((word.clone(), inner), 0..6)
                    .prop_map(|all| all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn any_text_is_a_bounded_verdict_or_refused(json in any_json(), cut in 0..400_usize, raw in any::<bool>()) {
            let text = json.to_string();
            // Some texts are cut in the middle.
            let text = if raw { text.chars().take(cut).collect() } else { text };
            match parse(&text) {
                Ok(judgement) => {
                    prop_assert!(judgement.why.len() <= LONGEST && judgement.adjust.parameters.len() <= PARAMETERS);
                    prop_assert!(!judgement.why.is_empty());
                }
                Err(why) => prop_assert!(why.chars().count() < 200, "{why}"),
            }
        }
    }
}
