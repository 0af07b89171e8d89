//! Whether the process lives and whether it can decide, as the probes ask it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::index::Kind;

/// How old the engine's last sign of life may be. It gives one every second.
const STUCK_AFTER: Duration = Duration::from_mins(1);
/// How long a failed watch keeps the process unready when nothing else is heard: longer than its longest wait between
/// two tries and the time that a try may take, so that one that goes on failing never looks ready in between.
const FAILING_FOR: Duration = Duration::from_secs(20);

/// The shared record. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    engine_alive: Instant,
    synced: bool,
    stopping: bool,
    /// What keeps it from starting to work.
    awaits: Option<String>,
    failing: HashMap<Kind, (Instant, String)>,
}

impl Health {
    /// Makes the record of a process that has just started.
    #[must_use]
    pub fn new() -> Self {
        let state = State {
            engine_alive: Instant::now(),
            synced: false,
            stopping: false,
            awaits: None,
            failing: HashMap::new(),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// The engine goes round.
    pub fn engine_alive(&self, synced: bool) {
        self.update(|state| {
            state.engine_alive = Instant::now();
            state.synced = synced;
        });
    }

    /// The process cannot start to work before something that is told here; `None`: it can.
    pub fn awaits(&self, what: Option<String>) {
        self.update(|state| {
            state.engine_alive = Instant::now();
            state.awaits = what;
        });
    }

    /// The process has been asked to stop.
    pub fn stopping(&self) {
        self.update(|state| state.stopping = true);
    }

    /// A watch has brought something.
    pub fn watch_delivered(&self, kind: Kind) {
        self.update(|state| {
            state.failing.remove(&kind);
        });
    }

    /// A watch or its list has failed.
    pub fn watch_failed(&self, kind: Kind, error: String) {
        self.update(|state| {
            state.failing.insert(kind, (Instant::now(), error));
        });
    }

    /// Answers `/healthz`.
    ///
    /// # Errors
    /// What is wrong: the process should be restarted.
    pub fn alive(&self) -> Result<(), String> {
        self.read(|state| {
            let silent = state.engine_alive.elapsed();
            if silent > STUCK_AFTER {
                Err(format!("the engine has been stuck for {} s", silent.as_secs()))
            } else {
                Ok(())
            }
        })
    }

    /// Answers `/readyz`.
    ///
    /// # Errors
    /// What the process waits for.
    pub fn ready(&self) -> Result<(), String> {
        self.read(|state| {
            if state.stopping {
                return Err("stopping".to_owned());
            }
            if let Some(what) = &state.awaits {
                return Err(what.clone());
            }
            let failing = state.failing.iter().filter(|(_, (since, _))| since.elapsed() < FAILING_FOR || !state.synced);
            let mut failing: Vec<String> =
                failing.map(|(kind, (_, error))| format!("cannot watch {}: {error}", kind.label())).collect();
            failing.sort();
            match (failing.is_empty(), state.synced) {
                (false, _) => Err(failing.join("; ")),
                (true, false) => Err("the caches are not synced yet".to_owned()),
                (true, true) => Ok(()),
            }
        })
    }

    /// Returns what fails, where something does.
    #[must_use]
    pub fn failing(&self) -> Option<String> {
        self.read(|state| {
            let mut failing: Vec<String> = state
                .failing
                .iter()
                .map(|(kind, (_, error))| format!("cannot watch {}: {error}", kind.label()))
                .collect();
            failing.sort();
            (!failing.is_empty()).then(|| failing.join("; "))
        })
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}
