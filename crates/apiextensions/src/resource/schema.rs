//! The lazily built schema of one version's objects.

use crate::structural::StructuralSchema;
use arc_swap::ArcSwap;
use pintle_cacher::CachedObject;
use pintle_machinery::{Value, ValueExt, codec::json, json};
use pintle_registry::LazySchema;
use std::sync::{Arc, LazyLock};

/// The latest cached JSON of a definition, so that no older one is retained only for its schemas.
pub(crate) type Source = Arc<ArcSwap<CachedObject>>;

/// The structural schema of a version, built from the definition's JSON on first use: most definitions of a cluster are
/// idle, and a schema takes more memory than its text.
pub(super) type LazyStructural = LazyLock<StructuralSchema, Box<dyn FnOnce() -> StructuralSchema + Send>>;

pub(super) fn lazy_structural(source: &Source, version: &str) -> Arc<LazyStructural> {
    let (source, version) = (source.clone(), version.to_owned());
    Arc::new(LazyLock::new(Box::new(move || read(&source.load(), &version))))
}

/// The same schema in the form that codecs and apply use.
pub(super) fn lazy_schema(structural: &Arc<LazyStructural>) -> Arc<LazySchema> {
    let structural = structural.clone();
    Arc::new(LazyLock::new(Box::new(move || structural.schema())))
}

fn read(definition: &CachedObject, version: &str) -> StructuralSchema {
    let tree = json::decode_any(&definition.json()).unwrap_or_default();
    let mut versions = tree.items_at("spec.versions").iter();
    let own = versions.find(|own| own.str_at("name") == version);
    let mut schema = own.and_then(|own| own.at("schema.openAPIV3Schema")).cloned().unwrap_or_default();
    if tree.bool_at("spec.preserveUnknownFields") {
        preserve_unknown_fields(&mut schema);
    }
    StructuralSchema::new(&schema).unwrap_or_else(|error| {
        tracing::warn!(
            name = definition.name(),
            version,
            error,
            "the schema is not structural and is not enforced"
        );
        anything()
    })
}

/// Marks all objects and lists of a schema as keeping unknown fields. A definition from before schemas had to be structural
/// says that of all of its objects (`spec.preserveUnknownFields`).
fn preserve_unknown_fields(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    let has_fields =
        matches!(members.get("type").and_then(Value::as_str), None | Some("" | "object" | "array"));
    for name in ["items", "additionalProperties"] {
        if let Some(below) = members.get_mut(name) {
            preserve_unknown_fields(below);
        }
    }
    for property in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        preserve_unknown_fields(property.1);
    }
    if has_fields {
        members.insert("x-kubernetes-preserve-unknown-fields", true.into());
    }
}

/// The schema for a definition whose own was stored before schemas had to be structural: it allows any value.
fn anything() -> StructuralSchema {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    #[expect(clippy::expect_used, reason = "a constant, which every test that reads it proves")]
    StructuralSchema::new(&anything).expect("a schema of anything is structural")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_is_none_takes_anything() {
        let mut object = json!({"apiVersion": "g/v1", "kind": "K", "spec": {"a": [null]}});
        assert!(anything().prune(&mut object).is_empty());
        assert_eq!(object, json!({"apiVersion": "g/v1", "kind": "K", "spec": {"a": [null]}}));
    }

    #[test]
    fn unknown_fields_are_kept_at_all_depths() {
        let mut schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object"}},
            }},
            "plain": {"type": "array"},
        }});
        preserve_unknown_fields(&mut schema);
        let schema = StructuralSchema::new(&schema).unwrap();
        let object = json!({
            "apiVersion": "g/v1", "kind": "K", "x": 1, "plain": [{"x": 1}],
            "spec": {"x": {"y": 1}, "list": [{"a": "b", "x": [{"y": 1}]}], "map": {"k": {"x": 1}}},
        });
        let mut pruned = object.clone();
        assert!(schema.prune(&mut pruned).is_empty());
        assert_eq!(pruned, object);
    }
}
