//! The flags of `completion`.

use clap::{Args, ValueEnum};

pub(super) const COMPLETION: &str = "\
Examples:
  kubectl wfe completion kubectl > /usr/local/bin/kubectl_complete-wfe    completes kubectl wfe, with names
  chmod +x /usr/local/bin/kubectl_complete-wfe
  kubectl-wfe completion bash > /etc/bash_completion.d/kubectl-wfe        completes kubectl-wfe, without names

The first command needs kubectl's own completion: see kubectl completion --help. Exit code: 0; 2 an error.";

/// The flags of `completion`.
#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell; or `kubectl`, for the program that kubectl's own completion calls for this plugin, in any shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// What a script is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// The script for bash.
    Bash,
    /// The script for fish.
    Fish,
    /// The program kubectl_complete-wfe. Put it on the PATH.
    Kubectl,
    /// The script for PowerShell.
    Powershell,
    /// The script for zsh.
    Zsh,
}
