//! Executions with a retry policy: correct stories of several attempts, and stories with one violation each.

mod good;
mod number;
mod target;
mod waits;
