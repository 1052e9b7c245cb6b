//! The strategy of the status of flow schemas and priority levels.

use crate::plain::keep_but_status;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy, keep};
use std::collections::HashSet;

/// The strategy of the `status` subresource, which contains only conditions.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata", "spec"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        let written = object.remove_at("metadata.managedFields");
        keep_but_status(object, old);
        // All metadata of these kinds is that of the old object.
        keep(object, old, "metadata");
        object.remove_at("metadata.managedFields");
        if let Some(written) = written {
            object.set("metadata.managedFields", written);
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> ErrorList {
        validate(object)
    }
}

/// Validates the conditions: their types are unique.
pub(super) fn validate(object: &Value) -> ErrorList {
    let path = FieldPath::new("status").child("conditions");
    let mut errors = ErrorList::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, condition) in object.items_at("status.conditions").iter().enumerate() {
        let path = path.index(index).child("type");
        let condition_type = condition.str_at("type");
        if !seen.insert(condition_type) {
            errors.push(FieldError::duplicate(&path, condition_type).of_named_type());
        }
        if condition_type.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn conditions_have_types_of_their_own() {
        let errors = validate(&json!({"status": {"conditions": [{"type": "A"}, {"type": "A"}, {}]}}));
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                r#"status.conditions[1].type: Duplicate value: "A""#,
                "status.conditions[2].type: Required value"
            ]
        );
    }
}
