//! A model of a cluster in which the real core runs.
//!
//! Searches with [stateright](https://docs.rs/stateright) try every order in which two operators, Tekton, people and a
//! faulty network can act on the executions of one target. The real [`wfe_core::decide`] decides what an operator does
//! next. Everything else is modelled as simply as possible: the objects with uids and versions, the order of events,
//! and views that are prefixes of this order. Writes have preconditions, and requests can be late, lost or repeated.
//!
//! # Guarantees
//! - A search without a finding has visited all states that its setting allows, breadth first. States are distinguished
//!   by 64-bit hashes, as in stateright. With ten million states, the chance that two states have the same hash is
//!   about one in 400 000.
//! - [`Claim::Ends`](claim::Claim::Ends) is about states in which only a fault can happen. In these, every execution is
//!   terminal and no run is unfinished. A sequence of steps that never reaches such a state creates runs for ever. The
//!   model limits the number of creations after all operators have seen all executions and pods. Other creations can
//!   continue for ever only if a watch lags for ever. So every sequence in which watches deliver and operators restart
//!   reaches such a state.
//!
//! # Assumptions
//! - There are one target, at most three executions (of which one may be created again), at most two operators, and one
//!   fault of each kind.
//! - The first list of a process is the newest state. A watch delivers the events of its kind in order and without
//!   gaps.
//! - For each target, a process does one thing at a time. It sees its own writes before it decides again, and does not
//!   decide on an incomplete list.
//! - The history forbids nothing: every execution has a workflow of its own, and failures neither count nor back off.
//!   The searches are about the lock.
//! - Time stands still. Only one deadline of the core can pass: the end of the retention, in searches in which the
//!   retention is zero.
//!
//! The following simplifications make a search smaller. They hide no behaviour that is visible from outside:
//! - A decision and its first write are one step. The view does not change in between, and an earlier decision on the
//!   same view would be equal.
//! - A process's own write is in the view immediately, unless a list may come in between. Nothing is decided before
//!   that.
//! - A step that fails without new knowledge is not taken. A process may retry it later, and anything may happen
//!   before.
//! - A live read and the write that depends on it are one step if the fact cannot change again: that an object with
//!   this uid is gone. Other live reads are separate steps.
//! - Watches deliver nothing to a process in the middle of a task, because the process does not read its view then.

mod canon;
pub mod claim;
pub mod cluster;
pub mod fault;
pub mod leave_out;
pub mod model;
pub mod object;
pub mod operator;
pub mod request;
pub mod search;
mod server;
pub mod trace;
pub mod translate;
pub mod view;
