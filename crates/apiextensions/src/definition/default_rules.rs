//! Validates defaults: they must be valid at their position, and have no unknown fields
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting>).
//!
//! A default is validated as declared: nested defaults are not applied first.

use super::check::Check;
use super::json_schema_props::JsonSchemaProps;
use super::path::Path;
use crate::structural::{Place, StructuralSchema};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, status::aggregate};

/// Validates the defaults of a structural schema, given its root `schema` and its parsed form `structural`.
pub(super) fn validate_defaults(
    schema: &JsonSchemaProps<'_>,
    structural: &StructuralSchema,
    path: &Path<'_>,
    check: &Check<'_>,
) -> ErrorList {
    let mut walk = Walk { check, errors: ErrorList::new() };
    let root = structural.place();
    let surroundings = Surroundings { resource: root, steps: None, in_metadata: false };
    walk.place(schema, root, surroundings, path);
    walk.errors
}

/// Removes from the defaults of a definition what the metadata of embedded resources does not have. kube-apiserver stores
/// the definition as validation left it, which decodes that metadata.
pub(super) fn coerce_defaults(definition: &mut Value) {
    let Some(versions) = definition.at_mut("spec.versions").and_then(Value::as_array_mut) else { return };
    for schema in versions.iter_mut().filter_map(|version| version.at_mut("schema.openAPIV3Schema")) {
        let props = JsonSchemaProps::read(schema);
        if !props.has(&mut |schema| schema.default.is_some())
            || !props.has(&mut |schema| schema.embedded_resource)
            || super::structural_rules::is_non_structural(&props)
        {
            continue;
        }
        if let Ok(structural) = StructuralSchema::new(schema) {
            coerce_below(schema, structural.place(), false);
        }
    }
}

/// As [`coerce_defaults`], for a position. A default within the metadata of a resource stays as it is.
fn coerce_below(schema: &mut Value, place: Place<'_>, in_metadata: bool) {
    let Some(members) = schema.as_object_mut().filter(|_| place.has_embedded()) else { return };
    let in_metadata = in_metadata && !place.is_resource();
    if let Some(default) = members.get_mut("default").filter(|_| !in_metadata) {
        place.coerce(default);
    }
    if let Some((items, place)) = members.get_mut("items").zip(place.items()) {
        coerce_below(items, place, in_metadata);
    }
    for (name, property) in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        let is_metadata = place.is_resource() && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        if let Some(place) = place.property(name) {
            coerce_below(property, place, in_metadata || is_metadata);
        }
    }
}

/// Whether a default has unknown fields, which older servers accepted.
pub(super) fn has_unpruned_defaults(schema: &JsonSchemaProps<'_>) -> bool {
    if !schema.has(&mut |schema| schema.default.is_some())
        || super::structural_rules::is_non_structural(schema)
    {
        return false;
    }
    let Some(structural) = schema.tree.and_then(|schema| StructuralSchema::new(schema).ok()) else {
        return false;
    };
    any_unpruned(schema, structural.place())
}

fn any_unpruned(schema: &JsonSchemaProps<'_>, place: Place<'_>) -> bool {
    schema.default.is_some_and(|default| !place.is_pruned(default))
        || below(schema, place).any(|(_, schema, place)| any_unpruned(schema, place))
        || schema
            .additional()
            .zip(place.additional())
            .is_some_and(|(schema, place)| any_unpruned(schema, place))
}

/// The items and properties of a schema, with `None` as the name of the items.
fn below<'s, 'a, 'p>(
    schema: &'s JsonSchemaProps<'a>,
    place: Place<'p>,
) -> impl Iterator<Item = (Option<&'a str>, &'s JsonSchemaProps<'a>, Place<'p>)> {
    let items = schema.item().zip(place.items()).map(|(schema, place)| (None, schema, place));
    let properties = schema.properties.iter();
    let properties =
        properties.filter_map(move |(name, schema)| Some((Some(*name), schema, place.property(name)?)));
    items.into_iter().chain(properties)
}

/// The enclosing resource of a position, and the steps from there.
#[derive(Clone, Copy)]
struct Surroundings<'w, 'p> {
    resource: Place<'p>,
    steps: Option<&'w Steps<'w>>,
    /// Whether the steps pass through the resource's metadata, apiVersion or kind.
    in_metadata: bool,
}

struct Steps<'w> {
    before: Option<&'w Steps<'w>>,
    /// The name of a property, or `None` for an item.
    step: Option<&'w str>,
}

impl Surroundings<'_, '_> {
    /// Builds the smallest resource that contains the value at this position.
    fn object_with(&self, value: &Value) -> Value {
        let mut object = value.clone();
        let mut at = self.steps;
        while let Some(steps) = at {
            object = match steps.step {
                Some(name) => Value::Object([(name.to_owned(), object)].into_iter().collect()),
                None => Value::Array(vec![object]),
            };
            at = steps.before;
        }
        if object.is_object() {
            object.set_default("kind", "Validation");
            object.set_default("apiVersion", "validation/v1");
        }
        object
    }
}

struct Walk<'c> {
    check: &'c Check<'c>,
    errors: ErrorList,
}

impl Walk<'_> {
    fn place(
        &mut self,
        schema: &JsonSchemaProps<'_>,
        place: Place<'_>,
        surroundings: Surroundings<'_, '_>,
        path: &Path<'_>,
    ) {
        let surroundings = match place.is_resource() {
            true => Surroundings { resource: place, steps: None, in_metadata: false },
            false => surroundings,
        };
        if let Some(default) = schema.default {
            let errors = self.check(default, schema, place, &surroundings, &path.child("default").field());
            self.errors.extend(errors);
        }
        let (items_path, properties_path) = (path.child("items"), path.child("properties"));
        for (name, schema, below) in below(schema, place) {
            let steps = Steps { before: surroundings.steps, step: name };
            let is_metadata = matches!(name, Some("metadata" | "apiVersion" | "kind"));
            let surroundings = Surroundings {
                steps: Some(&steps),
                in_metadata: surroundings.in_metadata || (place.is_resource() && is_metadata),
                ..surroundings
            };
            match name {
                Some(name) => self.place(schema, below, surroundings, &properties_path.key(name)),
                None => self.place(schema, below, surroundings, &items_path),
            }
        }
    }

    fn check(
        &mut self,
        default: &Value,
        schema: &JsonSchemaProps<'_>,
        place: Place<'_>,
        surroundings: &Surroundings<'_, '_>,
        path: &FieldPath,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        if !surroundings.in_metadata
            && self.check.options.require_pruned_defaults
            && !place.is_pruned(default)
        {
            errors.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
        }
        let wrong = match surroundings.in_metadata {
            true => wrong_metadata(default, surroundings, path),
            false => place.check_resources(default, path).unwrap_or_else(|error| vec![error]),
        };
        match wrong.is_empty() {
            true => {
                let wrong = place.check_values(default, path, &self.check.defaults_effort);
                match wrong.is_empty() {
                    true => errors.extend(self.check_rules(default, schema, place, path)),
                    false => errors.extend(wrong),
                }
            }
            false => errors.extend(wrong),
        }
        errors
    }
}

impl Walk<'_> {
    /// Runs the rules on a default. They are compiled for each default, whose position is the root that they can read.
    fn check_rules(
        &mut self,
        default: &Value,
        schema: &JsonSchemaProps<'_>,
        place: Place<'_>,
        path: &FieldPath,
    ) -> ErrorList {
        let Check { effort, defaults_budget: budget, .. } = self.check;
        if budget.get().is_none() || !schema.has(&mut |schema| !schema.validations.is_empty()) {
            return ErrorList::new();
        }
        match schema.tree.map(StructuralSchema::new) {
            Some(Ok(structural)) => {
                structural.check_rules(default, place.is_resource(), path, budget, effort)
            }
            _ => ErrorList::new(),
        }
    }
}

/// Validates a default inside metadata by decoding the metadata that contains it.
fn wrong_metadata(default: &Value, surroundings: &Surroundings<'_, '_>, path: &FieldPath) -> ErrorList {
    let object = surroundings.object_with(default);
    let found = match surroundings.resource.check_resources(&object, &FieldPath::default()) {
        Ok(errors) if errors.is_empty() => return ErrorList::new(),
        Ok(errors) => aggregate(errors.iter().map(ToString::to_string)),
        Err(error) => error.to_string(),
    };
    vec![FieldError::invalid(path, default.clone(), format!("must result in valid metadata: {found}"))]
}

#[cfg(test)]
mod tests {
    use super::super::options::ValidationOptions;
    use super::*;
    use pintle_machinery::json;

    fn check(schema: Value, expected: &[&str]) {
        let structural = StructuralSchema::new(&schema).unwrap();
        let props = JsonSchemaProps::read(&schema);
        let options = ValidationOptions::for_create();
        let check = Check::new(&options, true);
        let errors = validate_defaults(&props, &structural, &Path::new("s"), &check);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected, "{schema}");
        let is_unpruned = expected.iter().any(|error| error.ends_with("must not have unknown fields"));
        assert_eq!(has_unpruned_defaults(&props), is_unpruned, "{schema}");
    }

    fn check_field(field: Value, expected: &[&str]) {
        check(json!({"type": "object", "properties": {"f": field}}), expected);
    }

    #[test]
    fn defaults_are_valid_as_they_stand() {
        check_field(json!({"type": "integer", "default": 3}), &[]);
        check_field(
            json!({"type": "integer", "default": "x"}),
            &[
                r#"s.properties[f].default: Invalid value: "string":  in body must be of type integer: "string""#,
            ],
        );
        check_field(
            json!({
                "type": "object",
                "required": ["a"],
                "properties": {"a": {"type": "string", "default": "x"}},
                "default": {},
            }),
            &["s.properties[f].default.a: Required value"],
        );
        check_field(
            json!({"type": "array", "items": {"type": "string", "maxLength": 1, "default": "ab"}}),
            &["s.properties[f].items.default: Too long: may not be more than 1 byte"],
        );
    }

    #[test]
    fn defaults_satisfy_rules_that_compare_with_what_was() {
        let integer = |rule: &str, default: Value| json!({"type": "integer", "default": default, "x-kubernetes-validations": [{"rule": rule}]});
        check_field(integer("self == oldSelf", json!(1)), &[]);
        check_field(
            integer("self > oldSelf", json!(1)),
            &["s.properties[f].default: Invalid value: 1: failed rule: self > oldSelf"],
        );
        check_field(
            integer("self == oldSelf", json!(1.0)),
            &[
                r#"s.properties[f].default: Invalid value: "integer": invalid data, expected int, got float64 evaluating rule: self == oldSelf"#,
            ],
        );
        check_field(
            json!({
                "type": "object",
                "additionalProperties": integer("self > 1", Value::Null),
                "default": {"y": 1},
            }),
            &["s.properties[f].default[y]: Invalid value: 1: failed rule: self > 1"],
        );
        check_field(
            json!({"type": "integer", "default": 1, "x-kubernetes-validations": [
                {"rule": "oldSelf.hasValue()", "optionalOldSelf": true},
            ]}),
            &["s.properties[f].default: Invalid value: 1: failed rule: oldSelf.hasValue()"],
        );
    }

    #[test]
    fn defaults_say_nothing_unknown() {
        check_field(
            json!({"type": "object", "properties": {"a": {"type": "object"}}, "default": {"a": {"b": 1}}}),
            &[r#"s.properties[f].default: Invalid value: {"a":{"b":1}}: must not have unknown fields"#],
        );
        check_field(
            json!({"type": "object", "default": {"metadata": {}}}),
            &[r#"s.properties[f].default: Invalid value: {"metadata":{}}: must not have unknown fields"#],
        );
        check_field(
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "default": {"b": 1}}),
            &[],
        );
    }

    #[test]
    fn defaults_of_resources_are_resources() {
        let embedded = |more: Value| {
            let mut schema = json!({
                "type": "object",
                "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            });
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema
        };
        check_field(embedded(json!({"default": {"apiVersion": "v1", "kind": "Pod"}})), &[]);
        check_field(
            embedded(json!({"default": {}})),
            &[
                "s.properties[f].default.apiVersion: Required value",
                "s.properties[f].default.kind: Required value",
            ],
        );
        let metadata = json!({"properties": {"metadata": {
            "type": "object",
            "properties": {"name": {"type": "string", "default": "a/b"}},
        }}});
        check_field(
            embedded(metadata),
            &[
                "s.properties[f].properties[metadata].properties[name].default: Invalid value: \"a/b\": must result in \
               valid metadata: metadata.name: Invalid value: \"a/b\": may not contain '/'",
            ],
        );
    }

    #[test]
    fn defaults_have_metadata_of_known_fields() {
        let embedded = |default: Value| {
            json!({"type": "object", "default": default, "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true})
        };
        let resource =
            |metadata: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "x": 1});
        let list = |default: Value| {
            let mut item = embedded(Value::Null);
            item.remove_at("default");
            json!({"type": "array", "items": item, "default": [default]})
        };
        let definition = |default: Value| {
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"a": embedded(default.clone()), "b": list(default), "c": {"type": "object", "default": {}}},
            }}}]}})
        };
        let mut found = definition(resource(json!({"name": "n", "y": 1, "creationTimestamp": null})));
        coerce_defaults(&mut found);
        assert_eq!(found, definition(resource(json!({"name": "n"}))));
        // Validation refuses this one.
        let malformed = definition(resource(json!({"name": 1, "y": 1})));
        let mut found = malformed.clone();
        coerce_defaults(&mut found);
        assert_eq!(found, malformed);
    }
}
