//! Follows the `ConfigMap`, and shows which settings from the `ConfigMap` and the flags are in force.
//!
//! `wfe_settings::config` reads both and decides which value wins.

mod follow;
mod page;
mod print;

pub use follow::{Follower, read_first};
pub use page::Page;
pub use print::print;

#[cfg(test)]
mod tests;
