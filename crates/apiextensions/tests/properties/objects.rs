//! Coerces generated objects by generated schemas.

use pintle_apiextensions::structural::{InvalidMetadata, StructuralSchema};
use pintle_machinery::{Value, codec::json, json};
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "metadata", "kind"]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..12).prop_map(Value::from),
        (-3.0f64..12.0).prop_map(Value::from),
        "[a-c]{0,4}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn with(mut schema: Value, nullable: bool, default: Option<Value>) -> Value {
    schema["nullable"] = nullable.into();
    if let Some(default) = default {
        schema["default"] = default;
    }
    schema
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "maxLength": 2, "pattern": "^a"})),
        Just(json!({"type": "integer", "minimum": 1, "enum": [1, 2, 3]})),
        Just(json!({"type": "number", "multipleOf": 0.5})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let list = (inner.clone(), prop::sample::select(vec!["atomic", "set", "map"])).prop_map(
            |(items, list_type)| {
                json!({"type": "array", "items": items, "maxItems": 2, "x-kubernetes-list-type": list_type,
                "x-kubernetes-list-map-keys": ["a"]})
            },
        );
        let object = (prop::collection::btree_map(name(), inner.clone(), 0..4), any::<[bool; 2]>()).prop_map(
            |(properties, [preserve, embedded])| {
                let mut schema = json!({"type": "object", "properties": properties, "required": ["a"],
                    "anyOf": [{"required": ["b"]}, {"maxProperties": 2}]});
                if preserve {
                    schema["x-kubernetes-preserve-unknown-fields"] = true.into();
                }
                schema["x-kubernetes-embedded-resource"] = embedded.into();
                schema
            },
        );
        let map = inner.prop_map(|value| json!({"type": "object", "additionalProperties": value}));
        (prop_oneof![list, object, map], any::<bool>(), prop::option::of(value()))
            .prop_map(|(schema, nullable, default)| with(schema, nullable, default))
    })
}

fn root() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), schema(), 0..4)
        .prop_map(|properties| json!({"type": "object", "properties": properties}))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pruning_and_defaulting_are_idempotent(root in root(), mut object in value()) {
        let schema = StructuralSchema::new(&root).unwrap();
        schema.coerce(&mut object, InvalidMetadata::Drop).unwrap();
        let coerced = object.clone();
        prop_assert!(schema.coerce(&mut object, InvalidMetadata::Drop).unwrap().is_empty());
        prop_assert_eq!(&object, &coerced);
        schema.set_defaults(&mut object);
        let defaulted = object.clone();
        schema.set_defaults(&mut object);
        prop_assert_eq!(&object, &defaulted);
        prop_assert!(schema.prune(&mut object).is_empty(), "defaults are pruned beforehand");
        prop_assert_eq!(&object, &defaulted);
    }

    #[test]
    fn decoding_by_the_converted_schema_is_pruning(root in root(), object in value()) {
        let structural = StructuralSchema::new(&root).unwrap();
        // The metadata is decoded in between, which rejects values that pruning leaves to coercion.
        let Ok(decoded) = json::from_value(&object, structural.schema().root()) else { return Ok(()) };
        let mut pruned = object;
        let Ok(mut unknown) = structural.coerce(&mut pruned, InvalidMetadata::Refuse) else { return Ok(()) };
        let mut decoded_value = decoded.value;
        structural.coerce(&mut decoded_value, InvalidMetadata::Refuse).unwrap();
        for object in [&mut decoded_value, &mut pruned] {
            if let Some(members) = object.as_object_mut() {
                members.remove("metadata");
            }
        }
        prop_assert_eq!(decoded_value, pruned);
        unknown.retain(|path| !path.contains("metadata"));
        let problems = decoded.problems.iter().map(ToString::to_string).filter(|problem| !problem.contains("metadata"));
        prop_assert_eq!(problems.count(), unknown.len());
    }

    #[test]
    fn validation_is_the_same_each_time_and_no_stricter_on_update(root in root(), object in value(), old in value()) {
        let schema = StructuralSchema::new(&root).unwrap();
        let errors = schema.validate_values(&object, None);
        prop_assert_eq!(&schema.validate_values(&object, None), &errors);
        let ratcheted = schema.validate_values(&object, Some(&old));
        prop_assert!(ratcheted.iter().all(|error| errors.contains(error)));
        prop_assert!(schema.validate_list_types(&object, Some(&object)).is_empty());
    }
}
