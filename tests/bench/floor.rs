//! The floor client: it sends the same requests for each execution as the operator, but decides nothing.
//!
//! The client is a process of its own with the operator's service account. It works on as many targets and events at
//! the same time as the operator, and reads the same watches. The additional time of the operator is the cost of
//! deciding.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api::{self, Change, Object, changes, drain};
use crate::template::{Names, Rendered, Step, Templates};

/// The number of targets that the operator works on at the same time (`engine.rs`).
const PARALLEL_TARGETS: usize = 32;
/// The number of writes that the operator sends at the same time for one target (`perform.rs`).
const PARALLEL_SKIPS: usize = 16;
/// The number of events that the operator writes at the same time (`events.rs`).
const PARALLEL_EVENTS: usize = 4;

/// The arguments of the floor client.
#[derive(Debug, Args)]
pub(crate) struct FloorArgs {
    #[arg(long)]
    pub(crate) kubeconfig: PathBuf,
    #[arg(long)]
    pub(crate) templates: PathBuf,
    #[arg(long)]
    pub(crate) namespace: String,
    #[arg(long)]
    pub(crate) execution_namespace: String,
    /// What it does with the executions
    #[arg(long)]
    pub(crate) pick: Pick,
}

/// What the floor client does with the executions, and how many requests it has in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pick {
    /// Every execution runs, as many at once as the operator works on
    All,
    /// Every execution runs, one request after the other
    OneByOne,
    /// The first execution runs and the others are skipped, as many at once as the operator skips on one target
    Storm,
    /// Like `Storm`, one request after the other
    StormOneByOne,
}

impl Pick {
    fn parallel(self) -> usize {
        match self {
            Self::All => PARALLEL_TARGETS,
            Self::Storm => PARALLEL_SKIPS,
            Self::OneByOne | Self::StormOneByOne => 1,
        }
    }

    fn is_storm(self) -> bool {
        matches!(self, Self::Storm | Self::StormOneByOne)
    }
}

/// Sends the recorded requests. Clones share the client.
#[derive(Clone)]
struct Sender {
    client: Client,
    templates: Arc<Templates>,
    events: mpsc::UnboundedSender<Rendered>,
}

impl Sender {
    async fn send(&self, step: Step, names: &Names) -> Result<Object> {
        let Rendered { method, uri, content, body } = self.templates.render(step, names)?;
        let answer = api::send(&self.client, method, &uri, content, body).await?;
        answer.object().with_context(|| format!("{step:?} of {}", names.wfe))
    }

    fn announce(&self, step: Step, names: &Names) -> Result<()> {
        self.events.send(self.templates.render(step, names)?).context("nobody writes events")
    }

    /// Performs one step, and returns the next step if it can follow immediately.
    async fn take(self, step: Step, mut names: Names) -> Result<(Names, Option<Step>)> {
        let written = self.send(step, &names).await?.metadata;
        let next = match step {
            Step::Create => {
                names.run_uid = written.uid;
                Some(Step::Commit)
            }
            Step::Commit => {
                names.wfe_version = written.resource_version;
                self.announce(Step::EventCreated, &names)?;
                Some(Step::Release)
            }
            Step::End => {
                self.announce(Step::EventCompleted, &names)?;
                None
            }
            Step::Skip => {
                self.announce(Step::EventSkipped, &names)?;
                None
            }
            _ => None,
        };
        Ok((names, next))
    }
}

/// Runs until it is killed or a request fails. A floor client that has sent only some of the requests would measure
/// nothing.
pub(crate) async fn run(args: FloorArgs) -> Result<()> {
    let client = api::client(&args.kubeconfig).await?;
    let templates: Templates = serde_json::from_slice(&std::fs::read(&args.templates)?)?;
    let (events, queue) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write_events(client.clone(), queue));
    let sender = Sender { client: client.clone(), templates: Arc::new(templates), events };

    let (to, mut changed) = mpsc::channel(4096);
    let mut watches = JoinSet::new();
    let mut lists = Vec::new();
    for (index, collection) in api::watched(&args.namespace, &args.execution_namespace).into_iter().enumerate() {
        let client = client.clone();
        lists.push(async move {
            let mut there: Vec<Object> = Vec::new();
            let version = if index < 2 {
                collection.list(&client, |page| there.extend(page)).await?
            } else {
                collection.list_bare(&client).await?
            };
            let stream = collection.watch(&client, &version).await?;
            anyhow::Ok((index, there, stream))
        });
    }
    for (index, there, stream) in futures::future::try_join_all(lists).await? {
        let to = to.clone();
        watches.spawn(async move {
            if index >= 2 {
                return drain(stream).await;
            }
            let is_run = index == 1;
            let there = there.into_iter().map(|object| Ok(Change { kind: "ADDED".to_owned(), object }));
            let mut all = std::pin::pin!(stream::iter(there).chain(changes(stream)));
            while let Some(change) = all.try_next().await? {
                to.send((is_run, change)).await?;
            }
            Ok(())
        });
    }
    #[allow(clippy::print_stdout)]
    {
        println!("ready");
    }

    let mut floor =
        Floor { sender, pick: args.pick, queue: VecDeque::new(), work: JoinSet::new(), states: HashMap::new() };
    let place = Names { namespace: args.namespace, execution_namespace: args.execution_namespace, ..Names::default() };
    loop {
        tokio::select! {
            Some((is_run, change)) = changed.recv() => match (is_run, change.object) {
                (true, run) if !run.status.completion_time.is_empty() => floor.run_is_over(&run.metadata.labels.owner),
                (false, Object { metadata, .. }) if change.kind == "ADDED" => floor.begin(Names {
                    run: format!("floor-{}-1", metadata.name),
                    wfe: metadata.name,
                    wfe_uid: metadata.uid,
                    wfe_version: metadata.resource_version,
                    ..place.clone()
                }),
                _ => {}
            },
            Some(done) = floor.work.join_next() => {
                let (names, next) = done??;
                floor.done(names, next);
            }
            Some(ended) = watches.join_next() => {
                ended??;
                bail!("a watch ended");
            }
        }
        floor.work();
        ensure!(!writer.is_finished(), "an event was refused");
    }
}

/// The progress of an execution.
enum State {
    /// The first writes are in flight.
    Beginning,
    /// The first writes are in flight, but the run has already ended.
    EndsAtOnce,
    Running(Box<Names>),
    Over,
}

struct Floor {
    sender: Sender,
    pick: Pick,
    /// The steps that are due, in the order in which they became due. The operator's queue has the same order.
    queue: VecDeque<(Step, Names)>,
    work: JoinSet<Result<(Names, Option<Step>)>>,
    states: HashMap<String, State>,
}

impl Floor {
    /// Starts further steps until as many as allowed are in flight.
    fn work(&mut self) {
        while self.work.len() < self.pick.parallel() {
            let Some((step, names)) = self.queue.pop_front() else { return };
            self.work.spawn(self.sender.clone().take(step, names));
        }
    }

    fn begin(&mut self, names: Names) {
        if self.states.contains_key(&names.wfe) {
            return;
        }
        let step = if self.pick.is_storm() && !self.states.is_empty() { Step::Skip } else { Step::Create };
        self.states.insert(names.wfe.clone(), State::Beginning);
        self.queue.push_back((step, names));
    }

    fn done(&mut self, names: Names, next: Option<Step>) {
        match (next, self.states.get_mut(&names.wfe)) {
            (Some(step), _) => self.queue.push_back((step, names)),
            (None, Some(state @ State::Beginning)) => *state = State::Running(Box::new(names)),
            (None, Some(state @ State::EndsAtOnce)) => {
                *state = State::Over;
                self.queue.push_back((Step::End, names));
            }
            (None, _) => {}
        }
    }

    fn run_is_over(&mut self, wfe: &str) {
        let Some(state) = self.states.get_mut(wfe) else { return };
        match std::mem::replace(state, State::Over) {
            State::Beginning | State::EndsAtOnce => *state = State::EndsAtOnce,
            State::Running(names) => self.queue.push_back((Step::End, *names)),
            State::Over => {}
        }
    }
}

async fn write_events(client: Client, queue: mpsc::UnboundedReceiver<Rendered>) -> Result<()> {
    stream::unfold(queue, async |mut queue| queue.recv().await.map(|next| (next, queue)))
        .map(Ok)
        .try_for_each_concurrent(PARALLEL_EVENTS, async |event: Rendered| {
            api::send(&client, event.method, &event.uri, event.content, event.body).await?.object().map(drop)
        })
        .await
        .inspect_err(|error| eprintln!("an event was refused: {error:#}"))
}
