//! A model cluster in which the real core runs.
//!
//! Searches of [stateright](https://docs.rs/stateright) try every order in which two operators, Tekton, people and a
//! faulty network can act on the executions of one target. The real [`wfe_core::decide`] decides what an operator does
//! next. Everything around it is modelled as small as possible: the objects with uids and versions, the order of
//! events, and views that are prefixes of that order. Writes have preconditions, and requests can be late, lost or
//! repeated.
//!
//! # Guarantees
//! - A search without a finding visited all states that its setting allows, breadth first to the end. (States are told
//!   apart by 64-bit hashes, as stateright does. With ten million states, the chance that one state hid behind another
//!   is about one in 400 000.)
//! - [`Claim::Ends`](claim::Claim::Ends) is about states in which nothing but a fault can happen: every execution there
//!   is terminal, and no run is unfinished. A schedule that never reaches such a state creates runs for ever. The model
//!   counts the creations that happen after all operators have seen all executions and pods, and limits their number.
//!   Other creations need a watch that lags for ever. Every schedule in which watches deliver and operators restart
//!   therefore reaches such a state.
//!
//! # Assumptions
//! - One target, at most three executions (and one made again), at most two operators, one fault of each kind.
//! - The first list of a process is the newest state. A watch delivers the events of its kind in order, without gaps.
//! - A process is serial per target, sees its own writes before it decides again, and decides on no incomplete list.
//! - The history forbids nothing: every execution has a workflow of its own, and failures neither count nor back off.
//!   The searches are about the lock.
//! - Time stands still. Of the core's deadlines only retention passes, in searches without retention.
//!
//! What is left out because it changes nothing
//! Each of these makes a search smaller and loses no behaviour that is visible from outside.
//! - A decision and its first write are one step. The view does not change in between, and an earlier decision on the
//!   same view is the same.
//! - An own write is in the view at once, unless a list can come in between. Nothing is decided before that.
//! - A step that fails and teaches nothing is not taken. A process may retry it, and anything else may happen first.
//! - A live read of a fact that cannot change any more is one step with the write that rests on it. (An object is gone,
//!   and uids do not come back.) Other live reads are steps of their own.
//! - Watches deliver nothing to a process in the middle of a task, because it does not read its view then.

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
