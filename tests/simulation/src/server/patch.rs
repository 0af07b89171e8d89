//! Merge patches and JSON patches.

use bytes::Bytes;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::Value;
use wfe_core::Time;

use super::Server;
use super::answer::{Answer, bad_request, not_found, unprocessable, unsupported_media_type};
use super::target::Target;

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
/// The largest number of operations in a JSON patch, which is the limit of kube-apiserver.
const MAX_OPERATIONS: usize = 10_000;

impl Server {
    pub(super) fn patch(
        &mut self,
        target: &Target,
        name: &str,
        media: &str,
        body: &Bytes,
        _now: Time,
    ) -> Result<Answer, Answer> {
        if media != MERGE && media != JSON {
            return Err(unsupported_media_type(media));
        }
        let kind = self.kind(target);
        let Some(old) = self.store.get(&target.key(name)).cloned() else { return Err(not_found(kind, name)) };
        let old = self.shown(target.kind, &old);
        let mut new = old.clone();
        let broken = |error: serde_json::Error| bad_request(&error.to_string());
        if media == MERGE {
            let patch: Value = serde_json::from_slice(body).map_err(broken)?;
            if !patch.is_object() {
                return Err(bad_request("a merge patch is an object"));
            }
            json_patch::merge(&mut new, &patch);
        } else {
            let patch: Patch = serde_json::from_slice(body).map_err(broken)?;
            if patch.len() > MAX_OPERATIONS {
                return Err(super::answer::too_large(MAX_OPERATIONS));
            }
            for operation in patch.0 {
                let operation = as_the_real_one(&new, operation);
                json_patch::patch(&mut new, &[operation]).map_err(|error| unprocessable(&error.to_string()))?;
            }
        }
        self.decode(target, &mut new)?;
        self.update(target, name, &old, new)
    }
}

/// Allows a `replace` of a missing field, as the library of the real server does in violation of RFC 6902.
fn as_the_real_one(object: &Value, operation: PatchOperation) -> PatchOperation {
    match operation {
        PatchOperation::Replace(replace) if object.pointer(replace.path.as_str()).is_none() => {
            PatchOperation::Add(AddOperation { path: replace.path, value: replace.value })
        }
        other => other,
    }
}
