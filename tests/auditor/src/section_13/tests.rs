use super::fingerprint::{host, subject, uses};
use super::*;

#[test]
fn what_refutes_a_fingerprint() {
    let clean = |version: &'static str, image| Runs { workflow: "clean", version, image };
    let (one, elsewhere) = (clean("1.0", "quay.io/ops/clean:1"), clean("2.0", "ghcr.io/ops/clean:2"));
    for (fingerprint, by_the_same, by_another) in [
        ("ImagePullBackOff/registry/quay.io", true, false),
        ("ImagePullBackOff/registry/ghcr.io", false, true),
        ("Unknown/workflow/clean@1.0", true, false),
        ("Unknown/workflow/clean@1.0/step/2", true, false),
        ("ResourceExhausted/cluster", true, true),
    ] {
        let subject = subject(fingerprint, one);
        assert_eq!((uses(&subject, one), uses(&subject, elsewhere)), (by_the_same, by_another), "{fingerprint}");
    }
}

#[test]
fn the_host_of_an_image() {
    for (image, expected) in [
        ("quay.io/ops/clean:1", "quay.io"),
        ("Localhost/clean", "localhost"),
        ("registry:5000/clean@sha256:0", "registry:5000"),
        ("ops/clean", "docker.io"),
        ("index.docker.io/ops/clean", "docker.io"),
        ("clean", "docker.io"),
        ("", "docker.io"),
    ] {
        assert_eq!(host(image), expected, "{image}");
    }
}
