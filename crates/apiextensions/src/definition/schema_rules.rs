//! Validates each schema by itself, and lists with their items.
//!
//! These rules are separate from those for structural schemas ([`super::structural_rules`]). The reference reports
//! both, so a violation of both is reported twice.

use super::go_json;
use super::json_schema_props::{Items, JsonSchemaProps};
use super::options::ValidationOptions;
use super::path::Path;
use super::rule_checks::{RuleContext, RuleSurroundings, TotalCost};
use super::{structural_rules, valid_path};
use crate::structural::rules::CompileEffort;
use pintle_machinery::error_list::is_enough;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::HashSet;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// Both map types correlate members by name.
const MAP_TYPES: [&str; 2] = ["atomic", "granular"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The conditions that a position inherits from above.
#[derive(Clone, Copy, Default)]
struct Surroundings<'p> {
    /// The reason why defaults are not allowed.
    no_defaults: Option<NoDefaults>,
    /// Whether the position is inside `apiVersion`, `kind` or `metadata` of the object or of an embedded resource.
    in_resource_meta: bool,
    is_root: bool,
    /// The first enclosing position where `oldSelf` is unavailable.
    uncorrelatable: Option<Path<'p>>,
}

#[derive(Clone, Copy)]
enum NoDefaults {
    InAdditionalProperties,
    InTopLevel(&'static str),
}

/// Validates a schema at `path`. `rules` is the context for compiling rules, given when the schema is otherwise valid;
/// `suppress_cost` is set for unchanged schemas.
pub(super) fn validate_schema(
    schema: &JsonSchemaProps<'_>,
    path: &Path<'_>,
    options: &ValidationOptions,
    rules: Option<&RuleContext<'_>>,
    suppress_cost: bool,
    effort: &CompileEffort,
) -> ErrorList {
    let mut walk = Walk {
        options,
        suppress_cost,
        effort,
        errors: ErrorList::new(),
        rule_errors: ErrorList::new(),
        costs: TotalCost::default(),
    };
    walk.schema(schema, path, Surroundings { is_root: true, ..Surroundings::default() }, rules);
    let mut errors = walk.errors;
    errors.extend(walk.rule_errors);
    errors.extend(walk.costs.check(path));
    errors
}

struct Walk<'o> {
    options: &'o ValidationOptions,
    suppress_cost: bool,
    effort: &'o CompileEffort,
    errors: ErrorList,
    /// Reported after all other errors.
    rule_errors: ErrorList,
    costs: TotalCost,
}

impl Walk<'_> {
    fn schema(
        &mut self,
        schema: &JsonSchemaProps<'_>,
        path: &Path<'_>,
        around: Surroundings<'_>,
        rules: Option<&RuleContext<'_>>,
    ) {
        if is_enough(&self.errors) {
            return;
        }
        let before = self.errors.len();
        validate_itself(schema, path, around, self.options, &mut self.errors);
        self.members(schema, path, around, rules);
        let inside = Surroundings { is_root: false, ..around };
        if let Some(not) = &schema.not {
            self.schema(not, &path.child("not"), inside, None);
        }
        for (name, schemas) in
            [("allOf", &schema.all_of), ("oneOf", &schema.one_of), ("anyOf", &schema.any_of)]
        {
            let path = path.child(name);
            for (index, schema) in schemas.iter().enumerate() {
                self.schema(schema, &path.index(index), inside, None);
            }
        }
        if let Some(unsupported) = &schema.unsupported {
            let path = path.child("definitions");
            for (name, schema) in &unsupported.definitions {
                self.schema(schema, &path.key(name), inside, None);
            }
        }
        self.items(schema, path, inside, rules);
        if let Some(unsupported) = &schema.unsupported {
            let path = path.child("dependencies");
            for (name, schema) in unsupported.dependent_schemas() {
                self.schema(schema, &path.key(name), inside, None);
            }
        }
        if schema.preserve_unknown_fields == Some(false) {
            let path = path.child("x-kubernetes-preserve-unknown-fields").field();
            self.errors.push(FieldError::invalid(&path, false, "must be true or undefined"));
        }
        validate_map_type(schema, path, &mut self.errors);
        validate_list_type(schema, path, self.options, &mut self.errors);
        for (index, rule) in schema.validations.iter().enumerate() {
            validate_rule(
                schema,
                rule,
                &path.child("x-kubernetes-validations").index(index),
                &mut self.errors,
            );
        }
        // Compile errors of rules in an invalid schema would not help the client.
        if let Some(rules) = rules.filter(|_| !schema.validations.is_empty() && self.errors.len() == before) {
            let uncorrelatable = around.uncorrelatable;
            let surroundings = RuleSurroundings { uncorrelatable, suppress_cost: self.suppress_cost };
            let preexisting = &self.options.preexisting_expressions;
            let (effort, costs) = (self.effort, &mut self.costs);
            self.rule_errors.extend(rules.check(schema, path, surroundings, preexisting, effort, costs));
        }
    }

    /// Validates members: properties are for known names, additional properties for arbitrary ones.
    fn members(
        &mut self,
        schema: &JsonSchemaProps<'_>,
        path: &Path<'_>,
        around: Surroundings<'_>,
        rules: Option<&RuleContext<'_>>,
    ) {
        let inside = Surroundings { is_root: false, ..around };
        if let Some(additional) = &schema.additional_properties {
            let path = path.child("additionalProperties");
            if !schema.properties.is_empty() && (!additional.allows || additional.schema.is_some()) {
                let detail = "additionalProperties and properties are mutual exclusive";
                self.errors.push(FieldError::forbidden(&path.field(), detail));
            }
            if let Some(below) = &additional.schema {
                let no_defaults = match around.in_resource_meta {
                    true => Some(NoDefaults::InAdditionalProperties),
                    false => around.no_defaults,
                };
                let rules = rules.and_then(|rules| rules.additional(schema));
                self.schema(below, &path, Surroundings { no_defaults, ..inside }, rules.as_ref());
            }
        }
        let properties_path = path.child("properties");
        for (name, property) in &schema.properties {
            let meta = ["metadata", "kind", "apiVersion"].into_iter().find(|meta| meta == name);
            let mut inside = inside;
            if schema.map_type.is_some_and(|map_type| !MAP_TYPES.contains(&map_type)) {
                inside.uncorrelatable = inside.uncorrelatable.or(Some(*path));
            }
            if let Some(name) = meta.filter(|_| around.is_root || schema.embedded_resource) {
                inside.in_resource_meta = true;
                if around.is_root {
                    inside.no_defaults = Some(NoDefaults::InTopLevel(name));
                }
            }
            let rules = rules.and_then(|rules| rules.property(schema, name));
            self.schema(property, &properties_path.key(name), inside, rules.as_ref());
        }
    }

    fn items(
        &mut self,
        schema: &JsonSchemaProps<'_>,
        path: &Path<'_>,
        inside: Surroundings<'_>,
        rules: Option<&RuleContext<'_>>,
    ) {
        let mut inside = inside;
        if schema.list_type != Some("map") {
            // Only keys correlate the items of a list.
            inside.uncorrelatable = inside.uncorrelatable.or(Some(*path));
        }
        let items_path = path.child("items");
        match &schema.items {
            Some(Items::One(items)) => {
                let rules = rules.and_then(|rules| rules.items(schema));
                self.schema(items, &items_path, inside, rules.as_ref());
            }
            Some(Items::Many(items)) => {
                for (index, schema) in items.iter().enumerate() {
                    self.schema(schema, &items_path.index(index), inside, None);
                }
            }
            None => {}
        }
    }
}

fn validate_itself(
    schema: &JsonSchemaProps<'_>,
    path: &Path<'_>,
    around: Surroundings<'_>,
    options: &ValidationOptions,
    errors: &mut ErrorList,
) {
    if options.require_valid_types && has_invalid_type(schema) {
        errors
            .push(FieldError::not_supported(&path.child("type").field(), schema.ty, &TYPES).of_plain_text());
    }
    let mut forbid = |name: &str, detail: &str| {
        errors.push(FieldError::forbidden(&path.child(name).field(), detail));
    };
    match (schema.default, around.no_defaults) {
        (None, _) | (_, None) => {}
        (Some(_), Some(NoDefaults::InAdditionalProperties)) => {
            forbid("default", "must not be set inside additionalProperties applying to object metadata");
        }
        (Some(_), Some(NoDefaults::InTopLevel(name))) => {
            forbid("default", &format!("must not be set in top-level {name}"));
        }
    }
    if let Some(unsupported) = &schema.unsupported {
        let found = [
            ("id", !unsupported.id.is_empty()),
            ("additionalItems", unsupported.additional_items.is_some()),
            ("patternProperties", !unsupported.pattern_properties.is_empty()),
            ("definitions", !unsupported.definitions.is_empty()),
            ("dependencies", unsupported.dependencies.is_some()),
            ("$ref", unsupported.reference.is_some()),
        ];
        for (name, _) in found.into_iter().filter(|(_, found)| *found) {
            forbid(name, &format!("{name} is not supported"));
        }
    }
    if schema.ty == "null" {
        forbid("type", "type cannot be set to null, use nullable as an alternative");
    }
    if matches!(&schema.items, Some(Items::Many(schemas)) if !schemas.is_empty()) {
        forbid("items", "items must be a schema object and not an array");
    }
    if around.in_resource_meta && schema.embedded_resource {
        forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
    }
    if schema.unique_items {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        forbid("uniqueItems", detail);
    }
}

/// Whether the type is unknown, which older servers accepted.
pub(super) fn has_invalid_type(schema: &JsonSchemaProps<'_>) -> bool {
    !schema.ty.is_empty() && !TYPES.contains(&schema.ty)
}

fn validate_map_type(schema: &JsonSchemaProps<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(map_type) = schema.map_type else { return };
    if schema.ty != "object" {
        errors.push(wrong_type(schema, path, "must be object if x-kubernetes-map-type is specified"));
    }
    if !MAP_TYPES.contains(&map_type) {
        let path = path.child("x-kubernetes-map-type").field();
        errors.push(FieldError::not_supported(&path, map_type, &MAP_TYPES).of_plain_text());
    }
}

fn wrong_type(schema: &JsonSchemaProps<'_>, path: &Path<'_>, detail: &str) -> FieldError {
    let path = path.child("type").field();
    match schema.ty {
        "" => FieldError::required(&path, detail),
        ty => FieldError::invalid(&path, ty, detail),
    }
}

fn validate_list_type(
    schema: &JsonSchemaProps<'_>,
    path: &Path<'_>,
    options: &ValidationOptions,
    errors: &mut ErrorList,
) {
    let type_path = path.child("x-kubernetes-list-type");
    let keys_path = path.child("x-kubernetes-list-map-keys");
    if schema.list_type.is_some() && schema.ty != "array" {
        errors.push(wrong_type(schema, path, "must be array if x-kubernetes-list-type is specified"));
    } else if options.require_atomic_set_items {
        errors.extend(non_atomic_set_items(schema, path));
    }
    const LIST_TYPES: [&str; 3] = ["atomic", "set", "map"];
    if let Some(list_type) = schema.list_type.filter(|list_type| !LIST_TYPES.contains(list_type)) {
        errors.push(FieldError::not_supported(&type_path.field(), list_type, &LIST_TYPES).of_plain_text());
    }
    if !schema.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match schema.list_type {
            Some("map") => {}
            None => errors.push(FieldError::required(&type_path.field(), detail)),
            Some(other) => errors.push(FieldError::invalid(&type_path.field(), other, detail)),
        }
    }
    if schema.list_type == Some("map") {
        if schema.list_map_keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(&keys_path.field(), detail));
        }
        validate_map_items(schema, path, errors);
    }
    if options.require_map_list_keys {
        errors.extend(map_or_set_items(schema, path));
    }
}

/// Reports a set whose items are not atomic: items of a set are compared as a whole.
pub(super) fn non_atomic_set_items(schema: &JsonSchemaProps<'_>, path: &Path<'_>) -> Option<FieldError> {
    let items = schema.item().filter(|_| schema.list_type == Some("set"))?;
    let name = match items.ty {
        "array" if items.list_type.is_some_and(|list_type| list_type != "atomic") => "x-kubernetes-list-type",
        "object" if items.map_type != Some("atomic") => "x-kubernetes-map-type",
        _ => return None,
    };
    let path = path.child("items");
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    // The message shows the items' list type, even when the map type is the error.
    let shown = items.list_type.map_or(Value::Null, Value::from);
    Some(FieldError::invalid(&path.child(name).field(), shown, detail).of_named_type())
}

fn validate_map_items(schema: &JsonSchemaProps<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let items_path = path.child("items");
    let items = match &schema.items {
        Some(Items::One(items)) => items,
        Some(items @ Items::Many(_)) => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            let error = FieldError::invalid(&items_path.field(), Value::Null, detail);
            errors.push(go_json::shown(error, go_json::bounded_items(items)));
            return;
        }
        None => {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::required(&items_path.field(), detail));
            return;
        }
    };
    if items.ty != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(&items_path.child("type").field(), items.ty, detail));
        return;
    }
    let keys_path = path.child("x-kubernetes-list-map-keys");
    let mut known = HashSet::with_capacity(schema.list_map_keys.len());
    for key in schema.list_map_keys {
        if is_enough(errors) {
            break;
        }
        let name = key.as_str().unwrap_or_default();
        match items.property(name) {
            Some(property) if matches!(property.ty, "array" | "object") => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let properties = items_path.child("properties");
                let path = properties.key(name);
                errors.push(FieldError::invalid(&path.child("type").field(), items.ty, detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(wrong_keys(&keys_path.field(), schema.list_map_keys, detail));
            }
        }
        if !known.insert(key) {
            let detail = "must not contain duplicate entries";
            errors.push(wrong_keys(&keys_path.field(), schema.list_map_keys, detail));
        }
    }
}

/// Each of many errors would show all keys, so their number is limited.
const MAX_SHOWN_KEYS: usize = 64;

fn wrong_keys(path: &FieldPath, keys: &[Value], detail: &str) -> FieldError {
    let error = FieldError::invalid(path, Value::Null, detail);
    let bad_value = (keys.len() <= MAX_SHOWN_KEYS).then(|| Value::from(keys));
    FieldError { bad_value, ..error }
}

/// Reports nullable items of sets and maps, and map items without required or defaulted keys.
pub(super) fn map_or_set_items(schema: &JsonSchemaProps<'_>, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (Some(items), Some(list_type @ ("set" | "map"))) = (schema.item(), schema.list_type) else {
        return errors;
    };
    let path = path.child("items");
    if items.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&path.child("nullable").field(), detail));
    }
    let properties = path.child("properties");
    if schema.list_map_keys.is_empty() || list_type != "map" {
        return errors;
    }
    let required: HashSet<&Value> = items.required.iter().collect();
    for key in schema.list_map_keys {
        if is_enough(&errors) {
            break;
        }
        let name = key.as_str().unwrap_or_default();
        let Some(property) = items.property(name) else { continue };
        let path = properties.key(name);
        if !required.contains(key) && property.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                          required property";
            errors.push(FieldError::required(&path.child("default").field(), detail));
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&path.child("nullable").field(), detail));
        }
    }
    errors
}

/// Validates a rule except for its expressions.
fn validate_rule(schema: &JsonSchemaProps<'_>, rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let has_newlines = |text: &str| text.contains(['\n', '\r']);
    let is_blank = |text: &str| !text.is_empty() && go_trim(text).is_empty();
    let (expression, message) = (go_trim(rule.str_at("rule")), rule.str_at("message"));
    let message_path = path.child("message");
    if expression.is_empty() {
        errors.push(FieldError::required(&path.child("rule").field(), "rule is not specified"));
    } else if is_blank(message) {
        errors.push(FieldError::invalid(&message_path.field(), message, "must be non-empty if specified"));
    } else if has_newlines(go_trim(message)) {
        errors.push(FieldError::invalid(&message_path.field(), message, "must not contain line breaks"));
    } else if has_newlines(expression) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(&message_path.field(), detail));
    }
    if is_blank(rule.str_at("messageExpression")) {
        let path = path.child("messageExpression").field();
        errors.push(FieldError::required(&path, "messageExpression must be non-empty if specified"));
    }
    let reason = rule.at("reason").and_then(Value::as_str);
    if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
        let error = FieldError::not_supported(&path.child("reason").field(), reason, &REASONS);
        errors.push(go_json::as_json(error));
    }
    let field_path = rule.str_at("fieldPath");
    let mut wrong_path = |detail: &str| {
        errors.push(FieldError::invalid(&path.child("fieldPath").field(), field_path, detail));
    };
    if is_blank(field_path) {
        wrong_path("must be non-empty if specified");
    }
    if has_newlines(field_path) {
        wrong_path("must not contain line breaks");
    }
    let is_unknown = || {
        structural_rules::unreadable(schema).is_none()
            && valid_path::follow(field_path, schema, true).is_err()
    };
    if !field_path.is_empty() && is_unknown() {
        wrong_path("must be a valid path");
    }
}

/// Removes surrounding white space, by Go's definition of white space.
fn go_trim(text: &str) -> &str {
    text.trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(schema: Value, expected: &[&str]) {
        let props = JsonSchemaProps::read(&schema);
        let options = ValidationOptions::for_create();
        let errors: Vec<String> =
            validate_schema(&props, &Path::new("s"), &options, None, false, &CompileEffort::new())
                .iter()
                .map(ToString::to_string)
                .collect();
        assert_eq!(errors, expected, "{schema}");
    }

    #[test]
    fn lists_declare_the_keys_of_their_items() {
        let map = |more: Value, items: Value| {
            let mut schema = json!({"type": "array", "x-kubernetes-list-type": "map", "items": items});
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema
        };
        let keys = json!({"x-kubernetes-list-map-keys": ["a"]});
        let item = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        check(map(keys.clone(), item.clone()), &[]);
        check(
            map(json!({}), item),
            &[
                "s.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            ],
        );
        check(
            map(
                keys.clone(),
                json!({"type": "object", "properties": {"a": {"type": "string", "nullable": true}}}),
            ),
            &[
                "s.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it \
                 must have a default or be a required property",
                "s.items.properties[a].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it \
                 cannot be nullable",
            ],
        );
        check(
            json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
            &["s.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with \
               x-kubernetes-list-type=set"],
        );
        check(
            json!({"x-kubernetes-list-type": "bag"}),
            &[
                "s.type: Required value: must be array if x-kubernetes-list-type is specified",
                r#"s.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map""#,
            ],
        );
    }

    #[test]
    fn defaults_of_metadata_are_not_the_definitions() {
        let schema = json!({"type": "object", "properties": {
            "kind": {"type": "string", "default": "K"},
            "e": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": {
                "type": "object",
                "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}}},
            }}},
        }});
        check(
            schema,
            &[
                "s.properties[e].properties[metadata].properties[labels].additionalProperties.default: Forbidden: must \
                 not be set inside additionalProperties applying to object metadata",
                "s.properties[kind].default: Forbidden: must not be set in top-level kind",
            ],
        );
    }

    #[test]
    fn rules_are_complete() {
        let rule = |rule: Value| json!({"type": "object", "x-kubernetes-validations": [rule]});
        check(rule(json!({"rule": "true"})), &[]);
        check(
            rule(json!({"rule": " "})),
            &["s.x-kubernetes-validations[0].rule: Required value: rule is not specified"],
        );
        check(
            rule(json!({"rule": "a\n||b"})),
            &[
                "s.x-kubernetes-validations[0].message: Required value: message must be specified if rule contains \
               line breaks",
            ],
        );
        check(
            rule(json!({"rule": "true", "fieldPath": ".x", "reason": "R"})),
            &[
                "s.x-kubernetes-validations[0].reason: Unsupported value: \"R\": supported values: \
                 \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
                "s.x-kubernetes-validations[0].fieldPath: Invalid value: \".x\": must be a valid path",
            ],
        );
    }
}
