//! Builds the reference of a workflow's bundle: an image, pinned by a digest if one is given.

/// The image reference contains a digest that differs from the digest in the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestConflict {
    /// The digest in the image reference.
    pub in_image: String,
    /// The digest in the spec.
    pub beside: String,
}

/// Joins an image and a digest to the reference for Tekton's bundles resolver.
///
/// # Errors
/// If the image reference already contains a different digest. The operator does not guess which one is meant.
pub fn bundle_reference(image: &str, digest: Option<&str>) -> Result<String, DigestConflict> {
    match (image.split_once('@'), digest) {
        (_, None) => Ok(image.to_owned()),
        (None, Some(digest)) => Ok(format!("{image}@{digest}")),
        (Some((_, in_image)), Some(digest)) if in_image == digest => Ok(image.to_owned()),
        (Some((_, in_image)), Some(digest)) => {
            Err(DigestConflict { in_image: in_image.to_owned(), beside: digest.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_an_image_by_its_digest_once() {
        assert_eq!(bundle_reference("r/wf:1", None).unwrap(), "r/wf:1");
        assert_eq!(bundle_reference("r/wf:1", Some("sha256:aa")).unwrap(), "r/wf:1@sha256:aa");
        assert_eq!(bundle_reference("r/wf@sha256:aa", Some("sha256:aa")).unwrap(), "r/wf@sha256:aa");
        assert_eq!(bundle_reference("r/wf@sha256:aa", None).unwrap(), "r/wf@sha256:aa");
    }

    #[test]
    fn refuses_two_digests_that_contradict() {
        let conflict = bundle_reference("r/wf:1@sha256:bb", Some("sha256:aa")).unwrap_err();
        assert_eq!((conflict.in_image.as_str(), conflict.beside.as_str()), ("sha256:bb", "sha256:aa"));
    }
}
