use pintle_machinery::{Value, json};

use crate::structural::{InvalidMetadata, StructuralSchema, object_meta};

fn schema() -> StructuralSchema {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    StructuralSchema::new(&json!({"type": "object", "properties": {
        "one": embedded, "map": {"type": "object", "additionalProperties": embedded}}}))
    .unwrap()
}

#[test]
fn embedded_metadata_has_the_fields_of_object_meta() {
    let mut object = json!({
        "one": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "x": 1, "creationTimestamp": null}, "y": 1},
        "map": {"k": {"metadata": {"z": {}, "labels": {"a": "b"}}}}});
    let unknown = schema().coerce(&mut object, InvalidMetadata::Refuse).unwrap();
    assert_eq!(unknown, ["map[k].metadata.z", "one.metadata.x"]);
    assert_eq!(
        object,
        json!({"one": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "y": 1},
            "map": {"k": {"metadata": {"labels": {"a": "b"}}}}})
    );
}

#[test]
fn malformed_metadata_is_refused_or_dropped() {
    let rows: [(Value, &str, Value); 3] = [
        (json!({"one": {"kind": 5}}), "one.kind: Invalid value: 5: must be a string", json!({"one": {}})),
        (
            json!({"one": {"metadata": {"labels": {"a": 1}, "name": "n"}}}),
            "one.metadata: Invalid value: {\"labels\":{\"a\":1},\"name\":\"n\"}: json: cannot unmarshal number into \
             Go struct field ObjectMeta.labels of type string",
            json!({"one": {"metadata": {"name": "n"}}}),
        ),
        (
            json!({"map": {"k": {"metadata": []}}}),
            "map[k].metadata: Invalid value: []: json: cannot unmarshal array into Go value of type v1.ObjectMeta",
            json!({"map": {"k": {"metadata": []}}}),
        ),
    ];
    for (object, message, dropped) in rows {
        let error = schema().coerce(&mut object.clone(), InvalidMetadata::Refuse).unwrap_err();
        assert_eq!(error.to_string(), message);
        let mut object = object;
        schema().coerce(&mut object, InvalidMetadata::Drop).unwrap();
        assert_eq!(object, dropped);
    }
}

#[test]
fn embedded_resources_are_validated() {
    let rows: [(Value, &[&str]); 4] = [
        (json!({"apiVersion": "v1", "kind": "Pod"}), &[]),
        (json!({}), &["one.apiVersion: Required value", "one.kind: Required value"]),
        (
            json!({"apiVersion": "a/b/c", "kind": ""}),
            &[
                "one.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "one.kind: Invalid value: \"\": must not be empty",
            ],
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "..", "namespace": "n", "labels": {"-": ""}}}),
            &[
                "one.metadata.name: Invalid value: \"..\": may not be '..'",
                "one.metadata.labels: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', \
                 and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
                 regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
    ];
    for (resource, expected) in rows {
        let errors = object_meta::validate(&schema().arena, &json!({"one": resource}));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected);
    }
}
