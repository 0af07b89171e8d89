//! Tests what the operator reports about its configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use wfe_settings::config::{Document, Flags, InForce, Place, Refused};

use super::Page;
use super::page::Table;

fn place() -> Place {
    Place { namespace: "ops".to_owned(), name: "config".to_owned() }
}

/// Reads a `ConfigMap` with these keys over these flags.
fn read(flags: &[&str], keys: &[(&str, &str)]) -> Result<InForce, Refused> {
    let values: BTreeMap<_, _> = keys.iter().map(|(key, value)| ((*key).to_owned(), Ok((*value).to_owned()))).collect();
    let document = Document { uid: "u".to_owned(), version: "7".to_owned(), values };
    Flags::of_run(flags.iter().map(ToString::to_string)).under(&place(), Some(&document))
}

/// Returns the settings in force without a `ConfigMap`.
fn defaults() -> InForce {
    Flags::of_run([]).under(&place(), None).unwrap()
}

#[test]
fn the_table_has_a_line_for_each_key_with_its_value_and_where_that_comes_from() {
    let flags = ["--cooldown-period", "7m", "--base-cooldown-period=2m"];
    let in_force = read(&flags, &[("base-cooldown-period", "3m")]).unwrap();
    let told = Table(&in_force.settings).to_string();
    let line =
        |key: &str| told.lines().find(|line| line.starts_with(key)).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(line("KEY"), ["KEY", "VALUE", "SOURCE"]);
    assert_eq!(line("base-cooldown-period"), ["base-cooldown-period", "3m", "ConfigMap"]);
    assert_eq!(line("cooldown-period"), ["cooldown-period", "7m", "flag"]);
    assert_eq!(line("paused"), ["paused", "false", "default"]);
    let column = told.lines().next().unwrap().find("SOURCE");
    assert!(told.lines().all(|line| line.get(..column.unwrap()).is_some_and(|start| start.ends_with("  "))), "{told}");
}

#[test]
fn the_page_tells_what_is_in_force_and_what_is_refused() {
    let page = Page::new(place(), None);
    assert_eq!(page.to_string(), "ConfigMap ops/config: not read yet\n");
    let in_force = read(&[], &[("cooldown-period", "9m"), ("unheard-of", "1")]).unwrap();
    page.apply(in_force.into());
    let told = page.to_string();
    assert!(told.starts_with("ConfigMap ops/config: version 7 is in force\nwarning: unknown, "), "{told}");
    let refused = read(&[], &[("paused", "yes")]).unwrap_err();
    page.refuse(Refused { version: "8".to_owned(), ..refused });
    page.fail("no answer".to_owned());
    let told = page.to_string();
    for line in [
        "version 8 is refused:",
        "  paused: \"yes\" must be true or false",
        "it cannot be followed, as of 0 s ago: no answer",
    ] {
        assert!(told.lines().any(|told| told == line), "{line} is missing in\n{told}");
    }
    page.apply(defaults().into());
    let told = page.to_string();
    assert!(told.starts_with("ConfigMap ops/config: there is none, the flags are in force\n"), "{told}");
    assert!(!told.contains("refused"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn the_page_forgets_a_watch_that_has_not_failed_for_long() {
    let page = Page::new(place(), None);
    page.apply(defaults().into());
    page.fail("no answer".to_owned());
    tokio::time::advance(Duration::from_secs(31)).await;
    assert!(!page.to_string().contains("no answer"));
}
