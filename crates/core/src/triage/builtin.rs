//! The built-in analyst (section 13.3): a table. The first line that matches every failure in the evidence decides. The
//! text of messages only selects the advice; it never pauses or changes anything.

use super::{Evidence, FailureSeen, Judgement, Verdict, Wanted};
use crate::duration;
use crate::reason::FailureReason;
use crate::text::cut;

/// The longest time-out that an execution may have, in seconds (24 h).
const LONGEST_TIMEOUT: u64 = 24 * 3600;

/// The most characters of a name in the advice.
const NAMED: usize = 200;

/// A line of the table.
pub struct Line {
    /// The kind of failure that the line recognises.
    pub name: &'static str,
    fits: fn(&FailureSeen) -> bool,
    says: Says,
}

/// The answer of a line of the table.
enum Says {
    /// Only time helps; with the reason.
    Wait(&'static str),
    /// A person must repair this; with the reason and the advice.
    Fix(&'static str, &'static str),
    /// Every run does harm; with the reason and the advice.
    Pause(&'static str, &'static str),
    /// The executions need more time.
    LongerTimeout,
}

/// The table, in order. If no line matches, the verdict is [`Verdict::DoNothing`].
pub const LINES: &[Line] = &[
    Line {
        name: "image pull, denied",
        fits: |it| is_pull(it) && says(it, &["unauthorized", "denied", "401", "403"]),
        says: Says::Fix(
            "the registry denies the pull of an image",
            "Give the service account of the workflow a pull secret that the registry accepts, or make the image public.",
        ),
    },
    Line {
        name: "image pull, rate limit",
        fits: |it| is_pull(it) && says(it, &["toomanyrequests", "429"]),
        says: Says::Wait("the registry limits how often it is asked; waiting is the cure, and the backoff does that"),
    },
    Line {
        name: "image pull, network",
        fits: |it| is_pull(it) && says(it, &["no such host", "refused", "timeout", "x509"]),
        says: Says::Wait("the registry cannot be reached; the backoff waits until it can"),
    },
    Line {
        name: "image pull",
        fits: is_pull,
        says: Says::Fix(
            "an image cannot be pulled",
            "Check that the image and its tag or digest exist in the registry, and correct the bundle or the step that \
             names it.",
        ),
    },
    Line {
        name: "refused, quota",
        fits: |it| is_refused(it) && says(it, &["exceeded quota"]),
        says: Says::Fix(
            "a quota of the schedule's namespace has no room for the execution",
            "Raise the quota, or delete executions of the namespace that are over.",
        ),
    },
    Line {
        name: "refused, name",
        fits: |it| is_refused(it) && says(it, &["another workflowexecution has the name"]),
        says: Says::Fix(
            "the name of the execution is taken by one that the schedule has not made",
            "Delete the execution that the message names, or make the schedule again under another name.",
        ),
    },
    Line {
        name: "refused, policy",
        fits: |it| is_refused(it) && says(it, &["validatingadmissionpolicy", "admission webhook"]),
        says: Says::Fix(
            "a policy of the cluster refuses the execution",
            "Correct what the message names in the template of the schedule, or let the policy admit it.",
        ),
    },
    Line {
        name: "configuration",
        fits: |it| it.reason == Some(FailureReason::ConfigurationError) || is_refused(it),
        says: Says::Fix(
            "what the schedule asks for cannot be run as it is written",
            "Correct the template of the schedule, the pipeline of its bundle, or what the message says is missing. An \
             edit of what the template runs begins the count anew.",
        ),
    },
    Line {
        name: "forbidden",
        fits: |it| it.reason == Some(FailureReason::Forbidden),
        says: Says::Fix(
            "a right is lacking",
            "Grant the right that the message names to the account that it names, or let the policy admit the workflow.",
        ),
    },
    Line {
        name: "resources",
        fits: |it| it.reason == Some(FailureReason::ResourceExhausted),
        says: Says::Fix(
            "the cluster has no room for the workflow",
            "Raise the quota of the execution namespace, free nodes, or lower what the steps request.",
        ),
    },
    Line {
        name: "out of memory",
        fits: |it| it.reason == Some(FailureReason::OomKilled),
        says: Says::Fix(
            "a step takes more memory than it may have",
            "Raise the memory limit of the step that the failures name, or let it need less.",
        ),
    },
    Line {
        name: "time-out",
        fits: |it| it.reason == Some(FailureReason::DeadlineExceeded) && it.was_execution_failure,
        says: Says::LongerTimeout,
    },
    Line {
        name: "disk",
        fits: |it| says(it, &["no space left", "diskpressure", "ephemeral-storage"]),
        says: Says::Fix(
            "a disk is full",
            "Free the disk that the message names, or give the step more ephemeral storage.",
        ),
    },
    Line {
        name: "command",
        fits: |it| matches!(it.exit_code, Some(126 | 127)),
        says: Says::Fix(
            "the command of a step cannot be run or is not there",
            "Correct the command of the step that the failures name, or use an image that has it.",
        ),
    },
    Line {
        name: "breaks each time",
        fits: |it| it.was_execution_failure,
        says: Says::Pause(
            "each run began to change its target and broke, though it was cleared in between",
            "Find out why the workflow breaks before it runs on this target again; then resume the schedule.",
        ),
    },
];

/// Judges the evidence.
#[must_use]
pub fn judge(evidence: &Evidence) -> Judgement {
    if evidence.failures.is_empty() {
        return plain(Verdict::DoNothing, "none of the failures is there any more to be looked at", None);
    }
    if evidence.failures.len() > 1 && evidence.common().is_none() {
        return plain(Verdict::DoNothing, "the failures differ from each other: they have no common cause", None);
    }
    match LINES.iter().find(|line| evidence.failures.iter().all(line.fits)) {
        Some(line) => line.judge(evidence),
        None => plain(Verdict::DoNothing, "nothing was recognised in the failures; the schedule backs off", None),
    }
}

impl Line {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        match self.says {
            Says::Wait(why) => plain(Verdict::DoNothing, why, None),
            Says::Fix(why, fix) => {
                let named = evidence.failures.iter().find_map(|it| named(&it.message)).unwrap_or_default();
                plain(Verdict::FileFix, why, Some(&format!("{fix}{named}")))
            }
            Says::Pause(why, fix) => plain(Verdict::PauseAndNotify, why, Some(fix)),
            Says::LongerTimeout => longer_timeout(evidence),
        }
    }
}

/// Requests twice the time-out, if the limit allows it.
fn longer_timeout(evidence: &Evidence) -> Judgement {
    let now = evidence.timeout.as_secs();
    let longer = now.saturating_mul(2).min(LONGEST_TIMEOUT);
    if longer <= now {
        let fix = "Find out what takes so long: no execution may have more time than it has already.";
        return plain(Verdict::FileFix, "the workflow does not end within the longest time-out", Some(fix));
    }
    let longer = duration::format(std::time::Duration::from_secs(longer));
    let now = duration::format(evidence.timeout);
    Judgement {
        verdict: Verdict::AdjustConfig,
        why: format!("the workflow does not end within its time-out of {now}").into(),
        fix: Some(format!("Find out what takes so long, or give it more time: {longer} is twice as much.").into()),
        adjust: Wanted { timeout: Some(longer.into()), ..Wanted::default() },
    }
}

fn plain(verdict: Verdict, why: &str, fix: Option<&str>) -> Judgement {
    Judgement { verdict, why: why.into(), fix: fix.map(Into::into), adjust: Wanted::default() }
}

/// Returns what a person can do if the API server refuses to create a schedule's execution with this message.
#[must_use]
pub fn advice_on_refusal(message: &str) -> &'static str {
    let refused = FailureSeen { message: message.into(), ..FailureSeen::default() };
    match LINES.iter().find(|line| (line.fits)(&refused)).map(|line| &line.says) {
        Some(Says::Fix(_, fix)) => fix,
        _ => "Correct the template of the schedule.",
    }
}

fn is_refused(failure: &FailureSeen) -> bool {
    failure.reason.is_none()
}

fn is_pull(failure: &FailureSeen) -> bool {
    failure.reason == Some(FailureReason::ImagePullBackOff)
}

fn says(failure: &FailureSeen, words: &[&str]) -> bool {
    let message = failure.message.to_ascii_lowercase();
    words.iter().any(|word| has_word(&message, word))
}

/// Returns the image, quota or permission that a message of Kubernetes names, for the advice.
fn named(message: &str) -> Option<String> {
    let after = |words: &str| message.split_once(words).map(|(_, rest)| rest);
    let image = || after("image \"")?.split('"').next();
    let quota = || after("exceeded quota: ")?.split([',', ' ']).next();
    let right = || after(" cannot ")?.split(['\n', ';']).next();
    let told = |what: &str, name: &str| format!(" {what} {}.", cut(name, NAMED));
    let of_right = || right().map(|it| told("It cannot", it.trim_end_matches('.')));
    let of_quota = || quota().map(|it| told("The quota is", it)).or_else(of_right);
    image().map(|it| told("The image is", it)).or_else(of_quota)
}

/// Returns whether a text contains a word as a whole: digests and names may contain the same letters.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}
