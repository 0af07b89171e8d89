//! Replaces the names in a text that differ in every test run.

use wfe_testkit::World;

/// Replaces names that vary by fixed names: the namespaces of a world, its registry, and the names of Tekton's requests
/// for bundles. (These names are hashes over the request, including the port of the registry.)
#[must_use]
pub fn stable(world: &World, text: &str) -> String {
    let text = text
        .replace(&world.execution_namespace(), "kubernaut-workflows")
        .replace(world.namespace(), "ops")
        .replace(&world.control_plane().registry(), "registry.test");
    without_hash(&text)
}

fn without_hash(text: &str) -> String {
    const PREFIX: &str = "bundles-";
    const HASH: usize = 32;
    let Some(start) = text.find(PREFIX).map(|start| start + PREFIX.len()) else { return text.to_owned() };
    let Some(hash) = text.get(start..start + HASH) else { return text.to_owned() };
    let is_hash = hash.chars().all(|one| one.is_ascii_hexdigit());
    if is_hash { text.replace(hash, &"0".repeat(HASH)) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hash_is_replaced() {
        let of = |text: &str| without_hash(text);
        assert_eq!(
            of("get bundles-ba970b42e298e1416fb7bd92a7546cdb: no"),
            format!("get bundles-{}: no", "0".repeat(32))
        );
        for same in ["bundles-", "bundles-of-sticks-that-are-longer-than-any-hash", "none"] {
            assert_eq!(of(same), same);
        }
    }
}
