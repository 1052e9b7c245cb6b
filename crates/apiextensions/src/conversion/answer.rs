//! Validates the response of a conversion webhook.

use super::metadata::restore;
use super::metrics::FailureType;
use super::review::ReviewVersion;
use pintle_go_forms::quote;
use pintle_machinery::{GroupVersion, Value, ValueExt, codec::json};
use pintle_schema::{Schema, SchemaRef};
use pintle_webhook::{Response, TypedReview};
use std::sync::LazyLock;

/// An invalid response: the type for metrics, and the message for the client.
pub(super) struct Refused(pub(super) FailureType, pub(super) String);

/// The request to which a response belongs.
pub(super) struct Question<'q> {
    pub(super) version: ReviewVersion,
    pub(super) uid: &'q str,
    pub(super) to: &'q GroupVersion,
    pub(super) objects: Vec<Value>,
}

const REVIEW: TypedReview = TypedReview {
    group: "apiextensions.k8s.io",
    kind: "ConversionReview",
    versions: &["v1", "v1beta1"],
    siblings: &["CustomResourceDefinition", "CustomResourceDefinitionList"],
};

/// Reads the review in a response.
///
/// # Errors
/// When the response is no review of this version.
pub(super) fn read(response: &Response, version: ReviewVersion) -> Result<Value, String> {
    static SCHEMA: LazyLock<Option<SchemaRef<'static>>> = LazyLock::new(|| {
        let review = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.ConversionReview";
        Schema::builtin().by_type_name(review)
    });
    let Some(schema) = *SCHEMA else { return Err("no schema of ConversionReview".to_owned()) };
    let types = format!("of type {}.Conversion", version.name());
    // Both versions have the same fields, so that one schema is that of both; messages name the version of the types.
    REVIEW.read(response, version.name(), schema).map_err(|why| why.replace("of type v1.Conversion", &types))
}

/// Returns the converted objects of a review, in the order of the request.
///
/// # Errors
/// When the webhook failed, or its response is malformed, answers another request or changes more than it may.
pub(super) fn converted(mut answer: Value, question: Question<'_>) -> Result<Vec<Value>, Refused> {
    let about = question.objects.first().map(kind_of).unwrap_or_default();
    let malformed = |why: String| {
        Refused(FailureType::MalformedResponse, format!("conversion webhook for {about} failed: {why}"))
    };
    check_envelope(&answer, &question).map_err(malformed)?;
    let objects = match answer.at_mut("response.convertedObjects").map(Value::take) {
        Some(Value::Array(objects)) => objects,
        _ => Vec::new(),
    };
    if objects.len() != question.objects.len() {
        let (got, expected) = (objects.len(), question.objects.len());
        let why = format!("conversion webhook for {about} returned {got} objects, expected {expected}");
        return Err(Refused(FailureType::PartialResponse, why));
    }
    let pairs = question.objects.into_iter().zip(objects);
    pairs.map(|(original, converted)| check_object(original, converted, question.to)).collect()
}

fn check_envelope(answer: &Value, question: &Question<'_>) -> Result<(), String> {
    let is_v1 = question.version == ReviewVersion::V1;
    let (api_version, kind) = (answer.str_at("apiVersion"), answer.str_at("kind"));
    if is_v1 && (api_version.is_empty() || kind.is_empty()) {
        let group_version = if api_version.is_empty() { "/" } else { api_version };
        return Err(format!(
            "expected webhook response of {}, Kind=ConversionReview, got {group_version}, Kind={kind}",
            question.version.api_version()
        ));
    }
    let Some(response) = answer.at("response") else { return Err("no response provided".to_owned()) };
    let uid = response.str_at("uid");
    if is_v1 && uid != question.uid {
        return Err(format!("expected response.uid={}, got {}", quote(question.uid), quote(uid)));
    }
    match (response.str_at("result.status"), response.str_at("result.message")) {
        ("Success", _) => Ok(()),
        (status, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => Err(message.to_owned()),
    }
}

fn check_object(original: Value, converted: Value, to: &GroupVersion) -> Result<Value, Refused> {
    let about = kind_of(&original);
    let invalid = |why: String| Refused(FailureType::InvalidConvertedObject, why);
    if !converted.is_object() {
        return Err(invalid(no_object(&converted)));
    }
    // A malformed group and version leave an object without a kind.
    let version = converted.str_at("apiVersion");
    if converted.str_at("kind").is_empty() || GroupVersion::parse(version).is_none() {
        let shown = String::from_utf8_lossy(&json::encode_any(&converted)).into_owned();
        return Err(invalid(format!("Object 'Kind' is missing in '{shown}'")));
    }
    let returned = |what: String| invalid(format!("conversion webhook for {about} returned {what}"));
    if version != to.to_string() {
        let what = format!("invalid groupVersion (expected {to}, received {version})");
        return Err(returned(format!("invalid object at index 0: {what}")));
    }
    let (expected, received) = (original.str_at("kind"), converted.str_at("kind"));
    if expected != received {
        let what = format!("invalid kind (expected {expected}, received {received})");
        return Err(returned(format!("invalid object at index 0: {what}")));
    }
    for (name, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let path = format!("metadata.{name}");
        let (expected, received) = (original.str_at(&path), converted.str_at(&path));
        if expected != received {
            return Err(returned(format!(
                "invalid object: must have the same {shown}: {expected} != {received}"
            )));
        }
    }
    restore(original, converted).map_err(|why| returned(format!("invalid metadata: {why}")))
}

fn no_object(value: &Value) -> String {
    let found = match value {
        Value::Null => return "unexpected end of JSON input".to_owned(),
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
}

/// An object's kind in the form of messages: `group/version, Kind=Kind`.
pub(super) fn kind_of(object: &Value) -> String {
    format!("{}, Kind={}", object.str_at("apiVersion"), object.str_at("kind"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(change: impl FnOnce(&mut Value), expected: Result<Value, &str>) {
        let original = json!({"apiVersion": "g.io/v1", "kind": "K", "metadata": {
            "name": "n", "namespace": "m", "uid": "u", "generation": 3, "labels": {"l": "1"},
        }});
        let mut answer = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
            "uid": "q",
            "result": {"status": "Success"},
            "convertedObjects": [{"apiVersion": "g.io/v2", "kind": "K", "metadata": {
                "name": "n", "namespace": "m", "uid": "u", "generation": 9, "labels": {"l": "2"},
            }}],
        }});
        change(&mut answer);
        let to = GroupVersion::parse("g.io/v2").unwrap();
        let question = Question { version: ReviewVersion::V1, uid: "q", to: &to, objects: vec![original] };
        let found = converted(answer, question).map_err(|Refused(_, why)| why);
        assert_eq!(found, expected.map(|object| vec![object]).map_err(str::to_owned));
    }

    fn first(answer: &mut Value) -> &mut Value {
        answer.items_at_mut("response.convertedObjects").first_mut().unwrap()
    }

    #[test]
    fn only_labels_and_annotations_of_metadata_are_taken() {
        let expected = json!({"apiVersion": "g.io/v2", "kind": "K", "metadata": {
            "name": "n", "namespace": "m", "uid": "u", "generation": 3, "labels": {"l": "2"},
        }});
        check(|_| {}, Ok(expected));
    }

    #[test]
    fn lies_are_refused() {
        const FOR: &str = "conversion webhook for g.io/v1, Kind=K";
        let refused = |change: fn(&mut Value), why: &str| check(change, Err(why));
        let prefixed = |change: fn(&mut Value), why: &str| check(change, Err(&format!("{FOR} {why}")));
        prefixed(|answer| answer.set("response.uid", "x"), r#"failed: expected response.uid="q", got "x""#);
        prefixed(|answer| drop(answer.remove_at("response")), "failed: no response provided");
        prefixed(
            |answer| answer.set("response.result", json!({"status": "Failed"})),
            "failed: response.result.status was 'Failed', not 'Success'",
        );
        prefixed(
            |answer| answer.set("response.result", json!({"status": "Failed", "message": "no"})),
            "failed: no",
        );
        prefixed(
            |answer| answer.set("response.convertedObjects", json!([])),
            "returned 0 objects, expected 1",
        );
        prefixed(
            |answer| first(answer).set("apiVersion", "x/y"),
            "returned invalid object at index 0: invalid groupVersion (expected g.io/v2, received x/y)",
        );
        refused(
            |answer| first(answer).set("apiVersion", "a/b/c"),
            r#"Object 'Kind' is missing in '{"apiVersion":"a/b/c","kind":"K","metadata":{"generation":9,"labels":{"l":"2"},"name":"n","namespace":"m","uid":"u"}}'"#,
        );
        prefixed(
            |answer| first(answer).set("kind", "L"),
            "returned invalid object at index 0: invalid kind (expected K, received L)",
        );
        prefixed(
            |answer| first(answer).set("metadata.name", "other"),
            "returned invalid object: must have the same name: n != other",
        );
        prefixed(
            |answer| first(answer).set("metadata.labels", json!({"a": 1})),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        );
        refused(
            |answer| answer.set("response.convertedObjects", json!(["x"])),
            "json: cannot unmarshal string into Go value of type map[string]interface {}",
        );
    }
}
