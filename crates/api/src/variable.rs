//! Variables of Tekton in the value of a parameter. Tekton replaces a variable by another text.
//!
//! Such a value is refused, because the workflow would get a text that the author of the execution did not write.
//! Examples are the name of the run and the path of its credentials.

/// The words that can follow `$(` in a variable. `params` is not among them: Tekton replaces `params` variables once,
/// and does not search the inserted values for more of them.
pub(crate) const FIRST_WORDS: [&str; 10] =
    ["tasks", "finally", "context", "results", "workspaces", "step", "steps", "credentials", "inputs", "outputs"];

/// Why a value that refers to a variable is refused, and what to do.
pub const REFUSAL: &str = "a value must not refer to a variable of Tekton, such as $(context.pipelineRun.name): Tekton would put \
     another text in its place; leave the variable out, or use it in the pipeline itself";

/// Returns whether a value refers to a variable: `$(`, then one of `FIRST_WORDS` such as `context`, then `.` or `[`.
#[must_use]
pub fn refers_to_one(value: &str) -> bool {
    value.split("$(").skip(1).any(|inside| {
        FIRST_WORDS.iter().any(|word| inside.strip_prefix(word).is_some_and(|rest| rest.starts_with(['.', '['])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_tekton_replaces_is_a_variable() {
        for word in FIRST_WORDS {
            for value in [format!("$({word}.x)"), format!("a $({word}[0]"), format!("$$({word}.")] {
                assert!(refers_to_one(&value), "{value}");
            }
            for value in [format!("$({word})"), format!("${word}.x"), format!("$({word}x.y)"), format!("$( {word}.x)")]
            {
                assert!(!refers_to_one(&value), "{value}");
            }
        }
        for value in ["", "$(", "$(params.OTHER)", "$(date)", "$(ls tasks.d)", "price: 5$ (steps.)"] {
            assert!(!refers_to_one(value), "{value}");
        }
    }
}
