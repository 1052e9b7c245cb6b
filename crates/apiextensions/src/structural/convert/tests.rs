use pintle_machinery::codec::json;
use pintle_machinery::json;
use pintle_schema::{ListType, MapType, Type};

use crate::structural::{InvalidMetadata, StructuralSchema};

#[test]
fn nodes_have_the_types_and_topology_of_the_definition() {
    let schema = StructuralSchema::new(&json!({"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-map-type": "atomic", "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
                "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "integer"}}}},
            "ports": {"x-kubernetes-int-or-string": true},
            "colour": {"type": "string", "enum": ["red", "green"]},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            "free": {"x-kubernetes-preserve-unknown-fields": true, "nullable": true},
        }}}}))
    .unwrap();
    let schema = schema.schema();
    let root = schema.root();
    assert!(root.is_object() && root.is_structural() && !root.is_declared());
    assert_eq!(root.field("metadata").unwrap().ty().name(), "ObjectMeta");
    let spec = root.field("spec").unwrap().ty();
    assert_eq!(spec.map_type(), MapType::Atomic);
    let of = |name: &str| spec.field(name).unwrap().ty();
    assert_eq!((of("set").list_type(), of("set").item().ty()), (ListType::Set, Type::String));
    assert_eq!(of("map").list_type(), ListType::Map);
    assert_eq!(of("map").list_map_keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(of("map").item().field("a").unwrap().default(), Some(&json!("x")));
    assert_eq!(of("ports").ty(), Type::IntOrString);
    assert_eq!(of("colour").enum_values().collect::<Vec<_>>(), ["red", "green"]);
    assert!(of("pod").is_object() && of("pod").structural().unwrap().preserve_unknown_fields);
    assert_eq!(of("free").ty(), Type::Any);
    assert!(of("free").structural().unwrap().nullable);
}

/// Decoding by the converted schema is equivalent to pruning.
#[test]
fn decoding_by_schema_prunes_as_the_structural_schema_does() {
    let structural = StructuralSchema::new(&json!({"type": "object", "properties": {
        "text": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {"type": "object", "additionalProperties": true},
        "free": {"x-kubernetes-preserve-unknown-fields": true},
        "kept": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "object",
            "properties": {"p": {"type": "object"}}}},
        "none": {},
    }}))
    .unwrap();
    let schema = structural.schema();
    for object in [
        json!({"text": {"a": {"b": 1}}, "list": {"a": 1}, "map": [{"b": 1}], "any": {"k": {"a": 1}}, "none": {"a": 1}}),
        json!({"text": [{"a": 1}], "list": [{"a": {"b": 1}}, "x", [{"a": 1}]], "map": {"k": {"a": 1}}, "any": {"k": [{"a": 1}]}}),
        json!({"free": {"a": {"b": [1]}}, "kept": [{"q": {"r": 1}, "p": {"s": 1}}, [{"t": 1}]], "zz": 1}),
        json!([{"a": 1}]),
        json!("x"),
    ] {
        let decoded = json::from_value(&object, schema.root()).unwrap();
        let mut pruned = object.clone();
        let unknown: Vec<String> = structural
            .coerce(&mut pruned, InvalidMetadata::Refuse)
            .unwrap()
            .iter()
            .map(|path| format!("unknown field {path:?}"))
            .collect();
        assert_eq!(decoded.value, pruned, "{object}");
        assert_eq!(decoded.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), unknown, "{object}");
    }
}

#[test]
fn members_that_the_schema_lacks_are_read_for_their_duplicates() {
    let structural = StructuralSchema::new(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"a": {"type": "string"}}},
        "any": {"type": "object", "additionalProperties": true},
    }}))
    .unwrap();
    let text = r#"{"spec":{"a":"1","b":1,"b":{"c":1,"c":2}},"any":{"k":{"x":1,"x":2}},"z":1,"z":2}"#;
    let decoded = json::decode(text.as_bytes(), structural.schema().root()).unwrap();
    let problems: Vec<String> = decoded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            r#"duplicate field "spec.b""#,
            r#"duplicate field "spec.b.c""#,
            r#"duplicate field "any.k.x""#,
            r#"duplicate field "z""#,
            r#"unknown field "any.k.x""#,
            r#"unknown field "spec.b""#,
            r#"unknown field "z""#,
        ]
    );
}
