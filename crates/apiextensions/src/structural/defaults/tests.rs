use pintle_machinery::{Value, json};

use crate::structural::{InvalidMetadata, StructuralSchema};

/// Applies pruning and defaults as to a request's object.
#[track_caller]
fn check(schema: Value, mut object: Value, expected: Value) {
    let schema = StructuralSchema::new(&schema).unwrap();
    schema.coerce(&mut object, InvalidMetadata::Refuse).unwrap();
    schema.set_defaults(&mut object);
    assert_eq!(object, expected);
    schema.set_defaults(&mut object);
    assert_eq!(object, expected, "defaulting twice changes more");
}

#[test]
fn defaults_are_put_in_at_every_level() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "default": {"b": {}},
    "properties": {
        "a": {"type": "string", "default": "A"},
        "b": {"type": "object", "properties": {"c": {"type": "integer", "default": 7}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"default": true, "type": "boolean"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"q": {"default": 1.5, "type": "number"}}}},
    }}}});
    check(schema.clone(), json!({}), json!({"spec": {"a": "A", "b": {"c": 7}}}));
    check(schema.clone(), json!({"spec": {}}), json!({"spec": {"a": "A"}}));
    check(
        schema,
        json!({"spec": {"a": "", "list": [{}, {"p": false}], "map": {"k": {}}}}),
        json!({"spec": {"a": "", "list": [{"p": true}, {"p": false}], "map": {"k": {"q": 1.5}}}}),
    );
}

#[test]
fn nulls_that_are_not_allowed_are_dropped_or_replaced() {
    let schema = json!({"type": "object", "properties": {
        "plain": {"type": "string"},
        "defaulted": {"type": "string", "default": "D"},
        "nullable": {"type": "string", "nullable": true, "default": "D"},
        "list": {"type": "array", "items": {"type": "string", "default": "I"}},
        "bare": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string", "default": "M"}},
        "gone": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    check(
        schema,
        json!({"plain": null, "defaulted": null, "nullable": null, "list": [null, "x"], "bare": [null],
            "map": {"k": null}, "gone": {"k": null}}),
        json!({"defaulted": "D", "nullable": null, "list": ["I", "x"], "bare": [null], "map": {"k": "M"}, "gone": {}}),
    );
}
