//! Runs all searches, or those whose description contains a given word, and prints the findings. Fails if a search
//! finds what it should not find, or does not find what it should.

use std::process::ExitCode;

use wfe_model::claim::Claim;
use wfe_model::leave_out::LeftOut;
use wfe_model::search::{self, Search};

/// The number of cores of the smallest machine that runs the searches.
const THREADS: usize = 2;

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    let mut all_well = true;
    for (title, searches) in [
        ("The protocol as it is: all claims hold", search::protocol()),
        ("With a rule left out: each of these is found", search::left_out()),
    ] {
        println!("\n{title}\n");
        for search in searches.iter().filter(|search| describe(search).contains(&word)) {
            all_well &= run(search);
        }
    }
    println!("\nClaims:");
    for claim in Claim::ALL {
        println!("  {claim}");
    }
    if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one search and prints a line about it. Returns whether the finding is the expected one.
fn run(search: &Search) -> bool {
    let found = search.run(THREADS);
    let well = found.is_as_expected(search);
    let said = match (&found.broken, search.breaks) {
        (None, None) => "holds".to_owned(),
        (None, Some(claim)) => format!("NOT FOUND: {claim}"),
        (Some((claim, trace)), _) => format!("broken in {} steps: {claim}", trace.steps.len()),
    };
    let seconds = found.took.as_secs_f64();
    println!("{:>9} states {seconds:>6.1} s  {}; {said}", found.states, describe(search));
    if let Some((_, trace)) = &found.broken {
        print!("{trace}");
    }
    well
}

fn describe(search: &Search) -> String {
    let left_out = match search.setting.translation.left_out {
        LeftOut::Nothing => String::new(),
        rule => format!("without {}: ", rule.name()),
    };
    format!("{left_out}{}; faults: {}", search.name(), search.setting.budget)
}
