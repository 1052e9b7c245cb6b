use pintle_machinery::{Value, json};

use super::Correlated;
use crate::structural::StructuralSchema;

fn schema() -> StructuralSchema {
    StructuralSchema::new(&json!({"type": "object", "properties": {
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
            "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}},
        "atomic": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    }}))
    .unwrap()
}

#[track_caller]
fn check(new: Value, old: Value, unchanged: bool) {
    let schema = schema();
    let correlated = Correlated::new(&schema.arena, schema.arena.root_node(), &new, &old);
    assert_eq!(correlated.is_unchanged(), unchanged, "{new} {old}");
}

#[test]
fn places_belong_together_by_name_and_by_key() {
    check(json!({"atomic": ["x"], "map": {"k": 1}}), json!({"map": {"k": 1}, "atomic": ["x"]}), true);
    check(json!({"atomic": ["x", "y"]}), json!({"atomic": ["y", "x"]}), false);
    check(json!({"keyed": [{"a": "1"}, {"a": "2"}]}), json!({"keyed": [{"a": "2"}, {"a": "1"}]}), true);
    check(json!({"keyed": [{"a": "1"}, {"a": "3"}]}), json!({"keyed": [{"a": "1"}, {"a": "2"}]}), false);
    check(json!({"keyed": [{"b": 1}]}), json!({"keyed": [{"b": 1}]}), false);
    check(json!({"keyed": []}), json!({"keyed": []}), true);
    check(json!({"unknown": 1}), json!({"unknown": 1}), false);
    check(json!({"map": {"k": 1}}), json!({"map": {"k": 1, "l": 2}}), false);

    let schema = schema();
    let (new, old) =
        (json!({"keyed": [{"a": "2"}, {"a": "9"}]}), json!({"keyed": [{"a": "1"}, {"a": "2", "b": 5}]}));
    let root = Correlated::new(&schema.arena, schema.arena.root_node(), &new, &old);
    let list = root.key("keyed").unwrap();
    assert_eq!(list.index(0).unwrap().old, &json!({"a": "2", "b": 5}));
    assert!(list.index(1).is_none() && list.index(2).is_none() && root.key("atomic").is_none());
}
