//! The connection to the API server of the kubeconfig, and the time by its clock.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chrono::{DateTime, TimeDelta, Utc};
use http::header::DATE;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, PatchParams, PostParams};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use wfe_core::Time;
use wfe_view::call::CallError;

use crate::cli::ClusterArgs;

/// The time-out of a request: the same as in the operator.
pub(crate) const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// A difference between this machine's clock and the API server's that is not corrected: the server tells its time in
/// whole seconds, and its answer takes a moment.
const CLOCKS_AGREE: TimeDelta = TimeDelta::seconds(2);

/// A connection that has been tried once.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The namespace of an object that is named without one.
    pub(crate) namespace: String,
    /// The context of the kubeconfig; without one, the address of the API server.
    pub(crate) cluster: String,
    /// By how much the API server's clock is ahead of this machine's.
    ahead: TimeDelta,
}

impl Connection {
    /// Connects to the cluster of the kubeconfig, and asks the API server for its time.
    pub(crate) async fn open(cluster: &ClusterArgs) -> Result<Self> {
        let mut config = config(cluster).await?;
        config.default_retry = false;
        config.connect_timeout = Some(ANSWERS_WITHIN);
        config.read_timeout = Some(ANSWERS_WITHIN);
        config.auth_info.impersonate = cluster.as_user.clone().or(config.auth_info.impersonate);
        if !cluster.as_groups.is_empty() {
            config.auth_info.impersonate_groups = Some(cluster.as_groups.clone());
        }
        let namespace = cluster.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let server = config.cluster_url.to_string();
        let name = context(cluster).unwrap_or_else(|| server.clone());
        let client = Client::try_from(config).context("cannot use the kubeconfig; check its certificates")?;
        let ahead = ahead(&client).await.map_err(|cause| {
            anyhow!(
                "the API server {} does not answer: {cause}; is it up, and is this the right cluster? \
                 kubectl config current-context",
                server.trim_end_matches('/')
            )
        })?;
        Ok(Self { client, namespace, cluster: name, ahead })
    }

    /// Returns the time by the API server's clock: the times in objects are the server's, or those of machines that
    /// agree with it.
    pub(crate) fn now(&self) -> Time {
        Utc::now() + self.ahead
    }

    /// Asks the API server for the name of the caller.
    pub(crate) async fn who_am_i(&self) -> Result<String> {
        let review = Api::<SelfSubjectReview>::all(self.client.clone())
            .create(&PostParams::default(), &SelfSubjectReview::default())
            .await
            .context("cannot ask the API server who you are; try: kubectl auth whoami")?;
        let user = review.status.and_then(|status| status.user_info).and_then(|info| info.username);
        user.context("the API server does not say who you are; log in and try again")
    }
}

/// The name of this tool in the managed fields of what it writes.
pub(crate) const FIELD_MANAGER: &str = "kubectl-wfe";

/// Describes an error, with advice. `rights` are the roles to ask for.
pub(crate) fn advised(error: &CallError, rights: &str) -> String {
    let CallError::Refused(status) = error else {
        return format!("{error}; check that the API server can be reached: kubectl version");
    };
    let advice = match status.code {
        401 => "log in again".to_owned(),
        403 => format!("ask for the rights of {rights}"),
        404 => "the CRD is not installed: is this the right cluster? kubectl config current-context".to_owned(),
        409 => "it has changed since it was read; try again".to_owned(),
        _ => "try again".to_owned(),
    };
    format!("{}; {advice}", status.message)
}

/// Returns the API server's message, without advice.
pub(crate) fn words(error: &CallError) -> String {
    match error {
        CallError::Refused(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// The parameters of every write.
pub(crate) fn by_us() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Finds the cluster as kubectl does.
async fn config(args: &ClusterArgs) -> Result<Config> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    if let Some(file) = &args.kubeconfig {
        let kubeconfig = Kubeconfig::read_from(file).context("cannot read --kubeconfig")?;
        return Config::from_custom_kubeconfig(kubeconfig, &options).await.context("cannot use --kubeconfig");
    }
    if args.context.is_some() {
        return Config::from_kubeconfig(&options)
            .await
            .context("cannot use --context; see: kubectl config get-contexts");
    }
    Config::infer().await.context("cannot find a cluster: set KUBECONFIG, or log in")
}

/// Returns the name of the context that [`config`] takes. It is only shown.
fn context(args: &ClusterArgs) -> Option<String> {
    let read = || match &args.kubeconfig {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    args.context.clone().or_else(|| read().ok()?.current_context).filter(|name| !name.is_empty())
}

/// Asks for the version, which every user may read, and compares the `Date` of the answer with this machine's clock.
/// Fails with the first cause if there is no answer.
async fn ahead(client: &Client) -> Result<TimeDelta, String> {
    let request = http::Request::get("/version").body(Body::empty()).map_err(|error| error.to_string())?;
    let sent = Utc::now();
    match tokio::time::timeout(ANSWERS_WITHIN, client.send(request)).await {
        Err(_) => Err(format!("no answer within {} s", ANSWERS_WITHIN.as_secs())),
        Ok(Err(error)) => Err(first_cause(&error)),
        Ok(Ok(answer)) => {
            let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
            let date = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
            let middle = sent + (Utc::now() - sent) / 2;
            let ahead = date.map(|date| date.to_utc() + TimeDelta::milliseconds(500) - middle);
            Ok(ahead.filter(|ahead| ahead.abs() > CLOCKS_AGREE).unwrap_or_default())
        }
    }
}

/// Returns the innermost error: the outer ones only say that the client could not connect.
fn first_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
