//! The plugin reads and explains. It must not depend on the operator, kube-runtime, prometheus or axum. It serves its
//! page with hyper alone.

#![allow(clippy::unwrap_used)] // a test says what went wrong by panicking

use std::process::Command;

/// Packages that only the operator needs, or that would pull in its server.
const ABSENT: [&str; 4] = ["axum", "kube-runtime", "prometheus", "wfe-operator"];

#[test]
fn the_plugin_has_no_part_of_the_operator_in_it() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let tree = ["tree", "--locked", "--offline", "--package", "kubectl-wfe", "--edges", "normal", "--prefix", "none"];
    // `{f}` prints the features of each package.
    let output = Command::new(cargo).args(tree).args(["--format", "{p} [{f}]"]).output().unwrap();
    let (tree, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{errors}");
    let features_of = |name: &str| {
        let line = tree.lines().find(|line| line.split(' ').next() == Some(name))?;
        Some(line.rsplit_once('[')?.1.trim_end_matches(']').split(',').collect::<Vec<_>>())
    };
    assert!(features_of("wfe-settings").is_some(), "the tree is read: {tree}");
    for name in ABSENT {
        assert_eq!(features_of(name), None, "{name}");
    }
    let hyper = features_of("hyper").unwrap();
    assert!(hyper.contains(&"client") && !hyper.contains(&"http2"), "{hyper:?}");
}
