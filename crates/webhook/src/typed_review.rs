//! Decodes reviews whose kind this server declares, as Kubernetes' client decodes them with the scheme of their group.

use crate::Response;
use pintle_machinery::{
    GroupVersion, Value,
    codec::{DecodeError, json},
    scheme::{OF_EACH_VERSION, UNVERSIONED, WEBHOOKS, not_registered},
};
use pintle_schema::SchemaRef;

/// A kind of reviews, and the scheme that its answers are decoded with.
#[derive(Debug, Clone, Copy)]
pub struct TypedReview {
    /// The group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The versions of the group.
    pub versions: &'static [&'static str],
    /// The other kinds of each version.
    pub siblings: &'static [&'static str],
}

impl TypedReview {
    /// The review in a response, which must be of this version. Kind and version that the response lacks are
    /// those of the request.
    ///
    /// # Errors
    /// The error text of Kubernetes' client: that of [`Response::json`], that of a body which is of another kind or
    /// version, or which has a field of the wrong type; and when the decoded review takes far more memory than the
    /// request.
    pub fn read(&self, response: &Response, version: &str, schema: SchemaRef<'_>) -> Result<Value, String> {
        let body = response.json()?;
        self.check_kind(&body, version)?;
        let decoded = json::decode_answer(&body, schema, response.question);
        decoded.map(|decoded| decoded.value).map_err(|error| error.to_string())
    }

    fn check_kind(&self, body: &[u8], version: &str) -> Result<(), String> {
        let kind_error = |error: DecodeError| format!("couldn't get version/kind; json parse error: {error}");
        let found = json::type_meta(body).map_err(kind_error)?;
        let kind = if found.kind.is_empty() { self.kind } else { &found.kind };
        let text = found.api_version.as_str();
        let mut group_version =
            GroupVersion::parse(text).ok_or_else(|| format!("unexpected GroupVersion string: {text}"))?;
        if group_version.version.is_empty()
            && (group_version.group.is_empty() || group_version.group == self.group)
        {
            group_version = GroupVersion::new(self.group, version);
        }
        let is_of_group =
            group_version.group == self.group && self.versions.contains(&group_version.version.as_str());
        let from = match is_of_group {
            true if kind == self.kind && group_version.version == version => return Ok(()),
            true if kind == self.kind || self.siblings.contains(&kind) => group_version.version.as_str(),
            // The types of these kinds are those of the common machinery.
            true if OF_EACH_VERSION.contains(&kind) => "v1",
            _ if UNVERSIONED.contains(&kind) => "v1",
            _ => return Err(not_registered(kind, &group_version.to_string(), WEBHOOKS)),
        };
        let own = self.kind;
        Err(format!("converting ({from}.{kind}) to ({version}.{own}): unknown conversion"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use pintle_schema::Schema;

    const REVIEW: TypedReview = TypedReview {
        group: "apiextensions.k8s.io",
        kind: "ConversionReview",
        versions: &["v1", "v1beta1"],
        siblings: &["CustomResourceDefinition"],
    };

    fn read(body: &'static str, question: usize) -> Result<Value, String> {
        let name = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.ConversionReview";
        let schema = Schema::builtin().by_type_name(name).unwrap();
        let content_type = "application/json".to_owned();
        let body = Bytes::from_static(body.as_bytes());
        let response = Response { status: 200, content_type, retry_after: None, body, question };
        REVIEW.read(&response, "v1", schema)
    }

    #[test]
    fn answers_of_another_kind_version_or_type_are_refused() {
        let scheme = "in scheme \"k8s.io/apiserver/pkg/util/webhook/client.go:71\"";
        let converting =
            |from: &str| format!("converting ({from}) to (v1.ConversionReview): unknown conversion");
        for (body, expected) in [
            (r#"{"apiVersion":"v1","kind":"Status"}"#, converting("v1.Status")),
            (r#"{"apiVersion":"x/y","kind":"APIGroup"}"#, converting("v1.APIGroup")),
            (r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"Status"}"#, converting("v1.Status")),
            (r#"{"apiVersion":"apiextensions.k8s.io/v1beta1"}"#, converting("v1beta1.ConversionReview")),
            (
                r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition"}"#,
                converting("v1beta1.CustomResourceDefinition"),
            ),
            (
                r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ListOptions"}"#,
                converting("v1.ListOptions"),
            ),
            (
                r#"{"apiVersion":"apiextensions.k8s.io/v2","kind":"ConversionReview"}"#,
                format!(
                    "no kind \"ConversionReview\" is registered for version \"apiextensions.k8s.io/v2\" {scheme}"
                ),
            ),
            (r#"{"kind":"Other"}"#, format!("no kind \"Other\" is registered for version \"apiextensions.k8s.io/v1\" {scheme}")),
            (r#"{"apiVersion":"a/b/c"}"#, "unexpected GroupVersion string: a/b/c".to_owned()),
            (
                r#"{"apiVersion":1}"#,
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field \
                 .apiVersion of type string"
                    .to_owned(),
            ),
            (
                r#"{"response":{"uid":5}}"#,
                "json: cannot unmarshal number into Go struct field ConversionResponse.response.uid of type types.UID"
                    .to_owned(),
            ),
            (
                r#"{"response":"x"}"#,
                "json: cannot unmarshal string into Go struct field ConversionReview.response of type \
                 v1.ConversionResponse"
                    .to_owned(),
            ),
            (
                r#"{"response":{"convertedObjects":{}}}"#,
                "json: cannot unmarshal object into Go struct field ConversionResponse.response.convertedObjects of \
                 type []runtime.RawExtension"
                    .to_owned(),
            ),
        ] {
            assert_eq!(read(body, 1000), Err(expected), "{body}");
        }
        let read = read(r#"{"response":{"convertedObjects":[{"a":1},null]}}"#, 1000).unwrap();
        assert_eq!(read.to_string(), r#"{"response":{"convertedObjects":[{"a":1},null]}}"#);
    }
}
