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
    let schema = own.and_then(|own| own.at("schema.openAPIV3Schema")).unwrap_or(&Value::Null);
    StructuralSchema::new(schema).unwrap_or_else(|error| {
        tracing::warn!(
            name = definition.name(),
            version,
            error,
            "the schema is not structural and is not enforced"
        );
        anything()
    })
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
}
