//! Parses the two messages whose information is in no field.
//!
//! Each message is accepted only in the exact form in which its author writes it, because single words prove nothing.

use serde_json::Value;
use wfe_api::limits::cut;

use crate::object::text;

/// The limit of a stored message, in characters. Tekton's messages have one line, and statuses show them to people.
pub const MAX_MESSAGE: u32 = 1024;

/// The limit of a quoted denial, in characters.
const MAX_DENIAL: u32 = 400;

/// Finds the API server's message about a missing permission in the output of a step, and returns only that message.
/// Its form is `deployments.apps "x" is forbidden: User "u" cannot patch resource "deployments" in API group "apps" in
/// the namespace "n"`, or `... at the cluster scope`.
///
/// The output of a step is a text, or Tekton's list of results, any of which may contain the message.
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
    // The resource and its name, `deployments.apps "x"`, are the two preceding words.
    let start = match before.rsplit_once(' ') {
        Some((head, name)) if name.starts_with('"') => head.rfind(' ').map_or(0, |space| space + 1),
        Some((head, _)) => head.len() + 1,
        None => 0,
    };
    is_word(verb).then(|| &line[start..line.len() - scope.len() + end])
}

/// Tekton's error about a pipeline that it could not fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BundleError<'a> {
    /// How far the fetch got.
    pub(crate) fetch: Fetch,
    /// The error without the text around it.
    pub(crate) error: &'a str,
}

/// How far a failed fetch of a bundle got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// The bundle was fetched, but does not contain the pipeline.
    Done,
    /// The registry refused the bundle.
    Refused,
    /// Tekton does not report how far it got.
    Unsaid,
}

/// Parses the error about a bundle, in the forms of `pkg/resolution/resolver/bundle` and
/// `pkg/reconciler/pipelinerun/resources/pipelineref.go` (1.9, 1.12). The reasons of the run and of the resolution
/// request do not distinguish a bundle that cannot be fetched from one with other content.
pub(crate) fn bundle_error(message: &str) -> BundleError<'_> {
    let said =
        message.strip_prefix("Error retrieving pipeline for pipelinerun ").and_then(|rest| rest.split_once(": "));
    let unsaid = |error| BundleError { fetch: Fetch::Unsaid, error };
    let fetched = |error| BundleError { fetch: Fetch::Done, error };
    let Some((_, error)) = said else { return unsaid(message) };
    if error.starts_with("failed to read runtime object as Pipeline: ") {
        return fetched(error);
    }
    // resolver failed to get Pipeline : invalid runtime object: <error>
    // resolver failed to get Pipeline : error requesting remote resource: error getting "bundleresolver" "<key>":
    // <error>
    let Some(error) = error.strip_prefix("resolver failed to get Pipeline : ") else { return unsaid(error) };
    if error.starts_with("invalid runtime object: ") {
        return fetched(error);
    }
    let Some(error) = error.strip_prefix("error requesting remote resource: ") else { return unsaid(error) };
    let answered = error.strip_prefix("error getting \"bundleresolver\" \"").and_then(|rest| rest.split_once("\": "));
    let Some((_, error)) = answered else { return unsaid(error) };
    let of_what_was_fetched =
        ["could not find object in image with kind: ", "invalid tekton bundle ", "could not parse image manifest: "];
    if of_what_was_fetched.iter().any(|known| error.starts_with(known)) {
        fetched(error)
    } else if error.starts_with("cannot retrieve the oci image: ") {
        BundleError { fetch: Fetch::Refused, error }
    } else {
        unsaid(error)
    }
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
    fn how_far_a_fetch_came_is_known_only_where_tekton_says_what_was_wrong() {
        let retrieving = |error: &str| format!("Error retrieving pipeline for pipelinerun ns/run: {error}");
        let asked = |error: &str| {
            retrieving(&format!("resolver failed to get Pipeline : error requesting remote resource: {error}"))
        };
        let answered = |error: &str| asked(&format!("error getting \"bundleresolver\" \"ns/bundles-ba97\": {error}"));
        let (none, slow) = ("could not find object in image with kind: pipeline and name: workflow", "took longer");
        let unreadable = "invalid runtime object: json: cannot unmarshal bool into Go struct field X of type string";
        let unknown = "cannot retrieve the oci image: NAME_UNKNOWN";
        let (unsaid, read) = ("cannot get keychain: x", "failed to read runtime object as Pipeline: x");
        for (message, fetch, error) in [
            (answered(none), Fetch::Done, none),
            (answered("invalid tekton bundle r/x:1, error: x"), Fetch::Done, "invalid tekton bundle r/x:1, error: x"),
            (retrieving(&format!("resolver failed to get Pipeline : {unreadable}")), Fetch::Done, unreadable),
            (retrieving(read), Fetch::Done, read),
            (answered(unknown), Fetch::Refused, unknown),
            (answered(unsaid), Fetch::Unsaid, unsaid),
            (answered(&format!("cannot: {none}")), Fetch::Unsaid, &format!("cannot: {none}")),
            (asked(slow), Fetch::Unsaid, slow),
            (retrieving(unreadable), Fetch::Unsaid, unreadable),
            (none.to_owned(), Fetch::Unsaid, none),
            (String::new(), Fetch::Unsaid, ""),
        ] {
            assert_eq!(bundle_error(&message), BundleError { fetch, error }, "{message}");
        }
    }
}
