//! Records which namespaces are paused or being deleted, and which executions and schedules this affects.

use std::collections::HashMap;
use std::sync::Arc;

use wfe_core::name::Uid;
use wfe_core::target::{Target, TargetName};
use wfe_core::waiting::Pause;

use super::{Index, Kind};

impl Index {
    pub(super) fn apply_namespace(&mut self, uid: Uid, name: &str, paused: Option<&str>, leaving: bool) {
        self.note_seen(Kind::Namespace, &uid);
        self.namespaces.insert(uid, name.into());
        let pause = paused.map(|why| Arc::new(Pause { namespace: name.into(), why: why.into() }));
        let previous = match pause.clone() {
            Some(pause) => self.paused.insert(name.into(), pause),
            None => self.paused.remove(name),
        };
        if previous != pause {
            self.spread_pause(name);
        }
        if leaving && self.leaving.insert(name.into()) {
            self.leave(name);
        }
    }

    pub(super) fn delete_namespace(&mut self, uid: &Uid) {
        let Some(name) = self.namespaces.remove(uid) else { return };
        self.leaving.remove(&name);
        self.shared.remove(&*name);
        if self.paused.remove(&name).is_some() {
            self.spread_pause(&name);
        }
    }

    /// Pauses or resumes the executions and schedules in a namespace, and those with a target in it. It examines all of
    /// them, because people set a pause by hand and rarely.
    fn spread_pause(&mut self, namespace: &str) {
        for (key, entry) in &mut self.targets {
            let Target { name, executions, schedules, .. } = &mut entry.target;
            let is_target_in_it = name.as_ref().and_then(TargetName::namespace) == Some(namespace);
            let executions = executions.values_mut().map(|it| (&it.id.namespace, &mut it.paused));
            let schedules = schedules.values_mut().map(|it| (&it.id.namespace, &mut it.paused));
            for (its_own, paused) in
                executions.chain(schedules).filter(|(it, _)| is_target_in_it || &***it == namespace)
            {
                *paused = pause_for(&self.paused, its_own, name.as_ref());
                self.dirty.insert(key.clone());
            }
        }
    }

    /// Marks the schedules of a namespace whose deletion has begun, which cannot be undone.
    fn leave(&mut self, namespace: &str) {
        for (key, entry) in &mut self.targets {
            for schedule in entry.target.schedules.values_mut().filter(|it| &*it.id.namespace == namespace) {
                schedule.leaving = true;
                self.dirty.insert(key.clone());
            }
        }
    }

    /// Returns why a namespace is paused, if it is.
    #[must_use]
    pub fn pause_of(&self, namespace: &str) -> Option<&Pause> {
        self.paused.get(namespace).map(Arc::as_ref)
    }

    /// Returns the watched namespaces that are paused, in order.
    #[must_use]
    pub fn paused_namespaces(&self) -> Vec<&str> {
        let watched = |name: &str| self.watch_namespace.as_deref().is_none_or(|watched| watched == name);
        let mut paused: Vec<&str> = self.paused.keys().map(AsRef::as_ref).filter(|name| watched(name)).collect();
        paused.sort_unstable();
        paused
    }
}

/// Returns the pause that affects an execution or a schedule: that of its own namespace, else that of its target's
/// namespace.
pub(super) fn pause_for(
    paused: &HashMap<Box<str>, Arc<Pause>>,
    namespace: &str,
    target: Option<&TargetName>,
) -> Option<Arc<Pause>> {
    let of_target = || paused.get(target?.namespace()?);
    paused.get(namespace).or_else(of_target).cloned()
}
