//! The resources of the load, a built-in one and a custom one, and the parts of their objects that the checks read.

use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const NAMESPACE: &str = "consistency";
/// The objects of each resource: few, so that clients meet.
pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The values of the label `group`.
pub(super) const GROUPS: [&str; 2] = ["one", "two"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Resource {
    ConfigMaps,
    Widgets,
}

impl Resource {
    pub(super) const ALL: [Resource; 2] = [Resource::ConfigMaps, Resource::Widgets];

    pub(super) fn collection(self) -> String {
        match self {
            Resource::ConfigMaps => format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
            Resource::Widgets => format!("/apis/example.com/v1/namespaces/{NAMESPACE}/widgets"),
        }
    }

    /// An object whose annotation names the write.
    pub(super) fn object(
        self,
        name: &str,
        tag: &str,
        group: &str,
        values: &BTreeMap<String, String>,
    ) -> Value {
        let mut object = self.values(values);
        let (version, kind) = match self {
            Resource::ConfigMaps => ("v1", "ConfigMap"),
            Resource::Widgets => ("example.com/v1", "Widget"),
        };
        object["apiVersion"] = version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": name, "annotations": {"tag": tag}, "labels": {"group": group}});
        object
    }

    /// A merge patch that sets values.
    pub(super) fn values(self, values: &BTreeMap<String, String>) -> Value {
        match self {
            Resource::ConfigMaps => json!({"data": values}),
            Resource::Widgets => json!({"spec": {"values": values}}),
        }
    }

    /// The values of an object.
    pub(super) fn values_of(self, object: &Value) -> BTreeMap<String, String> {
        let values = match self {
            Resource::ConfigMaps => &object["data"],
            Resource::Widgets => &object["spec"]["values"],
        };
        let values = values.as_object().into_iter().flatten();
        values.map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned())).collect()
    }

    /// The part of an object that is its specification; a change of it counts in `metadata.generation`.
    pub(super) fn spec(self, object: &Value) -> Option<&Value> {
        match self {
            Resource::ConfigMaps => None,
            Resource::Widgets => Some(&object["spec"]),
        }
    }
}

pub(super) fn definition() -> Value {
    let values = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"values": values}},
                    "status": {"type": "object", "properties": {"tag": {"type": "string"}}},
                }}},
            }],
        },
    })
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

pub(super) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

pub(super) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap()
}

/// The write that set the object's metadata and specification, and the write that set its status.
pub(super) fn tags(object: &Value) -> [Option<&str>; 2] {
    [object["metadata"]["annotations"]["tag"].as_str(), object["status"]["tag"].as_str()]
}

pub(super) fn is_in_group(object: &Value, group: Option<&str>) -> bool {
    group.is_none() || object["metadata"]["labels"]["group"].as_str() == group
}

/// The object without what differs between the forms of responses: items of lists of built-in kinds have no type.
pub(super) fn content(mut object: Value) -> Value {
    let fields = object.as_object_mut().unwrap();
    fields.remove("kind");
    fields.remove("apiVersion");
    object
}
