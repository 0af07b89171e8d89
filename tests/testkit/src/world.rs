//! A test's own part of a control plane: namespaces, the shipped RBAC, an operator, objects and waits.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::assets::repository;
use crate::bundle::{self, Bundle};
use crate::control_plane::ControlPlane;
use crate::operator::{self, OperatorBuilder};
use crate::pipeline::Pipeline;
use crate::rbac::{self, Places};
use crate::rights::Right;
use crate::wfe::WfeBuilder;
use crate::{dump, manifests, random};

/// The default service account of workflows.
const RUNNER: &str = "kubernaut-workflow-runner";

/// How a world differs from the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct WorldOptions {
    /// Whether the operator watches all namespaces, and its `ClusterRole` is bound for the whole cluster.
    pub all_namespaces: bool,
    /// Whether the world lacks the execution namespace and its content.
    pub no_execution_namespace: bool,
}

/// Two namespaces that no other test uses (and a third for the operator's service account), with the shipped RBAC. If a
/// test panics or a wait fails, their objects are printed.
///
/// At the end only the cluster-scoped objects are deleted, because they could affect other tests. The namespaces stay
/// until the control plane ends, because emptying one costs the controllers hundreds of requests. In a given cluster,
/// the namespaces are deleted too.
pub struct World {
    control_plane: ControlPlane,
    client: Client,
    name: String,
    /// The namespace of the PipelineRuns.
    execution: String,
    options: WorldOptions,
    /// The length of the audit log when this world began.
    audit_from: u64,
    cluster_scoped: Mutex<Vec<(ApiResource, String)>>,
    operators: AtomicU32,
    /// The flags of each operator that was started, with their values.
    operator_flags: Mutex<Vec<Vec<(String, String)>>>,
    pub(crate) operator_logs: Mutex<Vec<PathBuf>>,
    /// Whether a wait has failed. If so, the dump is printed even without a panic, because a test may end with an
    /// error.
    troubled: AtomicBool,
    closed: bool,
}

impl World {
    /// Creates a world on the control plane that the tests of this process share.
    pub async fn new(name: &str) -> Result<Self> {
        Self::on(ControlPlane::shared().await?, name).await
    }

    /// Creates a world on a given control plane.
    pub async fn on(control_plane: &ControlPlane, name: &str) -> Result<Self> {
        Self::with(control_plane, name, WorldOptions::default()).await
    }

    /// Creates a world on a control plane, with options.
    pub async fn with(control_plane: &ControlPlane, name: &str, options: WorldOptions) -> Result<Self> {
        let name = format!("{name}-{}", random::letters(6));
        let execution = format!("{name}-exec");
        Self::furnished(control_plane, name, execution, options).await
    }

    /// Creates another world, whose operators watch a namespace of their own. Both worlds have the same execution
    /// namespace.
    pub async fn neighbour(&self) -> Result<Self> {
        let (name, execution) = (format!("{}-next", self.name), self.execution.clone());
        Self::furnished(&self.control_plane, name, execution, WorldOptions::default()).await
    }

    async fn furnished(
        control_plane: &ControlPlane,
        name: String,
        execution: String,
        options: WorldOptions,
    ) -> Result<Self> {
        let world = Self {
            control_plane: control_plane.clone(),
            client: control_plane.client().await?,
            name,
            execution,
            options,
            audit_from: control_plane.audit_length(),
            cluster_scoped: Mutex::new(Vec::new()),
            operators: AtomicU32::new(0),
            operator_flags: Mutex::new(Vec::new()),
            operator_logs: Mutex::new(Vec::new()),
            troubled: AtomicBool::new(false),
            closed: false,
        };
        world.furnish().await.with_context(|| format!("the world {} could not be made", world.name))?;
        Ok(world)
    }

    async fn furnish(&self) -> Result<()> {
        let (system, execution) = (self.system_namespace(), self.execution_namespace());
        let mut namespaces = vec![self.namespace().to_owned(), system.clone(), execution.clone()];
        if self.options.no_execution_namespace {
            namespaces.pop();
        }
        for namespace in namespaces {
            let object = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {"test.kubernaut.ai/world": self.name}},
            });
            manifests::apply(&self.client, &object).await?;
        }
        if !self.options.no_execution_namespace {
            let runner = json!({
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": RUNNER, "namespace": execution},
            });
            manifests::apply(&self.client, &runner).await?;
        }
        self.ship(&repository()).await?;
        rbac::await_in_force(&self.client, &self.operator_user(), &self.places(&system, &execution)).await
    }

    /// Gives the operator of this world the roles that are in a checkout of the repository. They replace roles of the
    /// same names.
    pub async fn ship(&self, checkout: &Path) -> Result<()> {
        let (system, execution) = (self.system_namespace(), self.execution_namespace());
        for object in rbac::shipped_to(checkout, &self.places(&system, &execution))? {
            self.apply(&object).await?;
        }
        Ok(())
    }

    /// Applies an object of this world. A cluster-scoped object is deleted at the end of the world.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        if object.pointer("/metadata/namespace").is_none_or(Value::is_null) {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let one = (manifests::resource(text("/apiVersion"), text("/kind")), text("/metadata/name").to_owned());
            self.cluster_scoped.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        }
        manifests::apply(&self.client, object).await.map(drop)
    }

    fn places<'a>(&'a self, system: &'a str, execution: &'a str) -> Places<'a> {
        Places {
            world: &self.name,
            watched: &self.name,
            execution: (!self.options.no_execution_namespace).then_some(execution),
            system,
            all_namespaces: self.options.all_namespaces,
        }
    }

    /// Takes one of the shipped rights from the operator of this world.
    pub async fn take_away(&self, right: &Right) -> Result<()> {
        self.set_right(right, false).await
    }

    /// Gives the operator a right back that was taken away.
    pub async fn give_back(&self, right: &Right) -> Result<()> {
        self.set_right(right, true).await
    }

    async fn set_right(&self, right: &Right, given: bool) -> Result<()> {
        let (system, execution) = (self.system_namespace(), self.execution_namespace());
        rbac::set(&self.client, &self.operator_user(), &self.places(&system, &execution), right, given).await
    }

    /// Returns the control plane.
    #[must_use]
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// Returns the administrator's client of this test.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the namespace of the WorkflowExecutions.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.name
    }

    /// Returns the namespace of the PipelineRuns.
    #[must_use]
    pub fn execution_namespace(&self) -> String {
        self.execution.clone()
    }

    /// Returns the namespace of the operator's service account.
    #[must_use]
    pub fn system_namespace(&self) -> String {
        format!("{}-system", self.name)
    }

    /// Returns the operator's user name, as the audit log shows it.
    #[must_use]
    pub fn operator_user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.system_namespace(), rbac::OPERATOR)
    }

    pub(crate) fn watches_all(&self) -> bool {
        self.options.all_namespaces
    }

    /// Returns a number for a new operator's files.
    pub(crate) fn number_operator(&self) -> u32 {
        self.operators.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the flags of every operator that was started in this world, with their values. The value of a switch is
    /// empty.
    #[must_use]
    pub fn operator_flags(&self) -> Vec<Vec<(String, String)>> {
        self.operator_flags.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn remember_flags(&self, flags: Vec<(String, String)>) {
        self.operator_flags.lock().unwrap_or_else(PoisonError::into_inner).push(flags);
    }

    /// Returns a builder for an operator in a process of its own, with the shipped RBAC.
    pub fn operator(&self) -> OperatorBuilder<'_> {
        OperatorBuilder::new(self)
    }

    /// Writes a kubeconfig with a new token of the operator's service account, which has exactly the rights of the
    /// shipped roles. `url` overrides the address of the API server, for example with a proxy's.
    pub async fn write_operator_kubeconfig(&self, url: Option<&str>, path: &Path) -> Result<()> {
        operator::write_kubeconfig(self, (&self.system_namespace(), rbac::OPERATOR), url, path).await
    }

    /// Writes a kubeconfig with a new token of a service account.
    pub async fn write_kubeconfig(&self, namespace: &str, account: &str, path: &Path) -> Result<()> {
        operator::write_kubeconfig(self, (namespace, account), None, path).await
    }

    /// Returns a builder for a WorkflowExecution in this world.
    pub fn wfe(&self, name: &str) -> WfeBuilder {
        WfeBuilder::new(self.client(), &self.name, name)
    }

    /// Pushes a bundle with this pipeline (named `workflow`), and returns the image reference.
    pub async fn push_pipeline(&self, name: &str, pipeline: &Pipeline) -> Result<String> {
        Ok(self.push_objects(name, &[pipeline.render("workflow")]).await?.image)
    }

    /// Pushes a bundle with the objects of a YAML file, and returns the image reference.
    pub async fn push_file(&self, name: &str, path: &Path) -> Result<String> {
        Ok(self.push_objects(name, &manifests::read(path)?).await?.image)
    }

    /// Pushes a bundle with these objects.
    pub async fn push_objects(&self, name: &str, objects: &[Value]) -> Result<Bundle> {
        bundle::push(&self.control_plane.registry(), &format!("{}/{name}", self.name), objects).await
    }

    /// Returns the audit log's entries about this world's namespaces or by its operator.
    pub async fn audit(&self) -> Result<Vec<crate::AuditEntry>> {
        let user = self.operator_user();
        let execution = self.execution_namespace();
        // The names of all three namespaces begin with the world's name.
        let mut entries = self.control_plane.audit_since(self.audit_from, &self.name).await?;
        entries.retain(|entry| entry.user == user || entry.namespace == self.name || entry.namespace == execution);
        Ok(entries)
    }

    /// Prints the objects of this world to standard error, which happens automatically after a panic.
    pub fn dump(&self) {
        dump::print(self);
    }

    /// Deletes the objects of this world that could affect other tests. Dropping the world does the same.
    pub async fn close(mut self) -> Result<()> {
        self.closed = true;
        for (resource, name) in self.deletions() {
            let all: Api<DynamicObject> = Api::all_with(self.client(), &resource);
            match all.delete(&name, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error).with_context(|| format!("{name} cannot be deleted")),
            }
        }
        Ok(())
    }

    fn deletions(&self) -> Vec<(ApiResource, String)> {
        let mut deletions = self.cluster_scoped.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if self.control_plane.is_given() {
            let namespaces = [self.name.clone(), self.execution_namespace(), self.system_namespace()];
            deletions.extend(namespaces.map(|name| (manifests::resource("v1", "Namespace"), name)));
        }
        deletions
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        if std::thread::panicking() || self.troubled.load(Ordering::Relaxed) {
            self.dump();
        }
        // Errors are ignored, because the control plane ends with the test process anyway.
        let names = self.deletions().into_iter().map(|(resource, name)| match &*resource.group {
            "" => format!("{}/{name}", resource.plural),
            group => format!("{}.{group}/{name}", resource.plural),
        });
        let names: Vec<String> = names.collect();
        if !names.is_empty() {
            let args = ["delete", "--wait=false", "--ignore-not-found"].into_iter();
            let args: Vec<&str> = args.chain(names.iter().map(String::as_str)).collect();
            drop(self.control_plane.kubectl_command(&args).stdout(Stdio::null()).stderr(Stdio::null()).status());
        }
    }
}

impl World {
    /// Returns a result unchanged. If it is an error, the world is dumped when it is dropped.
    pub(crate) fn note_trouble<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.troubled.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Remembers the path of a log for the dump.
    pub(crate) fn remember_log(&self, path: PathBuf) {
        self.operator_logs.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
}
