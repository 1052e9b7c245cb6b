//! The sets of fields that managers own, for expressions that read them.

use pintle_machinery::Value;

/// Whether an expression in the declaration of a policy or of a webhook reads the sets of fields in `managedFields`. A tree
/// has the text of a set; for such expressions, the sets of an object are read
/// ([`json::open_managed_fields`](pintle_machinery::codec::json::open_managed_fields)).
pub(crate) fn read_fields(declaration: &Value) -> bool {
    match declaration {
        Value::String(text) => text.contains("fieldsV1"),
        Value::Array(items) => items.iter().any(read_fields),
        Value::Object(members) => members.values().any(read_fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
