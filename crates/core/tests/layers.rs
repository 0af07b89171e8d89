//! The modules of a folder have no cyclic dependencies: each can be read with only the modules that it names. A module
//! may name its parent.

#![allow(clippy::unwrap_used)] // a test says what went wrong by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module as its path within its crate, such as `["decide", "schedules", "rows"]`.
type Module = Vec<String>;
/// For each module of a folder, the modules of the folder that it names.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The crates that test the product. The test kit is not included: its modules `stack` and `prepared` name each other.
const PROOF: [&str; 3] = ["tests/auditor", "tests/model", "tests/simulation"];

/// Returns the lines of a source that are neither comments nor its tests.
fn code(source: &str) -> String {
    let product = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    product.split_inclusive('\n').filter(|line| !line.trim_start().starts_with("//")).collect()
}

/// Reads the modules of a crate with their code, except test modules.
fn modules(src: &Path) -> BTreeMap<Module, String> {
    let mut modules = BTreeMap::new();
    let mut open = vec![src.to_owned()];
    while let Some(folder_or_file) = open.pop() {
        if folder_or_file.is_dir() {
            open.extend(std::fs::read_dir(&folder_or_file).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let inside = folder_or_file.strip_prefix(src).unwrap().with_extension("");
        let module: Module = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        let is_left_out = |part: &String| matches!(part.as_str(), "lib" | "main" | "bin" | "tests" | "testing");
        if !module.iter().any(is_left_out) {
            modules.insert(module, code(&std::fs::read_to_string(&folder_or_file).unwrap()));
        }
    }
    modules
}

/// Lists the paths in a source that begin with `crate`, `self` or `super`, including groups over several lines.
fn named(source: &str) -> Vec<Vec<&str>> {
    let mut paths = Vec::new();
    let mut rest = source;
    while let Some(at) = ["crate::", "self::", "super::"].iter().filter_map(|root| rest.find(root)).min() {
        rest = &rest[at..];
        rest = &rest[read_path(rest, &[], &mut paths)..];
    }
    paths
}

/// Reads one path, or a group of paths, and returns its length in bytes.
fn read_path<'a>(text: &'a str, before: &[&'a str], paths: &mut Vec<Vec<&'a str>>) -> usize {
    let mut path = before.to_vec();
    let mut at = 0;
    loop {
        let word = text[at..].find(|it: char| !(it == '_' || it.is_alphanumeric())).unwrap_or(text.len() - at);
        if word == 0 {
            break;
        }
        path.push(&text[at..at + word]);
        at += word;
        if !text[at..].starts_with("::") {
            break;
        }
        at += 2;
    }
    if text[at..].starts_with('{') && at > 0 {
        at += 1;
        while at < text.len() && !text[at..].starts_with('}') {
            at += read_path(&text[at..], &path, paths).max(1);
        }
        return at + 1;
    }
    if path.len() > before.len() {
        paths.push(path);
    }
    at.max(1)
}

/// Returns the module to which a path leads from another module; `None` if it leads out of the crate.
fn resolve(from: &Module, path: &[&str], modules: &BTreeMap<Module, String>) -> Option<Module> {
    let (root, below) = path.split_first()?;
    let mut at = match *root {
        "crate" => Module::new(),
        "self" => from.clone(),
        _ => from[..from.len() - 1].to_vec(),
    };
    for part in below {
        if *part == "super" {
            at.pop();
            continue;
        }
        at.push((*part).to_owned());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
    }
    (!at.is_empty()).then_some(at)
}

/// Returns which modules of each folder name each other. A module that names its parent, or a module below itself, does
/// not count.
fn arrows(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, Arrows> {
    let mut arrows: BTreeMap<Module, Arrows> = BTreeMap::new();
    for (from, source) in modules {
        for path in named(source) {
            let Some(to) = resolve(from, &path, modules) else { continue };
            let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (from.get(shared), to.get(shared)) {
                let folder = arrows.entry(from[..shared].to_vec()).or_default();
                folder.entry(one.clone()).or_default().insert(other.clone());
            }
        }
    }
    arrows
}

/// Repeatedly removes modules that name no remaining module. What is left is in a cycle, or leads to one.
fn circle(mut arrows: Arrows) -> Arrows {
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
fn the_files_of_no_folder_form_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let product = std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
    let proof = PROOF.map(|folder| crates.with_file_name(folder));
    let mut read = 0;
    for package in product.chain(proof) {
        for (folder, arrows) in arrows(&modules(&package.join("src"))) {
            read += arrows.values().map(BTreeSet::len).sum::<usize>();
            assert_eq!(circle(arrows), Arrows::new(), "{}: {}", package.display(), folder.join("/"));
        }
    }
    assert!(read > 600, "only {read} arrows were found");
}

#[test]
fn a_circle_is_found() {
    let source = "use crate::{a, b::{C, d::E}};\n// crate::x\nlet e = super::super::f_g::H;\nuse super::{\n    i,\n    j::K,\n};";
    assert_eq!(
        named(&code(source)),
        [
            vec!["crate", "a"],
            vec!["crate", "b", "C"],
            vec!["crate", "b", "d", "E"],
            vec!["super", "super", "f_g", "H"],
            vec!["super", "i"],
            vec!["super", "j", "K"],
        ]
    );
    let module = |path: &str| path.split('/').map(ToOwned::to_owned).collect::<Module>();
    let of = |sources: &[(&str, &str)]| {
        let modules = sources.iter().map(|(path, source)| (module(path), (*source).to_owned())).collect();
        arrows(&modules).into_values().map(circle).filter(|circle| !circle.is_empty()).count()
    };
    let line = [("a", "use crate::b::B;"), ("b", "use super::c::C;"), ("c", ""), ("c/d", "use super::E;")];
    assert_eq!(of(&line), 0);
    assert_eq!(of(&[("a", "use crate::b::B;"), ("b", "use crate::a::A;")]), 1);
    assert_eq!(of(&[("a", ""), ("a/b", "use super::c::C;"), ("a/c", "use crate::a::b::B;")]), 1);
}
