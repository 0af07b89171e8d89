//! Whether the process lives and whether it can decide, as the probes ask it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wfe_core::trouble::OwnTrouble;
use wfe_view::index::Kind;

/// How old the engine's last sign of life may be. It gives one every second.
const STUCK_AFTER: Duration = Duration::from_mins(1);
/// How long a failed watch keeps the process unready when nothing else is heard: longer than its longest wait between
/// two tries and the time that a try may take, so that one that goes on failing never looks ready in between.
const FAILING_FOR: Duration = Duration::from_secs(20);

/// How many paused namespaces are named; of the others `/readyz` gives the number.
const NAMED: usize = 5;

/// The shared record. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    engine_alive: Instant,
    synced: bool,
    /// Which view is too old to decide on.
    stale: Option<String>,
    stopping: bool,
    /// What keeps it from starting to work.
    awaits: Option<String>,
    failing: HashMap<Kind, (Instant, String)>,
    /// What people have paused, in words. It keeps nobody from being ready.
    paused: Option<String>,
    /// Why schedules cannot be seen. Executions go on without them, so it keeps nobody from being ready either.
    unscheduled: Option<String>,
    /// Which admission policies do not protect. It keeps nobody from being ready: see [`Health::unprotected`].
    unprotected: Option<String>,
    /// Which decisive field the CRD of executions lacks, in words.
    unfit: Option<String>,
    /// Which other fields the CRDs lack, in words. It keeps nobody from being ready.
    outdated: Option<String>,
    /// How many targets wait for the operator's own trouble, and one such trouble in words.
    own_trouble: Option<(usize, String)>,
}

impl Health {
    /// Makes the record of a process that has just started.
    #[must_use]
    pub fn new() -> Self {
        let state = State {
            engine_alive: Instant::now(),
            synced: false,
            stale: None,
            stopping: false,
            awaits: None,
            failing: HashMap::new(),
            paused: None,
            unscheduled: None,
            unprotected: None,
            unfit: None,
            outdated: None,
            own_trouble: None,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// The engine goes round. `stale` says which view is too old to decide on, where one is.
    pub fn engine_alive(&self, synced: bool, stale: Option<String>) {
        self.update(|state| {
            state.engine_alive = Instant::now();
            state.synced = synced;
            state.stale = stale;
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

    /// Somebody has paused everything, as `by` says, or these namespaces; or nothing is paused.
    pub fn paused(&self, by: Option<&str>, namespaces: &[&str]) {
        let everything = by.map(|by| format!("everything is paused by {by}"));
        let named = match namespaces {
            [] => None,
            [one] => Some(format!("namespace {one} is paused")),
            some if some.len() <= NAMED => Some(format!("namespaces {} are paused", some.join(", "))),
            many => {
                let (first, more) = many.split_at(NAMED);
                Some(format!("namespaces {} and {} more are paused", first.join(", "), more.len()))
            }
        };
        let said: Vec<String> = everything.into_iter().chain(named).collect();
        self.update(|state| state.paused = (!said.is_empty()).then(|| said.join("; ")));
    }

    /// Schedules cannot be seen, as this says; `None`: they can.
    pub fn unscheduled(&self, why: Option<String>) {
        self.update(|state| state.unscheduled = why.map(|why| format!("no WorkflowSchedule runs: {why}")));
    }

    /// These admission policies do not protect; `None`: all do. The process stays ready: an unready one is taken out of
    /// nothing that would be safer without it, another replica would find the same, and an upgrade that puts the
    /// policies back would wait for it.
    pub fn unprotected(&self, why: Option<String>) {
        self.update(|state| state.unprotected = why);
    }

    /// Records which decisive field the CRD of executions lacks, in words; `None`: it has all of them.
    pub fn unfit(&self, why: Option<String>) {
        self.update(|state| state.unfit = why);
    }

    /// Records which other fields the CRDs lack, in words. The operator works on without them.
    pub fn outdated(&self, why: Option<String>) {
        self.update(|state| state.outdated = why);
    }

    /// Returns what else people should know of a process that is ready: what is paused, whether schedules run, which
    /// policies are missing, and which fields the CRDs lack.
    #[must_use]
    pub fn notes(&self) -> Option<String> {
        self.read(|state| {
            let notes = state.paused.iter().chain(&state.unscheduled).chain(&state.unprotected).chain(&state.outdated);
            let notes: Vec<&str> = notes.map(String::as_str).collect();
            (!notes.is_empty()).then(|| notes.join("; "))
        })
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

    /// Records how many targets wait for the operator's own trouble, and one such trouble.
    pub fn own_trouble(&self, targets: usize, one: Option<&OwnTrouble>) {
        self.update(|state| state.own_trouble = one.map(|trouble| (targets, trouble.message())));
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
            if let Some(why) = &state.unfit {
                return Err(why.clone());
            }
            let mut failing = state.failing(|since| since.elapsed() < FAILING_FOR || !state.synced);
            failing.extend(state.stale.clone());
            match (failing.is_empty(), state.synced) {
                (false, _) => Err(failing.join("; ")),
                (true, false) => Err("the caches are not synced yet".to_owned()),
                (true, true) => match &state.own_trouble {
                    Some((targets, words)) => Err(format!("{targets} target(s) wait: {words}")),
                    None => Ok(()),
                },
            }
        })
    }

    /// Returns what fails of the watches that every target needs, where something does.
    #[must_use]
    pub fn failing(&self) -> Option<String> {
        let failing = self.read(|state| state.failing(|_| true));
        (!failing.is_empty()).then(|| failing.join("; "))
    }

    /// Returns why one watch fails, where it does.
    #[must_use]
    pub fn failure(&self, kind: Kind) -> Option<String> {
        self.read(|state| state.failing.get(&kind).map(|(_, error)| cannot_watch(kind, error)))
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// Returns the failures of the watches that every target needs, and that began at such a time.
    fn failing(&self, counts: impl Fn(&Instant) -> bool) -> Vec<String> {
        let needed = self.failing.iter().filter(|(kind, (since, _))| Kind::NEEDED.contains(kind) && counts(since));
        let mut failing: Vec<String> = needed.map(|(kind, (_, error))| cannot_watch(*kind, error)).collect();
        failing.sort();
        failing
    }
}

fn cannot_watch(kind: Kind, error: &str) -> String {
    format!("cannot watch {}: {error}", kind.label())
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_view_is_not_ready_until_it_is_fresh_again() {
        let health = Health::new();
        health.engine_alive(true, None);
        assert_eq!(health.ready(), Ok(()));
        let stale = "the watch of pods has been silent for 200 s".to_owned();
        health.engine_alive(true, Some(stale.clone()));
        assert_eq!(health.ready(), Err(stale.clone()));
        health.watch_failed(Kind::Pod, "refused".to_owned());
        assert_eq!(health.ready(), Err(format!("cannot watch pods: refused; {stale}")));
        health.watch_delivered(Kind::Pod);
        health.engine_alive(true, None);
        assert_eq!(health.ready(), Ok(()));
    }

    #[test]
    fn schedules_that_cannot_be_seen_are_told_and_keep_nobody_from_being_ready() {
        let health = Health::new();
        health.engine_alive(true, None);
        health.watch_failed(Kind::Schedule, "not found; install the CRD".to_owned());
        assert_eq!((health.ready(), health.failing()), (Ok(()), None));
        let why = health.failure(Kind::Schedule);
        assert_eq!(why.as_deref(), Some("cannot watch workflowschedules: not found; install the CRD"));
        health.unscheduled(why);
        health.paused(None, &["a"]);
        let said = "namespace a is paused; no WorkflowSchedule runs: cannot watch workflowschedules: not found; install \
                    the CRD";
        assert_eq!(health.notes().as_deref(), Some(said));
        health.watch_delivered(Kind::Schedule);
        health.unscheduled(health.failure(Kind::Schedule));
        assert_eq!(health.notes().as_deref(), Some("namespace a is paused"));
    }

    #[test]
    fn policies_that_do_not_protect_are_told_and_keep_nobody_from_being_ready() {
        let health = Health::new();
        health.engine_alive(true, None);
        health.unprotected(Some("1 of 9 admission policies do not protect".to_owned()));
        assert_eq!(health.ready(), Ok(()));
        assert_eq!(health.notes().as_deref(), Some("1 of 9 admission policies do not protect"));
        health.unprotected(None);
        assert_eq!(health.notes(), None);
    }

    #[test]
    fn a_crd_without_a_decisive_field_is_not_ready_and_one_without_another_field_is() {
        let health = Health::new();
        health.engine_alive(true, None);
        health.outdated(Some("the CRD x lacks spec.retry".to_owned()));
        assert_eq!((health.ready(), health.notes().as_deref()), (Ok(()), Some("the CRD x lacks spec.retry")));
        health.unfit(Some("the CRD x lacks status.phase".to_owned()));
        assert_eq!(health.ready(), Err("the CRD x lacks status.phase".to_owned()));
        health.unfit(None);
        assert_eq!(health.ready(), Ok(()));
    }

    #[test]
    fn pauses_are_named_and_their_number_has_a_limit() {
        let health = Health::new();
        let said = |by, namespaces: &[&str]| {
            health.paused(by, namespaces);
            health.notes()
        };
        assert_eq!(said(None, &[]), None);
        let by = Some("ConfigMap ops/config");
        assert_eq!(said(by, &[]).as_deref(), Some("everything is paused by ConfigMap ops/config"));
        let both = "everything is paused by ConfigMap ops/config; namespace a is paused";
        assert_eq!(said(by, &["a"]).as_deref(), Some(both));
        assert_eq!(said(None, &["a", "b"]).as_deref(), Some("namespaces a, b are paused"));
        let many = "namespaces a, b, c, d, e and 2 more are paused";
        assert_eq!(said(None, &["a", "b", "c", "d", "e", "f", "g"]).as_deref(), Some(many));
    }
}
