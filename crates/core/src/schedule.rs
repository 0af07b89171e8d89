//! Schedules: when a workflow runs again without a person (SPEC section 12).

pub mod cron;
