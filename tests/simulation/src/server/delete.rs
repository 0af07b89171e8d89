//! Deletions: preconditions, finalizers and grace periods.

use bytes::Bytes;
use chrono::TimeDelta;
use serde_json::{Value, json};
use wfe_core::Time;

use super::Server;
use super::answer::{Answer, bad_request, conflict, deleted, not_found};
use super::kind::Special;
use super::metadata::{finalizers, text, timestamp};
use super::store::Key;
use super::target::{Query, Target};

/// The grace period of a pod whose spec sets none.
const GRACE_SECONDS: i64 = 30;

/// What shall happen to an object's dependents. The server only sets and removes the finalizers for this, and a
/// controller acts on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Propagation {
    /// All finalizers that request a propagation.
    const FINALIZERS: [&str; 2] = ["foregroundDeletion", "orphan"];

    fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Background => None,
            Self::Foreground => Some(Self::FINALIZERS[0]),
            Self::Orphan => Some(Self::FINALIZERS[1]),
        }
    }
}

/// The options of a deletion.
#[derive(Debug, Default)]
struct Options {
    uid: Option<String>,
    version: Option<String>,
    grace: Option<i64>,
    propagation: Option<Propagation>,
}

impl Options {
    fn parse(query: &Query, body: &Bytes) -> Result<Self, Answer> {
        let body: Value = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).map_err(|error| bad_request(&error.to_string()))?
        };
        let own = |value: &Value| value.as_str().map(str::to_owned);
        let grace = body["gracePeriodSeconds"].as_i64();
        let policy = body["propagationPolicy"].as_str().or(query.text("propagationPolicy"));
        Ok(Self {
            uid: own(&body["preconditions"]["uid"]),
            version: own(&body["preconditions"]["resourceVersion"]),
            grace: grace.or_else(|| query.number("gracePeriodSeconds").and_then(|seconds| i64::try_from(seconds).ok())),
            propagation: match policy {
                Some("Foreground") => Some(Propagation::Foreground),
                Some("Orphan") => Some(Propagation::Orphan),
                Some("Background") => Some(Propagation::Background),
                _ => None,
            },
        })
    }
}

impl Server {
    pub(super) fn delete(
        &mut self,
        target: &Target,
        name: &str,
        query: &Query,
        body: &Bytes,
        now: Time,
    ) -> Result<Answer, Answer> {
        let options = Options::parse(query, body)?;
        let kind = self.kind(target);
        let Some(old) = self.store.get(&target.key(name)).cloned() else { return Err(not_found(kind, name)) };
        for (wanted, field) in [(&options.uid, "uid"), (&options.version, "resourceVersion")] {
            if wanted.as_deref().is_some_and(|wanted| wanted != text(&old, field)) {
                return Err(conflict(kind, name, &format!("Precondition failed: {field}")));
            }
        }
        match kind.traits.special {
            Special::Namespace => Ok(self.terminate(target, name, &old, &options, now)),
            Special::Pod => self.delete_with_grace(target, name, &old, &options, now),
            _ => self.delete_at_once(target, name, &old, &options, now),
        }
    }

    /// Deletes an object, or marks it as being deleted if it has a finalizer.
    fn delete_at_once(
        &mut self,
        target: &Target,
        name: &str,
        old: &Value,
        options: &Options,
        now: Time,
    ) -> Result<Answer, Answer> {
        let (key, kind) = (target.key(name), self.kind(target));
        let mut new = old.clone();
        if let Some(propagation) = options.propagation.filter(|_| kind.traits.special != Special::Event) {
            propagate(&mut new, propagation);
        }
        if finalizers(&new).is_empty() {
            if !finalizers(old).is_empty() && options.version.is_some() {
                // The real server refuses this too: without its finalizers, the object no longer has the version of the
                // precondition.
                return Err(conflict(kind, name, "Precondition failed: resourceVersion"));
            }
            let answer = deleted(kind, name, text(old, "uid"));
            self.store.remove(&key);
            return Ok(answer);
        }
        if text(old, "deletionTimestamp").is_empty() {
            mark(&mut new, now, 0);
        } else if finalizers(old) == finalizers(&new) {
            return Ok(Answer::ok(new));
        }
        self.undefaulted.remove(text(old, "uid"));
        Ok(Answer::ok(Value::clone(&self.store.put(&key, new))))
    }

    /// Deletes a pod. The pod is first marked as being deleted, even without a grace period.
    fn delete_with_grace(
        &mut self,
        target: &Target,
        name: &str,
        old: &Value,
        options: &Options,
        now: Time,
    ) -> Result<Answer, Answer> {
        let key = target.key(name);
        let mut new = old.clone();
        if let Some(left) = old["metadata"]["deletionGracePeriodSeconds"].as_i64() {
            if left == 0 {
                return self.delete_without_time(target, name, old, options);
            }
            // A deletion in progress can only shorten the grace period.
            let Some(asked) = options.grace.filter(|asked| *asked < left) else { return Ok(Answer::ok(new)) };
            new["metadata"]["deletionGracePeriodSeconds"] = json!(asked);
            new["metadata"]["deletionTimestamp"] = timestamp(now + TimeDelta::seconds(asked));
        } else {
            mark(&mut new, now, grace(old, options.grace));
        }
        if let Some(propagation) = options.propagation {
            propagate(&mut new, propagation);
        }
        let is_over = new["metadata"]["deletionGracePeriodSeconds"] == 0 && finalizers(&new).is_empty();
        let mut marked = Value::clone(&self.store.put(&key, new));
        if is_over {
            self.remove(&key, &mut marked);
        }
        Ok(Answer::ok(marked))
    }

    /// Deletes a pod again whose grace period is already zero. The pod is removed if the propagation removes its last
    /// finalizer.
    fn delete_without_time(
        &mut self,
        target: &Target,
        name: &str,
        old: &Value,
        options: &Options,
    ) -> Result<Answer, Answer> {
        let (mut last, mut new) = (old.clone(), old.clone());
        if let Some(propagation) = options.propagation {
            propagate(&mut new, propagation);
        }
        if finalizers(&new) == finalizers(old) {
            return Ok(Answer::ok(last));
        }
        if !finalizers(&new).is_empty() {
            return Ok(Answer::ok(Value::clone(&self.store.put(&target.key(name), new))));
        }
        if options.version.is_some() {
            // The same refusal as in `delete_at_once`.
            return Err(conflict(self.kind(target), name, "Precondition failed: resourceVersion"));
        }
        self.remove(&target.key(name), &mut last);
        Ok(Answer::ok(last))
    }

    /// Removes a pod, and sets the version in the answer to the version of the removal.
    fn remove(&mut self, key: &Key, last: &mut Value) {
        self.store.remove(key);
        last["metadata"]["resourceVersion"] = json!(self.store.revision().to_string());
    }

    /// Begins to delete a namespace. The server does not contain the controller that empties and releases the
    /// namespace.
    fn terminate(&mut self, target: &Target, name: &str, old: &Value, options: &Options, now: Time) -> Answer {
        if !text(old, "deletionTimestamp").is_empty() {
            return Answer::ok(old.clone());
        }
        let mut new = old.clone();
        new["metadata"]["deletionTimestamp"] = timestamp(now);
        new["status"]["phase"] = json!("Terminating");
        if let Some(propagation) = options.propagation {
            propagate(&mut new, propagation);
        }
        Answer::ok(Value::clone(&self.store.put(&target.key(name), new)))
    }
}

/// Marks an object as being deleted.
fn mark(object: &mut Value, now: Time, grace: i64) {
    let meta = &mut object["metadata"];
    if let Some(generation) = meta["generation"].as_i64() {
        meta["generation"] = json!(generation + 1);
    }
    meta["deletionTimestamp"] = timestamp(now + TimeDelta::seconds(grace));
    meta["deletionGracePeriodSeconds"] = json!(grace);
}

/// Adds the finalizer for this propagation, and removes the finalizers of the others.
fn propagate(object: &mut Value, propagation: Propagation) {
    let wanted = propagation.finalizer();
    let mut all = finalizers(object).to_vec();
    all.retain(|finalizer| {
        let name = finalizer.as_str().unwrap_or_default();
        !Propagation::FINALIZERS.contains(&name) || wanted == Some(name)
    });
    if let Some(wanted) = wanted.map(Value::from)
        && !all.contains(&wanted)
    {
        all.push(wanted);
    }
    if all.is_empty() {
        object["metadata"].as_object_mut().map(|meta| meta.remove("finalizers"));
    } else {
        object["metadata"]["finalizers"] = Value::Array(all);
    }
}

/// Returns the grace period of a pod, which is zero if the pod has no node or has ended.
fn grace(pod: &Value, asked: Option<i64>) -> i64 {
    let over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if over || pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
        return 0;
    }
    asked.or(pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(GRACE_SECONDS).max(0)
}
