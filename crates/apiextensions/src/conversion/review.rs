//! Builds the request to a webhook: a `ConversionReview`.

use bytes::Bytes;
use pintle_machinery::{
    Value,
    codec::json::{self, write_list, write_object},
};

/// The version of a review, selected from the webhook's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    /// The first of the webhook's review versions that this server supports.
    pub(super) fn choose<'v>(versions: impl IntoIterator<Item = &'v str>) -> Option<ReviewVersion> {
        versions.into_iter().find_map(|version| match version {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1beta1 => "v1beta1",
        }
    }

    pub(super) fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "apiextensions.k8s.io/v1",
            ReviewVersion::V1beta1 => "apiextensions.k8s.io/v1beta1",
        }
    }
}

/// Builds the JSON of a review that requests the conversion of JSON objects to a version.
pub(super) fn review(version: ReviewVersion, uid: &str, to: &str, objects: &[Vec<u8>]) -> Bytes {
    let size: usize = objects.iter().map(|object| object.len() + 1).sum();
    let mut out = Vec::with_capacity(size + 320);
    write_object(&mut out, |review| {
        review.text("kind", "ConversionReview");
        review.text("apiVersion", version.api_version());
        review.object("request", |request| {
            request.text("uid", uid);
            request.text("desiredAPIVersion", to);
            request.member("objects", |out| {
                write_list(out, objects, |out, object| out.extend_from_slice(object));
            });
        });
        review.json("response", br#"{"uid":"","convertedObjects":null,"result":{"metadata":{}}}"#);
    });
    out.push(b'\n');
    out.into()
}

/// Encodes an object for webhooks.
pub(super) fn object(object: &Value) -> Vec<u8> {
    let mut object = object.clone();
    object.get_mut("metadata").map(json::open_managed_fields);
    json::encode_any(&object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn reviews_have_the_fields_that_webhooks_expect() {
        let objects = [object(&json!({"a": 1})), object(&json!({"b": "<"}))];
        let review = review(ReviewVersion::V1, "u", "g/v2", &objects);
        let expected = concat!(
            r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"g/v2","#,
            r#""objects":[{"a":1},{"b":"\u003c"}]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}"#,
            "\n",
        );
        assert_eq!(review, expected.as_bytes());
    }
}
