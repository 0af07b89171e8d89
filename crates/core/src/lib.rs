//! The decision: targets, rules, the chain protocol. Pure: no client, no clock, no randomness, no async.
