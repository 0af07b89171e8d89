//! Reads all that the checks need. A missing permission is an answer, too; an API server that does not answer is an
//! error.

use anyhow::{Context, Result, bail};
use http::Request;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::Value;
use wfe_view::call::{CallError, within};
use wfe_view::source::PAGE;

use crate::cli::OperatorArgs;
use crate::connection::{ANSWERS_WITHIN, Connection};
use crate::installation::Installation;

/// The limit of bindings that are read. A cluster of ten thousand namespaces usually has fewer.
const MOST_BINDINGS: usize = 50_000;

/// The answer to one read.
#[derive(Clone, Debug)]
pub(super) enum Answer<T = Value> {
    Found(T),
    Absent,
    /// The API server's words, or another reason.
    Denied(String),
}

/// All that was read of a cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) version: Value,
    /// The resources of `tekton.dev/v1`.
    pub(super) tekton: Answer,
    pub(super) tekton_info: Answer,
    pub(super) tekton_flags: Answer,
    pub(super) resolvers_flags: Answer,
    /// The published schemas of our kinds.
    pub(super) schemas: Answer,
}

/// All that was read of an installation.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) operator: OperatorArgs,
    pub(super) installation: Installation,
    pub(super) deployment: Answer,
    pub(super) execution_namespace: Answer,
    pub(super) runner: Answer,
    pub(super) bindings: Answer<Vec<Binding>>,
    pub(super) alerts: Answer,
}

/// A `RoleBinding` or `ClusterRoleBinding`.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    /// None if it binds for the whole cluster.
    pub(super) namespace: Option<String>,
    pub(super) role: RoleRef,
    pub(super) subjects: Vec<Subject>,
}

impl Cluster {
    pub(super) async fn read(client: &Client) -> Result<Self> {
        let config_map = |namespace: &str, name: &str| format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let (version, tekton, tekton_info, tekton_flags, resolvers_flags, schemas) = tokio::try_join!(
            get(client, "/version".to_owned()),
            get(client, "/apis/tekton.dev/v1".to_owned()),
            get(client, config_map("tekton-pipelines", "pipelines-info")),
            get(client, config_map("tekton-pipelines", "feature-flags")),
            get(client, config_map("tekton-pipelines-resolvers", "resolvers-feature-flags")),
            get(client, format!("/openapi/v3/apis/{}/{}", wfe_api::GROUP, wfe_api::VERSION)),
        )?;
        let Answer::Found(version) = version else { bail!("the API server does not tell its version") };
        Ok(Self { version, tekton, tekton_info, tekton_flags, resolvers_flags, schemas })
    }
}

impl Installed {
    pub(super) async fn read(connection: &Connection, operator: &OperatorArgs) -> Result<Self> {
        let client = &connection.client;
        let installation = Installation::read(connection, &operator.view()).await?;
        let OperatorArgs { namespace, name, .. } = operator;
        let (runs, runner) = (&installation.execution_namespace, runner_of(&installation));
        let (deployment, execution_namespace, runner, alerts, bindings) = tokio::try_join!(
            get(client, format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")),
            get(client, format!("/api/v1/namespaces/{runs}")),
            get(client, format!("/api/v1/namespaces/{runs}/serviceaccounts/{runner}")),
            get(client, format!("/apis/monitoring.coreos.com/v1/namespaces/{namespace}/prometheusrules")),
            bindings(client),
        )?;
        let operator = operator.clone();
        Ok(Self { operator, installation, deployment, execution_namespace, runner, bindings, alerts })
    }
}

/// Returns the name of the service account of workflows.
pub(super) fn runner_of(installation: &Installation) -> &str {
    let setting = installation.config.settings.iter().find(|it| it.key == "service-account");
    setting.map_or("kubernaut-workflow-runner", |it| &it.value)
}

/// Reads one object, or a list of few.
async fn get(client: &Client, path: String) -> Result<Answer> {
    let request = Request::get(&path).body(Vec::new()).with_context(|| format!("{path} is no path"))?;
    answer(within(ANSWERS_WITHIN, client.request(request)).await, &path)
}

fn answer<T>(read: Result<T, CallError>, what: &str) -> Result<Answer<T>> {
    match read {
        Ok(found) => Ok(Answer::Found(found)),
        Err(CallError::Refused(status)) if status.code == 404 => Ok(Answer::Absent),
        Err(CallError::Refused(status)) if status.code == 403 => Ok(Answer::Denied(status.message)),
        Err(error) => bail!("cannot read {what}: {error}"),
    }
}

/// Reads all bindings.
async fn bindings(client: &Client) -> Result<Answer<Vec<Binding>>> {
    let here = list(Api::<RoleBinding>::all(client.clone()), "rolebindings", |it| Binding {
        namespace: it.metadata.namespace,
        role: it.role_ref,
        subjects: it.subjects.unwrap_or_default(),
    });
    let everywhere = list(Api::<ClusterRoleBinding>::all(client.clone()), "clusterrolebindings", |it| Binding {
        namespace: None,
        role: it.role_ref,
        subjects: it.subjects.unwrap_or_default(),
    });
    let (here, everywhere) = (here.await?, everywhere.await?);
    Ok(match (here, everywhere) {
        (Answer::Found(here), Answer::Found(everywhere)) => Answer::Found([here, everywhere].concat()),
        (Answer::Denied(why), _) | (_, Answer::Denied(why)) => Answer::Denied(why),
        (Answer::Absent, _) | (_, Answer::Absent) => Answer::Absent,
    })
}

async fn list<K>(api: Api<K>, what: &str, read: impl Fn(K) -> Binding) -> Result<Answer<Vec<Binding>>>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut params = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = match answer(within(ANSWERS_WITHIN, api.list(&params)).await, what)? {
            Answer::Found(page) => page,
            Answer::Absent => return Ok(Answer::Absent),
            Answer::Denied(why) => return Ok(Answer::Denied(why)),
        };
        found.extend(page.items.into_iter().map(&read));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            None => return Ok(Answer::Found(found)),
            Some(_) if found.len() >= MOST_BINDINGS => {
                return Ok(Answer::Denied(format!("there are more than {MOST_BINDINGS} {what}")));
            }
            Some(token) => params = params.continue_token(&token),
        }
    }
}

/// The cluster-scoped resources that an installation creates: group and resource.
const TO_INSTALL: [(&str, &str); 5] = [
    ("", "namespaces"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
];

/// Returns the resources of an installation that the caller may not create.
pub(super) async fn may_not_create(client: &Client) -> Result<Vec<&'static str>> {
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let mut denied = Vec::new();
    for (group, resource) in TO_INSTALL {
        let asked = ResourceAttributes {
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            verb: Some("create".to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(asked), non_resource_attributes: None };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let review = within(ANSWERS_WITHIN, reviews.create(&PostParams::default(), &review)).await;
        let review = review.context("cannot ask the API server what you may do; try: kubectl auth can-i --list")?;
        if !review.status.is_some_and(|status| status.allowed) {
            denied.push(resource);
        }
    }
    Ok(denied)
}
