//! The resources of the load, a built-in one and a custom one, and the parts of their objects that the checks read.

use super::random::Random;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const NAMESPACE: &str = "consistency";
/// The objects of each resource: few, so that clients meet.
pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The finalizer of some objects.
pub(super) const FINALIZER: &str = "example.com/hold";
/// The beginning of the names that the server generates.
pub(super) const GENERATED: &str = "generated-";
/// The values of the label `group`, and of the field `spec.group` of custom resources.
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
        if self == Resource::Widgets {
            object["spec"]["group"] = group.into();
        }
        let (version, kind) = match self {
            Resource::ConfigMaps => ("v1", "ConfigMap"),
            Resource::Widgets => ("example.com/v1", "Widget"),
        };
        object["apiVersion"] = version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": name, "annotations": {"tag": tag}, "labels": {"group": group}});
        object
    }

    /// [`Resource::object`] with a name that the server generates.
    pub(super) fn generated(self, tag: &str, group: &str, values: &BTreeMap<String, String>) -> Value {
        let mut object = self.object("", tag, group, values);
        object["metadata"]["generateName"] = GENERATED.into();
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
                "selectableFields": [{"jsonPath": ".spec.group"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"values": values, "group": {"type": "string"}}},
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

/// Whether the object waits for the removal of its finalizers.
pub(super) fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn has_finalizers(object: &Value) -> bool {
    !object["metadata"]["finalizers"].is_null()
}

/// The objects of a resource that a request selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selection {
    All,
    /// Those with this name.
    Name(&'static str),
    /// Those with this label.
    Label(&'static str),
    /// Those with this value of a selectable field.
    Field(&'static str),
}

impl Selection {
    pub(super) fn random(random: &mut Random, resource: Resource) -> Selection {
        let group = random.pick(&GROUPS);
        match random.below(10) {
            0 => Selection::Name(random.pick(&NAMES)),
            1..4 if resource == Resource::Widgets => Selection::Field(group),
            1..5 => Selection::Label(group),
            _ => Selection::All,
        }
    }

    /// The parameter of a request.
    pub(super) fn query(self) -> String {
        match self {
            Selection::All => String::new(),
            Selection::Name(name) => format!("&fieldSelector=metadata.name%3D{name}"),
            Selection::Label(group) => format!("&labelSelector=group%3D{group}"),
            Selection::Field(group) => format!("&fieldSelector=spec.group%3D{group}"),
        }
    }

    pub(super) fn has(self, object: &Value) -> bool {
        match self {
            Selection::All => true,
            Selection::Name(wanted) => name(object) == wanted,
            Selection::Label(group) => object["metadata"]["labels"]["group"] == group,
            Selection::Field(group) => object["spec"]["group"] == group,
        }
    }
}

/// The object without what differs between the forms of responses: items of lists of built-in kinds have no type.
pub(super) fn content(mut object: Value) -> Value {
    let fields = object.as_object_mut().unwrap();
    fields.remove("kind");
    fields.remove("apiVersion");
    object
}
