//! The chart's rendered output, compared with the recorded output and with the kustomize base.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use wfe_testkit::{Assets, Tekton, manifests, process, repository};

use super::{Helm, NAMESPACE, RELEASE, chart};

/// The names of the sets of values. Each one except the defaults is a file in tests/golden/chart.
const SETS: [&str; 3] = ["default", "everything", "one-namespace"];

/// Files that the chart includes completely. The recorded output has only their names.
const TAKEN_IN: [&str; 4] = [
    "files/crds/kubernaut.ai_workflowexecutions.yaml",
    "files/crds/kubernaut.ai_workflowschedules.yaml",
    "files/rules.yaml",
    "files/dashboard.json",
];

/// The URL of the runbooks in the set `everything`.
const RUNBOOKS: &str = "https://wiki.example.com/runbooks";

#[test]
fn three_sets_of_values_render_what_is_on_record() -> Result<()> {
    let helm = Helm::new("golden")?;
    helm.run(&["lint", "--strict", &chart()])?;
    let package = helm.package()?;
    let golden = repository().join("tests/golden/chart");
    let mut differ = Vec::new();
    for set in SETS {
        let values = golden.join(format!("{set}.values.yaml")).to_string_lossy().into_owned();
        let mut args = vec!["template", RELEASE, &package, "--namespace", NAMESPACE];
        if set != "default" {
            args.extend(["--values", &values]);
        }
        let rendered = without_what_is_taken_in(&helm.run(&args)?)?;
        let path = golden.join(format!("{set}.yaml"));
        if std::env::var_os("WFE_WRITE_GOLDEN").is_some_and(|value| value == "1") {
            fs::write(&path, &rendered)?;
        } else if fs::read_to_string(&path).unwrap_or_default() != rendered {
            let seen = helm.dir.join(format!("{set}.yaml"));
            fs::write(&seen, &rendered)?;
            differ.push(format!("diff {} {}", path.display(), seen.display()));
        }
    }
    ensure!(differ.is_empty(), "where the chart is right, `make golden` takes this over:\n{}", differ.join("\n"));
    Ok(())
}

/// Replaces the text of each included file by the file's name, at any indentation.
fn without_what_is_taken_in(rendered: &str) -> Result<String> {
    // The chart replaces this word by the URL.
    let mut rendered = rendered.replace(RUNBOOKS, "RUNBOOK_BASE_URL");
    for name in TAKEN_IN {
        let path = repository().join("deploy/chart").join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        // The header of a generated file is not included.
        let text = text.split_once("\n---\n").map_or(text.as_str(), |(_, text)| text);
        for indent in ["", "  ", "    "] {
            let lines: Vec<String> = text.trim_end().lines().map(|line| format!("{indent}{line}")).collect();
            // The chart adds an annotation to each CRD, which the comparison with the kustomize base checks.
            let keep = "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n";
            for lines in [lines.join("\n"), lines.join("\n").replacen("metadata:\n", keep, 1)] {
                rendered = rendered.replace(&lines, &format!("{indent}<{name}>"));
            }
        }
    }
    Ok(rendered)
}

#[test]
fn alerts_link_to_runbooks_where_a_value_says_that_they_are_and_else_to_nothing() -> Result<()> {
    let helm = Helm::new("runbooks")?;
    let rules = fs::read_to_string(repository().join("deploy/chart/files/rules.yaml"))?;
    let alerts = rules.matches("- alert: ").count();
    let chart = chart();
    let render = |set: &str| {
        let args = ["template", RELEASE, &chart, "--show-only", "templates/prometheus_rule.yaml"];
        helm.run(&[&args[..], &["--set", "prometheusRule.enabled=true", "--set", set]].concat())
    };
    let linked = render(&format!("prometheusRule.runbookBaseUrl={RUNBOOKS}"))?;
    assert_eq!(linked.matches(&format!("runbook_url: {RUNBOOKS}/Workflow")).count(), alerts, "{linked}");
    let unlinked = render("prometheusRule.runbookBaseUrl=")?;
    assert_eq!(unlinked.matches("- alert: ").count(), alerts, "{unlinked}");
    for rendered in [&linked, &unlinked] {
        manifests::parse(rendered)?;
        assert!(!rendered.contains("RUNBOOK_BASE_URL"), "{rendered}");
    }
    assert!(!unlinked.contains("runbook_url"), "{unlinked}");
    Ok(())
}

#[test]
fn one_alert_can_be_changed_or_removed_and_all_can_be_labelled() -> Result<()> {
    let helm = Helm::new("alerts")?;
    let chart = chart();
    let args = ["template", RELEASE, &chart, "--show-only", "templates/prometheus_rule.yaml"];
    let render = |set: &[&str]| {
        let set = set.iter().flat_map(|value| ["--set-json", value]);
        let rendered = helm.run(&args.into_iter().chain(set).collect::<Vec<_>>())?;
        manifests::parse(&rendered)?.into_iter().next().context("no PrometheusRule")
    };
    let rules = |object: &Value| -> Vec<Value> {
        let groups = object["spec"]["groups"].as_array().into_iter().flatten();
        groups.flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect()
    };
    let shipped = rules(&render(&["prometheusRule.enabled=true"])?);
    let changed = rules(&render(&[
        "prometheusRule.enabled=true",
        "prometheusRule.alertLabels={\"team\": \"platform\"}",
        "prometheusRule.alerts.WorkflowExecutionDrainSlow={\"for\": \"30m\", \"labels\": {\"severity\": \"critical\"}}",
        "prometheusRule.alerts.WorkflowExecutionErrors={\"expr\": \"workflowexecution:reconcile_errors:rate5m > 1\"}",
        "prometheusRule.alerts.WorkflowCircuitOpen={\"enabled\": false}",
    ])?);
    let expected = shipped.into_iter().filter(|rule| rule["alert"] != "WorkflowCircuitOpen").map(|mut rule| {
        if rule["alert"].is_string() {
            rule["labels"]["team"] = json!("platform");
        }
        if rule["alert"] == "WorkflowExecutionDrainSlow" {
            rule["for"] = json!("30m");
            rule["labels"]["severity"] = json!("critical");
        }
        if rule["alert"] == "WorkflowExecutionErrors" {
            rule["expr"] = json!("workflowexecution:reconcile_errors:rate5m > 1");
        }
        rule
    });
    assert_eq!(changed, expected.collect::<Vec<_>>());
    Ok(())
}

/// Artifact Hub displays these annotations of the chart.
#[test]
fn artifact_hub_gets_the_image_of_this_version_and_examples_without_a_mistake() -> Result<()> {
    let text = fs::read_to_string(repository().join("deploy/chart/Chart.yaml"))?;
    let chart = manifests::parse(&text)?.into_iter().next().context("no chart")?;
    let annotation = |name: &str| -> Result<Vec<Value>> {
        let text = chart["annotations"][format!("artifacthub.io/{name}")].as_str().context("no annotation")?;
        let list = manifests::parse(text)?.into_iter().next().context("an empty annotation")?;
        list.as_array().cloned().with_context(|| format!("{name} is no list"))
    };
    let image = format!("kubernaut.ai/wfe-operator:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(annotation("images")?[0]["image"], json!(image));
    let examples = annotation("crdsExamples")?;
    let kinds = |list: &[Value]| list.iter().map(|one| one["kind"].clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&annotation("crds")?), kinds(&examples));
    let path = Helm::new("artifact-hub")?.dir.join("examples.yaml");
    fs::write(&path, examples.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n"))?;
    let mut lint = Command::new(process::workspace_binary("kubectl-wfe")?);
    let said = lint.args(["lint", "-f"]).arg(&path).output()?;
    let text = String::from_utf8_lossy(&said.stdout);
    ensure!(said.status.success() && text.contains("2 objects: 0 errors"), "{text}");
    Ok(())
}

#[test]
fn its_defaults_are_what_kustomize_builds() -> Result<()> {
    let helm = Helm::new("kustomize")?;
    let rendered = helm.run(&["template", RELEASE, &chart(), "--namespace", NAMESPACE, "--skip-tests"])?;
    let kubectl = Assets::find(Tekton::Current)?.program("kubectl");
    let built = Command::new(kubectl).arg("kustomize").arg(repository().join("config/default")).output()?;
    ensure!(built.status.success(), "kubectl kustomize: {}", String::from_utf8_lossy(&built.stderr));
    let (rendered, built) = (by_name(&rendered)?, by_name(&String::from_utf8(built.stdout)?)?);
    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&rendered), names(&built));
    for (name, object) in &rendered {
        let (chart, kustomize) = (format!("{object:#}"), format!("{:#}", built[name]));
        let differ = chart.lines().zip(kustomize.lines()).find(|(by_chart, by_kustomize)| by_chart != by_kustomize);
        assert!(chart == kustomize, "{name}: by the chart, and by kustomize: {differ:?}");
    }
    Ok(())
}

/// Returns the objects by name, without metadata that only Helm adds.
fn by_name(manifest: &str) -> Result<BTreeMap<String, Value>> {
    let mut objects = BTreeMap::new();
    for mut object in manifests::parse(manifest)? {
        whole_numbers(&mut object);
        let metadata = object["metadata"].as_object_mut().context("no metadata")?;
        for (map, of_helm) in [("labels", &["app.kubernetes.io/", "helm.sh/"][..]), ("annotations", &["helm.sh/"])] {
            let Some(pairs) = metadata.get_mut(map).and_then(Value::as_object_mut) else { continue };
            pairs.retain(|key, _| !of_helm.iter().any(|prefix| key.starts_with(prefix)));
            if pairs.is_empty() {
                metadata.remove(map);
            }
        }
        let name = format!("{} {} {}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"]);
        // Helm itself creates the namespace of a release.
        if object["kind"] == "Namespace" && object["metadata"]["name"] == json!(NAMESPACE) {
            continue;
        }
        ensure!(objects.insert(name.clone(), object).is_none(), "{name} is there twice");
    }
    Ok(objects)
}

/// Replaces 1.0 by 1, as kustomize does. For the API server both are equal.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|number| number.fract() == 0.0) {
                *value = json!(format!("{whole:.0}"));
            }
        }
        Value::Array(values) => values.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => (),
    }
}

/// `docs/retries.md` describes an upgrade: old and new replicas run at the same time, and only one of them writes.
#[test]
fn a_rollout_replaces_one_replica_after_the_other_and_the_lease_lets_one_write() -> Result<()> {
    let helm = Helm::new("rollout")?;
    let rendered = helm.run(&["template", RELEASE, &chart(), "--namespace", NAMESPACE])?;
    let path = helm.dir.join("rendered.yaml");
    fs::write(&path, rendered)?;
    let objects = manifests::read(&path)?;
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
    let strategy = &deployment["spec"]["strategy"];
    ensure!(strategy.is_null() || strategy["type"] == "RollingUpdate", "{strategy}");
    let name = &deployment["metadata"]["name"];
    ensure!(name == "wfe-operator", "docs/retries.md waits for the rollout of another: {name}");
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let elects = args.as_array().is_some_and(|args| args.contains(&json!("--leader-elect=true")));
    ensure!(elects, "{args:#}");
    Ok(())
}
