//! Compares the table with the flags.

use std::collections::BTreeSet;

use clap::{Arg, CommandFactory};

use super::*;
use crate::cli::Cli;
use crate::config::Flags;

/// Returns the flag of this name.
fn flag(name: &str) -> Option<Arg> {
    let command = Cli::command();
    command.find_subcommand("run")?.get_arguments().find(|flag| flag.get_long() == Some(name)).cloned()
}

/// Returns whether the operator starts with this value of the flag.
fn takes(key: &str, value: &str) -> bool {
    let args = Flags::of_run([format!("--{key}={value}")]).args();
    args.is_ok_and(|args| args.policy().is_ok())
}

#[test]
fn every_row_is_a_flag_with_a_default_and_help() {
    for row in TABLE {
        let Some(flag) = flag(row.key) else { panic!("{} is no flag", row.key) };
        assert_eq!(flag.get_default_values().len(), 1, "{}", row.key);
        assert!(flag.get_help().is_some(), "{}", row.key);
    }
    let keys: BTreeSet<&str> = TABLE.iter().map(|row| row.key).collect();
    assert_eq!(keys.len(), TABLE.len(), "no key has two rows");
}

#[test]
fn the_flag_of_each_row_takes_values_of_its_kind_and_no_others() {
    for row in TABLE {
        let number = |number: u64| number.to_string();
        let (good, bad) = match row.kind {
            // Ten minutes contradict no default of another flag.
            Kind::Duration => (vec!["10m".to_owned()], vec!["0".to_owned(), "1".to_owned()]),
            Kind::DurationOrOff => (vec!["0".to_owned(), "10m".to_owned()], vec!["1".to_owned()]),
            Kind::Number { min, max } => {
                let less = i64::from(min) - 1;
                (vec![number(min.into()), number(max.into())], vec![number(u64::from(max) + 1), less.to_string()])
            }
            Kind::Share => (vec!["0".to_owned(), "0.5".to_owned(), "1".to_owned()], vec!["1.5".to_owned()]),
            Kind::Boolean => (vec!["true".to_owned(), "false".to_owned()], vec!["maybe".to_owned()]),
            Kind::Choice => {
                let listed = flag(row.key).map(|flag| flag.get_possible_values()).unwrap_or_default();
                assert!(listed.len() > 1, "{} lists no values", row.key);
                (listed.iter().map(|value| value.get_name().to_owned()).collect(), vec!["maybe".to_owned()])
            }
            Kind::LogFilter => (vec!["warn".to_owned(), "warn,a=debug".to_owned()], vec!["maybe".to_owned()]),
            Kind::Limits => (vec!["[{name: a, maxRunning: 1}]".to_owned()], vec!["[{name: a}]".to_owned()]),
            Kind::ObjectName => (vec!["one".to_owned()], vec!["Two_Words".to_owned()]),
        };
        for value in &good {
            assert!(takes(row.key, value), "{} does not take {value}", row.key);
        }
        for value in &bad {
            assert!(!takes(row.key, value), "{} takes {value}", row.key);
        }
    }
}
