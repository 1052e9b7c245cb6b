//! One object of each of some kinds, with every field set, in all representations. The objects are
//! upstream's own; the full set is checked by `cargo xtask roundtrip`.

use std::path::Path;

use pintle_schema::{Schema, SchemaRef};

use super::{json, protobuf};

fn fixtures() -> Vec<(String, SchemaRef<'static>, Vec<u8>, Vec<u8>, String)> {
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
            let yaml = std::fs::read_to_string(path.with_extension("yaml")).unwrap();
            found.push((
                name,
                schema,
                std::fs::read(&path).unwrap(),
                std::fs::read(path.with_extension("pb")).unwrap(),
                yaml,
            ));
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
    for (name, schema, json_golden, protobuf_golden, _) in fixtures() {
        let from_json = json::decode(&json_golden, schema).unwrap();
        assert_eq!(from_json.problems, [], "{name}");
        let from_protobuf = protobuf::decode(&protobuf_golden, schema).unwrap();
        assert_eq!(from_json.value, from_protobuf.value, "{name}");
        assert_eq!(
            String::from_utf8(json::encode(&from_json.value, schema)).unwrap(),
            compact(&json_golden),
            "{name}"
        );
        assert_eq!(protobuf::encode(&from_json.value, schema).unwrap(), protobuf_golden, "{name}");
    }
}
