use serde_json::json;

use super::fingerprint::host;
use super::*;

#[test]
fn what_a_fingerprint_touches() {
    let reference = json!({"workflowId": "clean", "version": "1.0", "containerImage": "quay.io/ops/clean:1"});
    let long = "x".repeat(400);
    let (long_id, long_key) = (
        json!({"workflowId": long, "version": "1", "containerImage": ""}),
        format!("Unknown/workflow/{}", "x".repeat(320 - "Unknown/workflow/".len())),
    );
    for (key, reference, expected) in [
        (ALL, &reference, true),
        ("ImagePullBackOff/registry/quay.io", &reference, true),
        ("ImagePullBackOff/registry/ghcr.io", &reference, false),
        ("Unknown/workflow/clean@1.0", &reference, true),
        ("Unknown/workflow/clean@1.0/step/2", &reference, true),
        ("Unknown/workflow/clean@1.01", &reference, false),
        ("Unknown/workflow/clean@2.0", &reference, false),
        ("ResourceExhausted/cluster", &reference, true),
        (long_key.as_str(), &long_id, true),
    ] {
        assert_eq!(touches(key, Runs::read(reference)), expected, "{key}");
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
