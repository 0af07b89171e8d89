//! Tekton bundles: OCI images with one uncompressed tar layer per object, pushed over plain HTTP.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::http;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const TAR_BLOCK: usize = 512;

/// A bundle in the registry.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The reference of the bundle, `registry/repository:tag`.
    pub image: String,
    /// The digest of the manifest, `sha256:...`.
    pub digest: String,
}

/// Pushes a bundle with these objects to a registry (host:port). `repository` may end with `:tag`.
pub async fn push(registry: &str, repository: &str, objects: &[Value]) -> Result<Bundle> {
    let (repository, tag) = repository.split_once(':').unwrap_or((repository, "latest"));
    let mut layers = Vec::new();
    let mut diff_ids = Vec::new();
    for object in objects {
        let field = |pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).with_context(|| format!("no {pointer} in {object}"))
        };
        let (kind, name) = (field("/kind")?.to_lowercase(), field("/metadata/name")?);
        // The resolver reads YAML, and JSON is YAML.
        let layer = tar(name, serde_json::to_string_pretty(object)?.as_bytes())?;
        let digest = push_blob(registry, repository, &layer).await?;
        layers.push(json!({
            "mediaType": LAYER,
            "digest": digest,
            "size": layer.len(),
            "annotations": {
                // The version without its group, as `tkn bundle push` writes it.
                "dev.tekton.image.apiVersion": field("/apiVersion")?.rsplit('/').next(),
                "dev.tekton.image.kind": kind,
                "dev.tekton.image.name": name,
            },
        }));
        diff_ids.push(digest);
    }
    let config = serde_json::to_vec(&json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    }))?;
    let config_digest = push_blob(registry, repository, &config).await?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": config_digest, "size": config.len()},
        "layers": layers,
    }))?;
    let digest = digest_of(&manifest);
    let path = format!("/v2/{repository}/manifests/{tag}");
    let answer = http::request("PUT", registry, &path, &[("content-type", MANIFEST)], manifest).await?;
    ensure!(answer.status == 201, "the registry refused the manifest: {}", answer.text());
    Ok(Bundle { image: format!("{registry}/{repository}:{tag}"), digest })
}

async fn push_blob(registry: &str, repository: &str, blob: &[u8]) -> Result<String> {
    let digest = digest_of(blob);
    let start = http::request("POST", registry, &format!("/v2/{repository}/blobs/uploads/"), &[], Vec::new()).await?;
    ensure!(start.status == 202, "the registry refused an upload: {}", start.text());
    let location = start.headers.get("location").context("the registry named no place for an upload")?.to_str()?;
    // The location may be an absolute URL.
    let path = location.find("/v2/").map_or(location, |start| &location[start..]);
    let separator = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{separator}digest={digest}");
    let headers = [("content-type", "application/octet-stream")];
    let answer = http::request("PUT", registry, &path, &headers, blob.to_vec()).await?;
    ensure!(answer.status == 201, "the registry refused a blob: {}", answer.text());
    Ok(digest)
}

fn digest_of(bytes: &[u8]) -> String {
    let hex: Vec<String> = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{}", hex.concat())
}

/// Makes a tar archive (ustar) with one file.
fn tar(name: &str, content: &[u8]) -> Result<Vec<u8>> {
    ensure!(name.len() < 100, "a name of {} bytes does not fit into a tar header", name.len());
    let mut header = [0_u8; TAR_BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, b"00000000000\0");
    put(156, b"0");
    put(257, b"ustar\x0000");
    // The checksum counts the bytes of its own field as blanks.
    put(148, b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(TAR_BLOCK) + 2 * TAR_BLOCK, 0);
    Ok(archive)
}
