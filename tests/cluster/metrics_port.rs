//! The metrics over TLS, which only authorized clients may read.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::prometheus::{Scraped, Secured};
use wfe_testkit::{Prometheus, World, issue_certificate};

const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);
const GROUP: &str = "rbac.authorization.k8s.io";

/// Returns a client that sends requests to the operator as if it were the API server, with the token of a kubeconfig.
/// The kubeconfig's authority also signed the operator's certificate.
async fn reader(kubeconfig: &Path, address: &str, token: Option<&str>) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    config.default_retry = false; // a 503 must be returned, not retried
    config.cluster_url = format!("https://{address}").parse()?;
    match token {
        Some("") => config.auth_info = kube::config::AuthInfo::default(),
        Some(token) => config.auth_info.token = Some(token.to_owned().into()),
        None => {}
    }
    Ok(Client::try_from(config)?)
}

/// Returns the status code and the text of an answer.
async fn get(client: &Client) -> Result<(u16, String)> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    match client.request_text(request).await {
        Ok(text) => Ok((200, text)),
        Err(kube::Error::Api(status)) => Ok((status.code, status.message.clone())),
        Err(error) => bail!("no answer: {error:?}"),
    }
}

async fn await_code(client: &Client, code: u16) -> Result<String> {
    let what = format!("it answers {code}");
    let (_, said) = ask_until(IN_FORCE_WITHIN, &what, async || get(client).await, |said| said.0 == code).await?;
    Ok(said)
}

fn binding(world: &World, name: &str, role: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{name}-{}", world.namespace())},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    })
}

#[tokio::test]
async fn the_metrics_are_for_who_may_read_them_and_go_over_tls() -> Result<()> {
    let world = World::new("metrics-port").await?;
    let pki = world.control_plane().dir().join("pki");
    let file = |name: &str| pki.join(name).display().to_string();
    let operator = world
        .operator()
        .arg("--metrics-tls-certificate", &file("server.crt"))
        .arg("--metrics-tls-key", &file("server.key"))
        .arg("--metrics-authentication", "true")
        .start()
        .await?;
    let address = operator.address("metrics").await.context("the operator does not say where metrics are")?;
    let (may, may_not) = (world.person("may", &[], None).await?, world.person("may-not", &[], None).await?);
    let scraper = reader(&may, &address, None).await?;

    // Without permission for token reviews, the operator admits no client. Its log names the permission.
    await_code(&scraper, 503).await?;
    let lacks = |line: &Value| line["fields"]["error"].as_str().is_some_and(|it| it.contains("\"tokenreviews\""));
    operator.await_line("names the right", lacks).await?;
    let user = json!({"apiGroup": GROUP, "kind": "User", "name": world.operator_user()});
    world.apply(&binding(&world, "delegator", "system:auth-delegator", &user)).await?;
    let refused = await_code(&scraper, 403).await?;
    assert!(refused.contains("you may not get the path /metrics"), "{refused}");

    let role = format!("metrics-{}", world.namespace());
    let rules = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    let role_object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": role},
        "rules": rules});
    world.apply(&role_object).await?;
    let account = json!({"kind": "ServiceAccount", "name": "granted", "namespace": world.namespace()});
    world.apply(&binding(&world, "reader", &role, &account)).await?;
    // This account is a new one, because the answer for the first account is cached for a minute.
    let granted = world.person("granted", &[], None).await?;
    // The authorizer needs a moment to see the permission. A refusal in that moment would be cached for a minute too.
    await_allowed(&world, "granted").await?;
    let text = await_code(&reader(&granted, &address, None).await?, 200).await?;
    assert!(text.contains("workflowexecution_build_info"), "{text}");

    // A Prometheus can scrape the metrics with the token of that account, and cannot with another token.
    let (right, wrong) = (scrape(&world, &address, &granted).await?, scrape(&world, &address, &may_not).await?);
    await_scraped(&right, true).await?;
    assert!(!right.query("workflowexecution_build_info").await?.is_empty(), "nothing was scraped");
    await_scraped(&wrong, false).await?;

    let (code, said) = get(&reader(&may_not, &address, None).await?).await?;
    assert_eq!(code, 403, "{said}");
    for token in ["", "invented"] {
        let (code, said) = get(&reader(&granted, &address, Some(token)).await?).await?;
        assert_eq!(code, 401, "{token:?}: {said}");
    }
    ensure!(operator.get("metrics", "/metrics").await.is_err(), "the metrics are served without TLS too");
    assert!(operator.ready().await, "the probes need neither");
    world.close().await
}

/// Waits until an account may read `/metrics`.
async fn await_allowed(world: &World, account: &str) -> Result<()> {
    let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
        "user": world.user(account), "groups": ["system:serviceaccounts", "system:authenticated"],
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }}))?;
    let reviews = kube::Api::all(world.client());
    let ask = async || anyhow::Ok(reviews.create(&kube::api::PostParams::default(), &review).await?);
    let is = |answer: &SubjectAccessReview| answer.status.as_ref().is_some_and(|status| status.allowed);
    ask_until(IN_FORCE_WITHIN, &format!("{account} may get /metrics"), ask, is).await.map(drop)
}

/// Starts a Prometheus that scrapes the operator over TLS, with the token of a kubeconfig.
async fn scrape(world: &World, address: &str, kubeconfig: &Path) -> Result<Prometheus> {
    let read: Value = serde_saphyr::from_str(&std::fs::read_to_string(kubeconfig)?)?;
    let token = read["users"][0]["user"]["token"].as_str().context("a kubeconfig without a token")?;
    let file = kubeconfig.with_extension("token");
    std::fs::write(&file, token)?;
    let authority = world.control_plane().dir().join("pki").join("ca.crt");
    let secured = Some(Secured { authority, token: file });
    let (address, job) = (address.to_owned(), "wfe-operator".to_owned());
    Prometheus::start(world, &[Scraped { address, job, namespace: world.system_namespace(), secured }], "groups: []")
        .await
}

/// Waits until a Prometheus reports that its last scrape succeeded, or that it failed.
async fn await_scraped(prometheus: &Prometheus, is_in: bool) -> Result<()> {
    let awaited = if is_in { "1" } else { "0" };
    let is = |up: &Vec<Value>| up.len() == 1 && up[0]["value"][1] == awaited;
    ask_until(IN_FORCE_WITHIN, &format!("up is {awaited}"), async || prometheus.query("up").await, is).await.map(drop)
}

/// A certificate is replaced before it expires. New connections get the new certificate, unless its files cannot be
/// used.
#[tokio::test]
async fn a_certificate_that_is_replaced_is_served_and_one_that_cannot_be_used_is_not() -> Result<()> {
    let world = World::new("metrics-renewed").await?;
    let dir = world.control_plane().dir().join("worlds").join(world.namespace()).join("certificates");
    std::fs::create_dir_all(&dir)?;
    let [before, after, certificate, key] =
        ["before.crt", "after.crt", "tls.crt", "tls.key"].map(|name| dir.join(name));
    issue_certificate(&before, &certificate, &key)?;
    let operator = world
        .operator()
        .arg("--metrics-tls-certificate", &certificate.display().to_string())
        .arg("--metrics-tls-key", &key.display().to_string())
        .start()
        .await?;
    let address = operator.address("metrics").await.context("the operator does not say where metrics are")?;
    await_trusted(&address, &before).await?;
    std::fs::write(&certificate, "no certificate")?;
    // The operator reads the files only after a connection. Connections in the meantime get the old certificate.
    let warned = operator.await_line("keeps it", |line: &Value| {
        line["fields"]["message"].as_str().is_some_and(|it| it.contains("the certificate stays as it was"))
    });
    let asking = async {
        loop {
            await_trusted(&address, &before).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        warned = warned => { warned?; }
        failed = asking => { let failed: Result<()> = failed; failed?; }
    }
    issue_certificate(&after, &certificate, &key)?;
    await_trusted(&address, &after).await?;
    ensure!(trusts(&address, &before).await.is_err(), "the old authority is still good");
    world.close().await
}

/// Requests the metrics from a server whose certificate must be signed by this authority.
async fn trusts(address: &str, authority: &Path) -> Result<()> {
    let server = json!({"server": format!("https://{address}"), "certificate-authority": authority});
    let read: Kubeconfig = serde_json::from_value(json!({
        "clusters": [{"name": "it", "cluster": server}], "contexts": [{"name": "it", "context": {"cluster": "it"}}],
        "current-context": "it",
    }))?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    let (code, said) = get(&Client::try_from(config)?).await?;
    ensure!(code == 200, "{code}: {said}");
    Ok(())
}

async fn await_trusted(address: &str, authority: &Path) -> Result<()> {
    let what = format!("{} is trusted", authority.display());
    ask_until(2 * IN_FORCE_WITHIN, &what, async || Ok(trusts(address, authority).await), Result::is_ok).await?
}
