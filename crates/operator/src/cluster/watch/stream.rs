//! The endless stream of one resource: its list, and then its changes.
//!
//! It behaves like kube's watcher, with three differences. It reads a list object by object, so that 500 large objects
//! need the memory of one. It starts again with a list after an unreadable change, as after an expired version; kube's
//! watcher would skip the change. It counts a watch that ends as soon as it has begun as failed; kube's watcher would
//! ask again at once.

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

/// The duration of one watch request, in seconds. It is less than the three minutes after which a view counts as stale
/// (section 5.10).
const WATCH_SECONDS: u32 = 120;
/// How long the connection of a watch may be silent before it counts as dead: slightly longer than the watch request.
const SILENT_WATCH: Duration = Duration::from_secs(125);
/// A watch that ends earlier than this counts as failed. The API server ends a watch after the requested time, or when
/// it restarts. A proxy before the API server may end each watch at once, and would be asked hundreds of times a
/// second.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// How long the connection of a list may be silent before it counts as dead.
const SILENT_LIST: Duration = Duration::from_mins(1);

/// The objects that a stream delivers, and how it reads them.
pub(crate) struct Source<K> {
    /// The resource of its objects.
    pub(crate) api: Api<K>,
    /// The field selector of the objects; `None` for all objects.
    pub(crate) fields: Option<String>,
    /// Reads one object of a list.
    pub(crate) read: fn(&[u8]) -> serde_json::Result<K>,
    /// Checks whether the CRD of the kind has the fields that are read; `None` for a kind without a CRD.
    pub(crate) crds: Option<(Crds, Kind)>,
}

/// The state of a stream.
enum State<K> {
    /// A list is due.
    Begin,
    /// The CRD must be read before the watch begins.
    Admit,
    /// A page must be requested.
    Ask { token: Option<String> },
    /// A page is being read.
    Read { body: Body, page: Page, objects: VecDeque<Vec<u8>> },
    /// The list is complete, or a watch has ended. The next watch must begin after this version.
    Watch { version: String },
    /// A watch that began at `begun` delivers changes.
    Follow { version: String, changes: Changes<K>, begun: Instant },
}

type Changes<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

type Body = Pin<Box<dyn AsyncBufRead + Send>>;

/// Lists objects and follows their changes. After an error the stream resumes at the last version if possible,
/// otherwise with a list.
///
/// The CRD is read before each list and each watch, because an object that was served under another CRD may lack
/// fields.
pub(crate) fn events<K>(source: Source<K>) -> impl Stream<Item = Result<Event<K>, Error>> + Send
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    // How often the CRD had been unfit when the last list began; see `Crds::admit`.
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
            // The CRD was unfit meanwhile, so objects of the last watch may lack fields.
            Ok(times) if times != *times_unfit => (None, State::Begin),
            Err(error) if is_unfit(&error) => (Some(Err(Error::WatchStartFailed(error))), State::Begin),
            Err(error) => (Some(Err(Error::WatchStartFailed(error))), State::Watch { version }),
            Ok(_) => watch(source, version).await,
        },
        State::Follow { version, changes, begun } => follow(version, changes, begun).await,
    }
}

/// Returns whether a watch did not begin because its CRD lacks a decisive field.
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
            // Both an answer and an event can report that the version is too old.
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

/// Reads bytes until an object or the page is complete.
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
        // The caller waits after each failure, and longer after several in a row.
        Ok(None) if begun.elapsed() < SHORTEST_WATCH => {
            return (Some(Err(Error::WatchFailed(ended_at_once()))), State::Watch { version });
        }
        // A dead connection counts as a watch that ended.
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
        // The content of the change is unknown: kube reports any unreadable JSON as a status.
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
