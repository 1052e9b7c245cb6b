//! Fuzzes custom resource definitions, from the body of a request to the served resource.

use pintle_apiextensions::structural::StructuralSchema;
use pintle_machinery::{Value, ValueExt, codec::json};
use pintle_registry::testing::{MemoryRegistry, with_context};
use pintle_schema::Schema;

const TYPE: &str = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinition";

/// An accepted definition is accepted again unchanged, survives encoding and decoding, prints, and has valid schemas.
/// Returns whether the definition is accepted.
pub(crate) fn definition(data: &[u8]) -> bool {
    let Some(schema) = Schema::builtin().by_type_name(TYPE) else { return false };
    let Ok(decoded) = json::decode(data, schema) else { return false };
    let mut object = decoded.value;
    if !object.is_object() {
        return false;
    }
    let resources = pintle_apiextensions::resources();
    let Some(resource) = resources.first() else { return false };
    let registry = MemoryRegistry::default();
    with_context(&registry, "", false, |context| {
        let strategy = &resource.strategy;
        strategy.set_defaults(&mut object);
        let mut again = object.clone();
        strategy.set_defaults(&mut again);
        assert_eq!(again, object, "defaults are there once");
        strategy.prepare_for_create(context, &mut object);
        let errors = strategy.validate(context, &object);
        assert_eq!(strategy.validate(context, &object), errors);
        strategy.warnings_on_create(context, &object);
        resource.table.cells(&object, context.now);
        if !errors.is_empty() {
            return false;
        }
        let text = json::encode(&object, schema);
        let read = json::decode(&text, schema).map(|decoded| decoded.value);
        assert!(read.is_ok_and(|read| json::encode(&read, schema) == text));
        for version in object.items_at("spec.versions") {
            let tree = version.at("schema.openAPIV3Schema").cloned().unwrap_or(Value::Null);
            if let Ok(schema) = StructuralSchema::new(&tree) {
                assert!(schema.schema().root().is_object());
            }
        }
        object.set("metadata.resourceVersion", "1");
        let old = object.clone();
        strategy.prepare_for_update(context, &mut object, &old);
        let errors = strategy.validate_update(context, &object, &old);
        assert!(errors.is_empty(), "{errors:?}");
        true
    })
}
