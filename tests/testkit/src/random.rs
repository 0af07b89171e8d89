//! Names and ports that no other process uses. They are random enough for tests on one machine, but not for secrets.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::TcpListener;

use anyhow::{Context as _, Result};

/// Returns a random number. Each `RandomState` has keys of its own.
pub(crate) fn number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns `length` (at most 16) random characters that are legal in a Kubernetes name.
pub(crate) fn letters(length: usize) -> String {
    format!("{:016x}", number())[..length.min(16)].to_owned()
}

/// Finds a port that is free now. It is below the range from which Linux takes ports for outgoing connections. Another
/// process may still take the port first. The caller then starts its program again with another port.
pub(crate) fn free_port() -> Result<u16> {
    (0..200)
        .map(|_| 20_000 + u16::try_from(number() % 12_000).unwrap_or_default())
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no free port between 20000 and 32000")
}
