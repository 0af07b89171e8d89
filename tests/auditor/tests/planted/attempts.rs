//! Executions with a retry policy: good stories of several attempts, and stories with one violation each.

mod good;
mod number;
mod target;
mod waits;
