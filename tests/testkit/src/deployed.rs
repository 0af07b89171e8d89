//! The operator as a rendered Deployment describes it: its service account, arguments and environment, and the root and
//! user of its security context. The tests need no container engine, because kernel namespaces are enough.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::assets::repository;
use crate::control_plane::ControlPlane;
use crate::operator::{self, Operator};
use crate::process;

/// The variable with the path of a static binary, which can run in a root directory that contains nothing else.
const STATIC: &str = "WFE_STATIC_OPERATOR";

/// The directories of the libraries that a binary built for tests needs. The image's binary is static and needs none.
const LIBRARIES: &str = "/lib:/lib64:/usr/lib";

/// Returns the security contexts of the chart, which the confinement below enforces. Neither sets a user: the image or
/// the cluster sets the user, and in these tests the image.
fn restricted() -> (Value, Value) {
    let pod = json!({
        "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
    });
    let container = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true,
    });
    (pod, container)
}

impl Operator {
    /// Starts one replica, and waits until it is ready.
    ///
    /// Two things differ from the Deployment. Metrics and probes have other ports, because other tests run at the same
    /// time. There is no seccomp profile, because container runtimes provide it. As from a kubelet, the process gets
    /// the address of the API server, a token of the service account and the authority's certificate.
    ///
    /// # Errors
    /// Returns an error if the Deployment contains a field that this function does not support.
    pub async fn deployed(control_plane: &ControlPlane, deployment: &Value) -> Result<Self> {
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        ensure!(pod["containers"].as_array().is_some_and(|all| all.len() == 1), "not one container: {pod:#}");
        let contexts = (pod["securityContext"].clone(), container["securityContext"].clone());
        ensure!(contexts == restricted(), "another security context than the restricted one: {contexts:#?}");
        for unknown in ["command", "envFrom", "volumeMounts"] {
            ensure!(container[unknown].is_null(), "the container has {unknown}, which is not done here");
        }

        let dir = control_plane.dir().join("deployed");
        let (root, files) = (dir.join("root"), dir.join("serviceaccount"));
        fs::create_dir_all(&root)?;
        fs::create_dir_all(&files)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, account) = (text(&deployment["metadata"]["namespace"]), text(&pod["serviceAccountName"]));
        fs::write(files.join("token"), operator::token(&control_plane.client().await?, &namespace, &account).await?)?;
        fs::write(files.join("namespace"), &namespace)?;
        fs::copy(control_plane.authority(), files.join("ca.crt"))?;

        let (program, libraries) = match std::env::var_os(STATIC) {
            Some(path) => (PathBuf::from(path), ""),
            None => (process::workspace_binary("wfe-operator")?, LIBRARIES),
        };
        let log = dir.join("operator.log");
        let file = process::open_log(&log)?;
        let mut command = process::command("unshare")?;
        command.args(["--user", "--map-user=65532", "--map-group=65532", "--mount", "--keep-caps"]);
        command.arg(repository().join("tests/controlplane/confined"));
        command.args([&root, &files, &program]).arg(libraries);
        command.arg(process::workspace_binary("control-plane")?);
        command.args(["confine", "--parent", &std::process::id().to_string(), "--root"]).arg(&root);
        command.args(["--", "/wfe-operator"]).args(arguments(container)?);
        let address = control_plane.url().strip_prefix("https://").and_then(|address| address.split_once(':'));
        let (host, port) = address.context("an API server without host and port")?;
        command
            .env_clear()
            // The programs that run before the operator need `PATH`.
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("KUBERNETES_SERVICE_HOST", host)
            .env("KUBERNETES_SERVICE_PORT", port)
            .envs(environment(container)?)
            .stdout(file.try_clone()?)
            .stderr(file);
        let mut operator = Self::new(command, log)?;
        operator.await_ready().await?;
        check_confinement(operator.pid(), &root)?;
        Ok(operator)
    }
}

/// Returns the arguments, with free ports for metrics and probes.
fn arguments(container: &Value) -> Result<Vec<String>> {
    let mut replaced = 0;
    let arguments = container["args"].as_array().context("no arguments")?;
    let arguments = arguments.iter().map(|argument| {
        let argument = argument.as_str().unwrap_or_default();
        match argument.split_once('=') {
            Some((flag @ ("--metrics-address" | "--health-address"), _)) => {
                replaced += 1;
                format!("{flag}=127.0.0.1:0")
            }
            _ => argument.to_owned(),
        }
    });
    let arguments: Vec<String> = arguments.collect();
    ensure!(replaced == 2, "the Deployment does not say where metrics and probes are served: {arguments:?}");
    Ok(arguments)
}

fn environment(container: &Value) -> Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    for variable in container["env"].as_array().into_iter().flatten() {
        match (variable["name"].as_str(), variable["value"].as_str()) {
            (Some(name), Some(value)) => variables.push((name.to_owned(), value.to_owned())),
            _ => bail!("a variable that is not set here: {variable}"),
        }
    }
    Ok(variables)
}

/// Checks that the kernel confines the process as the security context says.
fn check_confinement(pid: u32, root: &Path) -> Result<()> {
    let of_process = |name: &str| {
        let path = format!("/proc/{pid}/{name}");
        fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))
    };
    let status = of_process("status")?;
    for line in
        ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"]
    {
        ensure!(status.lines().any(|other| other == line), "not {line:?}: {status}");
    }
    let user = of_process("uid_map")?;
    ensure!(user.split_whitespace().next() == Some("65532"), "not user 65532: {user}");
    // The mount that is the root of the process, as the process sees it: "id parent device root / options...".
    let mounts = of_process("mountinfo")?;
    let own = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|mount| mount[4] == "/");
    let own = own.with_context(|| format!("no root among its mounts: {mounts}"))?;
    ensure!(own[5].split(',').any(|option| option == "ro"), "its root can be written: {own:?}");
    // The mount hides the directory below it, so this is what the operator has written to that directory.
    let left = fs::read_dir(root)?.count();
    ensure!(left == 0, "{left} files in {}", root.display());
    ensure!(fs::metadata(root)?.permissions().mode() & 0o700 == 0o700, "{} cannot be removed", root.display());
    Ok(())
}
