//! The parts of a pod that checks read.

use pintle_machinery::{Map, Value, ValueExt};

/// A pod, or the template of pods in another object.
#[derive(Debug, Clone, Copy)]
pub struct Pod<'a> {
    metadata: Option<&'a Value>,
    spec: &'a Value,
}

impl<'a> Pod<'a> {
    /// A pod or pod template, with its `metadata` and `spec` in version v1; `None` when it has no `spec`.
    pub fn new(object: &'a Value) -> Option<Pod<'a>> {
        Some(Pod { metadata: object.field("metadata"), spec: object.field("spec")? })
    }

    /// The runtime class, or "".
    pub fn runtime_class(&self) -> &'a str {
        self.spec.str_at("runtimeClassName")
    }

    pub(crate) fn spec(&self) -> &'a Value {
        self.spec
    }

    pub(crate) fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let annotations = self.metadata.and_then(|metadata| metadata.field("annotations"));
        let annotations = annotations.and_then(Value::as_object).into_iter().flat_map(Map::iter);
        annotations.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.metadata?.field("annotations")?.field(key)?.as_str()
    }

    /// The init, regular and ephemeral containers, in this order.
    pub(crate) fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(|list| spec.items_at(list))
    }

    /// Whether the pod states that it runs on Windows, where some settings do not exist.
    pub(crate) fn is_windows(&self) -> bool {
        self.spec.str_at("os.name") == "windows"
    }

    /// Whether the pod has a user namespace of its own.
    pub(crate) fn has_user_namespace(&self) -> bool {
        self.spec.at("hostUsers").and_then(Value::as_bool) == Some(false)
    }
}

/// The name of a container or volume.
pub(crate) fn name(item: &Value) -> &str {
    item.str_at("name")
}
