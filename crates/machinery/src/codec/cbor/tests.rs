use pintle_schema::{Schema, SchemaBuilder, SchemaRef, Structural, Type};
use pintle_tree::{Value, json};

use super::{decode, decode_any, decode_body, diagnose, encode, encode_any, type_meta};
use super::{list_foot, list_head, watch_frame, without_type_meta};
use crate::codec::{DecodeError, json as json_codec};

fn schema(kind: &str) -> SchemaRef<'static> {
    Schema::builtin().by_kind("", "v1", kind).unwrap()
}

/// Bytes from hexadecimal digits; text between quotes stands for itself, as a text string with its head.
fn hex(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in text.split_whitespace() {
        match part.strip_prefix('"') {
            Some(text) => {
                bytes.push(0x60 + text.len() as u8);
                bytes.extend_from_slice(text.as_bytes());
            }
            None => bytes.extend(
                (0..part.len()).step_by(2).map(|at| u8::from_str_radix(&part[at..at + 2], 16).unwrap()),
            ),
        }
    }
    bytes
}

fn message(result: Result<impl std::fmt::Debug, DecodeError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn numbers_have_their_shortest_form() {
    let rows = [
        (json!(0), "00"),
        (json!(23), "17"),
        (json!(24), "1818"),
        (json!(256), "190100"),
        (json!(65536), "1a00010000"),
        (json!(i64::MAX), "1b7fffffffffffffff"),
        (json!(-1), "20"),
        (json!(i64::MIN), "3b7fffffffffffffff"),
        (json!(0.0), "f90000"),
        (json!(-0.0), "f98000"),
        (json!(1.0), "f93c00"),
        (json!(1.5), "f93e00"),
        (json!(65504.0), "f97bff"),
        (json!(65505.0), "fa477fe100"),
        (json!(100000.0), "fa47c35000"),
        (json!(5.960464477539063e-8), "f90001"),
        (json!(0.00006103515625), "f90400"),
        (json!(1.1), "fb3ff199999999999a"),
        (json!(true), "f5"),
        (json!(null), "f6"),
        (json!("ü"), "42c3bc"),
        (json!({"b": 1, "aa": [], "a": {}}), "a3 4161a0 416201 42616180"),
    ];
    for (value, bytes) in rows {
        let encoded = encode_any(&json!({"v": value}));
        assert_eq!(encoded, hex(&format!("d9d9f7 a1 4176 {bytes}")), "{value}");
        assert_eq!(decode_any(&encoded).unwrap()["v"], value);
    }
}

#[test]
fn malformed_bytes_are_refused() {
    let deep = [vec![0x81; 300], vec![0]].concat();
    let rows = [
        (hex(""), "EOF"),
        (hex("a1"), "unexpected EOF"),
        (hex("d9d9f7"), "unexpected EOF"),
        (hex("1c"), "cbor: invalid additional information 28 for type positive integer"),
        (hex("1f"), "cbor: invalid additional information 31 for type positive integer"),
        (hex("ff"), "cbor: unexpected \"break\" code"),
        (hex("f818"), "cbor: invalid simple value 24 for type primitives"),
        (hex("a000"), "cbor: 1 bytes of extraneous data starting at index 1"),
        (hex("bf00ff"), "cbor: unexpected \"break\" code"),
        (hex("5f6161ff"), "cbor: wrong element type UTF-8 text string for indefinite-length byte string"),
        (hex("5f5fffff"), "cbor: indefinite-length byte string chunk is not definite-length"),
        (hex("c24101"), "cbor: data item of cbor type tag is not accepted by protocol: bignum"),
        (
            hex("f97e00"),
            "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN",
        ),
        (
            hex("fa7f800000"),
            "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity",
        ),
        (
            hex("7bffffffffffffffff"),
            "cbor: UTF-8 text string length 18446744073709551615 is too large, causing integer overflow",
        ),
        (
            hex("9bffffffffffffffff"),
            "cbor: array length 18446744073709551615 is too large, it would cause integer overflow",
        ),
        (hex("bb0000000000200001"), "cbor: exceeded max number of key-value pairs 2097152 for CBOR map"),
        (deep, "cbor: exceeded max nested level 256"),
        (vec![0xc6; 300], "cbor: exceeded max nested level 256"),
    ];
    for (bytes, expected) in rows {
        assert_eq!(message(decode_any(&bytes)), expected, "{bytes:x?}");
        assert_eq!(message(decode(&bytes, schema("ConfigMap"))), expected, "{bytes:x?}");
        assert_eq!(message(type_meta(&bytes)), expected, "{bytes:x?}");
    }
}

#[test]
fn values_without_a_schema_are_those_of_json() {
    let rows: [(&str, Result<Value, &str>); 16] = [
        ("\"x", Ok(json!("x"))),
        ("5f41614162ff", Ok(json!("ab"))),
        ("d64161", Ok(json!("YQ=="))),
        ("d542fbff", Ok(json!("-_8"))),
        ("d7420aff", Ok(json!("0aff"))),
        ("d6820a4161", Ok(json!([10, "YQ=="]))),
        ("d8646178", Ok(json!("x"))),
        ("c100", Ok(json!("1970-01-01T00:00:00Z"))),
        ("c1f93e00", Ok(json!("1970-01-01T00:00:01.5Z"))),
        ("c000", Err("cbor: tag number 0 must be followed by text string, got positive integer")),
        (
            "c16161",
            Err(
                "cbor: tag number 1 must be followed by integer or floating-point number, got UTF-8 text string",
            ),
        ),
        ("61ff", Err("cbor: invalid UTF-8 string")),
        (
            "1b8000000000000000",
            Err(
                "cbor: cannot unmarshal positive integer into Go value of type int64 (9223372036854775808 overflows Go's int64)",
            ),
        ),
        (
            "f7",
            Err(
                "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized",
            ),
        ),
        ("a20102", Err("unexpected EOF")),
        ("a10102", Err("cbor: cannot unmarshal positive integer into Go value of type string")),
    ];
    for (bytes, expected) in rows {
        let decoded = decode_any(&hex(&format!("a1 4176 {bytes}")));
        match expected {
            Ok(value) => assert_eq!(decoded.unwrap()["v"], value, "{bytes}"),
            Err(expected) => assert_eq!(message(decoded), expected, "{bytes}"),
        }
    }
    assert_eq!(
        message(decode_any(&hex("80"))),
        "cbor: cannot unmarshal array into Go value of type map[string]interface {}"
    );
    assert_eq!(message(decode_any(&hex("62c328"))), "cbor: invalid UTF-8 string");
    let twice = "cbor: found duplicate map key \"a\" at map element index 1";
    assert_eq!(message(decode_any(&hex("a2 \"a 00 \"a 01"))), twice);
}

#[test]
fn a_null_is_the_key_before() {
    let data = |pairs: &str| {
        let decoded = decode(&hex(&format!("a1 \"data {pairs}")), schema("ConfigMap"));
        decoded.map(|decoded| decoded.value["data"].clone())
    };
    let twice = "cbor: found duplicate map key \"a\" at map element index 1";
    assert_eq!(message(data("a2 \"a \"x f6 \"y")), twice);
    assert_eq!(data("a2 f6 \"x \"a \"y").unwrap(), json!({"": "x", "a": "y"}));
    assert_eq!(message(decode_any(&hex("a2 \"a 00 f6 01"))), twice);
    assert_eq!(decode_any(&hex("a2 f6 00 \"a 01")).unwrap(), json!({"": 0, "a": 1}));
}

#[test]
fn a_value_of_a_wrong_type_names_the_outermost_field() {
    let rows = [
        (
            "Pod",
            "a1 \"spec a1 \"hostname 05",
            "positive integer into Go struct field v1.Pod.spec of type string",
        ),
        (
            "ConfigMap",
            "a1 \"data a1 \"k 05",
            "positive integer into Go struct field v1.ConfigMap.data of type string",
        ),
        (
            "ConfigMap",
            "a1 \"data f5",
            "primitives into Go struct field v1.ConfigMap.data of type map[string]string",
        ),
        (
            "ConfigMap",
            "a1 \"immutable 20",
            "negative integer into Go struct field v1.ConfigMap.immutable of type bool",
        ),
        (
            "Secret",
            "a1 \"data a1 \"k \"dg==",
            "UTF-8 text string into Go struct field v1.Secret.data of type []uint8",
        ),
        (
            "ConfigMap",
            "a1 \"metadata 80",
            "array into Go struct field v1.ConfigMap.metadata of type v1.ObjectMeta (cannot decode CBOR array to struct without toarray option)",
        ),
        (
            "Pod",
            "a1 \"spec a1 \"priority 1a80000000",
            "positive integer into Go struct field v1.Pod.spec of type int32 (2147483648 overflows int32)",
        ),
        ("Pod", "05", "positive integer into Go value of type v1.Pod"),
        (
            "Pod",
            "a1 f5 00",
            "primitives into Go value of type string (map key is of type primitives and cannot be used to match struct field name)",
        ),
    ];
    for (kind, bytes, expected) in rows {
        let expected = format!("cbor: cannot unmarshal {expected}");
        assert_eq!(message(decode(&hex(bytes), schema(kind))), expected, "{bytes}");
    }
    assert_eq!(
        message(type_meta(&hex("a1 \"kind 05"))),
        "cbor: cannot unmarshal positive integer into Go struct field v1.TypeMeta.kind of type string"
    );
    assert_eq!(
        message(type_meta(&hex("a1 \"kind f7"))),
        "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"
    );
    let overflow = "-9223372036854775809 overflows Go's int64";
    assert_eq!(
        message(type_meta(&hex("a1 \"kind 3b8000000000000000"))),
        format!(
            "cbor: cannot unmarshal negative integer into Go struct field v1.TypeMeta.kind of type string ({overflow})"
        )
    );
    assert_eq!(
        message(type_meta(&hex("3b8000000000000000"))),
        format!("cbor: cannot unmarshal negative integer into Go value of type v1.TypeMeta ({overflow})")
    );
    for (bytes, value) in [("f7", 23), ("d9d9f7f7", 23), ("f8ff", 255)] {
        let expected = format!(
            "cbor: data item of cbor type primitives is not accepted by protocol: simple value {value} is not recognized"
        );
        assert_eq!(message(type_meta(&hex(bytes))), expected, "{bytes}");
    }
    assert_eq!(type_meta(&hex("f6")).unwrap().kind, "");
    assert_eq!(
        message(type_meta(&hex("a1 3b8000000000000000 00"))),
        "cbor: cannot unmarshal negative integer into Go value of type int64 (-1-9223372036854775808 overflows Go's int64)"
    );
    // A pointer may be undefined, and each chunk of a text is one.
    let service = |name: &str| format!("a1 \"spec a1 \"{name} ");
    assert!(decode(&hex(&(service("ipFamilyPolicy") + "f7")), schema("Service")).is_ok());
    assert!(message(decode(&hex(&(service("type") + "f7")), schema("Service"))).contains("simple value 23"));
    assert!(decode(&hex(&(service("type") + "7f 62c3a9 ff")), schema("Service")).is_ok());
    let halves = decode(&hex(&(service("type") + "7f 61c3 61a9 ff")), schema("Service"));
    assert_eq!(message(halves), "cbor: invalid UTF-8 string");
    // A duplicate key takes precedence over the wrong type before it.
    let twice = hex("a3 \"immutable 05 \"data f6 \"data f6");
    let expected = "cbor: found duplicate map key \"data\" at map element index 2";
    assert_eq!(message(decode(&twice, schema("ConfigMap"))), expected);
}

#[test]
fn the_first_unknown_field_of_the_outermost_map_is_reported() {
    let rows = [
        ("a1 \"data a0", None),
        ("a2 \"data a0 \"x 00", Some(1)),
        ("a1 \"metadata a2 \"name \"a \"x 00", Some(1)),
        ("a3 \"metadata a2 \"name \"a \"x 00 \"data a0 \"y 00", Some(2)),
        ("a2 \"y 00 \"metadata a2 \"name \"a \"x 00", Some(0)),
    ];
    for (bytes, expected) in rows {
        let decoded = decode_body(&hex(bytes), schema("ConfigMap")).unwrap();
        let problems: Vec<String> = decoded.problems.iter().map(ToString::to_string).collect();
        let expected =
            expected.map(|index| format!("cbor: found unknown field at map element index {index}"));
        assert_eq!(problems, expected.into_iter().collect::<Vec<_>>(), "{bytes}");
    }
}

#[test]
fn bytes_are_raw_or_base64() {
    let secret = |bytes: &str| decode(&hex(&format!("a1 \"data a1 \"k {bytes}")), schema("Secret"));
    assert_eq!(secret("4464673d3d").unwrap().value, json!({"data": {"k": "dg=="}}));
    assert_eq!(secret("d64176").unwrap().value, json!({"data": {"k": "dg=="}}));
    assert_eq!(secret("811876").unwrap().value, json!({"data": {"k": "dg=="}}));
    assert_eq!(
        message(secret("4121")),
        "cbor: failed to decode base64 from byte string: illegal base64 data at input byte 0"
    );
    let encoded = encode(&json!({"data": {"k": "dg=="}}), schema("Secret"));
    assert!(encoded.windows(3).any(|window| window == [0xd6, 0x41, 0x76]), "{encoded:x?}");
    assert_eq!(decode_any(&encoded).unwrap()["data"], json!({"k": "dg=="}));
}

#[test]
fn a_custom_resource_keeps_whole_floats_and_its_schema_applies() {
    let mut builder = SchemaBuilder::new();
    let root = builder.scalar(Type::Any);
    builder.set_structural(root, Structural { preserve_unknown_fields: true, ..Structural::default() });
    let schema = builder.finish(root);
    let object = json!({"a": 1.0, "b": 1, "c": [2.5, 1e21, null]});
    let encoded = encode(&object, schema.root());
    let decoded = decode_body(&encoded, schema.root()).unwrap();
    assert_eq!(decoded.value, object);
    assert!(decoded.value["a"].is_f64() && decoded.value["b"].is_i64());
    assert_eq!(encode(&decoded.value, schema.root()), encoded);
}

#[test]
fn lists_and_events_are_made_of_encoded_objects() {
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "creationTimestamp": null}});
    let encoded = encode(&object, schema("ConfigMap"));
    let item = without_type_meta(&encoded).unwrap();
    let metadata = json!({"resourceVersion": "1"});
    let list = [list_head("ConfigMapList", Some(2)), item.clone(), item, list_foot("v1", &metadata)].concat();
    let item = json!({"metadata": {"name": "a"}});
    let expected =
        json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": [item, item]});
    assert_eq!(decode_any(&list).unwrap(), expected);
    let event = decode_any(&watch_frame("ADDED", &encoded)).unwrap();
    assert_eq!(event, json!({"type": "ADDED", "object": decode_any(&encoded).unwrap()}));
    assert_eq!(without_type_meta(b"{}"), None);
}

#[test]
fn diagnostic_notation_shows_everything() {
    let rows = [
        ("d9d9f7 a2 \"a 20 4162 f5", "55799({\"a\": -1, 'b': true})"),
        ("9f 01 f93e00 f6 ff", "[_ 1, 1.5, null]"),
        ("42fffe", "h'fffe'"),
        ("7f 6161 6162 ff", "(_ \"a\", \"b\")"),
        ("7f ff", "\"\"_"),
        ("5f ff", "''_"),
        ("40", "h''"),
        ("6a 0a 22 27 01 7f c3a9 5c 0962", r#""\n\"'\u0001\u007f\u00e9\\\tb""#),
        ("43 22 27 5c", r#"'"\'\\'"#),
        ("64 f09f9880", r#""\ud83d\ude00""#),
        ("a1", "a1"),
    ];
    for (bytes, expected) in rows {
        assert_eq!(diagnose(&hex(bytes)), expected, "{bytes}");
    }
}

#[test]
fn the_memory_of_a_tree_is_bounded() {
    let small_maps = [vec![0x9a, 0, 0x30, 0, 0], vec![0xa0; 3 << 20]].concat();
    let body = [hex("a1 4176"), small_maps].concat();
    assert_eq!(super::decode_any_body(&body), Err(DecodeError::TooHeavy));
}

#[test]
fn recorded_objects_survive() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/api-roundtrip");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read(&path).unwrap();
        let meta = json_codec::type_meta(&text).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let (rest, kind) = name.rsplit_once('.').unwrap();
        let (group, version) = rest.rsplit_once('.').unwrap();
        let group = if group == "core" { "" } else { group };
        let schema = Schema::builtin().by_kind(group, version, kind).unwrap();
        let object = json_codec::decode(&text, schema).unwrap().value;
        let encoded = encode(&object, schema);
        let decoded = decode_body(&encoded, schema).unwrap();
        assert_eq!(decoded.problems, [], "{path:?}");
        assert_eq!(decoded.value, object, "{path:?}");
        assert_eq!(type_meta(&encoded).unwrap(), meta, "{path:?}");
        // A reader without the schema sees the JSON.
        assert_eq!(decode_any(&encoded).unwrap(), json_codec::to_value(&object, schema), "{path:?}");
    }
}

#[test]
fn a_null_is_the_scalar_before_in_a_map() {
    let data = |text: &str| {
        let decoded = decode(&hex(&format!("a1 \"data {text}")), schema("ConfigMap")).unwrap();
        decoded.value["data"].clone()
    };
    assert_eq!(data(r#"a1 "a f6"#), json!({"a": ""}));
    assert_eq!(data(r#"a3 "a "x "b f6 "c f6"#), json!({"a": "x", "b": "x", "c": "x"}));
    assert_eq!(data(r#"a3 "a f6 "b "x "c f6"#), json!({"a": "", "b": "x", "c": "x"}));
    // Quantities have no value before.
    let pod = hex(r#"a1 "spec a1 "overhead a2 "a "1 "b f6"#);
    let decoded = decode(&pod, schema("Pod")).unwrap();
    assert_eq!(decoded.value["spec"]["overhead"], json!({"a": "1", "b": "0"}));
    // The memory of the copies counts.
    let mut body = vec![0xa1, 0x64, b'd', b'a', b't', b'a', 0xb9, 0x4e, 0x20, 0x61, b'a', 0x79, 0xff, 0xff];
    body.extend(vec![b'x'; 0xffff]);
    body.extend(
        (1..20_000u16)
            .flat_map(|key| [0x64].into_iter().chain(format!("{key:04x}").into_bytes()).chain([0xf6])),
    );
    assert_eq!(message(decode_body(&body, schema("ConfigMap"))), DecodeError::TooHeavy.to_string());
}

#[test]
fn empty_lists_and_maps_are_reported() {
    let bytes = encode_any(&json!({
        "metadata": {"labels": {}, "finalizers": null, "name": ""},
        "spec": {"volumes": [], "securityContext": {},
            "containers": [{"args": []}, {"args": ["x"], "resources": {"limits": {}}}]},
    }));
    let fields = decode(&bytes, schema("Pod")).unwrap().empty_fields.into_iter();
    let mut fields: Vec<String> = fields.map(|field| format!("{}: {}", field.path, field.value)).collect();
    // Encoding sorts the keys by length.
    fields.sort();
    assert_eq!(
        fields,
        [
            "metadata.labels: {}",
            "spec.containers[0].args: []",
            "spec.containers[1].resources.limits: {}",
            "spec.volumes: []"
        ]
    );
    // Where the encoding itself tells empty from absent, the tree has the list, too.
    let role = Schema::builtin().by_kind("rbac.authorization.k8s.io", "v1", "Role").unwrap();
    let decoded = decode(&encode_any(&json!({"rules": []})), role).unwrap();
    assert_eq!((decoded.value, decoded.empty_fields.len()), (json!({"rules": []}), 1));
    let many: Vec<Value> = (0..300).map(|_| json!({"args": []})).collect();
    let bytes = encode_any(&json!({"spec": {"containers": many}}));
    assert_eq!(decode(&bytes, schema("Pod")).unwrap().empty_fields.len(), 100);
}
