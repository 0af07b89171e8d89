//! Users who write schedules, suspend them or give advice on them, and what each of them may do. Everything in
//! `config/base` is installed on the control plane that these tests share with the other policy tests.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use wfe_api::WorkflowExecution;
use wfe_testkit::awaits::ask_until;
use wfe_testkit::manifests;

use super::objects::{Schedules, but, create_as, good};
use crate::admission::objects::{Namespaced, Refusal, good_request, says};
use crate::admission::people::installed;

pub(super) const AUTHOR: &str = "author.workflowschedules.kubernaut.ai";
pub(super) const CHILD: &str = "child.workflowexecutions.kubernaut.ai";
pub(super) const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);
/// The field in a schedule that contains its target.
pub(super) const TARGET: &str = "template/spec/targetResource";

/// A user who may write schedules and create executions.
pub(super) const WRITER: &str = "writer";
/// A user who may write schedules.
pub(super) const HALF: &str = "half";
/// A user who may create executions.
pub(super) const ASKER: &str = "asker";
/// A user who may read and patch schedules.
pub(super) const ADVISOR: &str = "advisor";

/// A namespace on the control plane with everything installed, a second namespace, and the four users with their roles.
/// Two more users have the writer's permissions, and may also request targets in other namespaces: one of them in the
/// second namespace, the other in all.
pub(super) struct Cast {
    pub(super) schedules: Schedules,
    pub(super) other: String,
    pub(super) neighbour: String,
    pub(super) everywhere: String,
}

/// Returns a rule of a role.
pub(super) fn may(resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": ["kubernaut.ai"], "resources": [resource], "verbs": verbs})
}

impl Cast {
    pub(super) async fn new() -> Result<Self> {
        let control_plane = installed().await?;
        let schedules = Schedules::of(&Namespaced::on(control_plane).await?).await?;
        let namespaces: Api<Namespace> = Api::all(schedules.client.clone());
        let other = serde_json::from_value(json!({"metadata": {"generateName": "other-"}}))?;
        let other = namespaces.create(&PostParams::default(), &other).await?.name_any();
        let namespace = schedules.namespace.clone();
        let (neighbour, everywhere) = (format!("neighbour-{namespace}"), format!("everywhere-{namespace}"));
        let stage = Self { schedules, other, neighbour, everywhere };
        let (writes, asks) = (["get", "create", "patch"], ["create"]);
        for user in [WRITER, HALF, &stage.neighbour, &stage.everywhere] {
            stage.grant(user, "schedules", &may("workflowschedules", &writes), Some(&namespace)).await?;
        }
        for user in [WRITER, ASKER, &stage.neighbour, &stage.everywhere] {
            stage.grant(user, "executions", &may("workflowexecutions", &asks), Some(&namespace)).await?;
        }
        stage.grant(ADVISOR, "advice", &may("workflowschedules", &["get", "patch"]), Some(&namespace)).await?;
        // The permissions of a shipped role, in one namespace or everywhere.
        let bind = async |user: &str, namespace| stage.bind(user, "wfe-target", "wfe-target", namespace).await;
        bind(&stage.neighbour, Some(&stage.other)).await?;
        bind(&stage.everywhere, None).await?;
        stage.await_right(&stage.neighbour, Some(&stage.other)).await?;
        stage.await_right(&stage.everywhere, None).await?;
        stage.await_policies().await?;
        Ok(stage)
    }

    pub(super) fn client(&self) -> &kube::Client {
        &self.schedules.client
    }

    pub(super) fn namespace(&self) -> &str {
        &self.schedules.namespace
    }

    /// Grants a user a role with one rule.
    pub(super) async fn grant(&self, user: &str, name: &str, may: &Value, namespace: Option<&str>) -> Result<()> {
        let name = format!("{user}-{name}");
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [may],
        });
        manifests::apply(self.client(), &role).await?;
        self.bind(user, &name, &name, namespace).await
    }

    /// Binds a role to a user in a namespace, or for the whole cluster.
    pub(super) async fn bind(&self, user: &str, name: &str, role: &str, namespace: Option<&str>) -> Result<()> {
        let group = "rbac.authorization.k8s.io";
        let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        let metadata = match namespace {
            Some(namespace) => json!({"name": name, "namespace": namespace}),
            None => json!({"name": format!("{name}-{user}")}),
        };
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata,
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        });
        manifests::apply(self.client(), &binding).await?;
        Ok(())
    }

    /// Waits until the authorizer grants a user the permission for targets.
    async fn await_right(&self, user: &str, namespace: Option<&str>) -> Result<()> {
        self.await_virtual(user, "create workflowexecutions/target", namespace).await
    }

    /// Waits until the authorizer allows an operation on a virtual subresource, such as `create x/y`.
    pub(super) async fn await_virtual(&self, user: &str, right: &str, namespace: Option<&str>) -> Result<()> {
        let (verb, resource) = right.split_once(' ').context("no verb")?;
        let (resource, subresource) = resource.split_once('/').context("no subresource")?;
        let reviews: Api<SubjectAccessReview> = Api::all(self.client().clone());
        let review = serde_json::from_value(json!({"spec": {"user": user, "resourceAttributes": {
            "namespace": namespace, "group": "kubernaut.ai", "resource": resource,
            "subresource": subresource, "verb": verb,
        }}}))?;
        let ask = async || anyhow::Ok(reviews.create(&PostParams::default(), &review).await?);
        let is = |answer: &SubjectAccessReview| answer.status.as_ref().is_some_and(|status| status.allowed);
        ask_until(IN_FORCE_WITHIN, &format!("{user} may {right} in {namespace:?}"), ask, is).await.map(drop)
    }

    /// Waits until both policies refuse a user in this namespace. By then, the roles are in force too.
    async fn await_policies(&self) -> Result<()> {
        let own = self.on("deployment/api")?;
        let ask = async || {
            let schedule = self.schedules.try_create_as(HALF, own.clone()).await?;
            let child = self.forge(ASKER, &reference("WorkflowSchedule")).await?;
            let writer = self.schedules.try_create_as(WRITER, own.clone()).await?;
            let advisor = self.schedules.patch_as(ADVISOR, "nobody", json!({"spec": {"suspend": true}})).await;
            anyhow::Ok((schedule, child, writer, advisor))
        };
        ask_until(IN_FORCE_WITHIN, "policies and roles are in force", ask, |(schedule, child, writer, advisor)| {
            let knows_advisor = advisor.as_ref().is_err_and(|error| error.to_string().contains("not found"));
            says(AUTHOR)(schedule) && says(CHILD)(child) && writer.is_none() && knows_advisor
        })
        .await
        .map(drop)
    }

    /// Returns a schedule with a target in its own namespace.
    pub(super) fn on(&self, object: &str) -> Result<Value> {
        but(good(), &[(TARGET, json!(format!("{}/{object}", self.namespace())))])
    }

    /// Tries to create an execution with this `remediationRequestRef` as this user, as a dry run.
    pub(super) async fn forge(&self, user: &str, reference: &Value) -> Result<Refusal> {
        let mut execution = good_request();
        execution["spec"]["remediationRequestRef"] = reference.clone();
        execution["spec"]["targetResource"] = json!(format!("{}/deployment/api", self.namespace()));
        let kind = ApiResource::erase::<WorkflowExecution>(&());
        create_as(self.client(), user, &kind, self.namespace(), &execution).await
    }
}

/// Returns a reference from an execution to its requester.
pub(super) fn reference(kind: &str) -> Value {
    json!({"apiVersion": "kubernaut.ai/v1alpha1", "kind": kind, "name": "nightly", "uid": "1"})
}
