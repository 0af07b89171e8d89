//! The two sentences that are read because no field says what they say, and how a text loses what must not be shown.
//!
//! Each is taken only whole, in the form in which its author writes it: a word of it alone means nothing.

use serde_json::Value;
use wfe_api::limits::cut;

use crate::object::{list, text};

/// How much of a message is kept, in characters: Tekton's are one line, and a status shows them to people.
pub const MAX_MESSAGE: u32 = 1024;

/// The shortest parameter value that is looked for in a text. A shorter one says nothing and would match anywhere.
const MIN_REDACTED: usize = 4;
/// How much of a denial is quoted, in characters.
const MAX_DENIAL: u32 = 400;

/// Finds the API server's words for a right that is missing in what a step left:
/// `deployments.apps "x" is forbidden: User "u" cannot patch resource "deployments" in API group "apps" in the
/// namespace "n"`, and `... at the cluster scope`. Returns them alone.
///
/// What a step leaves is a text, or Tekton's list of results, of which one may hold it.
pub(crate) fn denial(left: &str) -> Option<String> {
    let results: Vec<Value> = serde_json::from_str(left).unwrap_or_default();
    let texts = results.iter().filter_map(|result| text(result, "value"));
    texts.chain([left]).flat_map(str::lines).find_map(|line| denial_in(line)).map(|found| cut(found, MAX_DENIAL))
}

fn denial_in(line: &str) -> Option<&str> {
    let (before, after) = line.split_once(" is forbidden: User \"")?;
    let (_user, after) = after.split_once("\" cannot ")?;
    let (verb, after) = after.split_once(" resource \"")?;
    let (_resource, after) = after.split_once("\" in API group \"")?;
    let (_group, scope) = after.split_once('"')?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let end = if scope.starts_with(" at the cluster scope") {
        " at the cluster scope".len()
    } else {
        let name = scope.strip_prefix(" in the namespace \"")?;
        " in the namespace \"".len() + name.find('"')? + 1
    };
    // The resource and its name, `deployments.apps "x"`, are the last two words before.
    let start = match before.rsplit_once(' ') {
        Some((head, name)) if name.starts_with('"') => head.rfind(' ').map_or(0, |space| space + 1),
        Some((head, _)) => head.len() + 1,
        None => 0,
    };
    is_word(verb).then(|| &line[start..line.len() - scope.len() + end])
}

/// What Tekton says of a pipeline that it could not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BundleError<'a> {
    /// Whether the bundle was fetched, and is not what was asked for.
    pub(crate) was_fetched: bool,
    /// What was wrong, without the words around it.
    pub(crate) error: &'a str,
}

/// Reads what was wrong with a bundle: the texts of `pkg/resolution/resolver/bundle` and of
/// `pkg/reconciler/pipelinerun/resources/pipelineref.go` (1.9, 1.12). `CouldntGetPipeline` and the reason of the
/// resolution request are the same for a bundle that cannot be fetched and for one that holds something else.
pub(crate) fn bundle_error(message: &str) -> BundleError<'_> {
    let said =
        message.strip_prefix("Error retrieving pipeline for pipelinerun ").and_then(|rest| rest.split_once(": "));
    let Some((_, error)) = said else { return BundleError { was_fetched: false, error: message } };
    if error.starts_with("failed to read runtime object as Pipeline: ") {
        return BundleError { was_fetched: true, error };
    }
    // resolver failed to get Pipeline : error requesting remote resource: error getting "bundleresolver" "<key>":
    // <error>
    let asked = error.strip_prefix("resolver failed to get Pipeline : error requesting remote resource: ");
    let Some(error) = asked else { return BundleError { was_fetched: false, error } };
    let answered = error.strip_prefix("error getting \"bundleresolver\" \"").and_then(|rest| rest.split_once("\": "));
    let Some((_, error)) = answered else { return BundleError { was_fetched: false, error } };
    let known = ["could not find object in image with kind: ", "invalid tekton bundle "];
    BundleError { was_fetched: known.iter().any(|known| error.starts_with(known)), error }
}

/// Replaces the values of parameters in a text by their names, and cuts the result to [`MAX_MESSAGE`] characters. Pairs
/// are names and values.
///
/// The text is read once, from its beginning: where values begin at one place, the longest is replaced. Names that were
/// put in are not searched, so that what they hold cannot make the text grow. Reading ends where the result is full:
/// at most 1,025 places are compared with at most 64 values, and nearly always the first byte differs.
#[must_use]
pub fn redact<'a>(message: &str, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut parameters: Vec<(&str, &str)> =
        parameters.into_iter().filter(|(_, value)| value.len() >= MIN_REDACTED).collect();
    parameters.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    let (mut redacted, mut length, mut rest) = (String::new(), 0, message);
    // One character more than fits, for `cut` to see that something is missing.
    while length <= MAX_MESSAGE as usize
        && let Some(next) = rest.chars().next()
    {
        let found = parameters.iter().find_map(|(name, value)| Some((name, rest.strip_prefix(value)?)));
        if let Some((name, after)) = found {
            redacted.extend(["<", name, ">"]);
            length += name.chars().count() + 2;
            rest = after;
        } else {
            redacted.push(next);
            length += 1;
            rest = &rest[next.len_utf8()..];
        }
    }
    cut(&redacted, MAX_MESSAGE)
}

/// Does the same with the parameters of a run, but for the target, which everybody knows.
pub(crate) fn redact_run(message: &str, run: &Value) -> String {
    let parameters =
        list(&run["spec"], "params").filter_map(|param| Some((text(param, "name")?, text(param, "value")?)));
    redact(message, parameters.filter(|(name, _)| *name != crate::TARGET_PARAMETER))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENIAL: &str = "deployments.apps \"payment-api\" is forbidden: User \"system:serviceaccount:ns:runner\" cannot \
                          patch resource \"deployments\" in API group \"apps\" in the namespace \"payment\"";

    #[test]
    fn a_denial_is_the_whole_sentence_of_the_api_server() {
        for (left, found) in [
            (DENIAL.to_owned(), Some(DENIAL)),
            (format!("one line\nError from server (Forbidden): {DENIAL}\nand another"), Some(DENIAL)),
            (format!("{DENIAL}: RBAC: not found"), Some(DENIAL)),
            (
                serde_json::json!([{"key": "a", "value": 1}, {"key": "b", "value": DENIAL, "type": 1}]).to_string(),
                Some(DENIAL),
            ),
            (
                "nodes is forbidden: User \"u\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
                    .into(),
                Some(
                    "nodes is forbidden: User \"u\" cannot list resource \"nodes\" in API group \"\" at the cluster scope",
                ),
            ),
            ("pods \"x\" is forbidden: exceeded quota: q, requested: pods=1".into(), None),
            ("Forbidden".into(), None),
            ("403 forbidden: User cannot log in".into(), None),
            ("access to the room is forbidden: User \"jo\" cannot enter".into(), None),
            (
                "x is forbidden: User \"u\" cannot PATCH resource \"r\" in API group \"\" at the cluster scope".into(),
                None,
            ),
            ("x is forbidden: User \"u\" cannot get resource \"r\" in API group \"\" in the kitchen".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(denial(&left).as_deref(), found, "{left}");
        }
        let long = DENIAL.replace("payment-api", &"x".repeat(9999));
        assert_eq!(denial(&long).map(|found| found.chars().count()), Some(400));
    }

    #[test]
    fn a_bundle_was_fetched_only_where_tekton_says_what_was_wrong_in_it() {
        let retrieving = |error: &str| format!("Error retrieving pipeline for pipelinerun ns/run: {error}");
        let asked = |error: &str| {
            retrieving(&format!("resolver failed to get Pipeline : error requesting remote resource: {error}"))
        };
        let answered = |error: &str| asked(&format!("error getting \"bundleresolver\" \"ns/bundles-ba97\": {error}"));
        let (none, slow) = ("could not find object in image with kind: pipeline and name: workflow", "took longer");
        for (message, was_fetched, error) in [
            (answered(none), true, none),
            (answered("invalid tekton bundle r/x:1, error: x"), true, "invalid tekton bundle r/x:1, error: x"),
            (
                answered("cannot retrieve the oci image: NAME_UNKNOWN"),
                false,
                "cannot retrieve the oci image: NAME_UNKNOWN",
            ),
            (answered(&format!("cannot: {none}")), false, &format!("cannot: {none}")),
            (
                retrieving("failed to read runtime object as Pipeline: x"),
                true,
                "failed to read runtime object as Pipeline: x",
            ),
            (asked(slow), false, slow),
            (none.to_owned(), false, none),
            (String::new(), false, ""),
        ] {
            assert_eq!(bundle_error(&message), BundleError { was_fetched, error }, "{message}");
        }
    }

    #[test]
    fn values_of_parameters_are_taken_out() {
        let run = serde_json::json!({"spec": {"params": [
            {"name": "TOKEN", "value": "s3cr3t"}, {"name": "URL", "value": "https://s3cr3t@x"}, {"name": "N", "value": "1"},
            {"name": "TARGET_RESOURCE", "value": "node/worker-1"}, {"name": "LIST", "value": ["a"]}, "odd", {"name": 1},
        ]}});
        let said = "1: s3cr3t is no https://s3cr3t@x for node/worker-1";
        assert_eq!(redact_run(said, &run), "1: <TOKEN> is no <URL> for node/worker-1");
        assert_eq!(redact_run("m", &Value::Null), "m");
    }

    #[test]
    fn a_text_is_searched_once_and_its_longest_value_is_taken() {
        for (message, parameters, redacted) in [
            ("a secret word", vec![("A", "secret"), ("B", "secret word")], "a <B>"),
            ("a secret word", vec![("B", "secret word"), ("A", "secret")], "a <B>"),
            ("ssssecret", vec![("A", "secret")], "sss<A>"),
            ("one two", vec![("A", "one "), ("B", "<A>two")], "<A>two"),
            ("secret", vec![("A_0000", "secret"), ("B", "0000")], "<A_0000>"),
            ("äöüß äöüß", vec![("Ä", "öüß ")], "ä<Ä>äöüß"),
            ("abcdef", vec![("A", "abcd"), ("B", "cdef")], "<A>ef"),
            ("abc", vec![("SHORT", "abc"), ("NONE", "")], "abc"),
            ("", vec![("A", "secret")], ""),
        ] {
            assert_eq!(redact(message, parameters), redacted, "{message}");
        }
    }

    #[test]
    fn no_name_or_value_makes_a_text_longer_than_its_limit() {
        // The longest name that passes, full of the value.
        let name = |number| format!("P{number}{}", "_0000".repeat(50));
        let length = |message: &str, parameters: usize| {
            let names: Vec<String> = (0..parameters).map(name).collect();
            redact(message, names.iter().map(|name| (name.as_str(), "0000"))).chars().count()
        };
        for parameters in [1, 3, 5, 64] {
            assert_eq!(length("no image 0000", parameters), 9 + 254, "{parameters}");
            assert_eq!(length(&"0000".repeat(100_000), parameters), 1024, "{parameters}");
        }
        assert_eq!(redact(&"x".repeat(1024), []), "x".repeat(1024));
        assert_eq!(redact(&"x".repeat(9999), []), format!("{}…", "x".repeat(1023)));
        // A value that the limit would cut in two is not shown in part.
        let value = "s3cr3t".repeat(100);
        assert_eq!(redact(&format!("{}{value}", "x".repeat(1020)), [("P", value.as_str())]), "x".repeat(1020) + "<P>");
    }

    proptest::proptest! {
        #[test]
        fn no_value_is_left_in_a_text(
            message in "[ab ]{0,200}",
            values in proptest::collection::vec("[ab]{4,8}", 0..6),
        ) {
            let names: Vec<String> = (0..values.len()).map(|number| format!("P{number}")).collect();
            let redacted = redact(&message, names.iter().map(String::as_str).zip(values.iter().map(String::as_str)));
            for value in &values {
                assert!(!redacted.contains(value.as_str()), "{redacted}: {value}");
            }
        }
    }
}
