//! The types of `meta.k8s.io` that responses are made of: partial metadata and the metadata of lists.

use pintle_machinery::{Value, ValueExt, codec::json, json};
use pintle_registry::{ObjectForm, Resource};
use pintle_schema::{Schema, SchemaRef};
use std::sync::LazyLock;

/// The field of a list's metadata that tells the shards it was restricted to.
pub(in super::super) const SHARD_INFO: &str = "shardInfo";

/// The types of `meta.k8s.io` that responses contain.
pub(super) static META_V1: LazyLock<MetaTypes> = LazyLock::new(MetaTypes::new);

pub(super) struct MetaTypes {
    pub(super) partial: SchemaRef<'static>,
    pub(super) list_meta: SchemaRef<'static>,
}

impl MetaTypes {
    fn new() -> MetaTypes {
        let find = |name: &str| {
            let name = format!("k8s.io/apimachinery/pkg/apis/meta/v1.{name}");
            Schema::builtin().by_type_name(&name).expect("the built-in schema has the types of meta.k8s.io")
        };
        MetaTypes { partial: find("PartialObjectMetadata"), list_meta: find("ListMeta") }
    }
}

/// The metadata of an object of the storage kind, as `PartialObjectMetadata`. It lacks the annotations that are fields of
/// the reference's internal version.
pub(in super::super) fn partial(resource: &Resource, tree: &Value, version: &str) -> Value {
    let mut metadata = tree.field("metadata").cloned().unwrap_or_default();
    if let Some(Value::Object(annotations)) = metadata.at_mut("annotations") {
        for name in resource.integer_annotations {
            annotations.remove(name);
        }
        if annotations.is_empty() {
            metadata.remove_at("annotations");
        }
    }
    if resource.model.form == ObjectForm::Map {
        json::sort_managed_fields(&mut metadata);
    }
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata,
    })
}

/// The schema of `PartialObjectMetadata`.
pub(in super::super) fn partial_schema() -> SchemaRef<'static> {
    META_V1.partial
}

/// The `metadata` of a list, in Go's field order.
pub(in super::super) fn list_metadata(metadata: &Value) -> String {
    let mut out = String::from("{");
    for name in ["resourceVersion", "continue", "remainingItemCount", SHARD_INFO] {
        if let Some(value) = metadata.get(name).filter(|value| value.as_str() != Some("")) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&format!("\"{name}\":{value}"));
        }
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::{ObjectModel, Scope};

    #[test]
    fn the_metadata_of_a_map_has_sorted_sets() {
        let mut resource = Resource::new("g", "v1", "kinds", "kind", "Kind", Scope::Namespaced, "");
        let set = r#"{"v:9":{},"v:10":{}}"#;
        let object = json!({"metadata": {"managedFields": [{"fieldsV1": set}]}});
        let fields = |resource: &Resource| {
            partial(resource, &object, "v1")["metadata"]["managedFields"][0]["fieldsV1"].clone()
        };
        assert_eq!(fields(&resource), set);
        resource.model = ObjectModel { form: ObjectForm::Map, ..resource.model };
        assert_eq!(fields(&resource), r#"{"v:10":{},"v:9":{}}"#);
    }
}
