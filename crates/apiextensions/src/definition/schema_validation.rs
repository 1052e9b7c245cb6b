//! Validates the schema of a version, or the common schema: its root, its structure, and each schema in it.

use super::check::Check;
use super::json_schema_props::JsonSchemaProps;
use super::path::Path;
use super::rule_checks::RuleContext;
use super::spec::Validation;
use super::{default_rules, go_json, schema_rules, structural_rules};
use crate::structural::{StructuralSchema, rules::CompileEffort};
use pintle_machinery::{ErrorList, FieldError, Value};

/// The fields of a schema in the order and under the names of the reference's internal version. The flag states whether
/// a root may have the field when there is a status subresource: the status is validated by `properties.status` alone,
/// so no other field may restrict it.
const FIELDS: [(&str, &str, bool); 43] = [
    ("ID", "id", false),
    ("Schema", "$schema", false),
    ("Ref", "$ref", false),
    ("Description", "description", true),
    ("Type", "type", true),
    ("Nullable", "nullable", false),
    ("Format", "format", true),
    ("Title", "title", true),
    ("Default", "default", false),
    ("Maximum", "maximum", true),
    ("ExclusiveMaximum", "exclusiveMaximum", true),
    ("Minimum", "minimum", true),
    ("ExclusiveMinimum", "exclusiveMinimum", true),
    ("MaxLength", "maxLength", true),
    ("MinLength", "minLength", true),
    ("Pattern", "pattern", true),
    ("MaxItems", "maxItems", true),
    ("MinItems", "minItems", true),
    ("UniqueItems", "uniqueItems", true),
    ("MultipleOf", "multipleOf", true),
    ("Enum", "enum", false),
    ("MaxProperties", "maxProperties", false),
    ("MinProperties", "minProperties", false),
    ("Required", "required", true),
    ("Items", "items", true),
    ("AllOf", "allOf", false),
    ("OneOf", "oneOf", false),
    ("AnyOf", "anyOf", false),
    ("Not", "not", false),
    ("Properties", "properties", true),
    ("AdditionalProperties", "additionalProperties", false),
    ("PatternProperties", "patternProperties", false),
    ("Dependencies", "dependencies", false),
    ("AdditionalItems", "additionalItems", false),
    ("Definitions", "definitions", false),
    ("ExternalDocs", "externalDocs", true),
    ("Example", "example", true),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", true),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", false),
    ("XIntOrString", "x-kubernetes-int-or-string", false),
    ("XListMapKeys", "x-kubernetes-list-map-keys", false),
    ("XListType", "x-kubernetes-list-type", false),
    ("XMapType", "x-kubernetes-map-type", false),
];

/// The allowed fields, in the order of messages.
const ALLOWED_AT_ROOT: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
     MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
     XPreserveUnknownFields XValidations]";

/// Validates the schema of the version `version`; the common schema goes by the name of the first version.
pub(super) fn validate_validation(
    validation: &Validation<'_>,
    has_status: bool,
    version: &str,
    check: &Check<'_>,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let Some(schema) = &validation.schema else { return };
    let path = path.child("openAPIV3Schema");
    let before = errors.len();
    // The rules below compile patterns.
    let are_light = !schema.has(&mut |schema| !check.effort.pattern(schema.pattern));
    if !are_light {
        errors.push(FieldError::forbidden(&path.field(), CompileEffort::SPENT));
        return;
    }
    if has_status {
        errors.extend(root_beside_status(schema, &path));
    }
    if schema.nullable {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(&path.child("nullable").field(), detail));
    }
    let unreadable = structural_rules::unreadable(schema).filter(|_| check.needs_structure);
    let mut structural = None;
    if check.needs_structure && unreadable.is_none() {
        match read_structure(schema, check, &path) {
            Ok(read) => structural = read,
            Err(wrong) => errors.extend(wrong),
        }
    }
    let rules = structural.as_ref().map(RuleContext::root);
    let suppress_cost = check.options.versions_with_unchanged_schemas.contains(version);
    let found = schema_rules::validate_schema(
        schema,
        &path,
        check.options,
        rules.as_ref(),
        suppress_cost,
        &check.effort,
    );
    errors.extend(found);
    // Other checks have mostly reported the cause already, with its position.
    if let Some(error) = unreadable.filter(|_| errors.len() == before) {
        errors.push(FieldError::invalid(&path.field(), "", error));
    }
}

/// The parsed schema, if it is structural and its defaults are valid. `None` when it has neither defaults nor rules, so
/// that no check needs it.
fn read_structure(
    schema: &JsonSchemaProps<'_>,
    check: &Check<'_>,
    path: &Path<'_>,
) -> Result<Option<StructuralSchema>, ErrorList> {
    let errors = structural_rules::validate_structural(schema, path);
    if !errors.is_empty() {
        return Err(errors);
    }
    let is_asked = schema.has(&mut |schema| schema.default.is_some() || !schema.validations.is_empty());
    let Some(tree) = schema.tree.filter(|_| is_asked) else { return Ok(None) };
    let structural =
        StructuralSchema::new(tree).map_err(|error| vec![FieldError::invalid(&path.field(), "", error)])?;
    let errors = default_rules::validate_defaults(schema, &structural, path, check);
    match errors.is_empty() {
        true => Ok(Some(structural)),
        false => Err(errors),
    }
}

fn root_beside_status(schema: &JsonSchemaProps<'_>, path: &Path<'_>) -> Option<FieldError> {
    let is_set = |name: &str| match schema.get(name) {
        None => false,
        // These members are not flags; `false` has a meaning too.
        Some(Value::Bool(false)) => {
            matches!(
                name,
                "additionalProperties"
                    | "additionalItems"
                    | "default"
                    | "x-kubernetes-preserve-unknown-fields"
            )
        }
        // The empty text is a value of optional members.
        Some(Value::String(text)) => {
            !text.is_empty()
                || matches!(name, "$ref" | "default" | "x-kubernetes-list-type" | "x-kubernetes-map-type")
        }
        // Empty lists and maps that the body has are values, too.
        Some(_) => true,
    };
    for (field, name, is_allowed) in FIELDS {
        if field == "Type" && is_set(name) && schema.ty != "object" {
            let detail = "only \"object\" is allowed as the type at the root of the schema if the status \
                          subresource is enabled";
            return Some(FieldError::invalid(&path.child("type").field(), schema.ty, detail));
        }
        if !is_allowed && is_set(name) {
            let detail = format!(
                "only {ALLOWED_AT_ROOT} fields are allowed at the root of the schema if the status subresource is \
                 enabled"
            );
            let error = FieldError::invalid(&path.field(), Value::Null, detail);
            return Some(go_json::shown(error, go_json::bounded_schema(schema)));
        }
    }
    None
}
