//! Admission rules that are regular expressions. They accept exactly the targets that the operator can use. Some rules
//! depend on the scope of a kind. The kinds come from the table in `wfe-core`.

use kube::core::Rule;
use wfe_core::target::{Scope, kind_spellings};

use crate::image;

const PARTS: &str = "^([^/]+/)?[^/]+/[^/]+$";

/// An admission rule on one text. A text that does not match `when` is accepted. Any other text must match `must`.
pub(super) struct Pattern {
    when: Option<String>,
    must: Option<String>,
    message: &'static str,
}

// === impl Pattern ===

impl Pattern {
    fn must(pattern: impl Into<String>, message: &'static str) -> Self {
        Self { when: None, must: Some(pattern.into()), message }
    }

    fn must_not(pattern: impl Into<String>, message: &'static str) -> Self {
        Self { when: Some(pattern.into()), must: None, message }
    }

    fn when(self, pattern: impl Into<String>) -> Self {
        Self { when: Some(pattern.into()), ..self }
    }

    /// Writes the rule for the API server. Raw strings keep each backslash as it is.
    pub(super) fn rule(self) -> Rule {
        let unless = self.when.map(|pattern| format!("!self.matches(r'{pattern}')"));
        let must = self.must.map(|pattern| format!("self.matches(r'{pattern}')"));
        let rule: Vec<String> = unless.into_iter().chain(must).collect();
        Rule::new(rule.join(" || ")).message(self.message)
    }
}

pub(super) fn target_parts() -> Pattern {
    Pattern::must(
        PARTS,
        "spec.targetResource: must be namespace/kind/name or kind/name, e.g. payment/deployment/api or node/worker-1",
    )
}

pub(super) fn target_namespace() -> Pattern {
    Pattern::must(
        "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/",
        "spec.targetResource: the namespace of namespace/kind/name must be a DNS label (at most 63 of a-z, 0-9 and -, no - at either end), e.g. payment",
    )
    .when("^[^/]+/[^/]+/[^/]+$")
}

pub(super) fn target_kind() -> Pattern {
    let label = "[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?";
    Pattern::must(
        format!("^([^/]+/)?{label}([.]{label})*/[^/]+$"),
        "spec.targetResource: the kind must be a DNS subdomain of at most 253 characters, at most 63 between two dots, capitals allowed, e.g. deployment, Deployment or deployments.apps",
    )
    .when(PARTS)
}

pub(super) fn target_kind_length() -> Pattern {
    Pattern::must(
        "^([^/]+/)?[^/]{1,253}/[^/]+$",
        "spec.targetResource: the kind must be a DNS subdomain of at most 253 characters, e.g. deployment",
    )
    .when(PARTS)
}

pub(super) fn target_name() -> Pattern {
    Pattern::must(
        "/[a-zA-Z0-9]([-a-zA-Z0-9._:@]{0,251}[a-zA-Z0-9])?$",
        "spec.targetResource: the name must have at most 253 letters, digits and . _ : @ -, with a letter or digit at either end, e.g. payment-api",
    )
    .when(PARTS)
}

pub(super) fn target_takes_a_namespace() -> Pattern {
    Pattern::must_not(
        format!("^{}/[^/]*$", any_of(Scope::Namespaced)),
        "spec.targetResource: must be namespace/kind/name, e.g. payment/deployment/api, as objects of this kind have a namespace",
    )
}

pub(super) fn target_takes_no_namespace() -> Pattern {
    Pattern::must_not(
        format!("^[^/]*/{}/", any_of(Scope::Cluster)),
        "spec.targetResource: must be kind/name, e.g. node/worker-1, as objects of this kind have no namespace",
    )
}

pub(super) fn target_namespace_is_first() -> Pattern {
    let built_in = format!("(?i:{}|{})", alternatives(Scope::Namespaced), alternatives(Scope::Cluster));
    Pattern::must(
        format!("^[^/]*/{built_in}/"),
        "spec.targetResource: must be namespace/kind/name with the namespace first, e.g. payment/deployment/api; where the namespace is called like a kind, write the kind with its group, e.g. jobs/certificate.cert-manager.io/tls",
    )
    .when(format!("^{built_in}/[^/.]*/[^/]*$"))
}

/// Matches every spelling of every kind of a scope, with or without version and group.
fn any_of(scope: Scope) -> String {
    format!("(?i:{})([.][^/]*)?", alternatives(scope))
}

fn alternatives(scope: Scope) -> String {
    kind_spellings(scope).collect::<Vec<_>>().join("|")
}

pub(super) fn image() -> Pattern {
    Pattern::must(
        image::PATTERN,
        "spec.workflowRef.containerImage: must be an image reference (host:port/path:tag@sha256:digest, all but the path optional, the path in lower case), e.g. registry.example/workflows/node-disk-cleanup:1.4.0",
    )
}

pub(super) fn image_length() -> Pattern {
    Pattern::must(
        image::LENGTH_PATTERN,
        "spec.workflowRef.containerImage: the path, which is what stands between the host and the tag, must have at most 255 characters, as registries take no longer ones",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use regex::Regex;
    use wfe_core::target::TargetName;

    use super::*;

    /// A rule with compiled regular expressions. The API server uses the same kind of expressions.
    struct Compiled {
        when: Option<Regex>,
        must: Option<Regex>,
    }

    static TARGET_RULES: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
        let rules = [
            target_parts(),
            target_namespace(),
            target_kind(),
            target_kind_length(),
            target_name(),
            target_takes_a_namespace(),
            target_takes_no_namespace(),
            target_namespace_is_first(),
        ];
        let compile = |pattern: Option<String>| pattern.map(|pattern| Regex::new(&pattern).unwrap());
        rules.into_iter().map(|rule| Compiled { when: compile(rule.when), must: compile(rule.must) }).collect()
    });

    fn accepted(text: &str) -> bool {
        TARGET_RULES.iter().all(|Compiled { when, must }| {
            let is_spared = when.as_ref().is_some_and(|when| !when.is_match(text));
            is_spared || must.as_ref().is_some_and(|must| must.is_match(text))
        })
    }

    /// Generates parts of targets. Most are valid, and the others are similar to valid ones.
    fn part() -> impl Strategy<Value = String> {
        let kinds: Vec<&str> = [Scope::Namespaced, Scope::Cluster].into_iter().flat_map(kind_spellings).collect();
        prop_oneof![
            3 => "[a-z][-a-z0-9]{0,4}[a-z0-9]",
            3 => (prop::sample::select(kinds), any::<bool>(), "([.]v1)?([.]apps)?")
                .prop_map(|(kind, upper, group)| if upper { kind.to_uppercase() } else { kind.to_owned() } + &group),
            2 => "[a-zA-Z0-9.:@_-]{0,6}",
            1 => "[a-zA-Z./%: \n\u{212a}\u{17f}\u{e4}-]{0,6}",
            1 => prop_oneof![62..65_usize, 252..255_usize].prop_map(|length| "x".repeat(length)),
            1 => (1..5_usize).prop_map(|parts| vec!["k".repeat(63); parts].join(".")),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn the_admission_rules_accept_exactly_what_names_a_target(parts in prop::collection::vec(part(), 1..5)) {
            let text = parts.join("/");
            let parsed = TargetName::parse(&text);
            prop_assert_eq!(accepted(&text), parsed.is_ok(), "{:?}: {:?}", text, parsed);
        }
    }

    #[test]
    fn the_admission_rules_know_the_scope_of_every_spelling() {
        for (scope, is_namespaced) in [(Scope::Namespaced, true), (Scope::Cluster, false)] {
            for kind in kind_spellings(scope) {
                for spelling in [kind.to_owned(), kind.to_uppercase(), format!("{kind}.v1"), format!("{kind}.apps")] {
                    assert_eq!(accepted(&format!("payment/{spelling}/x")), is_namespaced, "{spelling}");
                    assert_eq!(accepted(&format!("{spelling}/x")), !is_namespaced, "{spelling}");
                }
            }
        }
    }
}
