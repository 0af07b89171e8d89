//! The view that the operator would have if it started now: the same lists, the same readers, the same index, the same
//! decision.

mod chain;
mod circuits;
mod listed;
mod made_up;
mod places;
mod refusal;

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, anyhow, bail};
use kube::api::{Api, DynamicObject, ListParams};
use wfe_core::Time;
use wfe_core::action::{Action, Decision};
use wfe_core::decide::decide;
use wfe_core::ending::Skip;
use wfe_core::execution::Execution;
use wfe_core::explain::Judgement;
use wfe_core::history::History;
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::target::{Elsewhere, Target, TargetName};
use wfe_core::waiting::Waiting;
use wfe_view::call::{CallError, within};
use wfe_view::index::{ExecutionRecord, Index, Kind, Learned};
use wfe_view::observe::observe_owner;
use wfe_view::partial::PartialObject;
use wfe_view::read::{is_ours, read};
use wfe_view::source::{Pages, namespace_of, objects};

use crate::cli::{ClusterArgs, ViewArgs};
use crate::connection::{ANSWERS_WITHIN, Connection};
use crate::installation::Installation;
use crate::kinds;
use crate::object::text;
use crate::recorded::Recorded;
use crate::retries::plan;
use crate::subject::AskedSchedule;

pub(crate) use circuits::HeldByCircuits;
pub(crate) use listed::take_in;
use listed::tell_of_triages;
pub(crate) use refusal::Forbidden;
use refusal::{refused, said};

/// The uid of an execution that does not exist. No uid of an API server looks like this, and it is ordered after all of
/// them.
const NOT_CREATED: &str = "not-created";
/// The limit of workflows of a target that get an answer, the latest first. Targets have fewer workflows.
const MOST_WORKFLOWS: usize = 50;

/// The cluster, and how to read it.
pub(crate) struct Lookout {
    /// The namespace of a `WorkflowExecution` that is named without one.
    pub(crate) namespace: String,
    /// The operator whose decision is predicted.
    pub(crate) installation: Installation,
    connection: Connection,
}

/// What was read, at one time.
pub(crate) struct Seen {
    pub(crate) now: Time,
    index: Index,
    executions: Vec<DynamicObject>,
    /// The positions in `executions`.
    by_uid: HashMap<Uid, usize>,
    /// The schedules of the target that was asked about.
    pub(crate) schedules: Vec<DynamicObject>,
    /// Which executions of other namespaces could not be read, and what is assumed of them.
    pub(crate) unread: Option<String>,
    /// The operator whose decision is predicted.
    pub(crate) installation: Installation,
}

/// The outlook of an undecided execution.
pub(crate) struct Answer {
    /// The judgement of the rules; none if they do not apply any more.
    pub(crate) judgement: Option<Judgement>,
    /// What else it waits for, such as its turn.
    pub(crate) waiting: Option<Waiting>,
    /// The executions that go before it, and what holds the first of them, one per line.
    pub(crate) behind: Vec<String>,
}

impl Lookout {
    /// Connects to the cluster of the kubeconfig.
    pub(crate) async fn open(cluster: &ClusterArgs, args: &ViewArgs) -> Result<Self> {
        Self::on(Connection::open(cluster).await?, args).await
    }

    /// Reads the installation again, over an open connection.
    pub(crate) async fn on(connection: Connection, args: &ViewArgs) -> Result<Self> {
        let installation = Installation::read(&connection, args).await?;
        Ok(Self { namespace: connection.namespace.clone(), installation, connection })
    }

    /// Returns the connection to the cluster.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the executions of one namespace.
    pub(crate) fn executions_in(&self, namespace: &str) -> Api<PartialObject> {
        objects(&self.connection.client, Kind::Execution, Some(namespace))
    }

    /// Lists all that the operator would list.
    pub(crate) async fn look(&self) -> Result<Seen> {
        // If schedules cannot be listed, executions can still be decided on.
        let schedules = self.list(Kind::Schedule).await.ok();
        self.see(schedules, None, None).await
    }

    /// Lists everything on which the decision about one target depends, and adds an execution if one is given.
    pub(crate) async fn look_at(&self, target: Option<&TargetName>, added: Option<&DynamicObject>) -> Result<Seen> {
        let schedules = self.list(Kind::Schedule).await.ok();
        // The circuits that hold a schedule, and limits, depend on the executions of all targets.
        let has_this_target = |schedule: &DynamicObject| {
            let on = text(schedule, "/spec/template/spec/targetResource");
            on.and_then(|on| TargetName::parse(on).ok()).as_ref() == target
        };
        let on_it: Vec<_> = schedules.iter().flatten().filter(|it| has_this_target(it)).cloned().collect();
        let alone = target.filter(|_| self.installation.policy.limits.is_empty() && on_it.is_empty());
        Ok(Seen { schedules: on_it, ..self.see(schedules, alone, added).await? })
    }

    /// Lists all that the operator would list, and fails if schedules cannot be listed.
    pub(crate) async fn look_with_schedules(&self) -> Result<Seen> {
        self.see(Some(self.list(Kind::Schedule).await?), None, None).await
    }

    /// Lists all that the operator would list, with one schedule: an existing one by its name, or a new one, which
    /// replaces an existing one of the same name. If the other schedules cannot be listed, `unread` says so, and what
    /// is assumed.
    pub(crate) async fn look_at_schedules(&self, asked: &AskedSchedule) -> Result<Seen> {
        let (mut schedules, unread) = match self.list(Kind::Schedule).await {
            Ok(schedules) => (schedules, None),
            Err(error) => (Vec::new(), Some(format!("that no other schedule has this target: {error}"))),
        };
        let is_it = |it: &DynamicObject| asked.names(it);
        match asked {
            AskedSchedule::New(added) => {
                schedules.retain(|it| !is_it(it));
                schedules.push((**added).clone());
            }
            // The caller may have the right to get only this schedule, or the operator may not watch its namespace.
            AskedSchedule::Named { namespace, name } if !schedules.iter().any(is_it) => {
                let api: Api<DynamicObject> = objects(&self.connection.client, Kind::Schedule, Some(namespace));
                match within(ANSWERS_WITHIN, api.get_opt(name)).await {
                    Ok(found) => schedules.extend(found),
                    Err(error) => bail!("cannot read {namespace}/{name}: {}", said(&error, Kind::Schedule)),
                }
            }
            AskedSchedule::Named { .. } => {}
        }
        Ok(Seen { unread, ..self.see(Some(schedules), None, None).await? })
    }

    /// Lists the rest of what the operator would list. If a target is given, lists only its executions. Schedules are
    /// listed first: otherwise a child that is created meanwhile would look as if its schedule were deleted.
    async fn see(
        &self,
        mut schedules: Option<Vec<DynamicObject>>,
        target: Option<&TargetName>,
        added: Option<&DynamicObject>,
    ) -> Result<Seen> {
        let installation = &self.installation;
        let mut index = Index::new(installation.watch_namespace.clone());
        let mut executions = Vec::new();
        // The time is that of the beginning: times in the objects are ahead of it by seconds at most.
        let now = self.connection.now();
        for kind in Kind::ALL {
            let objects = match (kind, schedules.take_if(|_| kind == Kind::Schedule)) {
                (Kind::Schedule, None) => continue,
                (Kind::Schedule, Some(listed)) => listed,
                (Kind::Execution, _) => self.list_executions(target).await?.into_iter().chain(added.cloned()).collect(),
                _ => self.list(kind).await?,
            };
            let read = objects.iter().filter_map(|it| read(kind, it, &installation.execution_namespace));
            take_in(&mut index, kind, read, now);
            if kind == Kind::Execution {
                executions = objects;
            }
        }
        Ok(Seen::of(index, executions, installation.clone(), now))
    }

    /// Reads the executions in namespaces that the operator does not watch, as the operator would: whether they have
    /// ended, or hold the target of `record`.
    pub(crate) async fn read_owners(&self, seen: &mut Seen, record: &ExecutionRecord) -> Result<()> {
        let decision = decide(seen.target_of(record)?, &self.installation.policy, seen.now);
        for action in decision.actions {
            let Action::ReadOwner { owner } = action else { continue };
            let params = ListParams::default().fields(&format!("metadata.name={}", owner.name));
            match list(&self.executions_in(&owner.namespace), params, |_| true).await {
                Ok(found) => {
                    let read = Box::new(Elsewhere { at: seen.now, found: observe_owner(&owner, found.first()) });
                    seen.index.learn(&record.key(), Learned::OwnerRead(owner.uid, read), seen.now);
                }
                Err(error) => {
                    let why = said(&error, Kind::Execution);
                    seen.unread = Some(format!("{owner} has not ended and cannot be read: {why}"));
                }
            }
        }
        Ok(())
    }

    /// Reads one execution and no other object.
    pub(crate) async fn read_alone(&self, name: &str) -> Result<Option<DynamicObject>, CallError> {
        let read = within(ANSWERS_WITHIN, self.executions_in(&self.namespace).get_opt(name)).await?;
        Ok(read.map(|PartialObject { object, .. }| object))
    }

    /// Finds an execution by its name. The caller needs only the right to list.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<DynamicObject>> {
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let listed = list(&self.executions_in(&self.namespace), params, |_| true).await;
        let found = listed.map_err(|error| anyhow!("cannot look for {name}: {}", said(&error, Kind::Execution)))?;
        Ok(found.into_iter().next())
    }

    async fn list(&self, kind: Kind) -> Result<Vec<DynamicObject>> {
        self.list_selected(kind, ListParams::default()).await.map_err(|error| refused(&error, kind))
    }

    /// Lists the executions that may be on a target, or all: those whose status names the target, and those whose
    /// status names none yet. Those without a target are listed first: an execution can get its target between the two
    /// lists, and never loses it.
    async fn list_executions(&self, target: Option<&TargetName>) -> Result<Vec<DynamicObject>> {
        let Some(target) = target else { return self.list(Kind::Execution).await };
        let mut found = BTreeMap::new();
        for named in ["", target.as_str()] {
            let selection = ListParams::default().fields(&format!("status.target={named}"));
            match self.list_selected(Kind::Execution, selection).await {
                Ok(listed) => found.extend(listed.into_iter().map(|object| (object.metadata.uid.clone(), object))),
                // An older CRD cannot select by the target.
                Err(CallError::Refused(status)) if status.code == 400 => return self.list(Kind::Execution).await,
                Err(error) => return Err(refused(&error, Kind::Execution)),
            }
        }
        Ok(found.into_values().collect())
    }

    async fn list_selected(&self, kind: Kind, selection: ListParams) -> Result<Vec<DynamicObject>, CallError> {
        let watched = self.installation.watch_namespace.as_deref();
        let api =
            objects(&self.connection.client, kind, namespace_of(kind, &self.installation.execution_namespace, watched));
        list(&api, selection, |object| is_ours(kind, object)).await
    }

    /// Returns what is wrong with the kind of a target, if the cluster does not serve it.
    pub(crate) async fn unserved(&self, target: &TargetName) -> Option<String> {
        kinds::unserved(&self.connection.client, target).await
    }

    /// Returns the name of the cluster, as the caller knows it.
    pub(crate) fn cluster(&self) -> &str {
        &self.connection.cluster
    }

    /// Returns the time by the API server's clock.
    pub(crate) fn now(&self) -> Time {
        self.connection.now()
    }

    /// Asks the API server for the name of the caller.
    pub(crate) async fn who_am_i(&self) -> Result<String> {
        self.connection.who_am_i().await
    }
}

impl Seen {
    /// Returns all targets.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.index.keys().filter_map(|key| Some(&self.index.ready(key)?.target))
    }

    /// Makes the view of all that was listed.
    pub(crate) fn of(mut index: Index, executions: Vec<DynamicObject>, installation: Installation, now: Time) -> Self {
        tell_of_triages(&mut index, now);
        circuits::draw_turns(&mut index, &installation.policy, now);
        places::give_places(&mut index, &installation.policy, now);
        let uids = executions.iter().enumerate();
        let by_uid = uids.filter_map(|(at, it)| Some((Uid::new(it.metadata.uid.as_deref()?), at))).collect();
        Self { now, index, executions, by_uid, schedules: Vec::new(), unread: None, installation }
    }

    /// Returns the target of an execution, with all that is known of it.
    pub(crate) fn target_of(&self, record: &ExecutionRecord) -> Result<&Target> {
        let entry = self.index.ready(&record.key()).context("the lists do not hold this execution; look again")?;
        Ok(&entry.target)
    }

    /// Decides as the operator would, and returns the part about one execution.
    pub(crate) fn answer(&self, target: &Target, id: &ExecutionId) -> Answer {
        let decision = decide(target, &self.installation.policy, self.now);
        let mut behind = chain::behind(target, &decision, id, &self.installation.policy);
        let Decision { judged, waiting, .. } = decision;
        let waiting = waiting.into_iter().find(|(of, _)| of == id).map(|(_, waiting)| waiting);
        behind.extend(waiting.iter().flat_map(|waiting| self.holders(target, waiting)));
        Answer {
            behind,
            judgement: judged.into_iter().find(|(of, _)| of == id).map(|(_, judgement)| judgement),
            waiting,
        }
    }

    /// Returns the target of a schedule, and the uid of the schedule.
    pub(crate) fn target_of_schedule(&self, asked: &AskedSchedule) -> Option<(&Target, &Uid)> {
        let (namespace, name) = asked.name();
        self.targets().find_map(|target| {
            let mut schedules = target.schedules.values();
            let found = schedules.find(|it| &*it.id.namespace == namespace && &*it.id.name == name)?;
            Some((target, &found.id.uid))
        })
    }

    /// Decides for each workflow in a target's history, as if the execution were of that workflow.
    pub(crate) fn answers_by_workflow(&self, target: &Target, id: &ExecutionId) -> BTreeMap<Box<str>, Answer> {
        let mut asks = target.clone();
        let history = History::of(target, &self.installation.policy, self.now);
        let workflows = history.all().iter().rev().map(|past| &past.execution.workflow_id);
        let mut answers = BTreeMap::new();
        for workflow in workflows {
            if answers.len() < MOST_WORKFLOWS && !answers.contains_key(&**workflow) {
                if let Some(execution) = asks.executions.get_mut(&id.uid) {
                    execution.workflow_id.clone_from(workflow);
                }
                answers.insert((**workflow).into(), self.answer(&asks, id));
            }
        }
        answers
    }

    /// Describes the plan of an execution's retry policy, if it has one.
    pub(crate) fn plan(&self, execution: &Execution) -> Option<String> {
        let policy = &execution.retry.as_ref()?.policy;
        let timeout = execution.timeout.unwrap_or(self.installation.policy.default_timeout);
        let uid = Some(&execution.id.uid).filter(|uid| **uid != Uid::new(NOT_CREATED));
        Some(plan(policy, timeout, uid))
    }

    /// Returns the latest execution in a target's history.
    pub(crate) fn latest<'a>(&self, target: &'a Target) -> Option<&'a Execution> {
        History::of(target, &self.installation.policy, self.now).all().last().map(|past| past.execution)
    }

    /// Describes the other executions on a target that wait because of a problem of the operator: the oldest one, and
    /// how many more.
    pub(crate) fn stuck_on(&self, target: &Target, asks: &ExecutionId) -> Option<String> {
        let others = target.executions.values().filter(|it| it.is_undecided() && it.id != *asks);
        let recorded = others.filter_map(|it| Some((it, Recorded::of(self.of_uid(&it.id.uid)?, self.now)?)));
        let mut stuck: Vec<_> = recorded.filter(|(_, recorded)| recorded.is_trouble()).collect();
        stuck.sort_by(|(a, _), (b, _)| (a.created, &a.id.uid).cmp(&(b.created, &b.id.uid)));
        let (oldest, recorded) = stuck.first()?;
        let count = match stuck.len() - 1 {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Some(format!("{} {}{count}", oldest.id, recorded.told()))
    }

    /// Returns the blocks of a target that only a person ends, newest first.
    pub(crate) fn blocks(&self, target: &Target) -> Vec<Skip> {
        let policy = &self.installation.policy;
        History::of(target, policy, self.now).blocks(policy, self.now)
    }
}

/// Lists the objects of a selection page by page, and keeps those that `is_kept` accepts.
pub(crate) async fn list(
    objects: &Api<PartialObject>,
    selection: ListParams,
    is_kept: impl Fn(&DynamicObject) -> bool,
) -> Result<Vec<DynamicObject>, CallError> {
    let mut pages = Pages::of(selection);
    while let Some(params) = pages.next() {
        let page = within(ANSWERS_WITHIN, objects.list(params)).await?;
        pages.take_in(page, &is_kept);
    }
    Ok(pages.into_objects())
}
