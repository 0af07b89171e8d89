//! Recordings with one planted violation each: exactly that one is found.

// All of it is test code, so that a helper may panic as a test does.
#![cfg(test)]

mod chain;
mod command;
mod good;
mod incomplete;
mod real;
mod records;
mod runs;
mod skips;
mod story;
mod writes;
