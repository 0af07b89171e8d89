//! Starts the components of a control plane in order, from a prepared copy where Tekton is wanted.

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

/// Which Tekton a control plane has: its kinds, controller and bundles resolver, and the registry that bundles are
/// pulled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tekton {
    /// None.
    None,
    /// The version that all tests run with.
    Current,
    /// The oldest version that is supported; it is built only when asked for.
    Oldest,
}

/// What the API server writes down of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Audit {
    /// Writes of our kinds with what was asked and answered: what the auditor reads.
    Bodies,
    /// The users and requests, without bodies: in a measurement, bodies would be most of the work.
    Counts,
}

/// What a control plane consists of, beyond etcd, API server and controller-manager.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Which Tekton.
    pub tekton: Tekton,
    /// Scheduler, a node, and kwok that plays its pods.
    pub pods: bool,
    /// Tekton's admission webhook.
    pub webhook: bool,
    /// The kinds of this repository (`crds/*.yaml`).
    pub crd: bool,
    /// How much the audit log holds.
    pub audit: Audit,
}

impl Default for Options {
    /// All that most tests need: everything but the webhook.
    fn default() -> Self {
        Self { tekton: Tekton::Current, pods: true, webhook: false, crd: true, audit: Audit::Bodies }
    }
}

impl Options {
    /// An API server with controllers and nothing else: no Tekton, no pods, no kinds of ours.
    pub const BARE: Self = Self { tekton: Tekton::None, pods: false, webhook: false, crd: false, audit: Audit::Bodies };
}

/// Where a running control plane can be reached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Info {
    /// Its run directory.
    pub dir: PathBuf,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The API server.
    pub url: String,
    /// Its etcd, where that is ours: it asks nobody who they are.
    pub etcd: Option<String>,
    /// The registry, as host:port.
    pub registry: Option<String>,
    /// The version of Tekton, such as `v1.12.0`.
    pub tekton: Option<String>,
    /// The built `kubectl`.
    pub kubectl: PathBuf,
}

/// How often a start is tried with other ports, when somebody else took the first ones.
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

    /// Starts what `options` name, and returns when all of it serves.
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

        // These need only the API server: start them all, then wait for all.
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

    /// Starts API server and etcd, and returns the URLs of both.
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

    /// Starts a component and waits until it serves; with other ports where somebody else took the first.
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

    /// Returns which port was lost by a component that just failed to start.
    pub(crate) fn lost_a_port(&self) -> bool {
        self.running.iter().any(Running::lost_its_port)
    }

    /// Ends everything, the newest first. Gracefully only where the data is wanted afterwards.
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

/// Starts a control plane in a new directory; again in another one where ports were lost on the way.
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
