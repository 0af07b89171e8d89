//! Tests against the real control plane.

mod admission;

#[test]
fn placeholder() {}
