//! The shape of an OpenAPI 2 document, by which documents of other servers are read.
//!
//! Members that OpenAPI 2 does not have are dropped, except extensions (`x-…`), which may have any value. A member of a wrong
//! type makes the whole document unusable, as in kube-apiserver.

use pintle_machinery::{Map, Value};

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Any,
    Anys,
    Text,
    Texts,
    Flag,
    Number,
    Integer,
    /// A reference such as `#/definitions/NAME`.
    Reference,
    /// An object with these members and extensions.
    Object(&'static [(&'static str, &'static Shape)]),
    /// An object with any names.
    Named(&'static Shape),
    /// An object with names that are status codes.
    ByCode(&'static Shape),
    List(&'static Shape),
    /// One value or a list of them.
    OneOrMore(&'static Shape),
    /// A boolean or another value.
    FlagOr(&'static Shape),
}

/// One path.
pub(super) static PATH_ITEM: Shape = Shape::Object(&[
    ("$ref", &Shape::Reference),
    ("get", &OPERATION),
    ("put", &OPERATION),
    ("post", &OPERATION),
    ("delete", &OPERATION),
    ("options", &OPERATION),
    ("head", &OPERATION),
    ("patch", &OPERATION),
    ("parameters", &PARAMETERS),
]);

static OPERATION: Shape = Shape::Object(&[
    ("tags", &Shape::Texts),
    ("summary", &Shape::Text),
    ("description", &Shape::Text),
    ("externalDocs", &EXTERNAL_DOCS),
    ("operationId", &Shape::Text),
    ("consumes", &Shape::Texts),
    ("produces", &Shape::Texts),
    ("schemes", &Shape::Texts),
    ("parameters", &PARAMETERS),
    ("responses", &Shape::ByCode(&RESPONSE)),
    ("deprecated", &Shape::Flag),
    ("security", &Shape::List(&Shape::Named(&Shape::Texts))),
]);

static PARAMETERS: Shape = Shape::List(&PARAMETER);

/// One parameter.
pub(super) static PARAMETER: Shape = Shape::Object(&[
    ("$ref", &Shape::Reference),
    ("name", &Shape::Text),
    ("in", &Shape::Text),
    ("description", &Shape::Text),
    ("required", &Shape::Flag),
    ("schema", &SCHEMA),
    ("allowEmptyValue", &Shape::Flag),
    ("type", &Shape::Text),
    ("format", &Shape::Text),
    ("items", &ITEMS),
    ("collectionFormat", &Shape::Text),
    ("default", &Shape::Any),
    ("example", &Shape::Any),
    ("maximum", &Shape::Number),
    ("exclusiveMaximum", &Shape::Flag),
    ("minimum", &Shape::Number),
    ("exclusiveMinimum", &Shape::Flag),
    ("maxLength", &Shape::Integer),
    ("minLength", &Shape::Integer),
    ("pattern", &Shape::Text),
    ("maxItems", &Shape::Integer),
    ("minItems", &Shape::Integer),
    ("uniqueItems", &Shape::Flag),
    ("enum", &Shape::Anys),
    ("multipleOf", &Shape::Number),
]);

/// The items of a parameter or a header.
static ITEMS: Shape = Shape::Object(&[
    ("$ref", &Shape::Reference),
    ("type", &Shape::Text),
    ("format", &Shape::Text),
    ("items", &ITEMS),
    ("collectionFormat", &Shape::Text),
    ("default", &Shape::Any),
    ("maximum", &Shape::Number),
    ("exclusiveMaximum", &Shape::Flag),
    ("minimum", &Shape::Number),
    ("exclusiveMinimum", &Shape::Flag),
    ("maxLength", &Shape::Integer),
    ("minLength", &Shape::Integer),
    ("pattern", &Shape::Text),
    ("maxItems", &Shape::Integer),
    ("minItems", &Shape::Integer),
    ("uniqueItems", &Shape::Flag),
    ("enum", &Shape::Anys),
    ("multipleOf", &Shape::Number),
]);

static RESPONSE: Shape = Shape::Object(&[
    ("$ref", &Shape::Reference),
    ("description", &Shape::Text),
    ("schema", &SCHEMA),
    ("headers", &Shape::Named(&HEADER)),
    ("examples", &Shape::Named(&Shape::Any)),
]);

static HEADER: Shape = Shape::Object(&[
    ("description", &Shape::Text),
    ("type", &Shape::Text),
    ("format", &Shape::Text),
    ("items", &ITEMS),
    ("collectionFormat", &Shape::Text),
    ("default", &Shape::Any),
    ("maximum", &Shape::Number),
    ("exclusiveMaximum", &Shape::Flag),
    ("minimum", &Shape::Number),
    ("exclusiveMinimum", &Shape::Flag),
    ("maxLength", &Shape::Integer),
    ("minLength", &Shape::Integer),
    ("pattern", &Shape::Text),
    ("maxItems", &Shape::Integer),
    ("minItems", &Shape::Integer),
    ("uniqueItems", &Shape::Flag),
    ("enum", &Shape::Anys),
    ("multipleOf", &Shape::Number),
]);

static EXTERNAL_DOCS: Shape = Shape::Object(&[("description", &Shape::Text), ("url", &Shape::Text)]);

/// One schema.
pub(super) static SCHEMA: Shape = Shape::Object(&[
    ("$ref", &Shape::Reference),
    ("type", &Shape::OneOrMore(&Shape::Text)),
    ("format", &Shape::Text),
    ("title", &Shape::Text),
    ("description", &Shape::Text),
    ("nullable", &Shape::Flag),
    ("default", &Shape::Any),
    ("multipleOf", &Shape::Number),
    ("maximum", &Shape::Number),
    ("exclusiveMaximum", &Shape::Flag),
    ("minimum", &Shape::Number),
    ("exclusiveMinimum", &Shape::Flag),
    ("maxLength", &Shape::Integer),
    ("minLength", &Shape::Integer),
    ("pattern", &Shape::Text),
    ("maxItems", &Shape::Integer),
    ("minItems", &Shape::Integer),
    ("uniqueItems", &Shape::Flag),
    ("maxProperties", &Shape::Integer),
    ("minProperties", &Shape::Integer),
    ("required", &Shape::Texts),
    ("enum", &Shape::Anys),
    ("items", &Shape::OneOrMore(&SCHEMA)),
    ("allOf", &Shape::List(&SCHEMA)),
    ("oneOf", &Shape::List(&SCHEMA)),
    ("anyOf", &Shape::List(&SCHEMA)),
    ("not", &SCHEMA),
    ("properties", &Shape::Named(&SCHEMA)),
    ("patternProperties", &Shape::Named(&SCHEMA)),
    ("additionalProperties", &Shape::FlagOr(&SCHEMA)),
    ("additionalItems", &Shape::FlagOr(&SCHEMA)),
    ("definitions", &Shape::Named(&SCHEMA)),
    ("discriminator", &Shape::Text),
    ("readOnly", &Shape::Flag),
    ("externalDocs", &EXTERNAL_DOCS),
    ("example", &Shape::Any),
]);

/// Whether a member is an extension.
pub(super) fn is_extension(name: &str) -> bool {
    name.starts_with("x-")
}

/// Removes what the shape does not have.
///
/// # Errors
/// The name of a value of a wrong type.
pub(super) fn conform(value: &mut Value, shape: &Shape) -> Result<(), String> {
    match (shape, &mut *value) {
        (Shape::Any, _)
        | (Shape::Text | Shape::Reference, Value::String(_))
        | (Shape::Flag | Shape::FlagOr(_), Value::Bool(_))
        | (Shape::Anys, Value::Array(_))
        | (Shape::Number, Value::Number(_)) => Ok(()),
        (Shape::Integer, Value::Number(number)) if number.is_i64() => Ok(()),
        (Shape::Texts, Value::Array(items)) => match items.iter().all(Value::is_string) {
            true => Ok(()),
            false => Err(String::new()),
        },
        (Shape::List(of) | Shape::OneOrMore(of), Value::Array(items)) => {
            items.iter_mut().try_for_each(|item| conform(item, of))
        }
        (Shape::OneOrMore(of) | Shape::FlagOr(of), one) => conform(one, of),
        (Shape::Object(members), Value::Object(object)) => conform_members(object, |name| {
            let found = members.iter().find(|(own, _)| *own == name).map(|(_, shape)| *shape);
            found.or_else(|| is_extension(name).then_some(&Shape::Any))
        }),
        (Shape::Named(of), Value::Object(object)) => conform_members(object, |_| Some(of)),
        (Shape::ByCode(of), Value::Object(object)) => conform_members(object, |name| match name {
            "default" => Some(*of),
            code if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit()) => Some(*of),
            _ => is_extension(name).then_some(&Shape::Any),
        }),
        _ => Err(String::new()),
    }
}

fn conform_members(
    object: &mut Map,
    shape_of: impl Fn(&str) -> Option<&'static Shape>,
) -> Result<(), String> {
    object.retain(|name, value| !value.is_null() && shape_of(name).is_some());
    for (name, value) in object.iter_mut() {
        let Some(shape) = shape_of(name) else { continue };
        conform(value, shape).map_err(|inner| match inner.is_empty() {
            true => format!("{name} has a wrong type"),
            // The path is for a log line: its start is enough.
            false if inner.len() > 200 => inner,
            false => format!("{name}: {inner}"),
        })?;
    }
    Ok(())
}

/// Calls `visit` for every reference.
pub(super) fn visit_references<'a>(value: &'a Value, shape: &Shape, visit: &mut dyn FnMut(&'a str)) {
    match (shape, value) {
        (Shape::Reference, Value::String(reference)) => visit(reference),
        (Shape::List(of) | Shape::OneOrMore(of), Value::Array(items)) => {
            items.iter().for_each(|item| visit_references(item, of, visit));
        }
        (Shape::OneOrMore(of) | Shape::FlagOr(of), one) => visit_references(one, of, visit),
        (Shape::Object(members), Value::Object(object)) => {
            for (name, shape) in *members {
                if let Some(value) = object.get(name) {
                    visit_references(value, shape, visit);
                }
            }
        }
        (Shape::Named(of), Value::Object(object)) => {
            object.values().for_each(|value| visit_references(value, of, visit));
        }
        (Shape::ByCode(of), Value::Object(object)) => {
            let members = object.iter().filter(|(name, _)| !is_extension(name));
            members.for_each(|(_, value)| visit_references(value, of, visit));
        }
        _ => {}
    }
}

/// Replaces references for which `replace` returns another.
pub(super) fn replace_references(value: &mut Value, shape: &Shape, replace: &dyn Fn(&str) -> Option<String>) {
    match (shape, &mut *value) {
        (Shape::Reference, Value::String(reference)) => {
            if let Some(other) = replace(reference) {
                *reference = other.into();
            }
        }
        (Shape::List(of) | Shape::OneOrMore(of), Value::Array(items)) => {
            items.iter_mut().for_each(|item| replace_references(item, of, replace));
        }
        (Shape::OneOrMore(of) | Shape::FlagOr(of), one) => replace_references(one, of, replace),
        (Shape::Object(members), Value::Object(object)) => {
            for (name, shape) in *members {
                if let Some(value) = object.get_mut(name) {
                    replace_references(value, shape, replace);
                }
            }
        }
        (Shape::Named(of), Value::Object(object)) => {
            object.values_mut().for_each(|value| replace_references(value, of, replace));
        }
        (Shape::ByCode(of), Value::Object(object)) => {
            let members = object.iter_mut().filter(|(name, _)| !is_extension(name));
            members.for_each(|(_, value)| replace_references(value, of, replace));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn unknown_members_are_dropped_and_wrong_types_refused() {
        let mut schema = json!({
            "type": ["string", "null"], "unknown": {"deep": 1}, "title": null, "x-own": {"$ref": 7},
            "properties": {"$ref": {"type": "string"}, "default": {"type": "integer", "also": 1}, "x-p": {"also": 1}},
            "items": [{"type": "string"}], "additionalProperties": false, "default": {"$ref": 1}, "maximum": 1.5,
        });
        conform(&mut schema, &SCHEMA).unwrap();
        let expected = json!({
            "type": ["string", "null"], "x-own": {"$ref": 7},
            "properties": {"$ref": {"type": "string"}, "default": {"type": "integer"}, "x-p": {}},
            "items": [{"type": "string"}], "additionalProperties": false, "default": {"$ref": 1}, "maximum": 1.5,
        });
        assert_eq!(schema, expected);
        let check = |shape: &Shape, mut value: Value, expected: &str| {
            assert_eq!(conform(&mut value, shape).unwrap_err(), expected, "{value}");
        };
        check(&SCHEMA, json!({"type": 1}), "type has a wrong type");
        check(
            &SCHEMA,
            json!({"properties": {"a": {"required": "b"}}}),
            "properties: a: required has a wrong type",
        );
        check(&SCHEMA, json!({"additionalProperties": 7}), "additionalProperties has a wrong type");
        check(&SCHEMA, json!({"maxLength": 1.5}), "maxLength has a wrong type");
        check(&SCHEMA, json!({"required": [1]}), "required has a wrong type");
        check(&SCHEMA, json!([]), "");
        check(&PATH_ITEM, json!({"get": {"responses": {"200": []}}}), "get: responses: 200 has a wrong type");
        let mut item = json!({"get": {"responses": {"200": {}, "2xx": 1, "x-a": 1}}, "trace": {}});
        conform(&mut item, &PATH_ITEM).unwrap();
        assert_eq!(item, json!({"get": {"responses": {"200": {}, "x-a": 1}}}));
    }

    #[test]
    fn references_are_found_where_schemas_are() {
        let mut item = json!({
            "parameters": [{"$ref": "#/parameters/p"}, {"in": "body", "schema": {"$ref": "#/definitions/A"}}],
            "get": {"responses": {"200": {"schema": {
                "properties": {"$ref": {"$ref": "#/definitions/B"}},
                "additionalProperties": {"items": {"$ref": "#/definitions/C"}},
                "allOf": [{"not": {"$ref": "#/definitions/D"}}],
                "default": {"$ref": "#/definitions/no"}, "x-y": {"$ref": "#/definitions/no"},
            }}}},
        });
        let mut found = Vec::new();
        visit_references(&item, &PATH_ITEM, &mut |reference| found.push(reference.to_owned()));
        found.sort();
        let all =
            ["#/definitions/A", "#/definitions/B", "#/definitions/C", "#/definitions/D", "#/parameters/p"];
        assert_eq!(found, all);
        replace_references(&mut item, &PATH_ITEM, &|reference| Some(format!("{reference}_v2")));
        let mut replaced = Vec::new();
        visit_references(&item, &PATH_ITEM, &mut |reference| replaced.push(reference.to_owned()));
        replaced.sort();
        assert_eq!(replaced, all.map(|reference| format!("{reference}_v2")));
        assert_eq!(item.to_string().matches("definitions/no\"").count(), 2);
    }
}
