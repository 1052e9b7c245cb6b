//! Fuzzes the structural schemas of definitions, and the objects that they validate.

use pintle_apiextensions::structural::{InvalidMetadata, StructuralSchema};
use pintle_machinery::{Value, codec::json};

/// A valid structural schema converts to the schema type of built-in kinds.
pub(crate) fn schema(data: &[u8]) {
    let Ok(tree) = json::decode_any(data) else { return };
    if let Ok(schema) = StructuralSchema::new(&tree) {
        let converted = schema.schema();
        assert!(converted.root().is_object());
    }
}

/// The data is `{"schema": …, "object": …, "old": …}`: pruning and defaulting an object again changes nothing, and
/// repeated validations have the same errors. An object that equals its old object has no errors of list types.
pub(crate) fn values(data: &[u8]) {
    let Ok(Value::Object(mut input)) = json::decode_any(data) else { return };
    let mut take = |name: &str| input.remove(name).unwrap_or_default();
    let (tree, mut object, old) = (take("schema"), take("object"), take("old"));
    let Ok(schema) = StructuralSchema::new(&tree) else { return };
    if schema.coerce(&mut object, InvalidMetadata::Refuse).is_err() {
        let salvaged = schema.coerce(&mut object, InvalidMetadata::Drop);
        assert!(salvaged.is_ok(), "what cannot be kept is dropped");
    }
    schema.set_defaults(&mut object);
    let mut again = object.clone();
    schema.set_defaults(&mut again);
    assert_eq!(again, object);
    assert!(schema.prune(&mut again).is_empty());
    assert_eq!(again, object);

    let errors = schema.validate(&object, None);
    assert_eq!(schema.validate(&object, None), errors);
    let ratcheted = schema.validate(&object, Some(&old));
    assert!(ratcheted.len() <= errors.len() || !errors.is_empty());
    if old == object {
        assert!(schema.validate_list_types(&object, Some(&old)).is_empty());
    }
    let _ = schema.validate_status_values(&object, &old);
    let rules = schema.validate_rules(&object, Some(&old), &Vec::new());
    assert_eq!(schema.validate_rules(&object, Some(&old), &Vec::new()).errors, rules.errors);
}
