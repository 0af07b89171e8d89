//! The size limits of the schema, in characters (Unicode scalar values, as `maxLength` counts them).
//!
//! The API server refuses a write that exceeds a limit. Code that writes a status therefore cuts its texts to these
//! limits first. The limits also keep the admission rules within the API server's cost budget, which is computed from
//! them.

/// Longest name of an object: a DNS subdomain.
pub const NAME: u32 = 253;
/// Longest name of a namespace: a DNS label.
pub const NAMESPACE: u32 = 63;
/// Longest target: namespace 63, kind 253, name 253 and two slashes.
pub const TARGET: u32 = 571;
/// Longest `apiVersion`: group 253, version 63 and a slash.
pub const API_VERSION: u32 = 317;
/// Longest `kind` of an object reference.
pub const KIND: u32 = 63;
/// Longest uid. A UUID has 36 characters; other forms are legal.
pub const UID: u32 = 128;
/// Longest version of a workflow.
pub const WORKFLOW_VERSION: u32 = 128;
/// Longest image reference: host and repository 255, tag 128, digest 71 and separators, rounded up.
pub const IMAGE: u32 = 512;
/// Length of a digest: `sha256:` and 64 digits.
pub const DIGEST: u32 = 71;
/// Most parameters of one execution.
pub const PARAMETERS: u32 = 64;
/// Longest key of a parameter.
pub const PARAMETER_KEY: u32 = 253;
/// Longest value of a parameter.
pub const PARAMETER_VALUE: u32 = 8192;
/// Most characters of all keys and values of the parameters together. An operator that starts can then hold hundreds of
/// undecided executions of the largest size in memory.
pub const PARAMETERS_SIZE: u32 = 65_536;
/// Longest rationale.
pub const RATIONALE: u32 = 32_768;
/// Longest Go duration. The longest that Go itself prints (`-2562047h47m16.854775808s`) has 25 characters.
pub const DURATION: u32 = 32;
/// Longest reason: a word in `CamelCase`.
pub const REASON: u32 = 1024;
/// Longest message in a status; metav1.Condition has the same limit.
pub const MESSAGE: u32 = 32_768;
/// Longest summary in plain words.
pub const SUMMARY: u32 = 1000;
/// Longest summary of a status in `kubectl get`: with the other columns it fits a terminal of 80 columns.
pub const STATUS_SUMMARY: u32 = 24;
/// Longest reason of a next step: a sentence.
pub const STEP_REASON: u32 = 128;
/// Most conditions of one object.
pub const CONDITIONS: u32 = 16;
/// Longest type of a condition; metav1.Condition has the same limit.
pub const CONDITION_TYPE: u32 = 316;
/// Longest name of a user in a cancellation or a clearance.
pub const USER: u32 = 1024;
/// Longest reason of a cancellation.
pub const CANCELLATION_REASON: u32 = 1024;
/// Longest reason of a clearance.
pub const CLEARANCE_REASON: u32 = 1024;
/// Most attempts of one execution. A status lists all of them, and its rules compare each pair.
pub const ATTEMPTS: u32 = 20;
/// Longest message of one attempt. The whole message of the last attempt is in another field of the status.
pub const ATTEMPT_MESSAGE: u32 = 1024;
/// Longest condition of a retry policy.
pub const CONDITION: u32 = 512;
/// Longest name of a schedule. The children of the schedule carry the name as the value of a label.
pub const SCHEDULE_NAME: u32 = 63;
/// Longest cron expression. A list of every second minute has 92 characters.
pub const CRON: u32 = 128;
/// Longest name of a time zone. The longest that IANA has (`America/Argentina/ComodRivadavia`) has 32 characters.
pub const TIME_ZONE: u32 = 64;
/// Most labels, and most annotations, that a template gives to the children of a schedule.
pub const TEMPLATE_METADATA: u32 = 16;
/// Longest value of a label; Kubernetes has the same limit.
pub const LABEL_VALUE: u32 = 63;
/// Longest value of an annotation in a template. Sixteen of them and their keys have fewer than 40,000 characters. They
/// fit into the 256 KiB that Kubernetes gives an object's annotations, whatever the characters are.
pub const ANNOTATION_VALUE: u32 = 2048;
/// Most finished children that a schedule keeps, of each kind.
pub const HISTORY: u32 = 100;
/// Longest reason of a hint.
pub const HINT_REASON: u32 = 1024;
/// Length of a schedule's revision, in hexadecimal digits.
pub const REVISION: u32 = 16;
/// Longest message about the last run of a schedule; the status of its execution has the rest.
pub const RUN_MESSAGE: u32 = 1024;
/// Longest fingerprint of a failure. The reason, and the id and version of the workflow, may be cut; the rest still
/// tells fingerprints apart.
pub const FINGERPRINT: u32 = 320;
/// Most failures in a row that a triage can be set to wait for.
pub const TRIAGE_AFTER: u32 = 10;
/// Most fields that a triage may adjust, and most adjustments that it records as refused.
pub const TRIAGE_FIELDS: u32 = 16;
/// Longest name of a field that a triage may adjust: `parameters.` and a key.
pub const TRIAGE_FIELD: u32 = 11 + PARAMETER_KEY;
/// Longest record of one adjustment that was refused: the longest name of a field, and why.
pub const TRIAGE_REFUSED: u32 = 512;
/// Length of the digest of the evidence, in hexadecimal digits.
pub const EVIDENCE: u32 = 64;
/// Longest explanation of a verdict.
pub const TRIAGE_WHY: u32 = 1000;
/// Longest proposal of an analyst to a person.
pub const TRIAGE_FIX: u32 = 4000;
/// Longest reason of a resume.
pub const RESUME_REASON: u32 = 1024;

/// Cuts `text` to `limit` characters. A cut text ends with `…`, which counts as a character.
#[must_use]
pub fn cut(text: &str, limit: u32) -> String {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(std::iter::once('…').take(limit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_by_characters_and_marks_the_cut() {
        for (text, limit, expected) in [
            ("", 0, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("äöü", 3, "äöü"),
            ("äöüß", 3, "äö…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(text, limit), expected, "{text:?} to {limit}");
        }
    }
}
