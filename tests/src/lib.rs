//! Tests against the real control plane live in `cluster/`; this library is empty.
