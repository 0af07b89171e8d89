//! A model cluster; the real core runs in it.

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
pub mod trace;
pub mod translate;
pub mod view;
