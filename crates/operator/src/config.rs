//! Follows the `ConfigMap`, and shows what is in force of it and of the flags.
//!
//! How both are read, and which wins, is `wfe_settings::config`.

mod follow;
mod page;
mod print;

pub use follow::{Follower, read_first};
pub use page::Page;
pub use print::print;

#[cfg(test)]
mod tests;
