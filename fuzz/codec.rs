//! The functions that the decoders' fuzz targets call with their input. `cargo test` runs the same functions on a
//! corpus and mutations of it, which needs no instrumented build.
//!
//! Decoding returns for all bytes, and a decoded value survives encoding and decoding in every encoding.

#![allow(dead_code, reason = "every target uses one of the functions")]

use pintle_machinery::codec::{self, DecodeError, Decoded, MAX_DEPTH, json::TypeMeta};
use pintle_machinery::{GroupVersion, tree};
use pintle_schema::{Schema, SchemaRef};

/// Kinds that have every type of field between them.
const KINDS: [(&str, &str, &str); 8] = [
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "WatchEvent"),
    ("apps", "v1", "ControllerRevision"),
    ("authentication.k8s.io", "v1", "TokenReview"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
];

/// The schema of the kind that a body names, or one of each when it names none.
fn schemas(group_version: &str, kind: &str) -> Vec<SchemaRef<'static>> {
    let group_version = GroupVersion::parse(group_version).unwrap_or_default();
    match Schema::builtin().by_kind(&group_version.group, &group_version.version, kind) {
        Some(schema) => vec![schema],
        None => KINDS
            .iter()
            .filter_map(|(group, version, kind)| Schema::builtin().by_kind(group, version, kind))
            .collect(),
    }
}

/// JSON bodies.
pub(crate) fn json(data: &[u8]) {
    if let Ok(value) = codec::json::decode_any(data) {
        assert!(tree::depth(&value) <= MAX_DEPTH);
        // Go writes 1.0 as 1 and -0.0 as -0, which is 0. Once read again, everything stays as it is.
        let text = codec::json::encode_any(&value);
        let settled = codec::json::decode_any(&text).expect("what the encoder wrote can be read");
        let text = codec::json::encode_any(&settled);
        assert_eq!(codec::json::decode_any(&text).as_ref(), Ok(&settled));
        assert_eq!(codec::json::decode_any(&codec::json::pretty(&text)).as_ref(), Ok(&settled));
        let yaml = codec::yaml::encode_any(&settled);
        let again = codec::yaml::own_to_json(&yaml).expect("what the encoder wrote can be read");
        if has_no_odd_breaks(&yaml) {
            assert_eq!(again.json, text, "YAML {}", String::from_utf8_lossy(&yaml));
        }
    }
    let TypeMeta { api_version, kind } = codec::json::type_meta(data).unwrap_or_default();
    for schema in schemas(&api_version, &kind) {
        let decoded = codec::json::decode(data, schema);
        within_bounds(&decoded, codec::json::decode_body(data, schema));
        check(decoded, schema);
    }
}

/// YAML bodies.
pub(crate) fn yaml(data: &[u8]) {
    let Ok(converted) = codec::yaml::to_json(data) else { return };
    let TypeMeta { api_version, kind } = codec::json::type_meta(&converted.json).unwrap_or_default();
    for schema in schemas(&api_version, &kind) {
        let decoded = codec::yaml::decode(data, schema);
        assert_eq!(decoded.is_ok(), codec::json::decode(&converted.json, schema).is_ok());
        check(decoded, schema);
    }
}

/// Protobuf bodies.
pub(crate) fn protobuf(data: &[u8]) {
    let unknown = codec::protobuf::open(data).unwrap_or_default();
    for schema in schemas(&unknown.api_version, &unknown.kind) {
        let decoded = codec::protobuf::decode(data, schema);
        within_bounds(&decoded, codec::protobuf::decode_body(data, schema));
        check(decoded, schema);
    }
}

/// CBOR bodies.
pub(crate) fn cbor(data: &[u8]) {
    let _ = codec::cbor::diagnose(data);
    if let Ok(value) = codec::cbor::decode_any(data) {
        assert!(tree::depth(&value) <= MAX_DEPTH);
        let encoded = codec::cbor::encode_any(&value);
        assert_eq!(codec::cbor::decode_any(&encoded).as_ref(), Ok(&value));
        assert_eq!(codec::cbor::encode_any(&value), encoded);
    }
    let TypeMeta { api_version, kind } = codec::cbor::type_meta(data).unwrap_or_default();
    for schema in schemas(&api_version, &kind) {
        let decoded = codec::cbor::decode(data, schema);
        within_bounds(&decoded, codec::cbor::decode_body(data, schema));
        check(decoded, schema);
    }
}

/// Asserts that a client's body is decoded to the same value as without limits, or is refused for its weight.
fn within_bounds(decoded: &Result<Decoded, DecodeError>, of_body: Result<Decoded, DecodeError>) {
    match (decoded, of_body) {
        (_, Err(DecodeError::TooHeavy)) => {}
        (Ok(decoded), Ok(of_body)) => {
            assert_eq!(of_body.value, decoded.value);
            assert_eq!(of_body.problems, decoded.problems);
        }
        (decoded, of_body) => assert_eq!(of_body.err(), decoded.as_ref().err().cloned()),
    }
}

/// YAML 1.1, which Kubernetes writes, breaks lines at characters that are letters to YAML 1.2.
fn has_no_odd_breaks(yaml: &[u8]) -> bool {
    !String::from_utf8_lossy(yaml).contains(['\u{2028}', '\u{2029}'])
}

fn check(decoded: Result<Decoded, DecodeError>, schema: SchemaRef<'_>) {
    let Ok(Decoded { value, .. }) = decoded else { return };
    assert!(tree::depth(&value) <= MAX_DEPTH);
    let text = codec::json::encode(&value, schema);
    let again = codec::json::decode(&text, schema).expect("what the encoder wrote can be read");
    assert!(again.problems.is_empty());
    // 1.0 and -0.0 inside raw JSON are 1 and 0 from here on.
    let value = again.value;
    let text = codec::json::encode(&value, schema);
    assert_eq!(codec::json::decode(&text, schema).map(|again| again.value).as_ref(), Ok(&value));
    let written = codec::json::to_value(&value, schema);
    assert_eq!(codec::json::decode_any(&text).as_ref(), Ok(&written));

    let text = codec::yaml::encode(&value, schema);
    match codec::yaml::decode(&text, schema) {
        Err(DecodeError::TooHeavy) => {}
        again if has_no_odd_breaks(&text) => {
            let again = again.expect("what the encoder wrote can be read");
            assert_eq!(again.value, value, "YAML {}", String::from_utf8_lossy(&text));
        }
        _ => {}
    }

    let encoded = codec::cbor::encode(&value, schema);
    let again = codec::cbor::decode(&encoded, schema).expect("what the encoder wrote can be read");
    assert_eq!((&again.value, again.problems.as_slice()), (&value, [].as_slice()));

    if let Some(message) = codec::protobuf::encode(&value, schema) {
        let again = codec::protobuf::decode(&message, schema).expect("what the encoder wrote can be read");
        // An empty list in a map and no list are the same in protobuf.
        assert_eq!(codec::protobuf::encode(&again.value, schema), Some(message));
        let mut kept = value;
        codec::protobuf::drop_empty(&mut kept, schema);
        assert_eq!(again.value, kept);
    }
}
