//! The searches that take seconds. `cargo run --release -p wfe-model --bin model` runs all of them.

use stateright::Model;
use wfe_model::claim::Claim;
use wfe_model::leave_out::LeftOut;
use wfe_model::search::{self, Search};

fn all_are_as_expected(searches: &[Search]) {
    for search in searches.iter().filter(|search| search.quick) {
        let found = search.run(2);
        let trace = found.broken.as_ref().map(|(claim, trace)| format!("{claim}:\n{trace}")).unwrap_or_default();
        assert!(found.is_as_expected(search), "{}: expected {:?}, found {trace}", search.name(), search.breaks);
    }
}

#[test]
fn the_protocol_holds_in_small_clusters() {
    all_are_as_expected(&search::protocol());
}

#[test]
fn a_rule_that_is_left_out_is_missed() {
    all_are_as_expected(&search::left_out());
}

#[test]
fn a_search_finds_the_same_number_of_states_every_time() {
    let all = search::protocol();
    let states = |threads| all.first().map(|search| search.run(threads).states);
    assert_eq!((states(1), states(2)), (states(2), states(1)));
}

#[test]
fn every_claim_is_searched_for() {
    let properties = search::protocol().first().map(|search| search.setting.properties()).unwrap_or_default();
    let names: Vec<&str> = properties.iter().map(|property| property.name).collect();
    assert_eq!(names, Claim::ALL.map(Claim::name));
}

#[test]
fn every_rule_is_left_out_in_some_search() {
    let left_out: Vec<LeftOut> = search::left_out().iter().map(|search| search.setting.translation.left_out).collect();
    for rule in LeftOut::NEEDED {
        assert!(left_out.contains(&rule), "{}", rule.name());
    }
}
