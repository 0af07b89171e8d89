//! A model cluster; the real core runs in it.
//!
//! Searches of [stateright](https://docs.rs/stateright) go through every order in which two operators, Tekton, people
//! and a faulty network can act on the executions of one target. What an operator does next is decided by the real
//! [`wfe_core::decide`]; everything around it is modelled as small as it can be: the objects with uids and versions,
//! the order of events, views that are prefixes of that order, writes with preconditions, requests that are late, lost
//! or repeated.
//!
//! # Guarantees
//! - A search without a finding went through all states that its setting allows: breadth first, to the end. (States are
//!   told apart by 64-bit hashes, as stateright does; at ten million states the chance that one hid behind another is
//!   about one in 400 000.)
//! - [`Claim::Ends`](claim::Claim::Ends) is a claim about states in which nothing but a fault can happen: there every
//!   execution is terminal and no run is unfinished. A schedule that never comes to such a state creates runs for ever.
//!   The creations made while everybody had seen all executions and pods are counted, and their number is bounded;
//!   others need a watch that stays behind for ever. So every schedule in which watches deliver and operators restart
//!   comes to such an end.
//!
//! # Assumptions
//! - One target, at most three executions (and one made again), at most two operators, one fault of a kind.
//! - The list that a process begins with is the newest; a watch delivers the events of its kind in order, without gaps.
//! - A process is serial per target, sees its own writes before it decides again, and decides on no half list.
//! - The history forbids nothing: every execution has a workflow of its own, and failures neither count nor back off.
//!   The searches are about the lock, whoever asks for it.
//! - Time stands still: no deadline of the core passes but that of retention, where a search has none.
//!
//! # What is left out, because it changes nothing
//! Each of these makes a search smaller and loses no behaviour that could be seen from outside.
//! - A decision and its first write are one step: the view does not change in between, and deciding earlier on the same
//!   view says the same.
//! - What a process has written is in its view at once, where no list can come in between: it does not decide before.
//! - A step that fails and teaches nothing is not taken. A process may retry it, and everything else may come first.
//! - A live read of something that cannot change any more (an object is gone; uids do not come back) is one step with
//!   the write that rests on it. Others are steps of their own.
//! - Watches deliver nothing to a process in the middle of a task: it does not look.

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
