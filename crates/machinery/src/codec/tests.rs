//! One object of each of some kinds, with every field set, in all representations. The objects are
//! upstream's own; the full set is checked by `cargo xtask roundtrip`.

use std::path::Path;

use pintle_schema::{Schema, SchemaRef};

use super::{json, protobuf, yaml};

/// An object in its three forms.
struct Fixture {
    name: String,
    schema: SchemaRef<'static>,
    json: Vec<u8>,
    protobuf: Vec<u8>,
    yaml: Vec<u8>,
}

fn fixtures() -> Vec<Fixture> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/api-roundtrip");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let (rest, kind) = name.rsplit_once('.').unwrap();
            let (group, version) = rest.rsplit_once('.').unwrap();
            let group = if group == "core" { "" } else { group };
            let schema = Schema::builtin().by_kind(group, version, kind).unwrap();
            let read = |extension: &str| std::fs::read(path.with_extension(extension)).unwrap();
            let (json, protobuf, yaml) = (read("json"), read("pb"), read("yaml"));
            found.push(Fixture { name, schema, json, protobuf, yaml });
        }
    }
    assert!(found.len() >= 12);
    found
}

/// The JSON without the white space between its tokens.
fn compact(json: &[u8]) -> String {
    let mut out = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    for &byte in json {
        if in_string || !byte.is_ascii_whitespace() {
            out.push(byte);
        }
        in_string ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn every_representation_converts_into_every_other() {
    for Fixture { name, schema, json: json_text, protobuf: message, yaml: yaml_text } in fixtures() {
        let from_json = json::decode(&json_text, schema).unwrap();
        assert_eq!(from_json.problems, [], "{name}");
        assert_eq!(protobuf::decode(&message, schema).unwrap(), from_json, "{name}");
        assert_eq!(yaml::decode(&yaml_text, schema).unwrap(), from_json, "{name}");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(text(json::encode(&from_json.value, schema)), compact(&json_text), "{name}");
        let value = serde_json::from_slice::<pintle_tree::Value>(&json_text).unwrap();
        assert_eq!(json::to_value(&from_json.value, schema), value, "{name}");
        assert_eq!(text(json::pretty(&json::encode(&from_json.value, schema))), text(json_text), "{name}");
        assert_eq!(protobuf::encode(&from_json.value, schema).unwrap(), message, "{name}");
        assert_eq!(yaml::from_json(&json::encode(&from_json.value, schema)).unwrap(), yaml_text, "{name}");
        assert_eq!(text(yaml::encode(&from_json.value, schema)), text(yaml_text), "{name}");
    }
}
