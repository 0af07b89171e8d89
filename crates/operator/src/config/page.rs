//! The page `/configz`. It shows the settings in force, why the newest version was refused, and whether the `ConfigMap`
//! can be followed. The leader publishes the settings in its Lease, too.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use wfe_api::limits::cut;
use wfe_settings::config::{InForce, NO_VERSION, Place, Refused, SHOWN, Setting, one_line};
use wfe_settings::published::Published;

/// How long a failure of the watch is shown: longer than the longest wait between two retries plus one try. A watch
/// that keeps failing is therefore always shown.
const FAILING_FOR: Duration = Duration::from_secs(30);

/// The page. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Page(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    place: Place,
    watch_namespace: Option<String>,
    in_force: Option<Arc<InForce>>,
    refused: Option<Refused>,
    failed: Option<(Instant, String)>,
    published: watch::Sender<Option<Published>>,
}

impl Page {
    /// Makes the page of a process that has not read the `ConfigMap` yet.
    #[must_use]
    pub fn new(place: Place, watch_namespace: Option<String>) -> Self {
        let (published, _) = watch::channel(None);
        let state = State { place, watch_namespace, in_force: None, refused: None, failed: None, published };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the receiver of what a leader publishes; `None` before the first version is in force.
    #[must_use]
    pub fn published(&self) -> watch::Receiver<Option<Published>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).published.subscribe()
    }

    /// Shows the settings in force, and that no newer version is refused.
    pub(super) fn apply(&self, in_force: Arc<InForce>) {
        self.update(|state| (state.in_force, state.refused) = (Some(in_force), None));
    }

    /// Shows that the newest version is refused.
    pub(super) fn refuse(&self, refused: Refused) {
        self.update(|state| state.refused = Some(refused));
    }

    /// Shows that the `ConfigMap` cannot be followed now.
    pub(super) fn fail(&self, error: String) {
        self.update(|state| state.failed = Some((Instant::now(), error)));
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let state = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(state);
        let refused = state.refused.as_ref().map(|refused| refused.version.as_str());
        let published = |in_force| Published::of(in_force, &state.place, refused, state.watch_namespace.as_deref());
        state.published.send_replace(state.in_force.as_deref().map(published));
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(in_force) = &state.in_force else { return writeln!(f, "{}: not read yet", state.place) };
        writeln!(f, "{}", heading(&state.place, in_force))?;
        if let Some(refused) = &state.refused {
            writeln!(f, "version {} is refused:", refused.version)?;
            refused.problems.iter().try_for_each(|problem| writeln!(f, "  {problem}"))?;
        }
        if let Some((since, error)) = state.failed.as_ref().filter(|(since, _)| since.elapsed() < FAILING_FOR) {
            writeln!(f, "it cannot be followed, as of {} s ago: {error}", since.elapsed().as_secs())?;
        }
        in_force.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))?;
        write!(f, "\n{}", Table(&in_force.settings))
    }
}

/// Describes which version is in force.
pub(super) fn heading(place: &Place, in_force: &InForce) -> String {
    match in_force.version.as_str() {
        NO_VERSION => format!("{place}: there is none, the flags are in force"),
        version => format!("{place}: version {version} is in force"),
    }
}

/// Settings, one per line.
pub(super) struct Table<'a>(pub(super) &'a [Setting]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.0.iter().map(|setting| cut(&one_line(&setting.value), SHOWN)).collect();
        let width = |longest: Option<usize>, heading: &str| longest.unwrap_or_default().max(heading.len());
        let keys = width(self.0.iter().map(|setting| setting.key.len()).max(), "KEY");
        let wide = width(values.iter().map(|value| value.chars().count()).max(), "VALUE");
        writeln!(f, "{:keys$}  {:wide$}  SOURCE", "KEY", "VALUE")?;
        for (setting, value) in self.0.iter().zip(values) {
            writeln!(f, "{:keys$}  {value:wide$}  {}", setting.key, setting.origin())?;
        }
        Ok(())
    }
}
