//! Recordings with one planted violation each. The auditor finds exactly that one.

// Everything here is test code, and a helper may panic as a test does.
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
