//! The modules of a crate form no circle: each can be read with only those that it names.

#![allow(clippy::unwrap_used)] // a test says what went wrong by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reads which modules each module names, those for tests left out.
fn arrows(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder_or_file) = open.pop() {
        if folder_or_file.is_dir() {
            open.extend(std::fs::read_dir(&folder_or_file).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let inside = folder_or_file.strip_prefix(folder).unwrap().with_extension("");
        let parts: Vec<&str> = inside.iter().map(|part| part.to_str().unwrap()).collect();
        if parts.contains(&"tests") || matches!(parts[0], "lib" | "main" | "bin" | "testing") {
            continue;
        }
        let source = std::fs::read_to_string(&folder_or_file).unwrap();
        let product = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        let modules = named(product).into_iter().filter(|module| *module != parts[0]).map(str::to_owned);
        arrows.entry(parts[0].to_owned()).or_default().extend(modules);
    }
    arrows
}

/// Lists the modules of its crate that a source names, in `use` lines and elsewhere: `crate::a`, `crate::{a, b::C}`.
fn named(source: &str) -> BTreeSet<&str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut found = BTreeSet::new();
    for line in code {
        for rest in line.split("crate::").skip(1) {
            let items = rest.strip_prefix('{').map_or(vec![rest], |group| group.split(", ").collect());
            found.extend(
                items.into_iter().filter_map(|item| item.split(|it: char| !(it == '_' || it.is_alphanumeric())).next()),
            );
        }
    }
    found.retain(|it| it.starts_with(char::is_lowercase));
    found
}

/// Takes away whatever names nothing that is left, until that ends: what stays is in a circle, or leads to one.
fn circle(mut arrows: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let left: BTreeSet<String> = arrows.keys().cloned().collect();
        let before = arrows.len();
        arrows.retain(|_, named| named.iter().any(|module| left.contains(module)));
        if arrows.len() == before {
            return arrows;
        }
    }
}

/// What judges the product. The test kit is left out: its control plane prepares copies of itself.
const PROOF: [&str; 3] = ["tests/auditor", "tests/model", "tests/simulation"];

#[test]
fn no_modules_form_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let product = std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
    let proof = PROOF.map(|folder| crates.with_file_name(folder));
    let mut read = 0;
    for folder in product.chain(proof) {
        let arrows = arrows(&folder.join("src"));
        read += arrows.values().map(BTreeSet::len).sum::<usize>();
        assert_eq!(circle(arrows), BTreeMap::new(), "{}", folder.display());
    }
    assert!(read > 200, "only {read} arrows were found");
}

#[test]
fn a_circle_is_found() {
    let set = |modules: &[&str]| modules.iter().map(ToString::to_string).collect();
    let of = |pairs: &[(&str, &[&str])]| pairs.iter().map(|(of, by)| ((*of).to_owned(), set(by))).collect();
    assert_eq!(
        named("use crate::{a, b::C};\n// crate::d\nlet e = crate::f_g::H; crate::I"),
        BTreeSet::from(["a", "b", "f_g"])
    );
    assert!(circle(of(&[("a", &["b"]), ("b", &["c"]), ("c", &[])])).is_empty());
    assert_eq!(circle(of(&[("a", &["b"]), ("b", &["a"]), ("c", &[])])).len(), 2);
}
