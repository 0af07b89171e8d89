//! What a cluster does by itself: Tekton plays its recorded stories, garbage is collected, and pods end.

#![allow(clippy::unwrap_used, clippy::panic)] // a test reports an error by panicking

mod compare;
mod disturbed;
mod format;
mod stage;
mod stopped;
mod undisturbed;
