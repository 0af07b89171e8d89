use super::*;
use crate::decide::decide;
use crate::testing::at;
use crate::testing::generate::{NOW, any_history, any_policy, any_target};
use proptest::prelude::*;

fn found(target: &Target, policy: &Policy) -> Vec<Violation> {
    violations(target, policy, at(NOW), &decide(target, policy, at(NOW)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_decision_on_any_view_does_what_none_may_do(target in any_target(), policy in any_policy()) {
        prop_assert_eq!(found(&target, &policy), []);
    }

    #[test]
    fn no_decision_on_any_history_does_what_none_may_do(target in any_history(), policy in any_policy()) {
        prop_assert_eq!(found(&target, &policy), []);
    }
}
