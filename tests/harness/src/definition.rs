//! Generates any number of custom resource definitions as large as those of real projects.

use serde_json::{Map, Value, json};

/// A definition of about 24 KB: 300 fields in objects, lists and maps, four levels deep. Each index has a kind of its
/// own; twenty kinds share a group.
pub fn definition(index: usize) -> Value {
    let group = group_of(index);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{group}", plural_of(index))},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural_of(index), "singular": format!("part{index}"), "kind": format!("Part{index}")},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "First", "type": "string", "jsonPath": ".spec.text0"}],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": level(3, 22), "status": level(1, 16)},
                }},
            }],
        },
    })
}

/// The path of the objects of the kind that [`definition`] defines.
pub fn path_of(index: usize) -> String {
    format!("/apis/{}/v1/{}", group_of(index), plural_of(index))
}

/// The group of the kind that [`definition`] defines.
pub fn group_of(index: usize) -> String {
    format!("group{}.example.com", index / 20)
}

fn plural_of(index: usize) -> String {
    format!("part{index}s")
}

fn level(depth: usize, width: usize) -> Value {
    let mut properties = Map::new();
    for index in 0..width {
        let (name, schema) = match index % 8 {
            0 => (
                format!("text{index}"),
                json!({"type": "string", "description": "What people read who look at it."}),
            ),
            1 if depth > 0 => (format!("part{index}"), level(depth - 1, width / 2)),
            2 => (
                format!("list{index}"),
                json!({
                    "type": "array",
                    "description": "Entries, of which each has a name of its own and the first that fits counts.",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string", "maxLength": 63}, "value": {"type": "string"}},
                    },
                }),
            ),
            3 => (
                format!("number{index}"),
                json!({"type": "integer", "format": "int32", "minimum": 0, "description": "How many there may be."}),
            ),
            4 => {
                (format!("map{index}"), json!({"type": "object", "additionalProperties": {"type": "string"}}))
            }
            _ => (
                format!("word{index}"),
                json!({"type": "string", "description": "A word, chosen by whoever makes the object, for whoever reads it."}),
            ),
        };
        properties.insert(name, schema);
    }
    json!({
        "type": "object",
        "description": "Settings of one part, put together with what the class it names says.",
        "properties": properties,
    })
}
