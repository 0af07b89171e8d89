//! Starts the components of a control plane in order. A control plane with Tekton starts from a prepared copy.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use kube::Client;
use serde::{Deserialize, Serialize};

use crate::assets::{Assets, repository};
use crate::components::{self, Component};
use crate::pki::Pki;
use crate::place::Place;
use crate::running::Running;
use crate::{manifests, prepared, random, webhook};

/// Which Tekton a control plane has: kinds, controller and bundles resolver, and the registry with the bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tekton {
    /// No Tekton, and no registry.
    None,
    /// The version that all tests run with.
    Current,
    /// The oldest supported version, which is built only on request.
    Oldest,
}

/// How much the audit log records of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Audit {
    /// Records the writes of our kinds with the bodies of request and answer, which the auditor reads.
    Bodies,
    /// Records users and requests without bodies. In a measurement, bodies would be most of the API server's work.
    Counts,
}

/// The optional parts of a control plane. etcd, API server and controller-manager always run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Which version of Tekton, if any.
    pub tekton: Tekton,
    /// Whether there is a scheduler, a node, and kwok to simulate its pods.
    pub pods: bool,
    /// Whether Tekton's admission webhook runs.
    pub webhook: bool,
    /// Whether the kinds of this repository are installed (`crds/*.yaml`).
    pub crd: bool,
    /// How much the audit log records.
    pub audit: Audit,
}

impl Default for Options {
    /// Returns what most tests need: everything except the webhook.
    fn default() -> Self {
        Self { tekton: Tekton::Current, pods: true, webhook: false, crd: true, audit: Audit::Bodies }
    }
}

impl Options {
    /// Only an API server with controllers: no Tekton, no pods, none of our kinds.
    pub const BARE: Self = Self { tekton: Tekton::None, pods: false, webhook: false, crd: false, audit: Audit::Bodies };
}

/// The addresses and paths of a running control plane.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Info {
    /// The run directory of the control plane.
    pub dir: PathBuf,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The URL of the API server.
    pub url: String,
    /// The URL of the control plane's etcd, which requires no credentials; `None` for a given cluster.
    pub etcd: Option<String>,
    /// The registry, as host:port; `None` without Tekton.
    pub registry: Option<String>,
    /// The version of Tekton, such as `v1.12.0`.
    pub tekton: Option<String>,
    /// The path of the built `kubectl`.
    pub kubectl: PathBuf,
}

/// How many ports are tried for a component: another process may have taken the earlier ones.
const PORT_ATTEMPTS: u32 = 4;

/// A set of running components.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) place: Place,
    pub(crate) running: Vec<Running>,
}

impl Stack {
    /// A stack without components.
    pub(crate) fn new(place: Place) -> Self {
        Self { place, running: Vec::new() }
    }

    /// Starts the parts that `options` selects, and returns once all of them serve.
    pub(crate) async fn start(&mut self, options: Options) -> Result<Info> {
        let with_tekton = options.tekton != Tekton::None;
        ensure!(with_tekton || !options.webhook, "Tekton's webhook needs Tekton");
        if with_tekton {
            prepared::copy_to(&self.place).await?;
        } else {
            Pki::create(&self.place.dir.join("pki"))?;
        }
        let (url, etcd) = self.start_api(options.audit).await?;
        let client = manifests::client(&self.place.kubeconfig("admin")).await?;

        // These components need only the API server. All of them are started before the first wait.
        let first = self.running.len();
        self.spawn(|place| Ok(components::controller_manager(place)))?;
        let (mut registry, mut tekton) = (None, None);
        if options.pods {
            self.spawn(|place| Ok(components::scheduler(place)))?;
            self.spawn(|place| Ok(components::kwok(place, random::free_port()?)))?;
        }
        if with_tekton {
            tekton = Some(self.place.assets.tekton_version()?);
            let port = random::free_port()?;
            registry = Some(format!("127.0.0.1:{port}"));
            self.spawn(|place| Ok(components::tekton_controller(place, ports()?)))?;
            self.spawn(|place| Ok(components::tekton_resolvers(place, ports()?)))?;
            self.spawn(|place| Ok(components::registry(place, port)))?;
        }
        if options.webhook {
            let port = random::free_port()?;
            webhook::configure(&client, &self.place.pki(), port).await?;
            self.spawn(|place| Ok(components::tekton_webhook(place, port, ports()?)))?;
        }
        if options.crd {
            apply_own_kinds(&client).await?;
        }
        if options.pods {
            prepared::await_node(&client).await?;
        }
        for running in &mut self.running[first..] {
            running.await_serving().await?;
        }
        if options.webhook {
            webhook::await_answers(&client).await?;
        }
        Ok(Info {
            dir: self.place.dir.clone(),
            kubeconfig: self.place.kubeconfig("admin"),
            url,
            etcd: Some(etcd),
            registry,
            tekton,
            kubectl: self.place.assets.program("kubectl"),
        })
    }

    /// Starts the API server and etcd, and returns the URLs of both.
    pub(crate) async fn start_api(&mut self, audit: Audit) -> Result<(String, String)> {
        let mut client_port = 0;
        self.launch(|place| {
            client_port = random::free_port()?;
            Ok(components::etcd(place, client_port, random::free_port()?))
        })
        .await?;
        let mut url = String::new();
        self.launch(|place| {
            let port = random::free_port()?;
            url = format!("https://127.0.0.1:{port}");
            place.write_kubeconfigs(&url)?;
            Ok(components::api_server(place, port, client_port, audit))
        })
        .await?;
        Ok((url, format!("http://127.0.0.1:{client_port}")))
    }

    /// Starts a component, and waits until it serves. Tries further ports if another process has taken the first.
    pub(crate) async fn launch(&mut self, mut make: impl FnMut(&Place) -> Result<Component>) -> Result<()> {
        let mut attempt = 1;
        loop {
            let mut running = Running::spawn(&self.place, make(&self.place)?)?;
            match running.await_serving().await {
                Ok(()) => {
                    self.running.push(running);
                    return Ok(());
                }
                Err(_) if running.lost_its_port() && attempt < PORT_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn spawn(&mut self, make: impl FnOnce(&Place) -> Result<Component>) -> Result<()> {
        let component = make(&self.place)?;
        self.running.push(Running::spawn(&self.place, component)?);
        Ok(())
    }

    /// Finds a component by its name.
    pub(crate) fn component(&mut self, name: &str) -> Result<&mut Running> {
        let known: Vec<&str> = self.running.iter().map(|running| running.component.name).collect();
        let known = known.join(", ");
        match self.running.iter_mut().find(|running| running.component.name == name) {
            Some(running) => Ok(running),
            None => bail!("no component {name} (there are: {known})"),
        }
    }

    /// Returns whether a component failed to start because another process had taken its port.
    pub(crate) fn lost_a_port(&self) -> bool {
        self.running.iter().any(Running::lost_its_port)
    }

    /// Ends all components, the newest first. `gracefully` is necessary only if the data is used afterwards.
    pub(crate) async fn stop(&mut self, gracefully: bool) {
        while let Some(mut running) = self.running.pop() {
            running.stop(gracefully).await;
        }
    }
}

fn ports() -> Result<[u16; 3]> {
    Ok([random::free_port()?, random::free_port()?, random::free_port()?])
}

async fn apply_own_kinds(client: &Client) -> Result<()> {
    let objects = manifests::read(&repository().join("crds"))?;
    ensure!(!objects.is_empty(), "crds/ holds no manifest: `wfe-operator crd` prints them");
    manifests::apply_all(client, &objects).await
}

/// Starts a control plane in a new directory. If other processes have taken its ports, tries again in another
/// directory.
pub(crate) async fn start(assets: &Assets, options: Options) -> Result<(Stack, Info)> {
    let mut attempt = 1;
    loop {
        let mut stack = Stack::new(Place::create(assets.clone())?);
        match stack.start(options).await {
            Ok(info) => return Ok((stack, info)),
            Err(error) => {
                let again = stack.lost_a_port() && attempt < PORT_ATTEMPTS;
                stack.stop(false).await;
                stack.place.remove(!again);
                if !again {
                    return Err(error);
                }
                attempt += 1;
            }
        }
    }
}
