//! Collects the structural violations of a stored definition for its condition.

use super::{json_schema_props::JsonSchemaProps, path::Path, structural_rules};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, status::aggregate};

/// The content of the condition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violations {
    pub(crate) status: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The violations of a definition. One that does not preserve unknown fields has none: no server ever stored such a
/// definition.
pub(crate) fn violations(definition: &Value) -> Option<Violations> {
    if !definition.bool_at("spec.preserveUnknownFields") {
        return None;
    }
    let path = FieldPath::new("spec").child("preserveUnknownFields");
    let mut errors: ErrorList = vec![FieldError::invalid(&path, true, "must be false")];
    for (index, version) in definition.items_at("spec.versions").iter().enumerate() {
        let Some(schema) = version.at("schema.openAPIV3Schema") else { continue };
        let schema = JsonSchemaProps::read(schema);
        if let Some(why) = structural_rules::unreadable(&schema) {
            let version = version.str_at("name");
            let message = format!("failed to check validation schema for version {version}: {why}");
            return Some(Violations { status: "Unknown", reason: "StructuralError", message });
        }
        let spec = Path::new("spec");
        let versions = spec.child("versions");
        let version = versions.index(index);
        let in_version = version.child("schema");
        errors.extend(structural_rules::validate_structural(&schema, &in_version.child("openAPIV3Schema")));
    }
    let message = aggregate(errors.iter().map(ToString::to_string));
    Some(Violations { status: "True", reason: "Violations", message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn only_definitions_that_preserve_unknown_fields_are_looked_at() {
        let definition = |preserves: bool, schema: Value| {
            json!({"spec": {
                "preserveUnknownFields": preserves,
                "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}, {"name": "v2"}],
            }})
        };
        let message = |definition: &Value| violations(definition).map(|found| found.message);
        assert_eq!(message(&definition(false, json!({"properties": {"a": {}}}))), None);
        assert_eq!(
            message(&definition(true, json!({"type": "object"}))).as_deref(),
            Some("spec.preserveUnknownFields: Invalid value: true: must be false")
        );
        assert_eq!(
            message(&definition(true, json!({"type": "object", "properties": {"a": {}}}))).as_deref(),
            Some(
                "[spec.preserveUnknownFields: Invalid value: true: must be false, \
                 spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for \
                 specified object fields]"
            )
        );
    }
}
