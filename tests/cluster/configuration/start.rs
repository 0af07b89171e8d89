//! The `ConfigMap` when an operator starts, and the subcommand that shows the configuration.

use std::fs;
use std::process::Command;

use anyhow::Result;
use wfe_testkit::{World, process};

use super::{NAME, await_in_force, decided, line, page, set, short};

#[tokio::test]
async fn a_bad_one_is_refused_at_the_start_in_one_line_with_key_and_value() -> Result<()> {
    let world = World::new("config-start").await?;
    let bad = set(&world, &[("base-cooldown-period", "1h"), ("log-level", "loud")]).await?;
    let mut operator = world.operator().spawn().await?;
    assert!(!operator.wait().await?.success());
    let log = fs::read_to_string(operator.log_path())?;
    let last = log.lines().last().unwrap_or_default();
    let start = format!("wfe-operator: ConfigMap {}/{NAME}, version {bad}, cannot be used", world.system_namespace());
    assert!(last.starts_with(&start) && last.contains("log-level: \"loud\""), "{last}");

    set(&world, &[("base-cooldown-period", "1h")]).await?;
    let mut operator = world.operator().spawn().await?;
    assert!(!operator.wait().await?.success());
    let log = fs::read_to_string(operator.log_path())?;
    assert!(
        log.contains(r#"max-cooldown-period: "10m" (default) must not be less than base-cooldown-period"#),
        "{log}"
    );

    set(&world, &[]).await?;
    let mut operator = world.operator().arg("--execution-namespace", &world.system_namespace()).spawn().await?;
    assert!(!operator.wait().await?.success());
    let log = fs::read_to_string(operator.log_path())?;
    assert!(log.contains("(flag) must not be the operator's own namespace"), "{log}");

    let good = set(&world, &[("base-cooldown-period", "1h"), ("max-cooldown-period", "1h")]).await?;
    await_in_force(&world.operator().start().await?, &good).await?;
    world.close().await
}

#[tokio::test]
async fn the_execution_namespace_is_that_of_the_start() -> Result<()> {
    let world = World::new("config-namespace").await?;
    let bundle = short(&world).await?;
    let (here, at_start) = (world.execution_namespace(), [("execution-namespace", world.execution_namespace())]);
    set(&world, &at_start.each_ref().map(|(key, value)| (*key, value.as_str()))).await?;
    let operator = world.operator().arg("--execution-namespace", "no-such-namespace").start().await?;
    assert_eq!(decided(&world, "first", &bundle).await?, "Completed");

    let version = set(&world, &[("execution-namespace", "elsewhere"), ("cooldown-period", "0")]).await?;
    await_in_force(&operator, &version).await?;
    let told = page(&operator).await?;
    let warning = format!("warning: execution-namespace: \"elsewhere\" takes a restart; until then it is {here:?}");
    assert!(told.contains(&warning), "{warning} is missing in\n{told}");
    assert_eq!(line(&told, "execution-namespace"), format!("execution-namespace {here} ConfigMap"));
    assert_eq!(decided(&world, "second", &bundle).await?, "Completed", "the rest is in force");
    assert_eq!(world.runs().await?.len(), 2);
    let event = world.await_event_in(&world.system_namespace(), NAME, "ConfigApplied").await?;
    assert!(event["note"].to_string().contains("takes a restart"), "{event:#}");
    world.close().await
}

#[tokio::test]
async fn the_subcommand_shows_what_would_be_in_force_and_lists_all_that_is_wrong() -> Result<()> {
    let world = World::new("config-show").await?;
    let config = |flags: &[&str]| -> Result<(Option<i32>, String, String)> {
        let mut command = Command::new(process::workspace_binary("wfe-operator")?);
        command.arg("config").args(["--namespace", &world.system_namespace()]).args(flags);
        command.env("KUBECONFIG", world.control_plane().kubeconfig()).env("WFE_START_DEADLINE", "2m");
        let output = command.output()?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((output.status.code(), text(output.stdout), text(output.stderr)))
    };
    let (code, shown, said) = config(&["--cooldown-period=1h"])?;
    assert_eq!(code, Some(0), "{said}");
    assert!(shown.contains("there is none, the flags are in force"), "{shown}");
    for told in ["cooldown-period 1h flag", "start-deadline 2m environment WFE_START_DEADLINE", "paused false default"]
    {
        assert_eq!(line(&shown, told.split(' ').next().unwrap_or_default()), told);
    }
    set(&world, &[("cooldown-period", "2h"), ("typo", "")]).await?;
    let (code, shown, said) = config(&["--cooldown-period=1h"])?;
    assert_eq!((code, said.as_str()), (Some(0), "warning: unknown, and does nothing: \"typo\"\n"));
    assert_eq!(line(&shown, "cooldown-period"), "cooldown-period 2h ConfigMap");

    let file = world.control_plane().dir().join(format!("{}.yaml", world.namespace()));
    let name = file.to_string_lossy();
    let of_file = |data: &str| -> Result<(Option<i32>, String, String)> {
        fs::write(&file, format!("kind: ConfigMap\nmetadata:\n  name: {NAME}\ndata:\n{data}"))?;
        config(&["--file", &name])
    };
    let (code, shown, said) = of_file("  paused: \"true\"\n")?;
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(line(&shown, "paused"), "paused true ConfigMap");
    assert!(shown.starts_with("KEY "), "{shown}");
    let (code, shown, said) = of_file("  paused: maybe\n  cooldown-period: 5\n  default-timeout: 48h\n")?;
    assert_eq!((code, shown.as_str()), (Some(1), ""));
    for problem in [
        r#"cooldown-period: "" is not a text: put it in quotes"#,
        r#"default-timeout: "48h" must be between 1s and 24h"#,
        r#"paused: "maybe" must be true or false"#,
        "values that cannot be used: 3",
    ] {
        assert!(said.contains(problem), "{problem} is missing in\n{said}");
    }
    let (code, _, said) = config(&["--file", "/no/such/file"])?;
    assert!(code == Some(1) && said.contains("/no/such/file: it cannot be read"), "{said}");
    world.close().await
}
