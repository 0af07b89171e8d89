//! The stream of one resource: its list, and then its changes, for ever.
//!
//! It says what kube's watcher says, with three differences. A list is read object by object, so that 500 large ones
//! need the memory of one. A change that cannot be read is a gap: the stream begins anew with a list, as after an
//! expired version, where kube's watcher would go on without it. And a watch that ends as soon as it has begun has
//! failed, where kube's watcher would ask again at once.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use futures::io::AsyncBufRead;
use futures::stream::BoxStream;
use futures::{AsyncBufReadExt, Stream, StreamExt};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Request;
use kube::runtime::watcher::{Error, Event};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};
use wfe_view::index::Kind;
use wfe_view::source::PAGE;

use super::page::Page;
use crate::cluster::crds::{Crds, UnfitCrd};

/// How long one watch request lasts, in seconds: below the three minutes after which a view counts as stale
/// (section 5.10).
const WATCH_SECONDS: u32 = 120;
/// How long a connection may bring nothing before it counts as dead: the watch's own time and some.
const SILENT_WATCH: Duration = Duration::from_secs(125);
/// How long a watch lasts at the least. The API server ends one after the time that was asked for, or when it restarts;
/// what stands before the API server may end each at once, and would be asked hundreds of times a second.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// How long a list may bring no byte before it counts as dead.
const SILENT_LIST: Duration = Duration::from_mins(1);

/// What a stream brings.
pub(crate) struct Source<K> {
    /// Where its objects are.
    pub(crate) api: Api<K>,
    /// The field selector of those that are wanted; all without one.
    pub(crate) fields: Option<String>,
    /// How an object of a list is read.
    pub(crate) read: fn(&[u8]) -> serde_json::Result<K>,
    /// What says whether the CRD of its kind has the fields that are read; nothing where it has none.
    pub(crate) crds: Option<(Crds, Kind)>,
}

/// How far a stream is.
enum State<K> {
    /// A list is to begin.
    Begin,
    /// Its CRD is to be read first.
    Admit,
    /// A page is to be asked for.
    Ask { token: Option<String> },
    /// A page is being read.
    Read { body: Body, page: Page, objects: VecDeque<Vec<u8>> },
    /// The list is complete, or a watch has ended: a watch is to begin after this version.
    Watch { version: String },
    /// Changes come, of a watch that began at a time.
    Follow { version: String, changes: Changes<K>, begun: Instant },
}

type Changes<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

type Body = Pin<Box<dyn AsyncBufRead + Send>>;

/// Lists objects and follows their changes. After an error it goes on where that is possible, else with a list.
///
/// The CRD is read before each list and before each watch: an object that comes from under another CRD lacks fields.
pub(crate) fn events<K>(source: Source<K>) -> impl Stream<Item = Result<Event<K>, Error>> + Send
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    // How often the CRD had been unfit when the last list began.
    let times_unfit = 0;
    futures::stream::unfold((source, times_unfit, State::Begin), |(source, mut times_unfit, mut state)| async move {
        loop {
            let (event, next) = step(&source, &mut times_unfit, state).await;
            state = next;
            if let Some(event) = event {
                return Some((event, (source, times_unfit, state)));
            }
        }
    })
}

type Step<K> = (Option<Result<Event<K>, Error>>, State<K>);

async fn step<K>(source: &Source<K>, times_unfit: &mut u64, state: State<K>) -> Step<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    match state {
        State::Begin => (Some(Ok(Event::Init)), State::Admit),
        State::Admit => match admit(source).await {
            Ok(times) => {
                *times_unfit = times;
                (None, State::Ask { token: None })
            }
            Err(error) => (Some(Err(Error::InitialListFailed(error))), State::Begin),
        },
        State::Ask { token } => match ask(source, token).await {
            Ok(body) => (None, State::Read { body, page: Page::default(), objects: VecDeque::new() }),
            Err(error) => (Some(Err(Error::InitialListFailed(error))), State::Begin),
        },
        State::Read { body, page, objects } => match read(source, body, page, objects).await {
            Ok(step) => step,
            Err(error) => (Some(Err(Error::InitialListFailed(error))), State::Begin),
        },
        State::Watch { version } => match admit(source).await {
            // What the last watch delivered may lack fields.
            Ok(times) if times != *times_unfit => (None, State::Begin),
            Err(error) if is_unfit(&error) => (Some(Err(Error::WatchStartFailed(error))), State::Begin),
            Err(error) => (Some(Err(Error::WatchStartFailed(error))), State::Watch { version }),
            Ok(_) => watch(source, version).await,
        },
        State::Follow { version, changes, begun } => follow(version, changes, begun).await,
    }
}

/// Returns whether a watch was not begun because its CRD lacks a decisive field.
pub(super) fn is_unfit(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(error) if error.is::<UnfitCrd>())
}

async fn admit<K>(source: &Source<K>) -> kube::Result<u64> {
    match &source.crds {
        Some((crds, kind)) => crds.admit(*kind).await,
        None => Ok(0),
    }
}

async fn watch<K>(source: &Source<K>, version: String) -> Step<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    match source.api.watch(&watch_params(source), &version).await {
        Ok(changes) => (None, State::Follow { version, changes: changes.boxed(), begun: Instant::now() }),
        Err(error) => {
            // An answer or an event can say that the version is too old.
            let is_expired = matches!(&error, kube::Error::Api(status) if status.code == 410);
            let next = if is_expired { State::Begin } else { State::Watch { version } };
            (Some(Err(Error::WatchStartFailed(error))), next)
        }
    }
}

async fn ask<K: Resource + Clone>(source: &Source<K>, token: Option<String>) -> kube::Result<Body> {
    let selected = ListParams { field_selector: source.fields.clone(), ..ListParams::default() };
    let params = ListParams { continue_token: token, ..selected.limit(PAGE) };
    let request = Request::new(source.api.resource_url()).list(&params).map_err(kube::Error::BuildRequest)?;
    let answer = timeout(SILENT_LIST, source.api.clone().into_client().request_stream(request)).await;
    let body = answer.map_err(|_| silent())??;
    Ok(Box::pin(body))
}

/// Reads on until an object is complete, or the page.
async fn read<K>(
    source: &Source<K>,
    mut body: Body,
    mut page: Page,
    mut objects: VecDeque<Vec<u8>>,
) -> kube::Result<Step<K>> {
    loop {
        if let Some(bytes) = objects.pop_front() {
            let object = (source.read)(&bytes).map_err(kube::Error::SerdeError)?;
            return Ok((Some(Ok(Event::InitApply(object))), State::Read { body, page, objects }));
        }
        let read = timeout(SILENT_LIST, body.fill_buf()).await;
        let bytes = read.map_err(|_| silent())?.map_err(kube::Error::ReadEvents)?;
        let length = bytes.len();
        if length == 0 {
            let end = page.finish().map_err(invalid)?;
            if let Some(token) = end.continue_.filter(|token| !token.is_empty()) {
                return Ok((None, State::Ask { token: Some(token) }));
            }
            return Ok(match end.resource_version.filter(|version| !version.is_empty()) {
                Some(version) => (Some(Ok(Event::InitDone)), State::Watch { version }),
                None => (Some(Err(Error::NoResourceVersion)), State::Begin),
            });
        }
        page.push(bytes, &mut objects).map_err(invalid)?;
        body.consume_unpin(length);
    }
}

fn silent() -> kube::Error {
    kube::Error::ReadEvents(io::Error::new(io::ErrorKind::TimedOut, "the list brought nothing for a minute"))
}

fn invalid(error: super::page::PageError) -> kube::Error {
    kube::Error::ReadEvents(io::Error::new(io::ErrorKind::InvalidData, error))
}

fn watch_params<K>(source: &Source<K>) -> WatchParams {
    WatchParams { field_selector: source.fields.clone(), ..WatchParams::default().timeout(WATCH_SECONDS) }
}

async fn follow<K: Resource>(version: String, mut changes: Changes<K>, begun: Instant) -> Step<K> {
    let change = match timeout(SILENT_WATCH, changes.next()).await {
        Ok(Some(change)) => change,
        // Whoever asks waits after a failure, and longer after several in a row.
        Ok(None) if begun.elapsed() < SHORTEST_WATCH => {
            return (Some(Err(Error::WatchFailed(ended_at_once()))), State::Watch { version });
        }
        // A dead connection is as good as an ended one.
        Ok(None) | Err(_) => return (None, State::Watch { version }),
    };
    match change {
        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => changed(object, changes, begun, Event::Apply),
        Ok(WatchEvent::Deleted(object)) => changed(object, changes, begun, Event::Delete),
        Ok(WatchEvent::Bookmark(bookmark)) => {
            (None, State::Follow { version: bookmark.metadata.resource_version, changes, begun })
        }
        Ok(WatchEvent::Error(status)) => {
            let next = if status.code == 410 { State::Begin } else { State::Follow { version, changes, begun } };
            (Some(Err(Error::WatchError(status))), next)
        }
        // Something has changed, and nobody can say what: kube takes any JSON that it cannot read for a status.
        Err(error @ (kube::Error::SerdeError(_) | kube::Error::Api(_))) => {
            (Some(Err(Error::WatchFailed(error))), State::Begin)
        }
        Err(error) => (Some(Err(Error::WatchFailed(error))), State::Follow { version, changes, begun }),
    }
}

fn ended_at_once() -> kube::Error {
    kube::Error::ReadEvents(io::Error::new(io::ErrorKind::UnexpectedEof, "the watch ended as soon as it had begun"))
}

fn changed<K: Resource>(object: K, changes: Changes<K>, begun: Instant, event: fn(K) -> Event<K>) -> Step<K> {
    match object.resource_version().filter(|version| !version.is_empty()) {
        Some(version) => (Some(Ok(event(object))), State::Follow { version, changes, begun }),
        None => (Some(Err(Error::NoResourceVersion)), State::Begin),
    }
}
