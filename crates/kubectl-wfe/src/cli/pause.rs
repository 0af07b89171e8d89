//! The flags of `pause` and `resume`.

use clap::Args;

use super::parse_why;

pub(super) const PAUSE: &str = "\
Example:
  kubectl wfe pause payment --reason 'the cluster is upgraded'

Sets the annotation kubernaut.ai/paused of the namespace. Exit code: 0 the namespace is paused; 2 an error.";

pub(super) const RESUME: &str = "\
Example:
  kubectl wfe resume payment

Removes the annotation kubernaut.ai/paused. Exit code: 0 the namespace is not paused; 2 an error.";

/// The flags of `pause`.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// The namespace to pause.
    #[arg(value_name = "NAMESPACE")]
    pub(crate) namespace_name: String,

    /// The reason. Each waiting execution shows it.
    #[arg(long, value_name = "TEXT", value_parser = parse_pause)]
    pub(crate) reason: String,
}

/// The flags of `resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The paused namespace.
    #[arg(value_name = "NAMESPACE")]
    pub(crate) namespace_name: String,
}

fn parse_pause(text: &str) -> Result<String, String> {
    parse_why(text, wfe_api::limits::REASON, "it is paused")
}
