//! Formats parts of definitions for messages as the reference does: in its internal version, encoded by Go as a struct
//! without field tags, with every field under its Go name, set or not.

use super::json_schema_props::{Dependency, Items, JsonSchemaProps, Named, SchemaOrBool};
use super::spec::{Parts, Spec};
use pintle_machinery::{FieldError, Value, ValueExt, codec::json};

/// The maximum number of schemas in a message; even a small schema makes a long text.
const MAX_SCHEMAS: usize = 4096;

/// Whether a schema is too large for a message.
fn is_too_large(schema: &JsonSchemaProps<'_>, count: &mut usize) -> bool {
    schema.has(&mut |_| {
        *count += 1;
        *count > MAX_SCHEMAS
    })
}

/// Adds the text of the value to the error, unless it is too large.
pub(super) fn shown(error: FieldError, text: Option<String>) -> FieldError {
    match text {
        Some(text) => error.shown_as(text),
        None => FieldError { bad_value: None, ..error },
    }
}

/// Formats the error's value as JSON even if it is a string, as the reference does for optional and enumerated strings.
pub(super) fn as_json(error: FieldError) -> FieldError {
    let text =
        error.bad_value.as_ref().map(|value| String::from_utf8_lossy(&json::encode_any(value)).into_owned());
    shown(error, text)
}

/// Formats a schema, if it is not too large.
pub(super) fn bounded_schema(schema: &JsonSchemaProps<'_>) -> Option<String> {
    (!is_too_large(schema, &mut 0)).then(|| self::schema(schema))
}

/// Formats the versions of a spec, if they are not too large.
pub(super) fn bounded_versions(spec: &Spec<'_>) -> Option<String> {
    let mut count = 0;
    let mut own = spec.versions.iter().filter_map(|version| version.own.schema());
    (!own.any(|schema| is_too_large(schema, &mut count))).then(|| versions(spec))
}

/// Formats `items`, if it is not too large.
pub(super) fn bounded_items(items: &Items<'_>) -> Option<String> {
    let mut count = 0;
    let is_small = match items {
        Items::One(schema) => !is_too_large(schema, &mut count),
        Items::Many(schemas) => !schemas.iter().any(|schema| is_too_large(schema, &mut count)),
    };
    is_small.then(|| self::items(items))
}

/// Formats a rule of `x-kubernetes-validations`.
pub(super) fn rule(rule: &Value) -> String {
    let mut out = Struct::new();
    out.text("Rule", rule.str_at("rule"));
    out.text("Message", rule.str_at("message"));
    out.text("MessageExpression", rule.str_at("messageExpression"));
    out.value("Reason", rule.at("reason"));
    out.text("FieldPath", rule.str_at("fieldPath"));
    out.value("OptionalOldSelf", rule.at("optionalOldSelf"));
    out.end()
}

/// Formats `items`.
fn items(items: &Items<'_>) -> String {
    let mut out = Struct::new();
    match items {
        Items::One(schema) => {
            out.raw("Schema", &self::schema(schema));
            out.raw("JSONSchemas", "null");
        }
        Items::Many(schemas) => {
            out.raw("Schema", "null");
            out.raw("JSONSchemas", &list(schemas.iter().map(schema), true));
        }
    }
    out.end()
}

/// Formats a schema.
fn schema(schema: &JsonSchemaProps<'_>) -> String {
    let mut out = Struct::new();
    let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let is_given = |name: &str| schema.get(name).is_some();
    let schemas =
        |name: &str, schemas: &[JsonSchemaProps<'_>]| list(schemas.iter().map(self::schema), is_given(name));
    let map = |name: &str, schemas: &Named<'_>| match is_given(name) {
        true => map(schemas),
        false => "null".to_owned(),
    };
    let unsupported = schema.unsupported.as_deref();
    out.text("ID", text("id"));
    out.text("Schema", text("$schema"));
    out.value("Ref", schema.get("$ref"));
    out.text("Description", text("description"));
    out.text("Type", schema.ty);
    out.flag("Nullable", schema.nullable);
    out.text("Format", schema.format);
    out.text("Title", text("title"));
    out.value("Default", schema.default);
    out.value("Maximum", schema.get("maximum"));
    out.flag("ExclusiveMaximum", flag("exclusiveMaximum"));
    out.value("Minimum", schema.get("minimum"));
    out.flag("ExclusiveMinimum", flag("exclusiveMinimum"));
    out.value("MaxLength", schema.get("maxLength"));
    out.value("MinLength", schema.get("minLength"));
    out.text("Pattern", schema.pattern);
    out.value("MaxItems", schema.get("maxItems"));
    out.value("MinItems", schema.get("minItems"));
    out.flag("UniqueItems", schema.unique_items);
    out.value("MultipleOf", schema.get("multipleOf"));
    out.value("Enum", schema.get("enum"));
    out.value("MaxProperties", schema.get("maxProperties"));
    out.value("MinProperties", schema.get("minProperties"));
    out.value("Required", schema.get("required"));
    out.optional("Items", schema.items.as_ref().map(items));
    out.raw("AllOf", &schemas("allOf", &schema.all_of));
    out.raw("OneOf", &schemas("oneOf", &schema.one_of));
    out.raw("AnyOf", &schemas("anyOf", &schema.any_of));
    out.optional("Not", schema.not.as_deref().map(self::schema));
    out.raw("Properties", &map("properties", &schema.properties));
    out.optional("AdditionalProperties", schema.additional_properties.as_ref().map(schema_or_bool));
    let patterns = unsupported.map(|own| map("patternProperties", &own.pattern_properties));
    out.optional("PatternProperties", patterns);
    let dependencies =
        unsupported.and_then(|unsupported| unsupported.dependencies.as_ref()).map(|dependencies| {
            let mut out = Struct::new();
            for (name, dependency) in dependencies {
                let mut either = Struct::new();
                match dependency {
                    Dependency::Schema(schema) => {
                        either.raw("Schema", &self::schema(schema));
                        either.raw("Property", "null");
                    }
                    Dependency::Properties(names) => {
                        either.raw("Schema", "null");
                        either.value("Property", Some(names));
                    }
                }
                out.raw(name, &either.end());
            }
            out.end()
        });
    out.optional("Dependencies", dependencies);
    let additional_items = unsupported.and_then(|unsupported| unsupported.additional_items.as_ref());
    out.optional("AdditionalItems", additional_items.map(schema_or_bool));
    out.optional("Definitions", unsupported.map(|own| map("definitions", &own.definitions)));
    let docs = schema.get("externalDocs").map(|docs| {
        let mut out = Struct::new();
        out.text("Description", docs.str_at("description"));
        out.text("URL", docs.str_at("url"));
        out.end()
    });
    out.optional("ExternalDocs", docs);
    out.value("Example", schema.get("example"));
    out.value("XPreserveUnknownFields", schema.get("x-kubernetes-preserve-unknown-fields"));
    out.flag("XEmbeddedResource", schema.embedded_resource);
    out.flag("XIntOrString", schema.int_or_string);
    out.value("XListMapKeys", schema.get("x-kubernetes-list-map-keys"));
    out.value("XListType", schema.get("x-kubernetes-list-type"));
    out.value("XMapType", schema.get("x-kubernetes-map-type"));
    out.raw("XValidations", &list(schema.validations.iter().map(rule), is_given("x-kubernetes-validations")));
    out.end()
}

/// Formats the versions of a spec; `null` when the list is absent.
fn versions(spec: &Spec<'_>) -> String {
    let versions = spec.versions.iter().map(|version| {
        let mut out = Struct::new();
        out.text("Name", version.name);
        out.flag("Served", version.tree.bool_at("served"));
        out.flag("Storage", version.tree.bool_at("storage"));
        out.flag("Deprecated", version.tree.bool_at("deprecated"));
        out.value("DeprecationWarning", version.tree.field("deprecationWarning"));
        parts(&mut out, &version.own);
        out.end()
    });
    list(versions, spec.tree.at("versions").is_some())
}

fn parts(out: &mut Struct, parts: &Parts<'_>) {
    let validation = parts.validation.as_ref().map(|validation| {
        let mut out = Struct::new();
        out.optional("OpenAPIV3Schema", validation.schema.as_ref().map(schema));
        out.end()
    });
    out.optional("Schema", validation);
    out.optional("Subresources", parts.subresources.map(subresources));
    let columns = parts.columns.iter().map(|column| {
        let mut out = Struct::new();
        for (name, own) in
            [("Name", "name"), ("Type", "type"), ("Format", "format"), ("Description", "description")]
        {
            out.text(name, column.str_at(own));
        }
        out.raw("Priority", &column.i64_at("priority").unwrap_or_default().to_string());
        out.text("JSONPath", column.str_at("jsonPath"));
        out.end()
    });
    out.raw("AdditionalPrinterColumns", &list(columns, false));
    let fields = parts.selectable_fields.iter().map(|field| {
        let mut out = Struct::new();
        out.text("JSONPath", field.str_at("jsonPath"));
        out.end()
    });
    out.raw("SelectableFields", &list(fields, false));
}

fn subresources(subresources: &Value) -> String {
    let mut out = Struct::new();
    out.optional("Status", subresources.field("status").map(|_| "{}".to_owned()));
    let scale = subresources.field("scale").map(|scale| {
        let mut out = Struct::new();
        out.text("SpecReplicasPath", scale.str_at("specReplicasPath"));
        out.text("StatusReplicasPath", scale.str_at("statusReplicasPath"));
        out.value("LabelSelectorPath", scale.field("labelSelectorPath"));
        out.end()
    });
    out.optional("Scale", scale);
    out.end()
}

fn schema_or_bool(either: &SchemaOrBool<'_>) -> String {
    let mut out = Struct::new();
    out.flag("Allows", either.allows);
    out.optional("Schema", either.schema.as_deref().map(schema));
    out.end()
}

fn map(named: &Named<'_>) -> String {
    let mut out = Struct::new();
    for (name, schema) in named {
        out.raw(name, &self::schema(schema));
    }
    out.end()
}

/// Formats a list; an empty one is `null` unless it was given.
fn list(items: impl Iterator<Item = String>, is_given: bool) -> String {
    let items: Vec<String> = items.collect();
    match items.is_empty() && !is_given {
        true => "null".to_owned(),
        false => format!("[{}]", items.join(",")),
    }
}

struct Struct(String);

impl Struct {
    fn new() -> Struct {
        Struct("{".to_owned())
    }

    fn raw(&mut self, name: &str, value: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_string(&mut self.0, name);
        self.0.push(':');
        self.0.push_str(value);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.raw(name, "");
        push_string(&mut self.0, text);
    }

    fn flag(&mut self, name: &str, flag: bool) {
        self.raw(name, if flag { "true" } else { "false" });
    }

    fn value(&mut self, name: &str, value: Option<&Value>) {
        self.raw(name, "");
        self.0.push_str(&String::from_utf8_lossy(&json::encode_any(value.unwrap_or(&Value::Null))));
    }

    fn optional(&mut self, name: &str, value: Option<String>) {
        self.raw(name, value.as_deref().unwrap_or("null"));
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn push_string(out: &mut String, text: &str) {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    json::write_string(&mut bytes, text);
    out.push_str(&String::from_utf8_lossy(&bytes));
}
