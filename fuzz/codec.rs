//! What the decoders' fuzz targets do with their input. `cargo test` runs the same functions on a
//! corpus and mutations of it, since fuzzing itself needs a nightly compiler.
//!
//! Whatever the bytes are, decoding returns; what it returns is encoded and comes back the same.

#![allow(dead_code, reason = "every target uses one of the functions")]

use pintle_machinery::codec::{self, DecodeError, Decoded};
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

fn schemas() -> impl Iterator<Item = SchemaRef<'static>> {
    KINDS.iter().filter_map(|(group, version, kind)| Schema::builtin().by_kind(group, version, kind))
}

/// JSON bodies.
pub(crate) fn json(data: &[u8]) {
    let _ = codec::json::type_meta(data);
    for schema in schemas() {
        check(codec::json::decode(data, schema), schema);
    }
}

/// YAML bodies.
pub(crate) fn yaml(data: &[u8]) {
    if codec::yaml::to_json(data).is_err() {
        return;
    }
    for schema in schemas() {
        check(codec::yaml::decode(data, schema), schema);
    }
}

/// Protobuf bodies.
pub(crate) fn protobuf(data: &[u8]) {
    for schema in schemas() {
        check(codec::protobuf::decode(data, schema), schema);
    }
}

fn check(decoded: Result<Decoded, DecodeError>, schema: SchemaRef<'_>) {
    let Ok(Decoded { value, .. }) = decoded else { return };
    let text = codec::json::encode(&value, schema);
    let again = codec::json::decode(&text, schema).expect("what the encoder wrote can be read");
    assert_eq!(again.value, value, "JSON {}", String::from_utf8_lossy(&text));
    assert!(again.problems.is_empty());

    let text = codec::yaml::encode(&value, schema);
    let again = codec::yaml::decode(&text, schema).expect("what the encoder wrote can be read");
    assert_eq!(again.value, value, "YAML {}", String::from_utf8_lossy(&text));

    if let Some(message) = codec::protobuf::encode(&value, schema) {
        let again = codec::protobuf::decode(&message, schema).expect("what the encoder wrote can be read");
        // An empty list in a map and no list are the same in protobuf.
        assert_eq!(codec::protobuf::encode(&again.value, schema), Some(message));
    }
}
