//! The stream of one resource: its list, and then its changes, for ever.
//!
//! It says what kube's watcher says, with two differences. A list is read object by object, so that 500 large ones need
//! the memory of one. And a change that cannot be read is a gap: the stream begins anew with a list, as after an
//! expired version, where kube's watcher would go on without it.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use futures::io::AsyncBufRead;
use futures::stream::BoxStream;
use futures::{AsyncBufReadExt, Stream, StreamExt};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Request;
use kube::runtime::watcher::{Error, Event};
use kube::{Api, ResourceExt};
use tokio::time::{Instant, timeout};
use wfe_view::lean::LeanObject;
use wfe_view::source::{PAGE, Selection};

use super::page::Page;

/// How long one watch request lasts, in seconds: below the three minutes after which a view counts as stale (SPEC
/// section 5, 10).
const WATCH_SECONDS: u32 = 120;
/// How long a connection may bring nothing before it counts as dead: the watch's own time and some.
const SILENT_WATCH: Duration = Duration::from_secs(125);
/// How long a watch lasts at the least. The API server ends one after the time that was asked for, or when it restarts;
/// what stands before the API server may end each at once, and would be asked hundreds of times a second.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// How long a list may bring no byte before it counts as dead.
const SILENT_LIST: Duration = Duration::from_mins(1);

/// How far a stream is.
enum State {
    /// A list is to begin.
    Begin,
    /// A page is to be asked for.
    Ask { token: Option<String> },
    /// A page is being read.
    Read { body: Body, page: Page, objects: VecDeque<Vec<u8>> },
    /// The list is complete, or a watch has ended: a watch is to begin after this version.
    Watch { version: String },
    /// Changes come, of a watch that began at a time.
    Follow { version: String, changes: Changes, begun: Instant },
}

type Changes = BoxStream<'static, kube::Result<WatchEvent<LeanObject>>>;

type Body = Pin<Box<dyn AsyncBufRead + Send>>;

/// Lists what is selected and follows its changes. After an error it goes on where that is possible, else with a list.
pub(super) fn events(
    api: Api<LeanObject>,
    selection: Selection,
) -> impl Stream<Item = Result<Event<LeanObject>, Error>> + Send {
    futures::stream::unfold((api, selection, State::Begin), |(api, selection, mut state)| async move {
        loop {
            let (event, next) = step(&api, &selection, state).await;
            state = next;
            if let Some(event) = event {
                return Some((event, (api, selection, state)));
            }
        }
    })
}

type Step = (Option<Result<Event<LeanObject>, Error>>, State);

async fn step(api: &Api<LeanObject>, selection: &Selection, state: State) -> Step {
    match state {
        State::Begin => (Some(Ok(Event::Init)), State::Ask { token: None }),
        State::Ask { token } => match ask(api, selection, token).await {
            Ok(body) => (None, State::Read { body, page: Page::default(), objects: VecDeque::new() }),
            Err(error) => (Some(Err(Error::InitialListFailed(error))), State::Begin),
        },
        State::Read { body, page, objects } => match read(body, page, objects).await {
            Ok(step) => step,
            Err(error) => (Some(Err(Error::InitialListFailed(error))), State::Begin),
        },
        State::Watch { version } => match api.watch(&watch_params(selection), &version).await {
            Ok(changes) => (None, State::Follow { version, changes: changes.boxed(), begun: Instant::now() }),
            Err(error) => {
                // An answer or an event can say that the version is too old.
                let is_expired = matches!(&error, kube::Error::Api(status) if status.code == 410);
                let next = if is_expired { State::Begin } else { State::Watch { version } };
                (Some(Err(Error::WatchStartFailed(error))), next)
            }
        },
        State::Follow { version, changes, begun } => follow(version, changes, begun).await,
    }
}

async fn ask(api: &Api<LeanObject>, selection: &Selection, token: Option<String>) -> kube::Result<Body> {
    let params = match selection {
        Selection::All => ListParams::default(),
        Selection::Label(label) => ListParams::default().labels(label),
    };
    let params = ListParams { continue_token: token, ..params.limit(PAGE) };
    let request = Request::new(api.resource_url()).list(&params).map_err(kube::Error::BuildRequest)?;
    let answer = timeout(SILENT_LIST, api.clone().into_client().request_stream(request)).await;
    let body = answer.map_err(|_| silent())??;
    Ok(Box::pin(body))
}

/// Reads on until an object is complete, or the page.
async fn read(mut body: Body, mut page: Page, mut objects: VecDeque<Vec<u8>>) -> kube::Result<Step> {
    loop {
        if let Some(bytes) = objects.pop_front() {
            let object = LeanObject::from_bytes(&bytes).map_err(kube::Error::SerdeError)?;
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

fn watch_params(selection: &Selection) -> WatchParams {
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    match selection {
        Selection::All => params,
        Selection::Label(label) => params.labels(label),
    }
}

async fn follow(version: String, mut changes: Changes, begun: Instant) -> Step {
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

fn changed(
    object: LeanObject,
    changes: Changes,
    begun: Instant,
    event: fn(LeanObject) -> Event<LeanObject>,
) -> Step {
    match object.resource_version().filter(|version| !version.is_empty()) {
        Some(version) => (Some(Ok(event(object))), State::Follow { version, changes, begun }),
        None => (Some(Err(Error::NoResourceVersion)), State::Begin),
    }
}
