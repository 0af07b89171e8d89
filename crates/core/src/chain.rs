//! The names of a target's runs (section 5).

use std::fmt;

/// The number of a run in its chain, from 1.
pub type RunNumber = u64;

/// The name of a target's chain: the first 16 hexadecimal digits of the SHA-256 of the canonical target.
///
/// If two targets had the same name, they would share a lock. That is too coarse, but safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainName(pub(crate) u64);

impl ChainName {
    /// Returns the name of the chain's n-th run.
    #[must_use]
    pub fn run(self, number: RunNumber) -> String {
        format!("wfe-{self}-{number}")
    }

    /// Reads the name of a run; `None` if it is not the name of a chain's run.
    #[must_use]
    pub fn of_run(name: &str) -> Option<(Self, RunNumber)> {
        let (hash, number) = name.strip_prefix("wfe-")?.split_once('-')?;
        let chain = Self(u64::from_str_radix(hash, 16).ok()?);
        let number: RunNumber = number.parse().ok()?;
        // Accepts only the spelling that `run` writes: no sign, no leading zero, no upper case.
        (number > 0 && chain.run(number) == name).then_some((chain, number))
    }

    /// Reads the chain from the name of an object that Tekton has created for a run. This name begins with the name of
    /// the run. Anything may follow the number, because Tekton shortens long names.
    #[must_use]
    pub fn of_made(name: &str) -> Option<Self> {
        let (hash, rest) = name.strip_prefix("wfe-")?.split_once('-')?;
        let chain = Self(u64::from_str_radix(hash, 16).ok()?);
        let has_number = rest.starts_with(|first: char| matches!(first, '1'..='9'));
        (has_number && chain.to_string() == hash).then_some(chain)
    }
}

impl fmt::Display for ChainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
