//! Plans as files: an error contains its position, and writing and reading a plan does not change the plan.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::path::PathBuf;

use wfe_simulation::plan::Plan;

fn read(name: &str, text: &str) -> Result<Plan, String> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    Plan::read(&path).map_err(|error| error.to_string())
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    for seed in 0..50 {
        let plan = Plan::of_seed(seed);
        assert_eq!(read(&format!("seed-{seed}.json"), &plan.to_string()), Ok(plan));
    }
}

/// A target that drains for ever keeps its place in a limit for ever, so others would rightly wait for ever.
#[test]
fn no_plan_with_limits_has_a_pod_that_never_ends() {
    let never_ends = |plan: &Plan| plan.to_string().contains("container-config-error");
    assert!((0..200).any(|seed| never_ends(&Plan::of_seed(seed))), "plans without limits have such a pod");
    let mut with_limits = 0;
    for seed in (203..10_000).step_by(4) {
        let plan = Plan::of_seed(seed);
        with_limits += usize::from(plan.flags.iter().any(|flag| flag.starts_with("--limits=")));
        assert!(!never_ends(&plan), "seed {seed}");
    }
    assert_eq!(with_limits, 2450);
}

#[test]
fn a_typo_is_named_with_its_place() {
    for (name, text, expected) in [
        ("field.json", "{\"seed\": 1, \"fault\": []}", "unknown field `fault`, expected one of `seed`, `replicas`"),
        (
            "word.json",
            "{\"seed\": 1, \"faults\": [{\"from\": 0, \"to\": 9, \"what\": \"crach\"}]}",
            "unknown variant `crach`, expected one of",
        ),
        ("place.json", "{\"seed\": 1,\n \"acts\": [{\"at\": 0}]}", "missing field `do` at line 2"),
        (
            "backwards.json",
            "{\"seed\": 1, \"faults\": [{\"from\": 9, \"to\": 0, \"what\": \"crash\"}]}",
            "faults[0]: ends at 0 before it begins at 9",
        ),
        (
            "nobody.json",
            "{\"seed\": 1, \"faults\": [{\"from\": 0, \"to\": 9, \"replica\": 2, \"what\": \"crash\"}]}",
            "faults[0]: there is no such replica; they count from 0",
        ),
        ("tekton.json", "{\"seed\": 1, \"tekton\": \"v9\"}", "tekton: v9 was never recorded, v1.12.0 and v1.9.0 were"),
        (
            "name.json",
            "{\"seed\": 1, \"acts\": [{\"at\": 0, \"do\": {\"delete\": \"fix\"}}]}",
            "fix is not namespace/name",
        ),
    ] {
        let error = read(name, text).unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
}
