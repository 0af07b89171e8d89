//! Starts the real control plane for tests and the demo; builders, waits, dumps. For tests only.
