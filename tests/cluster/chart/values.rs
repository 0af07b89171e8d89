//! Wrong or contradicting values. None of them renders, and each error message names the value.

use anyhow::{Result, ensure};

use super::{Helm, NAMESPACE, RELEASE, chart};

/// Values in the syntax of `--set-json`, with words of the error message.
type Row = (&'static [&'static str], &'static [&'static str]);

/// Values that the schema refuses, each on its own. All words of a row are in one line of the message.
const BY_SCHEMA: &[Row] = &[
    (&["replicaCounts=2"], &["replicaCounts"]),
    (&["replicaCount=0"], &["replicaCount", "minimum"]),
    (&["replicaCount=\"2\""], &["replicaCount", "want integer"]),
    (&["replicaCount=11"], &["replicaCount", "maximum"]),
    (&["image={\"name\": \"x\"}"], &["image", "name"]),
    (&["image.tag=\"a b\""], &["/image/tag"]),
    (&["image.digest=\"latest\""], &["/image/digest"]),
    (&["image.pullPolicy=\"Sometimes\""], &["/image/pullPolicy"]),
    (&["imagePullSecrets=[\"pull\"]"], &["/imagePullSecrets/0"]),
    (&["fullnameOverride=\"Upper\""], &["/fullnameOverride"]),
    (&["commonLabels={\"a\": 1}"], &["/commonLabels/a"]),
    (&["crds.keep=\"yes\""], &["/crds/keep", "want boolean"]),
    (&["watchNamespace=\"a,b\""], &["/watchNamespace"]),
    (&["watchNamespace=[\"a\"]"], &["/watchNamespace"]),
    (&["executionNamespace.name=\"\""], &["/executionNamespace/name"]),
    (&["workflows.serviceAccounts=[\"Upper\"]"], &["/workflows/serviceAccounts/0"]),
    (&["workflows.serviceAccounts=[\"a, b\"]"], &["/workflows/serviceAccounts/0"]),
    (&["workflows.registries=[\"a b\"]"], &["/workflows/registries/0"]),
    (&["workflows.registries=\"registry.example\""], &["/workflows/registries"]),
    (&["workflows.clusterKinds=[\"a b\"]"], &["/workflows/clusterKinds/0"]),
    (&["workflows.requireDigest=\"true\""], &["/workflows/requireDigest", "want boolean"]),
    (&["admissionPolicies.dryRun=\"true\""], &["/admissionPolicies/dryRun", "want boolean"]),
    // A value that an earlier version accepted.
    (&["admissionPolicies.markers=[\"system:admin\"]"], &["/admissionPolicies", "markers"]),
    (&["executionNamespace.podSecurity.enforce=\"strict\""], &["/executionNamespace/podSecurity/enforce"]),
    (&["executionNamespace.podSecurity.audit=\"baseline\""], &["/executionNamespace/podSecurity", "audit"]),
    (&["rbac.aggregateEdit=\"yes\""], &["/rbac/aggregateEdit", "want boolean"]),
    (&["oncall=[\"sre\"]"], &["/oncall/0", "want object"]),
    (&["leaderElection.leaseDuration=8"], &["/leaderElection/leaseDuration"]),
    (&["leaderElection.leaseDuration=\"-8s\""], &["/leaderElection/leaseDuration"]),
    (&["leaderElection.retryPeriod=\"0s\""], &["/leaderElection/retryPeriod"]),
    (&["configMap.name=\"\""], &["/configMap/name"]),
    (&["config.cooldown=\"5m\""], &["/config", "cooldown"]),
    (&["config.execution-namespace=\"elsewhere\""], &["/config", "execution-namespace"]),
    (&["config.service-account=\"other\""], &["/config", "service-account"]),
    (&["config.cooldown-period=\"1d\""], &["/config/cooldown-period"]),
    (&["config.base-cooldown-period=\"0s\""], &["/config/base-cooldown-period"]),
    (&["config.max-backoff-exponent=34"], &["/config/max-backoff-exponent"]),
    (&["config.max-consecutive-failures=-1"], &["/config/max-consecutive-failures"]),
    (&["config.backoff-jitter=1.5"], &["/config/backoff-jitter"]),
    (&["config.previous-execution-failed-scope=\"Cluster\""], &["/config/previous-execution-failed-scope"]),
    (&["config.paused=\"true\""], &["/config/paused"]),
    (&["log.format=\"xml\""], &["/log/format"]),
    (&["bindAddress=\"localhost\""], &["/bindAddress"]),
    (&["metrics.port=70000"], &["/metrics/port"]),
    (&["extraArgs=[\"run\"]"], &["/extraArgs/0"]),
    (&["resources.request={}"], &["/resources", "request"]),
    (&["podDisruptionBudget.maxUnavailable=\"half\""], &["/podDisruptionBudget/maxUnavailable"]),
    (&["networkPolicy.apiServer.cidrs=[\"10.0.0.1\"]"], &["/networkPolicy/apiServer/cidrs/0"]),
    (&["serviceMonitor.interval=\"often\""], &["/serviceMonitor/interval"]),
    (&["prometheusRule.runbookBaseUrl=\"wiki\""], &["/prometheusRule/runbookBaseUrl"]),
    (&["prometheusRule.alerts.A={\"threshold\": 3}"], &["/prometheusRule/alerts/A", "threshold"]),
    (&["prometheusRule.alerts.A={\"for\": \"soon\"}"], &["/prometheusRule/alerts/A/for"]),
    (&["serviceMonitor.relabelings={}"], &["/serviceMonitor/relabelings", "want array"]),
    (&["podMonitor.scrapeTimeout=5"], &["/podMonitor/scrapeTimeout", "want string"]),
    (&["extraObjects=[{\"kind\": \"ConfigMap\"}]"], &["/extraObjects/0", "apiVersion"]),
    (&["extraVolumes=[{\"emptyDir\": {}}]"], &["/extraVolumes/0", "name"]),
    (&["extraVolumeMounts=[{\"name\": \"a\", \"mountPath\": \"tmp\"}]"], &["/extraVolumeMounts/0/mountPath"]),
    (&["hostAliases=[{\"ip\": \"10.0.0.1\"}]"], &["/hostAliases/0", "hostnames"]),
    (&["strategy.type=\"OnDelete\""], &["/strategy/type"]),
    (&["orchestrators=[{\"kind\": \"Robot\", \"name\": \"a\"}]"], &["/orchestrators/0/kind"]),
];

/// Values that the templates refuse because of other values.
const BY_TEMPLATES: &[Row] = &[
    (&["rbac.people=false", "oncall=[{\"kind\": \"Group\", \"name\": \"sre\"}]"], &["oncall: its subjects are bound"]),
    (&["leaderElection.enabled=false"], &["replicaCount: more than 1 needs leaderElection.enabled"]),
    (&["leaderElection.renewDeadline=\"8000ms\""], &["leaderElection.renewDeadline: 8000ms must be less than"]),
    (&["leaderElection.leaseDuration=\"1.5s\""], &["leaderElection.renewDeadline: 5s must be less than", "(1.5s)"]),
    (&["leaderElection.retryPeriod=\"1m\""], &["leaderElection.retryPeriod: 1m must be less than renewDeadline (5s)"]),
    (&["podDisruptionBudget.minAvailable=1"], &["podDisruptionBudget: set maxUnavailable or minAvailable"]),
    (&["podDisruptionBudget.maxUnavailable=null"], &["podDisruptionBudget: set maxUnavailable or minAvailable"]),
    (&["metrics.authentication=true"], &["metrics.authentication: needs metrics.tls.secretName"]),
    (
        &["metrics.authentication=true", "metrics.tls.secretName=\"a\"", "podMonitor.enabled=true"],
        &["podMonitor.enabled: a PodMonitor cannot send the token"],
    ),
    (&["podDisruptionBudget.maxUnavailable=0"], &["podDisruptionBudget.maxUnavailable: 0 would let no node"]),
    (&["podDisruptionBudget.maxUnavailable=\"0%\""], &["podDisruptionBudget.maxUnavailable: 0 would let no node"]),
    (
        &["podDisruptionBudget.maxUnavailable=null", "podDisruptionBudget.minAvailable=2"],
        &["podDisruptionBudget.minAvailable: 2 of 2 replicas would let no node be drained"],
    ),
    (
        &["podDisruptionBudget.maxUnavailable=null", "podDisruptionBudget.minAvailable=\"100%\""],
        &["podDisruptionBudget.minAvailable: 100% of 2 replicas"],
    ),
    (&["executionNamespace.name=\"kubernaut-system\""], &["executionNamespace.name: must not be kubernaut-system"]),
    (&["serviceAccount.create=false"], &["serviceAccount.name: must be set"]),
    (&["configMap.create=false", "config.paused=true"], &["config: would be written nowhere"]),
    (&["config.max-cooldown-period=\"59s\""], &["config.max-cooldown-period: 59s must not be less than", "(1m)"]),
    (&["config.base-cooldown-period=\"601s\""], &["config.max-cooldown-period: 10m must not be less than", "(601s)"]),
    (&["health.port=9090"], &["health.port: 9090 is the port of the metrics too"]),
    (&["serviceMonitor.enabled=true", "metrics.service.enabled=false"], &["serviceMonitor.enabled: needs"]),
    (
        &["serviceMonitor.enabled=true", "podMonitor.enabled=true"],
        &["podMonitor.enabled: serviceMonitor is enabled too"],
    ),
    (
        &["serviceMonitor.enabled=true", "serviceMonitor.namespace=\"monitoring\"", "metrics.tls.secretName=\"a\""],
        &["serviceMonitor.namespace: must be empty with metrics.tls: Prometheus reads the Secret a"],
    ),
    (
        &["podMonitor.enabled=true", "podMonitor.interval=\"15s\"", "podMonitor.scrapeTimeout=\"20s\""],
        &["podMonitor.scrapeTimeout: 20s must not be longer than interval (15s)"],
    ),
    (
        &["prometheusRule.enabled=true", "prometheusRule.alerts.NoAlert={\"for\": \"1m\"}"],
        &["prometheusRule.alerts: there is no alert NoAlert; the alerts are WorkflowCircuitOpen, WorkflowExecution"],
    ),
    (
        &["strategy={\"type\": \"Recreate\", \"rollingUpdate\": {\"maxSurge\": 1}}"],
        &["strategy.rollingUpdate: has no effect with the type Recreate"],
    ),
    (
        &["extraVolumeMounts=[{\"name\": \"a\", \"mountPath\": \"/a\"}]"],
        &["extraVolumeMounts: a is no volume of extraVol"],
    ),
    (
        &["extraVolumes=[{\"name\": \"metrics-tls\"}]", "metrics.tls.secretName=\"a\""],
        &["extraVolumes: metrics-tls is the volume of metrics.tls.secretName"],
    ),
    (&["extraArgs=[\"--log-level=debug\"]"], &["extraArgs: --log-level=debug is set by another value"]),
    (&["extraArgs=[\"--watch-namespace=a\"]"], &["extraArgs: --watch-namespace=a is set by another value"]),
];

/// Values just within the limits.
const ACCEPTED: &[&[&str]] = &[
    &["replicaCount=1", "leaderElection.enabled=false"],
    &["leaderElection.renewDeadline=\"7999ms\""],
    &["leaderElection.leaseDuration=\"1h0m0.5s\"", "leaderElection.renewDeadline=\"1h\""],
    &["podDisruptionBudget.maxUnavailable=null", "podDisruptionBudget.minAvailable=1"],
    &["podDisruptionBudget.maxUnavailable=\"50%\""],
    &["podDisruptionBudget.enabled=false", "podDisruptionBudget.maxUnavailable=null"],
    &["config.base-cooldown-period=\"10m\""],
    &["workflows.serviceAccounts=[\"*\"]", "workflows.registries=[\"registry.example:5000/workflows/\"]"],
    &["config.cooldown-period=0", "config.failure-quiet-period=\"0\""],
    &["image.digest=\"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""],
];

/// Options that tell Helm what a cluster serves, each with words of the error message. `None` means that the chart
/// renders.
const CLUSTERS: &[(&[&str], Option<&str>)] = &[
    (&["--kube-version", "1.33.0"], None),
    (
        &["--kube-version", "1.32.9"],
        Some("chart requires kubeVersion: >=1.33.0-0 which is incompatible with Kubernetes v1.32.9"),
    ),
    // GitOps tools render without a cluster, and do not know what it serves.
    (&["--set", "serviceMonitor.enabled=true"], None),
    (
        &["--set", "serviceMonitor.enabled=true", "--api-versions", "apiregistration.k8s.io/v1"],
        Some(
            "serviceMonitor.enabled: needs the Prometheus operator, and this cluster does not serve monitoring.coreos.com/v1",
        ),
    ),
    (
        &["--set", "prometheusRule.enabled=true", "--api-versions", "apiregistration.k8s.io/v1"],
        Some("prometheusRule.enabled: needs the Prometheus operator"),
    ),
    (
        &[
            "--set",
            "prometheusRule.enabled=true",
            "--api-versions",
            "apiregistration.k8s.io/v1,monitoring.coreos.com/v1",
        ],
        None,
    ),
];

#[test]
fn a_cluster_that_lacks_something_is_refused_in_one_sentence() -> Result<()> {
    let helm = Helm::new("clusters")?;
    let chart = chart();
    for (args, words) in CLUSTERS {
        let (ok, said) =
            helm.try_run(&[&["template", RELEASE, &chart, "--namespace", NAMESPACE][..], args].concat())?;
        ensure!(ok == words.is_none() && words.is_none_or(|words| said.contains(words)), "{args:?}: {said}");
    }
    Ok(())
}

/// Divides rows into groups whose values do not replace each other. Helm reports all mistakes of a group at once, which
/// saves most of the calls.
fn together(rows: &'static [Row]) -> Vec<Vec<Row>> {
    let section = |(set, _): &Row| set[0].split(['.', '=']).next();
    let mut groups: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|group| group.iter().all(|other| section(other) != section(row))) {
            Some(group) => group.push(*row),
            None => groups.push(vec![*row]),
        }
    }
    groups
}

#[test]
fn values_that_are_wrong_or_contradict_each_other_are_refused_by_name() -> Result<()> {
    let helm = Helm::new("values")?;
    let chart = chart();
    let render = |set: &[&str]| {
        let mut args = vec!["template", RELEASE, &chart, "--namespace", NAMESPACE];
        args.extend(set.iter().flat_map(|value| ["--set-json", value]));
        helm.try_run(&args)
    };
    let mut failures = Vec::new();
    for rows in together(BY_SCHEMA) {
        let sets: Vec<&str> = rows.iter().flat_map(|(set, _)| *set).copied().collect();
        let (ok, said) = render(&sets)?;
        let is_told = |words: &[&str]| said.lines().any(|line| words.iter().all(|word| line.contains(word)));
        let untold = rows.iter().filter(|(_, words)| ok || !is_told(words));
        failures.extend(untold.map(|(set, words)| format!("{set:?}: not {words:?}: {said}")));
    }
    for (set, words) in BY_TEMPLATES {
        let (ok, said) = render(set)?;
        if ok || !words.iter().all(|word| said.contains(word)) {
            failures.push(format!("{set:?}: not {words:?}: {said}"));
        }
    }
    for set in ACCEPTED {
        let (ok, said) = render(set)?;
        if !ok {
            failures.push(format!("{set:?}: {said}"));
        }
    }
    ensure!(failures.is_empty(), "{} rows:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}
