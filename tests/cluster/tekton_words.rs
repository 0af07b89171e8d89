//! Every reason that Tekton gives for an end has a meaning in this project. The reasons are read from the sources of
//! the tested version, so that this test fails if an upgrade adds a reason.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use wfe_tekton::reasons::{CustomReason, RunReason, SkipReason, StepReason, TaskReason};

const MODULE: &str = "github.com/tektoncd/pipeline";

/// The files, and directories with files, in which Tekton defines its reasons.
const SOURCES: [&str; 7] = [
    "pkg/apis/pipeline/v1/pipelinerun_types.go",
    "pkg/apis/pipeline/v1/taskrun_types.go",
    "pkg/apis/pipeline/v1beta1/customrun_types.go",
    "pkg/entrypoint",
    "pkg/pod",
    "pkg/reconciler/pipelinerun",
    "pkg/reconciler/volumeclaim",
];

/// Names that only look like a reason for an end: a suffix in variable names, and a reason that Tekton does not use.
const OTHERS: [&str; 2] = ["PipelineTaskReasonSuffix", "ReasonConditionCheckFailed"];

/// Returns the directory of Tekton's sources and their version, which the build of the control plane pins.
fn tekton() -> Result<(PathBuf, String)> {
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/controlplane/tekton");
    let go = |args: &[&str]| -> Result<String> {
        let output = Command::new("go")
            .args(args)
            .current_dir(module)
            .env("GOFLAGS", "-mod=readonly")
            .env("GOWORK", "off")
            .output()
            .context("go cannot be started")?;
        ensure!(output.status.success(), "go {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    go(&["mod", "download", MODULE])?;
    let found = go(&["list", "-m", "-f", "{{.Dir}} {{.Version}}", MODULE])?;
    let (directory, version) = found.rsplit_once(' ').with_context(|| found.clone())?;
    Ok((directory.into(), version.to_owned()))
}

fn go_files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| path.display().to_string())? {
        let path = entry?.path();
        let is_go = path.extension().is_some_and(|extension| extension == "go");
        let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("_test"));
        if path.is_dir() {
            files.extend(go_files(&path)?);
        } else if is_go && !is_test {
            files.push(path);
        }
    }
    Ok(files)
}

/// Parses a definition such as `TaskRunReasonStepOOM TaskRunReason = "StepOOM"`, and returns its reason. Some
/// definitions have no type.
fn definition(line: &str) -> Option<&str> {
    let (left, right) = line.split_once('=')?;
    let word = right.trim().strip_prefix('"')?.strip_suffix('"')?;
    let mut left = left.split_whitespace().skip_while(|part| *part == "const");
    let (name, kind, end) = (left.next()?, left.next(), left.next());
    let is_a_word = name.contains("Reason") || kind.is_some_and(|kind| kind.ends_with("Reason"));
    let is_a_constant = end.is_none() && name.starts_with(|first: char| first.is_ascii_uppercase());
    (is_a_constant && is_a_word && !OTHERS.contains(&name)).then_some(word)
}

fn known(version: &str) -> BTreeSet<&'static str> {
    let runs = RunReason::ALL.iter().map(|word| (word.as_str(), word.versions()));
    let tasks = TaskReason::ALL.iter().map(|word| (word.as_str(), word.versions()));
    let customs = CustomReason::ALL.iter().map(|word| (word.as_str(), word.versions()));
    let steps = StepReason::ALL.iter().map(|word| (word.as_str(), word.versions()));
    let skips = SkipReason::ALL.iter().map(|word| (word.as_str(), word.versions()));
    let all = runs.chain(tasks).chain(customs).chain(steps).chain(skips);
    all.filter(|(_, versions)| versions.split(", ").any(|known| known == version)).map(|(word, _)| word).collect()
}

#[test]
fn every_word_in_the_sources_of_tekton_has_a_meaning() -> Result<()> {
    let (directory, version) = tekton()?;
    let minor = version.trim_start_matches('v').rsplit_once('.').map_or(&*version, |(minor, _)| minor);
    let known = known(minor);
    assert!(!known.is_empty(), "no word is said to be of Tekton {minor}: add it to the versions in reasons.rs");
    let mut found = BTreeSet::new();
    for source in SOURCES {
        for file in go_files(&directory.join(source))? {
            for line in std::fs::read_to_string(&file)?.lines() {
                found.extend(definition(line).map(ToOwned::to_owned));
            }
        }
    }
    assert!(found.len() > 70, "only {} words in {}: are they defined elsewhere now?", found.len(), directory.display());
    let new: Vec<&String> = found.iter().filter(|word| !known.contains(word.as_str())).collect();
    assert!(new.is_empty(), "Tekton {version} has words without a meaning in reasons.rs: {new:?}");
    let gone: Vec<&&str> = known.iter().filter(|word| !found.contains(**word)).collect();
    assert!(gone.is_empty(), "Tekton {version} does not have these words of reasons.rs: {gone:?}");
    Ok(())
}
