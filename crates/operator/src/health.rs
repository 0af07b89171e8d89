//! Whether the process is alive and ready to decide; the probes ask for both.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wfe_core::trouble::OwnTrouble;
use wfe_view::index::Kind;

/// The process counts as stuck if the engine's last sign of life is older than this. The engine gives one every second.
const STUCK_AFTER: Duration = Duration::from_mins(1);
/// How long the process stays unready after the last failure of a watch. This is longer than the longest wait between
/// two retries plus one try, so a watch that keeps failing never looks ready in between.
const FAILING_FOR: Duration = Duration::from_secs(20);

/// The limit of paused namespaces that `/readyz` lists by name. It counts the others.
const NAMED: usize = 5;

/// The shared record of the health. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    engine_alive: Instant,
    synced: bool,
    /// The part of the view that is too old to decide on.
    stale: Option<String>,
    stopping: bool,
    /// What the process waits for before it can work.
    awaits: Option<String>,
    failing: HashMap<Kind, (Instant, String)>,
    /// The last logged error of each failing watch.
    logged: HashMap<Kind, String>,
    /// What people have paused, as text. The process stays ready.
    paused: Option<String>,
    /// Why the operator cannot see schedules. Executions do not need them, so the process stays ready.
    unscheduled: Option<String>,
    /// Which admission policies are missing or changed. The process stays ready: see [`Health::unprotected`].
    unprotected: Option<String>,
    /// Which decisive field the CRD of executions lacks, as text.
    unfit: Option<String>,
    /// Which other fields the CRDs lack, as text. The process stays ready.
    outdated: Option<String>,
    /// How many targets wait because of a fault of the operator itself, and one of these faults as text.
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
            logged: HashMap::new(),
            paused: None,
            unscheduled: None,
            unprotected: None,
            unfit: None,
            outdated: None,
            own_trouble: None,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Records a sign of life of the engine. `stale` names the part of the view that is too old to decide on, if there
    /// is one.
    pub fn engine_alive(&self, synced: bool, stale: Option<String>) {
        self.update(|state| {
            state.engine_alive = Instant::now();
            state.synced = synced;
            state.stale = stale;
        });
    }

    /// Records what the process waits for before it can work; `None` if it can.
    pub fn awaits(&self, what: Option<String>) {
        self.update(|state| {
            state.engine_alive = Instant::now();
            state.awaits = what;
        });
    }

    /// Records that the process was asked to stop.
    pub fn stopping(&self) {
        self.update(|state| state.stopping = true);
    }

    /// Records that `by` pauses everything, or that these namespaces are paused. With neither, nothing is paused.
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

    /// Records why the operator cannot see schedules; `None` if it can.
    pub fn unscheduled(&self, why: Option<String>) {
        self.update(|state| state.unscheduled = why.map(|why| format!("no WorkflowSchedule runs: {why}")));
    }

    /// Records which admission policies are missing or changed; `None` if all are in force. The process stays ready. An
    /// unready process would protect nothing, and another replica would find the same fault. An upgrade that restores
    /// the policies would wait for readiness.
    pub fn unprotected(&self, why: Option<String>) {
        self.update(|state| state.unprotected = why);
    }

    /// Records which decisive field the CRD of executions lacks, as text; `None` if it has all of them.
    pub fn unfit(&self, why: Option<String>) {
        self.update(|state| state.unfit = why);
    }

    /// Records which other fields the CRDs lack, as text. The operator works without them.
    pub fn outdated(&self, why: Option<String>) {
        self.update(|state| state.outdated = why);
    }

    /// Returns the notices of a ready process: what is paused, why schedules do not run, which policies are not in
    /// force, and which fields the CRDs lack.
    #[must_use]
    pub fn notes(&self) -> Option<String> {
        self.read(|state| {
            let notes = state.paused.iter().chain(&state.unscheduled).chain(&state.unprotected).chain(&state.outdated);
            let notes: Vec<&str> = notes.map(String::as_str).collect();
            (!notes.is_empty()).then(|| notes.join("; "))
        })
    }

    /// Records that a watch delivered something.
    pub fn watch_delivered(&self, kind: Kind) {
        self.update(|state| {
            state.failing.remove(&kind);
            state.logged.remove(&kind);
        });
    }

    /// Records that a watch or its list failed.
    pub fn watch_failed(&self, kind: Kind, error: String) {
        self.update(|state| {
            state.failing.insert(kind, (Instant::now(), error));
        });
    }

    /// Returns whether no failing watch has logged this error yet, and records that this watch logs it. If the API
    /// server cannot be reached, all watches fail alike again and again, and one line is enough.
    #[must_use]
    pub fn is_news(&self, kind: Kind, error: &str) -> bool {
        let mut is_news = false;
        self.update(|state| {
            is_news = state.logged.values().all(|logged| logged != error);
            if is_news {
                state.logged.insert(kind, error.to_owned());
            }
        });
        is_news
    }

    /// Records how many targets wait because of a fault of the operator itself, and one of these faults.
    pub fn own_trouble(&self, targets: usize, one: Option<&OwnTrouble>) {
        self.update(|state| state.own_trouble = one.map(|trouble| (targets, trouble.message())));
    }

    /// Answers `/healthz`.
    ///
    /// # Errors
    /// The fault. The process should be restarted.
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

    /// Returns the failures of the watches that every target needs, if there are any.
    #[must_use]
    pub fn failing(&self) -> Option<String> {
        let failing = self.read(|state| state.failing(|_| true));
        (!failing.is_empty()).then(|| failing.join("; "))
    }

    /// Returns why one watch fails, if it does.
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
    /// Returns the failures of the watches that every target needs, if `counts` returns true for the time of the
    /// watch's last failure.
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
