use proptest::prelude::*;

use FailureReason::{
    ConfigurationError, DeadlineExceeded, Forbidden, ImagePullBackOff, OomKilled, ResourceExhausted, Unknown,
};
use Stage::{Asking, Creating, Released, Unresolved};

use super::*;

fn origin() -> Origin {
    Origin::new("node-cleanup", "1.4.0", "Registry.example:5000/workflows/node-cleanup:1.4.0")
}

fn task(registry: Option<&str>, exit_code: Option<i32>) -> FailedTask {
    FailedTask {
        name: "check".into(),
        index: 0,
        step: exit_code.map(|_| "run".into()),
        exit_code,
        registry: registry.map(Into::into),
    }
}

#[test]
fn each_failure_blames_a_registry_the_cluster_or_the_workflow() {
    let none = None;
    let (plain, exited) = (task(None, None), task(None, Some(3)));
    let (plain, exited) = (Some(&plain), Some(&exited));
    let pulled = task(Some("quay.example"), None);
    for (reason, stage, ran, task, expected) in [
        (ImagePullBackOff, Released, false, none, "ImagePullBackOff/registry/registry.example:5000"),
        (ImagePullBackOff, Released, false, plain, "ImagePullBackOff/registry/registry.example:5000"),
        (ImagePullBackOff, Released, false, Some(&pulled), "ImagePullBackOff/registry/quay.example"),
        (ImagePullBackOff, Released, true, Some(&pulled), "ImagePullBackOff/registry/quay.example"),
        (ImagePullBackOff, Unresolved, false, none, "ImagePullBackOff/workflow/node-cleanup@1.4.0"),
        (Unknown, Unresolved, false, none, "Unknown/cluster"),
        (ResourceExhausted, Creating, false, none, "ResourceExhausted/cluster"),
        (ResourceExhausted, Released, false, plain, "ResourceExhausted/cluster"),
        (ResourceExhausted, Released, true, plain, "ResourceExhausted/workflow/node-cleanup@1.4.0/check"),
        (Forbidden, Creating, false, none, "Forbidden/cluster"),
        (Forbidden, Released, false, plain, "Forbidden/workflow/node-cleanup@1.4.0/check"),
        (Forbidden, Released, true, exited, "Forbidden/workflow/node-cleanup@1.4.0/check/3"),
        (ConfigurationError, Asking, false, none, "ConfigurationError/workflow/node-cleanup@1.4.0"),
        (ConfigurationError, Creating, false, none, "ConfigurationError/cluster"),
        (ConfigurationError, Released, false, none, "ConfigurationError/workflow/node-cleanup@1.4.0"),
        (Unknown, Asking, false, none, "Unknown/workflow/node-cleanup@1.4.0"),
        (Unknown, Creating, false, none, "Unknown/cluster"),
        (Unknown, Creating, true, none, "Unknown/workflow/node-cleanup@1.4.0"),
        (Unknown, Released, false, none, "Unknown/cluster"),
        (Unknown, Released, false, plain, "Unknown/workflow/node-cleanup@1.4.0/check"),
        (Unknown, Released, true, none, "Unknown/workflow/node-cleanup@1.4.0"),
        (Unknown, Released, true, exited, "Unknown/workflow/node-cleanup@1.4.0/check/3"),
        (DeadlineExceeded, Asking, false, none, "DeadlineExceeded/workflow/node-cleanup@1.4.0"),
        (DeadlineExceeded, Released, false, none, "DeadlineExceeded/cluster"),
        (DeadlineExceeded, Released, false, plain, "DeadlineExceeded/workflow/node-cleanup@1.4.0/check"),
        (DeadlineExceeded, Released, true, none, "DeadlineExceeded/workflow/node-cleanup@1.4.0"),
        (OomKilled, Released, false, plain, "OOMKilled/workflow/node-cleanup@1.4.0/check"),
        (OomKilled, Released, true, exited, "OOMKilled/workflow/node-cleanup@1.4.0/check/3"),
    ] {
        let symptoms = Symptoms { reason, stage, may_have_run: ran, cancelled: false, task };
        let found = Fingerprint::of(symptoms, &origin());
        assert_eq!(found.as_str(), expected, "{symptoms:?}");
        assert_eq!((found.reason(), found.may_be_shared()), (reason.as_str(), true));
        let cancelled = Fingerprint::of(Symptoms { cancelled: true, ..symptoms }, &origin());
        assert!(cancelled.as_str().contains("/workflow/node-cleanup@1.4.0"), "cancelled: {cancelled}");
    }
    let refused = Fingerprint::refused(&origin());
    assert_eq!(refused.as_str(), "Refused/workflow/node-cleanup@1.4.0");
    assert_eq!((refused.reason(), refused.may_be_shared()), ("Refused", false));
}

#[test]
fn a_failure_is_refuted_by_what_uses_what_it_blames() {
    let other_version = Origin::new("node-cleanup", "1.4.01", "registry.example:5000/w");
    let other_workflow = Origin::new("node", "1.4.0", "docker.io/w");
    for (text, of, refuted) in [
        ("ResourceExhausted/cluster", origin(), [true, true, true]),
        ("ImagePullBackOff/registry/registry.example:5000", origin(), [true, true, false]),
        ("ImagePullBackOff/registry/registry.example", origin(), [false, false, false]),
        ("ImagePullBackOff/registry/docker.io", origin(), [false, false, true]),
        ("Unknown/workflow/node-cleanup@1.4.0", origin(), [true, false, false]),
        ("Unknown/workflow/node-cleanup@1.4.0/check/3", origin(), [true, false, false]),
        ("Unknown/workflow/node-cleanup@1.4.01", other_version.clone(), [false, true, false]),
        ("Unknown/workflow/node@1.4.0", other_workflow.clone(), [false, false, true]),
    ] {
        let subject = Fingerprint::parse(text).unwrap().refuted_by(&of);
        let uses = |origin| Fingerprint::subjects(origin).contains(&subject);
        assert_eq!([&origin(), &other_version, &other_workflow].map(uses), refuted, "{text}");
    }
}

#[test]
fn what_is_no_fingerprint_is_not_read_as_one() {
    let long = |length: usize| format!("Unknown/workflow/{}", "é".repeat(length - 17));
    for (text, is_one) in [
        ("Unknown/cluster", true),
        ("Refused/workflow/a@1", true),
        (&long(LONGEST), true),
        (&long(LONGEST + 1), false),
        ("", false),
        ("Unknown", false),
        ("Unknown/", false),
        ("Unknown/cluster/", false),
        ("Unknown/registry/", false),
        ("Unknown/workflow/", false),
        ("unknown/cluster", false),
        ("*", false),
        ("Skipped/workflow/a@1", false),
        (" Unknown/cluster", false),
    ] {
        assert_eq!(Fingerprint::parse(text).is_some(), is_one, "{text:?}");
    }
}

#[test]
fn the_host_of_an_image_is_read_as_the_resolver_reads_it() {
    for (image, host) in [
        ("registry.example/workflows/restart:1.0", "registry.example"),
        ("REGISTRY.example/restart:V1_0", "registry.example"),
        ("registry.example:5000/a@sha256:00", "registry.example:5000"),
        ("localhost/restart", "localhost"),
        ("registry:5000/restart", "registry:5000"),
        ("library/busybox:1.36", "docker.io"),
        ("busybox:1.36", "docker.io"),
        ("docker.io/busybox", "docker.io"),
        ("index.docker.io/library/busybox", "docker.io"),
        ("", "docker.io"),
        ("/", "docker.io"),
    ] {
        assert_eq!(registry_of(image), host, "{image:?}");
    }
}

#[test]
fn it_is_one_pointer_wide() {
    assert_eq!(size_of::<Option<Fingerprint>>(), size_of::<usize>());
}

/// Generates texts that users may write, some of them long enough to be cut.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c/@é.]{0,6}", "[a-c/@é.]{100,253}"]
}

prop_compose! {
    fn any_origin()(id in any_text(), version in any_text(), host in any_text()) -> Origin {
        Origin::new(&id, &version, &format!("{host}.example/w"))
    }
}

prop_compose! {
    fn any_symptoms()(
        reason in prop::sample::select(FailureReason::ALL.to_vec()),
        stage in prop::sample::select(vec![Asking, Creating, Released]),
        may_have_run: bool,
        cancelled: bool,
        code in prop::option::of(any::<i32>()),
        name in "[a-z]{0,8}",
        is_named: bool,
    ) -> (FailureReason, Stage, bool, bool, Option<FailedTask>) {
        let task = FailedTask { name: name.into(), ..task(None, code) };
        (reason, stage, may_have_run, cancelled, is_named.then_some(task))
    }
}

proptest! {
    #[test]
    fn a_failure_is_refuted_by_what_it_was_of_is_read_back_and_fits(
        origin in any_origin(),
        (reason, stage, may_have_run, cancelled, task) in any_symptoms(),
    ) {
        let symptoms = Symptoms { reason, stage, may_have_run, cancelled, task: task.as_ref() };
        for fingerprint in [Fingerprint::of(symptoms, &origin), Fingerprint::refused(&origin)] {
            let is_of_step = task.as_ref().is_some_and(|task| task.registry.is_some());
            let is_refuted = Fingerprint::subjects(&origin).contains(&fingerprint.refuted_by(&origin));
            // The registry of a step, or one whose name was cut, may differ from the registry of the bundle.
            prop_assert!(is_refuted || is_of_step || fingerprint.as_str().contains("/registry/"), "{}", fingerprint);
            prop_assert!(fingerprint.as_str().chars().count() <= LONGEST);
            prop_assert_eq!(Fingerprint::parse(fingerprint.as_str()), Some(fingerprint));
        }
    }

    #[test]
    fn any_text_has_an_answer(text in "\\PC{0,400}", origin in any_origin()) {
        if let Some(fingerprint) = Fingerprint::parse(&text) {
            prop_assert_eq!(fingerprint.as_str(), &*text);
            let _ = fingerprint.refuted_by(&origin);
        }
    }
}
