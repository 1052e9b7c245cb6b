//! Validates a tree against its type, with the messages of Kubernetes' structured merge. An applied configuration is
//! validated before it is merged.

use super::{
    atom::{Atom, Items, Scalar, Shape, Trees},
    path_element,
};
use crate::{
    Map, Text, Value, ValueExt,
    codec::{DecodeError, Decoded, json},
    field_path::push_name,
    restore,
    text::go_type,
};
use pintle_go_forms::{quote, shortest_decimal, shortest_scientific};
use pintle_schema::SchemaRef;
use std::collections::HashSet;
use std::fmt::Write as _;

/// Paths and messages of faults; empty for a valid tree.
pub(super) type Faults = Vec<(String, String)>;

/// The origin of the validated tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A client's configuration.
    Client,
    /// The object, which may have items twice.
    Object,
    /// The object in the middle of admission, which may also have fields that are dropped later.
    Admitted,
}

/// Validates a client's tree: finds values of wrong types, unknown fields, and items that are not distinguishable.
pub(super) fn validate(value: &Value, shape: Shape<'_>) -> Faults {
    let mut faults = Faults::new();
    node(value, shape, Origin::Client, &mut String::new(), &mut faults);
    faults
}

/// Validates an object: finds values of wrong types, and items of a kind that have no owners, such as objects in a set.
pub(super) fn validate_object(value: &Value, shape: Shape<'_>) -> Faults {
    let mut faults = Faults::new();
    node(value, shape, Origin::Object, &mut String::new(), &mut faults);
    faults
}

/// Validates an object as [`validate_object`] does, and finds unknown fields, too.
pub(super) fn validate_admitted(value: &Value, shape: Shape<'_>) -> Faults {
    let mut faults = Faults::new();
    node(value, shape, Origin::Admitted, &mut String::new(), &mut faults);
    faults
}

/// Whether [`validate_object`] finds nothing below the metadata, without the texts.
pub(super) fn fits_object(object: &Value, shape: Shape<'_>) -> bool {
    match (shape.atom(Some(object)), object) {
        (Atom::Map(members), Value::Object(object)) => object.iter().all(|(name, value)| {
            name.as_str() == "metadata" || members.member(name).is_none_or(|(shape, _)| fits(value, shape))
        }),
        _ => false,
    }
}

fn fits(value: &Value, shape: Shape<'_>) -> bool {
    if value.is_null() {
        return true;
    }
    match (shape.atom(Some(value)), value) {
        (Atom::Scalar(scalar), value) => scalar_fault(scalar, value).is_none(),
        (Atom::Map(members), Value::Object(object)) => object
            .iter()
            .all(|(name, value)| members.member(name).is_none_or(|(shape, _)| fits(value, shape))),
        (Atom::List(items), Value::Array(values)) => values.iter().all(|value| {
            let is_item = items.is_atomic() || items.element(value, Trees::Written).is_ok();
            is_item && fits(value, items.item())
        }),
        (Atom::Map(_) | Atom::List(_), _) => false,
    }
}

/// The maximum number of faults that are collected.
const MAX_FAULTS: usize = 1000;

/// Joins faults into one text.
pub(super) fn describe(faults: &[(String, String)]) -> String {
    let line = |(path, message): &(String, String)| match path.as_str() {
        "" => message.clone(),
        path => format!("{path}: {message}"),
    };
    match faults {
        [one] => line(one),
        many => {
            let mut text = "errors:".to_owned();
            for fault in many {
                text.push_str("\n  ");
                text.push_str(&line(fault));
            }
            if many.len() >= MAX_FAULTS {
                text.push_str("\n  and more errors");
            }
            text
        }
    }
}

fn node(value: &Value, shape: Shape<'_>, origin: Origin, path: &mut String, faults: &mut Faults) {
    if value.is_null() || faults.len() >= MAX_FAULTS {
        return;
    }
    let mut fail = |message: String| faults.push((path.clone(), message));
    match (shape.atom(Some(value)), value) {
        (Atom::Scalar(scalar), value) => {
            if let Some(message) = scalar_fault(scalar, value) {
                fail(message);
            }
        }
        (Atom::Map(members), Value::Object(object)) => {
            for (name, value) in object {
                let length = path.len();
                path.push('.');
                push_name(path, name);
                match members.member(name) {
                    // It was decoded by its type, and has the sets of fields as texts.
                    Some(_) if origin == Origin::Admitted && path == ".metadata" => {}
                    Some((shape, _)) => node(value, shape, origin, path, faults),
                    None if origin == Origin::Object => {}
                    None => {
                        faults.push((path.clone(), "field not declared in schema".to_owned()));
                        path.truncate(length);
                        return;
                    }
                }
                path.truncate(length);
            }
        }
        (Atom::Map(_), value) => fail(format!("expected map, got {}", pointer(value))),
        (Atom::List(items), Value::Array(values)) => list(items, values, origin, path, faults),
        (Atom::List(_), value) => fail(format!("expected list, got {}", pointer(value))),
    }
}

fn list(items: Items<'_>, values: &[Value], origin: Origin, path: &mut String, faults: &mut Faults) {
    let mut seen: HashSet<String> = HashSet::new();
    for (at, value) in values.iter().enumerate() {
        let length = path.len();
        if items.is_atomic() {
            // Writing to a string cannot fail.
            let _ = write!(path, "[{at}]");
        } else {
            let element = match items.element(value, Trees::Written) {
                Ok(element) => element,
                Err(error) => {
                    faults.push((path.clone(), format!("element {at}: {error}")));
                    return;
                }
            };
            let shown = path_element::display(&element);
            if origin == Origin::Client && !seen.insert(element) && faults.len() < MAX_FAULTS {
                faults.push((path.clone(), format!("duplicate entries for key {shown}")));
            }
            push_name(path, &shown);
        }
        node(value, items.item(), origin, path, faults);
        path.truncate(length);
    }
}

fn scalar_fault(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Numeric, value) => Some(format!("expected numeric (int or float), got {}", go_type(value))),
        (Scalar::String, value) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)))
        }
        (Scalar::Boolean, value) => Some(format!("expected boolean, got {}", pointer(value))),
        (Scalar::Any, value) => Some(format!("expected any scalar, got {}", pointer(value))),
    }
}

/// Go's `%v` for a pointer to a struct that holds the value.
fn pointer(value: &Value) -> String {
    format!("&{{{}}}", go_value(value))
}

/// Formats a value as Go's `%v`.
fn go_value(value: &Value) -> String {
    let members = |object: &Map| {
        let members: Vec<String> =
            object.iter().map(|(name, value)| format!("{name}:{}", go_value(value))).collect();
        members.join(" ")
    };
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => go_number(number),
        Value::String(text) => text.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(object) => format!("map[{}]", members(object)),
    }
}

/// Formats a value as Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => go_number(number),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(object) => {
            let members: Vec<String> =
                object.iter().map(|(name, value)| format!("{}:{}", quote(name), go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
    }
}

fn go_number(number: &pintle_tree::Number) -> String {
    match number.as_f64() {
        Some(double) if number.is_f64() => go_float(double),
        _ => number.to_string(),
    }
}

/// Formats a double as Go's `%v`: the shortest digits, with an exponent below -4 or above 5.
fn go_float(number: f64) -> String {
    let scientific = shortest_scientific(number);
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(-4..=5) | Err(_) => shortest_decimal(number),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
    }
}

/// Converts the numbers of a configuration as Kubernetes does: to 64-bit integers, or doubles.
pub(super) fn with_go_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if number.as_i64().is_none() && !number.is_f64() {
                *value = Value::from(number.as_f64().unwrap_or_default());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(with_go_numbers),
        Value::Object(object) => object.values_mut().for_each(with_go_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The canonical tree of a tree in JSON form.
pub(super) fn canonical(written: &Value, schema: SchemaRef<'_>) -> Result<Value, DecodeError> {
    decode(written, schema).map(|decoded| decoded.value)
}

/// Decodes a tree in JSON form. In the metadata of a custom resource, scalars that do not fit their fields are none.
fn decode(written: &Value, schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    let error = match json::from_value(written, schema) {
        Err(error) if schema.is_structural() => error,
        decoded => return decoded,
    };
    let metadata = written.get("metadata").and_then(Value::as_object).zip(schema.field("metadata"));
    let Some((metadata, field)) = metadata else { return Err(error) };
    let fits = |name: &Text, value: &Value| {
        let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        value.is_object() || value.is_array() || json::from_value(&alone, field.ty()).is_ok()
    };
    let metadata = metadata.iter().filter(|(name, value)| fits(name, value));
    let metadata: Map = metadata.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut written = written.clone();
    written.set("metadata", Value::Object(metadata));
    json::from_value(&written, schema)
}

/// Decodes the merge of an object and a configuration, both in JSON form.
///
/// # Errors
/// The message of Go's converter about a value that does not fit its type.
pub(super) fn restored(mut merged: Value, config: &Value, schema: SchemaRef<'_>) -> Result<Decoded, String> {
    let is_typed = !schema.is_structural();
    if is_typed && restore::has_wide_numbers(config) {
        restore::convert_numbers(&mut merged, schema);
    }
    let problem = || restore::problem(&merged, schema).filter(|_| is_typed);
    decode(&merged, schema).map_err(|error| problem().unwrap_or_else(|| error.to_string()))
}
