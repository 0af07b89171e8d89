//! Starts the real control plane for tests and the demo; builders, waits, dumps. For tests only.

mod assets;
pub mod bundle;
mod components;
mod control_plane;
mod http;
pub mod manifests;
mod pki;
mod place;
mod prepared;
pub mod pipeline;
pub mod process;
mod random;
mod running;
mod stack;
pub mod supervisor;
mod webhook;

pub use assets::{Assets, repository};
pub use control_plane::ControlPlane;
pub use bundle::Bundle;
pub use pipeline::{Outcome, Pipeline};
pub use stack::{Info, Options};
