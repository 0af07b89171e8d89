//! The modules of the core form no circle: each can be read with only those that it names.

#![allow(clippy::unwrap_used)] // a test says what went wrong by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reads which modules each module names in its `use` lines, those for tests left out.
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
        if parts.contains(&"tests") || matches!(parts[0], "lib" | "testing") {
            continue;
        }
        let source = std::fs::read_to_string(&folder_or_file).unwrap();
        let product = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        let named = product.lines().filter_map(|line| line.trim_start().strip_prefix("use crate::"));
        let modules = named.map(|rest| rest.split([':', ';', '{']).next().unwrap().to_owned());
        let modules = modules.filter(|module| module.starts_with(char::is_lowercase) && module != parts[0]);
        arrows.entry(parts[0].to_owned()).or_default().extend(modules);
    }
    arrows
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

#[test]
fn no_modules_form_a_circle() {
    let arrows = arrows(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(arrows["decide"].contains("history") && arrows.len() > 15, "the modules are read: {arrows:?}");
    assert_eq!(circle(arrows), BTreeMap::new());
}

#[test]
fn a_circle_is_found() {
    let named = |modules: &[&str]| modules.iter().map(ToString::to_string).collect();
    let of = |pairs: &[(&str, &[&str])]| pairs.iter().map(|(of, by)| ((*of).to_owned(), named(by))).collect();
    assert!(circle(of(&[("a", &["b"]), ("b", &["c"]), ("c", &[])])).is_empty());
    assert_eq!(circle(of(&[("a", &["b"]), ("b", &["a"]), ("c", &[])])).len(), 2);
}
