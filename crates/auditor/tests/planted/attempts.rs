//! Executions with a retry policy: good stories of several attempts, and one violation each.

mod number;
mod target;
mod waits;
