//! The image, unpacked as by a container runtime: index, manifest, configuration, layers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{Release, VERSION, binary, here, run, unpack};

/// Checks the images of all platforms. A release may have none, because not every machine can build images.
pub(crate) fn image(release: &Release) -> Result<()> {
    let name = format!("wfe-operator-image-{VERSION}.tar");
    if !release.file(&name).is_file() {
        println!("image: NOT LOOKED AT, the release has none");
        return Ok(());
    }
    let layout = release.unpack(&name)?;
    let top = read(&layout.join("index.json"))?;
    let described = only(&top["manifests"])?;
    // Some engines write no index for a single platform.
    let list = match &read(&blob(&layout, &described["digest"])?)?["manifests"] {
        Value::Array(platforms) => platforms.clone(),
        _ => vec![described.clone()],
    };
    let mut platforms = BTreeSet::new();
    for manifest in list {
        let digest = &manifest["digest"];
        let platform = one(release, &layout, digest).with_context(|| format!("the image {digest}"))?;
        println!("image for {platform}: {}", text(digest));
        platforms.insert(platform);
    }
    assert_eq!(platforms, release.platforms("wfe-operator", "")?.into_iter().collect());
    Ok(())
}

/// Checks the image of one platform, and returns the platform.
fn one(release: &Release, layout: &Path, digest: &Value) -> Result<String> {
    let manifest = read(&blob(layout, digest)?)?;
    let whole = read(&blob(layout, &manifest["config"]["digest"])?)?;
    let platform = format!("{}_{}", text(&whole["os"]), text(&whole["architecture"]));
    let config = &whole["config"];
    assert_eq!(config["User"], "65532:65532");
    assert_eq!((&config["Entrypoint"], &config["Cmd"]), (&json!(["/wfe-operator"]), &json!(["run"])));
    let label = |name: &str| text(&config["Labels"][format!("org.opencontainers.image.{name}")]);
    assert_eq!((label("title"), label("version")), ("wfe-operator".to_owned(), VERSION.to_owned()));
    ensure!(label("revision").len() == 40, "the revision is {:?}", label("revision"));

    let root = release.work.join(format!("root-{platform}"));
    let layers = manifest["layers"].as_array().context("no layers")?;
    // There is one layer for each program, or one for both.
    ensure!((1..=binary::PROGRAMS.len()).contains(&layers.len()), "{} layers", layers.len());
    for layer in layers {
        unpack(&blob(layout, &layer["digest"])?, &root)?;
    }
    for name in binary::PROGRAMS {
        let program = release.file(&format!("{name}_{VERSION}_{platform}"));
        ensure!(fs::read(root.join(name))? == fs::read(program)?, "it holds another {name}");
    }
    if platform == here() {
        binary::run_alone(&root)?;
    }
    Ok(platform)
}

/// Finds a blob, and checks that its content has the digest in its name.
fn blob(layout: &Path, digest: &Value) -> Result<PathBuf> {
    let digest = text(digest);
    let (_, sum) = digest.split_once(':').with_context(|| format!("no digest: {digest:?}"))?;
    let path = layout.join("blobs/sha256").join(sum);
    let found = run(Command::new("sha256sum").arg(&path))?;
    ensure!(found.starts_with(sum), "{digest} is {found}");
    Ok(path)
}

fn only(list: &Value) -> Result<&Value> {
    match list.as_array().map(Vec::as_slice) {
        Some([one]) => Ok(one),
        _ => anyhow::bail!("not one, but {list:#}"),
    }
}

fn read(path: &Path) -> Result<Value> {
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
