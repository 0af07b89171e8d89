//! `WorkflowSchedule` on the real API server: what it accepts, of whom, and what `kubectl` makes of it.

mod admission;
mod objects;
mod policies;
mod tools;
