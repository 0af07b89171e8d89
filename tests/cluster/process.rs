//! The binary as people start it: help, the CRD, readiness, signals, and a control plane that stops for a while.

use std::process::Command;

use anyhow::Result;

/// Prepares a command with the built binary, which must find no cluster.
fn operator(args: &[&str]) -> Result<Command> {
    let mut command = Command::new(wfe_testkit::process::workspace_binary("wfe-operator")?);
    command.args(args).env_remove("KUBECONFIG").env("HOME", std::env::temp_dir().join("wfe-no-kubeconfig"));
    Ok(command)
}

/// Runs the built binary until it ends. Returns whether it succeeded, and both outputs.
fn output(args: &[&str]) -> Result<(bool, String, String)> {
    let output = operator(args)?.output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((output.status.success(), text(output.stdout), text(output.stderr)))
}

#[test]
fn help_explains_every_flag_with_its_default_and_its_variable() -> Result<()> {
    let (ok, help, _) = output(&["run", "--help"])?;
    assert!(ok);
    for (flag, default, variable) in [
        ("--watch-namespace", "Default: all namespaces", "WFE_WATCH_NAMESPACE"),
        ("--execution-namespace", "[default: kubernaut-workflows]", "WFE_EXECUTION_NAMESPACE"),
        ("--service-account", "[default: kubernaut-workflow-runner]", "WFE_SERVICE_ACCOUNT"),
        ("--default-timeout", "[default: 30m]", "WFE_DEFAULT_TIMEOUT"),
        ("--metrics-address", "[default: 0.0.0.0:9090]", "WFE_METRICS_ADDRESS"),
        ("--health-address", "[default: 0.0.0.0:8081]", "WFE_HEALTH_ADDRESS"),
        ("--leader-elect", "[default: true]", "WFE_LEADER_ELECT"),
        ("--lease-duration", "[default: 8s]", "WFE_LEASE_DURATION"),
        ("--log-format", "[default: text]", "WFE_LOG_FORMAT"),
        ("--log-level", "[default: info]", "WFE_LOG_LEVEL"),
    ] {
        let section = help.split("\n\n").filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n");
        for word in [flag, default, variable] {
            assert!(section.contains(word), "{word} is missing in\n{help}");
        }
    }
    Ok(())
}

#[test]
fn crd_prints_the_files_in_the_repository() -> Result<()> {
    let (ok, printed, _) = output(&["crd"])?;
    assert!(ok);
    let mut files = String::new();
    for plural in ["workflowexecutions", "workflowschedules"] {
        let file = format!("{}/../crds/kubernaut.ai_{plural}.yaml", env!("CARGO_MANIFEST_DIR"));
        files.push_str(&std::fs::read_to_string(file)?);
    }
    assert!(printed == files, "crds/ is not what `wfe-operator crd` prints: run `make generate`");
    Ok(())
}

#[test]
fn an_operator_without_a_cluster_says_what_to_do() -> Result<()> {
    let (ok, _, said) = output(&["run", "--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0"])?;
    assert!(!ok && said.contains("set KUBECONFIG"), "{said}");
    Ok(())
}

#[test]
fn settings_that_contradict_are_refused_at_the_start_with_the_name_of_the_flag() -> Result<()> {
    for (flag, value) in [
        ("max-cooldown-period", "30s"), // less than the base cooldown
        ("base-cooldown-period", "-1m"),
        ("max-consecutive-failures", "-1"),
        ("max-backoff-exponent", "34"),
        ("max-backoff-exponent", "4000000000"),
        ("max-backoff-exponent", "5000000000"), // more than 32 bits
        ("failure-quiet-period", "1m"),         // less than the longest possible backoff
        ("backoff-jitter", "1.5"),
        ("cooldown-period", "99999999999999999999h"),
        ("previous-execution-failed-scope", "Cluster"),
        ("lease-duration", "5s"), // equal to the renew deadline
        ("lease-duration", "10m"),
        ("renew-deadline", "3s"), // less than two retry periods
        ("retry-period", "4s"),
        ("leader-elect", "maybe"),
        ("identity", "a b"),
    ] {
        let (ok, _, said) = output(&["run", &format!("--{flag}={value}")])?;
        assert!(!ok && said.contains(flag), "--{flag}={value}: {said}");
        let variable = format!("WFE_{}", flag.to_uppercase().replace('-', "_"));
        let by_variable = operator(&["run"])?.env(variable, value).output()?;
        let said = String::from_utf8_lossy(&by_variable.stderr);
        assert!(!by_variable.status.success() && said.contains(flag), "{flag} by its variable: {said}");
    }
    Ok(())
}
