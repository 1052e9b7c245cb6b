use pintle_machinery::{Value, json};

use crate::structural::StructuralSchema;

#[track_caller]
fn check(schema: Value, mut object: Value, expected: Value, unknown: &[&str]) {
    let schema = StructuralSchema::new(&schema).unwrap();
    assert_eq!(schema.prune(&mut object), unknown);
    assert_eq!(object, expected);
    assert!(schema.prune(&mut object).is_empty(), "pruning twice finds more");
}

#[test]
fn unknown_fields_go_and_are_reported_sorted() {
    check(
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {}}}},
        }}}}),
        json!({"apiVersion": "g/v", "kind": "K", "metadata": {"name": "n", "x": 1}, "zzz": 1,
            "spec": {"list": [{"a": "", "b": 1}, 5, {"c": {"d": 1}}], "map": {"k": {"a": 1, "z": 1}}, "extra": []}}),
        json!({"apiVersion": "g/v", "kind": "K", "metadata": {"name": "n", "x": 1},
            "spec": {"list": [{"a": ""}, 5, {}], "map": {"k": {"a": 1}}}}),
        &["spec.extra", "spec.list[0].b", "spec.list[2].c", "spec.map.k.z", "zzz"],
    );
}

#[test]
fn an_object_without_structure_keeps_no_members() {
    check(
        json!({"type": "object", "properties": {
            "text": {"type": "string"},
            "list": {"type": "array"},
            "any": {"type": "object", "additionalProperties": true},
        }}),
        json!({"text": {"a": 1, "b": {"c": 2}}, "list": [{"a": 1}, [{"b": 1}]], "any": {"k": {"a": 1}, "l": 5}}),
        json!({"text": {}, "list": [{}, [{}]], "any": {"k": {}, "l": 5}}),
        &["any.k.a", "list[0].a", "list[1][0].b", "text.a", "text.b"],
    );
}

#[test]
fn preserved_fields_stay_and_specified_ones_below_them_are_pruned() {
    check(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": {"type": "object", "properties": {"a": {"type": "string"}}},
            "list": {"x-kubernetes-preserve-unknown-fields": true, "type": "array", "items": {
                "type": "object", "properties": {"p": {"type": "object"}}}},
        }}),
        json!({"free": {"x": {"y": 1}}, "known": {"a": "", "b": 1}, "list": [{"q": {"r": 1}, "p": {"z": 1}}]}),
        json!({"free": {"x": {"y": 1}}, "known": {"a": ""}, "list": [{"q": {"r": 1}, "p": {}}]}),
        &["known.b", "list[0].p.z"],
    );
}

#[test]
fn embedded_resources_keep_their_type_and_metadata() {
    check(
        json!({"type": "object", "properties": {"template": {
            "type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}}}),
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}, "spec": {"a": 1}, "b": 1}}),
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}, "spec": {}}}),
        &["template.b", "template.spec.a"],
    );
}

#[test]
fn defaults_are_pruned_by_their_own_schema() {
    let schema = StructuralSchema::new(&json!({"type": "object", "properties": {
        "a": {"type": "object", "default": {"x": 1, "y": 2}, "properties": {"x": {"type": "integer"}}},
        "e": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            "default": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "bogus": 1, "labels": 5}, "z": 1}},
    }}))
    .unwrap();
    let mut object = json!({});
    schema.set_defaults(&mut object);
    let embedded = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "z": 1});
    assert_eq!(object, json!({"a": {"x": 1}, "e": embedded}));
}
