use pintle_machinery::{Value, json};

use crate::structural::StructuralSchema;

fn schema() -> StructuralSchema {
    let keyed = |keys: &[&str]| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}})
    };
    StructuralSchema::new(&json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"x-kubernetes-preserve-unknown-fields": true}},
        "one": keyed(&["a"]),
        "two": keyed(&["a", "b"]),
        "map": {"type": "object", "additionalProperties": keyed(&["a"])},
        "list": {"type": "array", "items": {"type": "object", "properties": {"one": keyed(&["a"])}}},
    }}))
    .unwrap()
}

#[track_caller]
fn check(object: Value, expected: &[&str]) {
    let errors = schema().validate_list_types(&object, None);
    assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn each_duplicate_is_reported_once() {
    check(json!({"set": ["a", "b"], "one": [{"a": 1}, {"a": 2}]}), &[]);
    check(
        json!({"set": ["a", "b", "a", "a", 1, 1.0, 1]}),
        &[r#"set[2]: Duplicate value: "a""#, "set[6]: Duplicate value: 1"],
    );
    check(
        json!({"set": [{"a": 1}, {"a": 1.0}, [], [], null, null]}),
        &[
            r#"set[1]: Duplicate value: {"a":1}"#,
            "set[3]: Duplicate value: []",
            "set[5]: Duplicate value: null",
        ],
    );
    check(
        json!({"one": [{"a": "x"}, {"b": 1}, {"a": "x"}, {}, null]}),
        &[r#"one[2]: Duplicate value: {"a":"x"}"#, "one[3]: Duplicate value: {}"],
    );
    check(
        json!({"two": [{"a": 1, "b": 1}, {"a": 1}, {"a": 1, "b": 2}, {"a": 1}]}),
        &[r#"two[3]: Duplicate value: {"a":1}"#],
    );
    // Several keys are compared by their JSON, a single one with its type.
    check(
        json!({"two": [{"a": 1, "b": 1}, {"a": 1.0, "b": 1}], "one": [{"a": 1}, {"a": 1.0}]}),
        &[r#"two[1]: Duplicate value: {"a":1,"b":1}"#],
    );
    check(
        json!({"map": {"k": [{"a": 1}, {"a": 1}]}, "list": [{"one": [{"a": 1}, {"a": 1}]}]}),
        &[r#"list[0].one[1]: Duplicate value: {"a":1}"#, r#"map[k][1]: Duplicate value: {"a":1}"#],
    );
    check(
        json!({"one": [{"a": 1}, 5]}),
        &["one[1]: Invalid value: 5: must be an object for an array of list-type map"],
    );
}

#[test]
fn an_object_that_had_duplicates_may_have_others() {
    let old = json!({"set": ["a", "a"]});
    let new = json!({"one": [{"a": 1}, {"a": 1}]});
    assert!(schema().validate_list_types(&new, Some(&old)).is_empty());
    assert_eq!(schema().validate_list_types(&new, Some(&json!({}))).len(), 1);
}
