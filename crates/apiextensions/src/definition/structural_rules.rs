//! Validates that a schema is structural: it specifies the type of every position of an object exactly once, outside of
//! the alternatives
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>).

use super::json_schema_props::{Items, JsonSchemaProps};
use super::path::Path;
use pintle_machinery::error_list::is_enough;
use pintle_machinery::{ErrorList, FieldError, Value};

/// The position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The first part of a schema that has no structural form at all. Most such parts are also reported by other rules,
/// with their position.
pub(super) fn unreadable(schema: &JsonSchemaProps<'_>) -> Option<String> {
    if let Some(name) = unsupported(schema) {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    let of = |schemas: &[JsonSchemaProps<'_>]| schemas.iter().find_map(unreadable);
    let alternatives = schema.not.as_deref().and_then(unreadable);
    let found = alternatives.or_else(|| of(&schema.all_of)).or_else(|| of(&schema.any_of));
    if let Some(found) = found.or_else(|| of(&schema.one_of)) {
        return Some(found);
    }
    if schema.preserve_unknown_fields == Some(false) {
        let text = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
        return Some(text.to_owned());
    }
    let in_items = match &schema.items {
        Some(Items::Many(schemas)) if !schemas.is_empty() => {
            Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned())
        }
        Some(Items::One(schema)) => unreadable(schema),
        _ => None,
    };
    in_items
        .or_else(|| schema.properties.iter().find_map(|(_, schema)| unreadable(schema)))
        .or_else(|| schema.additional().and_then(unreadable))
}

fn unsupported(schema: &JsonSchemaProps<'_>) -> Option<&'static str> {
    let unsupported = schema.unsupported.as_ref()?;
    let found = [
        ("id", !unsupported.id.is_empty()),
        ("schema", !unsupported.schema.is_empty()),
        ("$ref", unsupported.reference.is_some_and(|reference| !reference.is_empty())),
        ("patternProperties", !unsupported.pattern_properties.is_empty()),
        ("dependencies", unsupported.dependencies.as_ref().is_some_and(|list| !list.is_empty())),
        ("additionalItems", unsupported.additional_items.is_some()),
        ("definitions", !unsupported.definitions.is_empty()),
    ];
    found.into_iter().find_map(|(name, found)| found.then_some(name))
}

/// The structural violations of a parsable schema, sorted by text.
pub(super) fn validate_structural(schema: &JsonSchemaProps<'_>, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    invariants(schema, Level::Root, path, &mut errors);
    values_completeness(schema, schema, path, path, &mut errors);
    // The reference sorts them, since its maps have no order.
    errors.sort_by_cached_key(FieldError::to_string);
    errors
}

fn invariants(schema: &JsonSchemaProps<'_>, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    if is_enough(errors) {
        return;
    }
    if schema.ty == "array" && schema.item().is_none() {
        errors.push(FieldError::required(&path.child("items").field(), "must be specified"));
    }
    if let Some(items) = schema.item() {
        invariants(items, Level::Item, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in &schema.properties {
        invariants(property, Level::Field, &properties.key(name), errors);
    }
    if schema.additional_properties.is_some() {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&path.field(), "must not be used at the root"));
        }
        if let Some(schema) = schema.additional() {
            invariants(schema, Level::Field, &path, errors);
        }
    }
    extensions(schema, path, errors);
    values(schema, is_int_or_string(&schema.any_of), first_is_int_or_string(schema), path, errors);
    type_of(schema, level, path, errors);
    metadata(schema, level, path, errors);
    let embeds_nothing = schema.embedded_resource
        && schema.preserve_unknown_fields != Some(true)
        && schema.properties.is_empty();
    if embeds_nothing {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&properties.field(), detail));
    }
}

fn extensions(schema: &JsonSchemaProps<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    if !schema.int_or_string {
        return;
    }
    let excluded = [
        ("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown_fields == Some(true)),
        ("x-kubernetes-embedded-resource", schema.embedded_resource),
    ];
    for (name, _) in excluded.into_iter().filter(|(_, set)| *set) {
        let detail = "must be false if x-kubernetes-int-or-string is true";
        errors.push(FieldError::invalid(&path.child(name).field(), true, detail));
    }
}

fn type_of(schema: &JsonSchemaProps<'_>, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("type");
    if schema.embedded_resource && schema.ty != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match schema.ty {
            "" => FieldError::required(&at.field(), detail),
            ty => FieldError::invalid(&at.field(), ty, detail),
        });
    } else if schema.ty.is_empty() && !schema.int_or_string && schema.preserve_unknown_fields != Some(true) {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&at.field(), detail));
    }
    if schema.embedded_resource && schema.additional_properties.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties").field(), detail));
    }
    if level == Level::Root && !schema.ty.is_empty() && schema.ty != "object" {
        errors.push(FieldError::invalid(&at.field(), schema.ty, "must be object at the root"));
    }
}

/// The metadata fields of a resource may be restricted but not redefined.
fn metadata(schema: &JsonSchemaProps<'_>, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    let is_resource = level == Level::Root || schema.embedded_resource;
    let properties = path.child("properties");
    let mut expect = |name: &str, ty: &str, detail: &str| {
        if let Some(property) = schema.property(name).filter(|property| is_resource && property.ty != ty) {
            let path = properties.key(name);
            errors.push(FieldError::invalid(&path.child("type").field(), property.ty, detail));
        }
    };
    expect("kind", "string", "must be string");
    expect("apiVersion", "string", "must be string");
    expect("metadata", "object", "must be object");
    if level == Level::Root && schema.property("metadata").is_some_and(restricts_more_than_names) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly \
                      specified";
        errors.push(FieldError::forbidden(&properties.key("metadata").field(), detail));
    }
}

fn restricts_more_than_names(metadata: &JsonSchemaProps<'_>) -> bool {
    let mut names = structural_members(metadata);
    names.any(|name| !matches!(name, "type" | "default" | "properties"))
        || metadata.properties.iter().any(|(name, _)| !matches!(*name, "name" | "generateName"))
}

/// The names of the members that the structural form of a schema has: that of an empty list or map is the same as of none
/// for some.
fn structural_members<'a>(schema: &JsonSchemaProps<'a>) -> impl Iterator<Item = &'a str> {
    let is_lost = |name: &str, value: &Value| match name {
        "enum" | "allOf" | "anyOf" | "oneOf" => value.as_array().is_some_and(Vec::is_empty),
        "patternProperties" | "definitions" => true,
        _ => false,
    };
    schema.members().filter(move |(name, value)| !is_lost(name, value)).map(|(name, _)| name)
}

/// `anyOf: [{type: integer}, {type: string}]`, which is allowed though it types values in alternatives.
fn is_int_or_string(any_of: &[JsonSchemaProps<'_>]) -> bool {
    let is =
        |schema: &JsonSchemaProps<'_>, ty: &str| schema.ty == ty && structural_members(schema).count() == 1;
    matches!(any_of, [integer, string] if is(integer, "integer") && is(string, "string"))
}

fn first_is_int_or_string(schema: &JsonSchemaProps<'_>) -> bool {
    schema.all_of.first().is_some_and(|first| is_int_or_string(&first.any_of))
}

/// Validates the parts of a schema that restrict values.
fn values(
    schema: &JsonSchemaProps<'_>,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if !skip_any_of {
        nested_each(&schema.any_of, &path.child("anyOf"), false, errors);
    }
    nested_each(&schema.all_of, &path.child("allOf"), skip_first_all_of, errors);
    nested_each(&schema.one_of, &path.child("oneOf"), false, errors);
    if let Some(not) = &schema.not {
        nested(not, false, &path.child("not"), errors);
    }
    if !schema.pattern.is_empty()
        && let Err(message) = pintle_cel::pattern::compile(schema.pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {message}");
        errors.push(FieldError::invalid(&path.child("pattern").field(), schema.pattern, detail));
    }
}

fn nested_each(schemas: &[JsonSchemaProps<'_>], path: &Path<'_>, skip_first: bool, errors: &mut ErrorList) {
    for (index, schema) in schemas.iter().enumerate() {
        nested(schema, skip_first && index == 0, &path.index(index), errors);
    }
}

/// Validates a schema in an alternative, which must not specify structure.
fn nested(schema: &JsonSchemaProps<'_>, skip_any_of: bool, path: &Path<'_>, errors: &mut ErrorList) {
    if is_enough(errors) {
        return;
    }
    values(schema, skip_any_of, false, path, errors);
    if let Some(items) = schema.item() {
        nested(items, false, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in &schema.properties {
        nested(property, false, &properties.key(name), errors);
    }
    let is_nonempty = |name: &str| {
        schema.get(name).is_some_and(|value| match value {
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        })
    };
    let forbids_additional =
        schema.additional_properties.as_ref().is_some_and(|additional| additional.allows);
    const EMPTY: &str = "must be empty to be structural";
    const UNDEFINED: &str = "must be undefined to be structural";
    const FALSE: &str = "must be false to be structural";
    let forbidden = [
        ("type", !schema.ty.is_empty(), EMPTY),
        ("additionalProperties", forbids_additional, UNDEFINED),
        ("default", schema.default.is_some(), UNDEFINED),
        ("title", is_nonempty("title"), EMPTY),
        ("description", is_nonempty("description"), EMPTY),
        ("nullable", schema.nullable, FALSE),
        ("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown_fields == Some(true), FALSE),
        ("x-kubernetes-embedded-resource", schema.embedded_resource, FALSE),
        ("x-kubernetes-int-or-string", schema.int_or_string, FALSE),
        ("x-kubernetes-list-map-keys", !schema.list_map_keys.is_empty(), EMPTY),
        ("x-kubernetes-list-type", schema.list_type.is_some(), UNDEFINED),
        ("x-kubernetes-map-type", schema.map_type.is_some(), UNDEFINED),
        ("x-kubernetes-validations", !schema.validations.is_empty(), EMPTY),
    ];
    for (name, _, detail) in forbidden.into_iter().filter(|(_, is_there, _)| *is_there) {
        errors.push(FieldError::forbidden(&path.child(name).field(), detail));
    }
    if schema.property("metadata").is_some() {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(&properties.key("metadata").field(), detail));
    }
}

/// Checks that every position in the alternatives is specified in the structure. As in the reference, only the root's
/// alternatives are checked.
fn values_completeness(
    values: &JsonSchemaProps<'_>,
    schema: &JsonSchemaProps<'_>,
    path: &Path<'_>,
    values_path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if let Some(not) = &values.not {
        completeness(not, Some(schema), path, &values_path.child("not"), errors);
    }
    let alternatives = [("allOf", &values.all_of), ("anyOf", &values.any_of), ("oneOf", &values.one_of)];
    for (name, schemas) in alternatives {
        let values_path = values_path.child(name);
        for (index, values) in schemas.iter().enumerate() {
            completeness(values, Some(schema), path, &values_path.index(index), errors);
        }
    }
}

fn completeness(
    values: &JsonSchemaProps<'_>,
    schema: Option<&JsonSchemaProps<'_>>,
    path: &Path<'_>,
    values_path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if is_enough(errors) {
        return;
    }
    let Some(schema) = schema else {
        let detail = format!("because it is defined in {}", values_path.text());
        errors.push(FieldError::required(&path.field(), detail));
        return;
    };
    values_completeness(values, schema, path, values_path, errors);
    if let Some(items) = values.item() {
        let (path, values_path) = (path.child("items"), values_path.child("items"));
        completeness(items, schema.item(), &path, &values_path, errors);
    }
    let (path, values_path) = (path.child("properties"), values_path.child("properties"));
    for (name, values) in &values.properties {
        completeness(values, schema.property(name), &path.key(name), &values_path.key(name), errors);
    }
}

/// Whether a schema is not structural, which is possible only in a definition from an older server.
pub(super) fn is_non_structural(schema: &JsonSchemaProps<'_>) -> bool {
    unreadable(schema).is_some() || !validate_structural(schema, &Path::new("")).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(schema: Value, expected: &[&str]) {
        let props = JsonSchemaProps::read(&schema);
        let errors: Vec<String> =
            validate_structural(&props, &Path::new("s")).iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected, "{schema}");
    }

    fn check_field(field: Value, expected: &[&str]) {
        check(json!({"type": "object", "properties": {"f": field}}), expected);
    }

    #[test]
    fn every_place_has_a_type() {
        check(json!({"type": "object"}), &[]);
        check(json!({}), &["s.type: Required value: must not be empty at the root"]);
        check(json!({"type": "string"}), &[r#"s.type: Invalid value: "string": must be object at the root"#]);
        check(json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
        check_field(
            json!({}),
            &["s.properties[f].type: Required value: must not be empty for specified object fields"],
        );
        check_field(json!({"type": "array"}), &["s.properties[f].items: Required value: must be specified"]);
        check_field(
            json!({"type": "array", "items": {}}),
            &["s.properties[f].items.type: Required value: must not be empty for specified array items"],
        );
        check_field(json!({"x-kubernetes-int-or-string": true}), &[]);
    }

    #[test]
    fn alternatives_restrict_values_only() {
        check_field(
            json!({"type": "string", "anyOf": [{"type": "string"}], "not": {"nullable": true}}),
            &[
                "s.properties[f].anyOf[0].type: Forbidden: must be empty to be structural",
                "s.properties[f].not.nullable: Forbidden: must be false to be structural",
            ],
        );
        let any_of = json!([{"type": "integer"}, {"type": "string"}]);
        check_field(json!({"x-kubernetes-int-or-string": true, "anyOf": any_of}), &[]);
        check_field(
            json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": any_of}, {"pattern": "a"}]}),
            &[],
        );
        check_field(json!({"type": "object", "allOf": [{"additionalProperties": false}]}), &[]);
    }

    #[test]
    fn errors_name_the_alternative_that_defines_a_missing_part() {
        check(
            json!({"type": "object", "allOf": [{"properties": {"a": {"minLength": 1}}, "items": {}}]}),
            &[
                "s.items: Required value: because it is defined in s.allOf[0].items",
                "s.properties[a]: Required value: because it is defined in s.allOf[0].properties[a]",
            ],
        );
        check_field(json!({"type": "object", "anyOf": [{"properties": {"a": {"minLength": 1}}}]}), &[]);
    }

    #[test]
    fn metadata_may_restrict_names_only() {
        let check_metadata = |metadata: Value, is_fine: bool| {
            let schema = json!({"type": "object", "properties": {"metadata": metadata}});
            let props = JsonSchemaProps::read(&schema);
            assert_eq!(validate_structural(&props, &Path::new("s")).is_empty(), is_fine, "{schema}");
        };
        check_metadata(json!({"type": "object"}), true);
        check_metadata(
            json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 4}}}),
            true,
        );
        check_metadata(json!({"type": "object", "properties": {"labels": {"type": "object"}}}), false);
        check_metadata(json!({"type": "object", "required": ["name"]}), false);
        check_metadata(json!({"type": "object", "description": "d"}), false);
        check_metadata(json!({"type": "object", "required": []}), false);
        check_metadata(json!({"type": "object", "enum": [], "allOf": []}), true);
    }

    #[test]
    fn unreadable_parts_are_named() {
        let check = |schema: Value, expected: Option<&str>| {
            assert_eq!(unreadable(&JsonSchemaProps::read(&schema)).as_deref(), expected);
        };
        check(
            json!({"properties": {"a": {"$schema": "x"}}}),
            Some("OpenAPIV3Schema 'schema' is not supported"),
        );
        check(json!({"$ref": ""}), None);
        check(json!({"items": [{}]}), Some("OpenAPIV3Schema 'items' must be a schema, but is an array"));
    }
}
