//! The last step of the tests: the operator must have used every right in the shipped roles.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

/// Fails when config/rbac gives the operator a right that it did not use in any test.
#[derive(Debug, Parser)]
struct Arguments {
    /// The directory that was `WFE_WITNESS` while the tests ran.
    witness: PathBuf,
}

fn main() -> Result<()> {
    wfe_testkit::used_rights::check(&Arguments::parse().witness)
}
