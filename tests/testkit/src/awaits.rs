//! Waits for a condition of watched objects, or for an answer. Every wait has a deadline, and its error shows the last
//! state.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, pin_mut};
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher;
use serde_json::Value;

/// How long a wait may take unless the test sets another deadline.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Objects by name.
pub type Objects = BTreeMap<String, Value>;

/// The most characters of the last state that an error shows.
const SHOWN: usize = 6_000;

/// The pause between two requests if nothing can be watched.
const PAUSE: Duration = Duration::from_millis(20);

/// Repeats a request until `is` accepts the answer, and returns the answer. `what` completes the error "awaited that
/// ...".
pub async fn ask_until<T: Debug>(
    within: Duration,
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<T>,
    is: impl Fn(&T) -> bool,
) -> Result<T> {
    let deadline = Instant::now() + within;
    loop {
        let answer = ask().await?;
        if is(&answer) {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            let seen: String = format!("{answer:?}").chars().take(SHOWN).collect();
            bail!("awaited for {within:?}, in vain: {what}\nlast seen: {seen}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Watches all objects that match until `found` returns a result for them, and returns the result.
pub(crate) async fn watch_until<T>(
    api: Api<DynamicObject>,
    config: watcher::Config,
    what: &str,
    deadline: Duration,
    mut found: impl FnMut(&Objects) -> Option<T>,
) -> Result<T> {
    let mut objects = Objects::new();
    let search = async {
        let mut synced = false;
        let stream = watcher(api, config);
        pin_mut!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(watcher::Event::Init) => {
                    synced = false;
                    objects.clear();
                }
                Ok(watcher::Event::InitDone) => synced = true,
                Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                    let name = object.metadata.name.clone().unwrap_or_default();
                    objects.insert(name, plain(&object)?);
                }
                Ok(watcher::Event::Delete(object)) => {
                    objects.remove(object.metadata.name.as_deref().unwrap_or_default());
                }
                // The watcher retries on its own, and the deadline limits the retries.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
            if synced && let Some(result) = found(&objects) {
                return anyhow::Ok(result);
            }
        }
        bail!("the watch ended");
    };
    match tokio::time::timeout(deadline, search).await {
        Ok(result) => result,
        Err(_) => bail!("awaited for {deadline:?}, in vain: {what}\nlast seen: {}", shown(&objects)),
    }
}

/// Returns an object as JSON, without the fields that only programs read.
pub(crate) fn plain(object: &DynamicObject) -> Result<Value> {
    let mut value = serde_json::to_value(object).context("an object cannot be written as JSON")?;
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    Ok(value)
}

fn shown(objects: &Objects) -> String {
    let values: Vec<&Value> = objects.values().collect();
    let text = match values.as_slice() {
        [] => "nothing".to_owned(),
        [one] => serde_json::to_string_pretty(one).unwrap_or_default(),
        many => serde_json::to_string(many).unwrap_or_default(),
    };
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} ... ({} objects)", &text[..end], values.len()),
        None => text,
    }
}
