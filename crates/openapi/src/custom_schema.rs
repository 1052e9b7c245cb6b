//! Converts the schemas of custom resources to published OpenAPI schemas.
//!
//! OpenAPI 3 documents contain all of a declared schema, plus metadata and type fields, which definitions omit. OpenAPI
//! 2 is less expressive, and its clients reject unlisted properties. There a schema that allows more than its declared
//! properties is published without properties, and a nullable schema without a type
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#publish-validation-schema-in-openapi>).

use crate::{
    custom_definition::CustomResource, definitions::Dialect, descriptions::Descriptions, names::meta,
};
use pintle_machinery::{Map, Value, ValueExt, json};
use std::collections::BTreeMap;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// The members that combine schemas.
const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// The members that are published unchanged. A boolean that is false is omitted.
const PLAIN: [&str; 30] = [
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "nullable",
    "pattern",
    "required",
    "title",
    "type",
    "uniqueItems",
    EMBEDDED,
    INT_OR_STRING,
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    PRESERVE,
    "x-kubernetes-validations",
];

/// The definitions of a custom resource, its kind and its list, by name.
pub(crate) fn definitions(
    resource: &CustomResource<'_>,
    dialect: Dialect,
    descriptions: &Descriptions,
) -> BTreeMap<String, Value> {
    let kind = resource.kind.kind.as_str();
    let writer = Writer { dialect, descriptions };
    BTreeMap::from([
        (resource.model_name(kind), writer.kind(resource)),
        (resource.model_name(resource.list_kind), writer.list(resource)),
    ])
}

/// The built-in definitions that the definitions of a custom resource refer to.
pub(crate) fn references() -> [String; 2] {
    [meta("ListMeta"), meta("ObjectMeta")]
}

struct Writer<'a> {
    dialect: Dialect,
    descriptions: &'a Descriptions,
}

impl Writer<'_> {
    fn kind(&self, resource: &CustomResource<'_>) -> Value {
        let is_v2 = self.dialect == Dialect::V2;
        let is_open = |schema: &Value| resource.preserves_unknown_fields || schema.bool_at(PRESERVE);
        let mut value = match resource.schema.filter(|schema| !(is_v2 && is_open(schema))) {
            // Clients would consider listed properties complete.
            None => Map::from_iter([("type".to_owned(), json!("object"))]),
            Some(schema) => {
                let mut value = self.structural(schema);
                let properties = properties_of(&mut value);
                properties.insert("metadata", self.metadata("ObjectMeta", OBJECT_METADATA));
                self.add_type_meta(properties);
                value
            }
        };
        add_kind(&mut value, resource, &resource.kind.kind);
        value.into()
    }

    fn list(&self, resource: &CustomResource<'_>) -> Value {
        let kind = &resource.kind.kind;
        let items = json!({
            "type": "array",
            "description": format!("List of {}. More info: {CONVENTIONS}", resource.plural),
            "items": self.dialect.reference_to(&resource.model_name(kind)),
        });
        let metadata = self
            .metadata("ListMeta", &format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds"));
        let mut properties = Map::from_iter([("items".to_owned(), items), ("metadata".to_owned(), metadata)]);
        self.add_type_meta(&mut properties);
        let mut value = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("description".to_owned(), json!(format!("{} is a list of {kind}", resource.list_kind))),
            ("required".to_owned(), json!(["items"])),
            ("properties".to_owned(), properties.into()),
        ]);
        add_kind(&mut value, resource, resource.list_kind);
        value.into()
    }

    /// Converts a structural schema.
    fn structural(&self, schema: &Value) -> Map {
        let is_v2 = self.dialect == Dialect::V2;
        let (nullable, preserves) = (schema.bool_at("nullable"), schema.bool_at(PRESERVE));
        let mut value = plain(schema);
        if is_v2 {
            value.remove("default");
            value.remove("nullable");
        }
        let hides_inside = is_v2 && (nullable || preserves);
        if !hides_inside {
            if let Some(items) = schema.field("items") {
                value.insert("items", self.structural(items).into());
            }
            let properties = schema.map_at("properties");
            if !properties.is_empty() {
                let properties: Map = properties
                    .iter()
                    .map(|(name, property)| (name.clone(), self.structural(property).into()))
                    .collect();
                value.insert("properties", properties.into());
            }
        }
        match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => {
                value.insert("additionalProperties", self.structural(values).into());
            }
            Some(allowed @ Value::Bool(_)) => {
                value.insert("additionalProperties", allowed.clone());
            }
            _ => {}
        }
        match is_v2 {
            true => simplify(schema, nullable, preserves, &mut value),
            false => combine(schema, &mut value),
        }
        if schema.bool_at(EMBEDDED) && !(is_v2 && preserves) {
            self.embed(&mut value);
        }
        value
    }

    /// Adds type and metadata fields of an embedded resource.
    fn embed(&self, value: &mut Map) {
        let properties = properties_of(value);
        properties.insert(
            "apiVersion".to_owned(),
            json!({"type": "string", "description": format!("{EMBEDDED_API_VERSION} More info: {CONVENTIONS}#resources")}),
        );
        properties.insert(
            "kind".to_owned(),
            json!({"type": "string", "description": format!("{EMBEDDED_KIND} More info: {CONVENTIONS}#types-kinds")}),
        );
        properties.insert("metadata", self.metadata("ObjectMeta", OBJECT_METADATA));
        let required = value.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            for name in ["kind", "apiVersion"] {
                if !required.iter().any(|own| own == name) {
                    required.push(json!(name));
                }
            }
        }
    }

    fn metadata(&self, definition: &str, description: &str) -> Value {
        let reference = self.dialect.reference_to(&meta(definition));
        match self.dialect {
            Dialect::V2 => {
                let mut value = reference;
                value.set("description", description);
                value
            }
            Dialect::V3 => json!({"description": description, "allOf": [reference]}),
        }
    }

    /// Adds the type fields of every kind.
    fn add_type_meta(&self, properties: &mut Map) {
        for name in ["apiVersion", "kind"] {
            let mut property = Map::from_iter([("type".to_owned(), json!("string"))]);
            if let Some(description) = self.descriptions.field("io.k8s.api.core.v1.Pod", name) {
                property.insert("description", description);
            }
            properties.insert(name, property.into());
        }
    }
}

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const OBJECT_METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const EMBEDDED_API_VERSION: &str =
    "apiVersion defines the versioned schema of this representation of an object.";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In CamelCase.";

/// Copies the members that are published unchanged.
fn plain(schema: &Value) -> Map {
    let says_something = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    let member = |name: &str| match (name, schema.get(name)) {
        // For defaults, false is a value too, and so is an empty list.
        ("default", Some(value)) if !value.is_null() => Some(value),
        ("example", Some(value)) if !is_empty(value) => Some(value),
        ("example", _) => None,
        (_, value) => value.filter(|value| says_something(value)),
    };
    PLAIN.iter().filter_map(|name| Some(((*name).to_owned(), member(name)?.clone()))).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Removes alternatives and nullable types for OpenAPI 2.
fn simplify(schema: &Value, nullable: bool, preserves: bool, value: &mut Map) {
    let json_type = schema.str_at("type");
    let has_no_items = json_type == "array" && !value.contains_key("items");
    if nullable || has_no_items || (preserves && json_type == "object") {
        value.remove("type");
    }
    let values_may_be_null =
        schema.at("additionalProperties").is_some_and(|values| values.bool_at("nullable"));
    if values_may_be_null {
        value.remove("required");
    }
    if value.contains_key("properties")
        && let Some(Value::Array(required)) = value.get_mut("required")
    {
        let properties = schema.map_at("properties");
        let may_be_null = |name: &Value| {
            properties.get(name.as_str().unwrap_or_default()).is_some_and(|own| own.bool_at("nullable"))
        };
        required.retain(|name| !may_be_null(name));
        if required.is_empty() {
            value.remove("required");
        }
    }
}

/// Converts combined schemas. An integer-or-string schema gets its explicit alternatives.
fn combine(schema: &Value, value: &mut Map) {
    for junctor in JUNCTORS {
        let nested: Vec<Value> = schema.items_at(junctor).iter().map(nested).collect();
        if !nested.is_empty() {
            value.insert(junctor.to_owned(), nested.into());
        }
    }
    if let Some(not) = schema.field("not") {
        value.insert("not", nested(not));
    }
    if !schema.bool_at(INT_OR_STRING) {
        return;
    }
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let first = value.get("allOf").and_then(|all| all.get(0));
    if value.get("anyOf") == Some(&either) || first.and_then(|first| first.get("anyOf")) == Some(&either) {
        return;
    }
    if !value.contains_key("anyOf") {
        value.insert("anyOf", either);
        return;
    }
    let all = value.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.insert(0, json!({"anyOf": either}));
    }
}

/// Converts a schema that only restricts values.
fn nested(schema: &Value) -> Value {
    let mut value = plain(schema);
    if let Some(items) = schema.field("items") {
        value.insert("items", nested(items));
    }
    let properties = schema.map_at("properties");
    if !properties.is_empty() {
        let properties: Map =
            properties.iter().map(|(name, property)| (name.clone(), nested(property))).collect();
        value.insert("properties", properties.into());
    }
    for junctor in JUNCTORS {
        let inner: Vec<Value> = schema.items_at(junctor).iter().map(nested).collect();
        if !inner.is_empty() {
            value.insert(junctor.to_owned(), inner.into());
        }
    }
    if let Some(not) = schema.field("not") {
        value.insert("not", nested(not));
    }
    value.into()
}

fn properties_of(value: &mut Map) -> &mut Map {
    let properties = value.entry("properties").or_insert(Value::Null);
    if !properties.is_object() {
        *properties = json!({});
    }
    match properties {
        Value::Object(properties) => properties,
        _ => unreachable!("it was made an object above"),
    }
}

fn add_kind(value: &mut Map, resource: &CustomResource<'_>, kind: &str) {
    let own = json!([{"group": resource.kind.group, "version": resource.kind.version, "kind": kind}]);
    value.insert("x-kubernetes-group-version-kind", own);
    if !resource.selectable_fields.is_empty() {
        let fields: Vec<Value> =
            resource.selectable_fields.iter().map(|path| json!({"fieldPath": path})).collect();
        value.insert("x-kubernetes-selectable-fields", fields.into());
    }
}
