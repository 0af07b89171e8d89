//! Tests against the real control plane.

#[test]
fn placeholder() {}
