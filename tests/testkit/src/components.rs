//! The programs of a control plane with their arguments. This module does not start them, and defines no order.

use std::path::{Path, PathBuf};

use crate::place::Place;
use crate::stack::Audit;

/// How the supervisor recognizes that a component serves.
#[derive(Debug, Clone)]
pub(crate) enum Probe {
    /// GET of a path over plain HTTP answers 200.
    Http(u16, &'static str),
    /// The API server's `/readyz` answers with this kubeconfig.
    Api(PathBuf),
    /// A TCP port is open.
    Tcp(u16),
    /// The component's log since its last start has a line with all of these words.
    Log(&'static [&'static str]),
}

/// A program to run.
#[derive(Debug, Clone)]
pub(crate) struct Component {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(&'static str, String)>,
    pub(crate) probe: Probe,
}

impl Component {
    fn new(place: &Place, name: &'static str, probe: Probe) -> Self {
        // Many of these programs share few cores. Garbage collection takes less time if it may use more memory.
        let env = vec![("GOGC", "400".to_owned())];
        Self { name, program: place.assets.program(name), args: Vec::new(), env, probe }
    }

    fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    fn path(self, name: &str, path: &Path) -> Self {
        self.arg(format!("{name}={}", path.display()))
    }

    fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }
}

pub(crate) fn etcd(place: &Place, client: u16, peer: u16) -> Component {
    let client_url = format!("http://127.0.0.1:{client}");
    let peer_url = format!("http://127.0.0.1:{peer}");
    Component::new(place, "etcd", Probe::Http(client, "/health"))
        .path("--data-dir", &place.etcd())
        .arg(format!("--listen-client-urls={client_url}"))
        .arg(format!("--advertise-client-urls={client_url}"))
        .arg(format!("--listen-peer-urls={peer_url}"))
        .arg(format!("--initial-advertise-peer-urls={peer_url}"))
        .arg(format!("--initial-cluster=default={peer_url}"))
        // Nothing here has to survive a power cut.
        .arg("--unsafe-no-fsync")
        // The default of 2 GB is too small for 100,000 objects with their history.
        .arg("--quota-backend-bytes=8589934592")
        .arg("--log-level=warn")
}

pub(crate) fn api_server(place: &Place, port: u16, etcd: u16, audit: Audit) -> Component {
    let pki = place.pki();
    let policy = match audit {
        Audit::Bodies => "audit-policy.yaml",
        Audit::Counts => "audit-policy-counts.yaml",
    };
    Component::new(place, "kube-apiserver", Probe::Api(place.kubeconfig("admin")))
        // With a hundred thousand objects, `GOGC=400` would need more memory than most machines have.
        .env("GOMEMLIMIT", "8GiB")
        .arg(format!("--etcd-servers=http://127.0.0.1:{etcd}"))
        .arg("--bind-address=127.0.0.1")
        .arg("--advertise-address=127.0.0.1")
        .arg(format!("--secure-port={port}"))
        .arg("--endpoint-reconciler-type=none")
        .path("--tls-cert-file", &pki.server_certificate())
        .path("--tls-private-key-file", &pki.server_key())
        .arg("--service-account-issuer=https://localhost")
        .path("--service-account-key-file", &pki.token_public_key())
        .path("--service-account-signing-key-file", &pki.token_key())
        .path("--token-auth-file", &place.tokens())
        .arg("--authorization-mode=RBAC")
        .arg("--service-cluster-ip-range=10.0.0.0/24")
        .arg("--allow-privileged")
        .path("--audit-policy-file", &Place::source(policy))
        .path("--audit-log-path", &place.audit_log())
        // In megabytes. At the default of 100 the log would be rotated, but the log must stay complete.
        .arg("--audit-log-maxsize=4000")
        // With the default of one worker, deleting a world of thousands of objects would take minutes.
        .arg("--delete-collection-workers=8")
}

pub(crate) fn controller_manager(place: &Place) -> Component {
    let pki = place.pki();
    Component::new(place, "kube-controller-manager", Probe::Log(&["Starting namespace controller"]))
        .path("--kubeconfig", &place.kubeconfig("kube-controller-manager"))
        // node-lifecycle stays enabled, because this controller removes the not-ready taint from the node.
        .arg("--controllers=*,-nodeipam,-cloud-node-lifecycle,-service-lb-controller,-node-route-controller")
        .arg("--use-service-account-credentials")
        .path("--service-account-private-key-file", &pki.token_key())
        .path("--root-ca-file", &pki.authority())
        .arg("--leader-elect=false")
        .arg("--secure-port=0")
        .arg("--kube-api-qps=200")
        .arg("--kube-api-burst=400")
}

pub(crate) fn scheduler(place: &Place) -> Component {
    Component::new(place, "kube-scheduler", Probe::Log(&["Starting Kubernetes Scheduler"]))
        .path("--kubeconfig", &place.kubeconfig("kube-scheduler"))
        .arg("--leader-elect=false")
        .arg("--secure-port=0")
        .arg("--kube-api-qps=200")
        .arg("--kube-api-burst=400")
}

pub(crate) fn kwok(place: &Place, port: u16) -> Component {
    Component::new(place, "kwok", Probe::Http(port, "/healthz"))
        .path("--kubeconfig", &place.kubeconfig("kwok"))
        .arg("--manage-all-nodes=true")
        // Without a lease the node becomes NotReady after about 50 s, and its pods become not ready with it.
        .arg("--node-lease-duration-seconds=40")
        .arg(format!("--server-address=127.0.0.1:{port}"))
        .path("--config", &place.assets.manifest("kwok/node-initialize.yaml"))
        .path("--config", &place.assets.manifest("kwok/node-heartbeat-with-lease.yaml"))
        .path("--config", &Place::source("pod-stages.yaml"))
}

pub(crate) fn registry(place: &Place, port: u16) -> Component {
    let mut component = Component::new(place, "registry", Probe::Http(port, "/v2/"))
        .arg("registry")
        .arg("serve")
        .arg(format!("--address=127.0.0.1:{port}"));
    component.program = place.assets.program("crane");
    component
}

/// Returns the arguments that Tekton's three programs have in common.
fn tekton(place: &Place, name: &'static str, election: &str, namespace: &str, ports: [u16; 3]) -> Component {
    let [probes, metrics, profiling] = ports;
    Component::new(place, name, Probe::Tcp(probes))
        .path("-kubeconfig", &place.kubeconfig(name))
        .env("SYSTEM_NAMESPACE", namespace)
        .env("KUBERNETES_MIN_VERSION", "v1.28.0")
        .env("CONFIG_DEFAULTS_NAME", "config-defaults")
        .env("CONFIG_LOGGING_NAME", "config-logging")
        .env("CONFIG_OBSERVABILITY_NAME", "config-observability")
        .env("CONFIG_FEATURE_FLAGS_NAME", "feature-flags")
        .env("CONFIG_SPIRE", "config-spire")
        .env("CONFIG_LEADERELECTION_NAME", election)
        .env("METRICS_DOMAIN", "tekton.dev/pipeline")
        .env("METRICS_PROMETHEUS_HOST", "127.0.0.1")
        .env("METRICS_PROMETHEUS_PORT", metrics.to_string())
        .env("PROFILING_PORT", profiling.to_string())
        .env("PROBES_PORT", probes.to_string())
        .env("POD_NAME", name)
        .env("POD_NAMESPACE", namespace)
}

pub(crate) fn tekton_controller(place: &Place, ports: [u16; 3]) -> Component {
    let mut component =
        tekton(place, "tekton-controller", "config-leader-election-controller", "tekton-pipelines", ports);
    for image in ["entrypoint", "nop", "sidecarlogresults", "workingdirinit", "shell"] {
        // No node pulls these images.
        component = component.arg(format!("-{image}-image=tekton.invalid/{image}"));
    }
    component
        .arg("-shell-image-win=tekton.invalid/shell-win")
        .arg("-disable-ha")
        // Without these three arguments 30 runs took 29 s, with them 10 s.
        .arg("-kube-api-qps=200")
        .arg("-kube-api-burst=400")
        .arg("-threads-per-controller=8")
}

pub(crate) fn tekton_resolvers(place: &Place, ports: [u16; 3]) -> Component {
    let mut component =
        tekton(place, "tekton-resolvers", "config-leader-election-resolvers", "tekton-pipelines-resolvers", ports);
    // This program serves no probe port, although its Deployment names one.
    component.probe = Probe::Log(&["bundleresolver", "has started leading"]);
    component
        .arg("-kube-api-qps=200")
        .arg("-kube-api-burst=400")
        .env("ARTIFACT_HUB_API", "https://artifacthub.invalid/")
}

pub(crate) fn tekton_webhook(place: &Place, port: u16, ports: [u16; 3]) -> Component {
    tekton(place, "tekton-webhook", "config-leader-election-webhook", "tekton-pipelines", ports)
        .env("WEBHOOK_PORT", port.to_string())
        .env("WEBHOOK_ADMISSION_CONTROLLER_NAME", "webhook.pipeline.tekton.dev")
        .env("WEBHOOK_SERVICE_NAME", "tekton-pipelines-webhook")
        .env("WEBHOOK_SECRET_NAME", "webhook-certs")
}
