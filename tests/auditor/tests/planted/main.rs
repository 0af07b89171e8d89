//! Recordings with one planted violation each. The auditor must find exactly this violation.

// Everything here is test code, so helpers may panic as tests do.
#![cfg(test)]

mod attempts;
mod chain;
mod command;
mod counters;
mod good;
mod incomplete;
mod limits;
mod real;
mod reasons;
mod records;
mod runs;
mod schedules;
mod skips;
mod story;
mod triages;
mod turns;
mod writes;
