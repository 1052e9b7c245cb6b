//! Finds formats that the server does not support: they are accepted and never checked, with a warning.

use super::json_schema_props::JsonSchemaProps;
use super::spec::Spec;
use pintle_go_forms::quote;
use pintle_machinery::Value;
use std::collections::HashSet;

/// The supported string formats, without dashes as in comparisons.
const TEXT_FORMATS: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Returns a warning for each unsupported format in a definition, in the order of the schemas. Formats that the old
/// definition also has cause no warning.
pub(super) fn warnings(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let known: HashSet<String> = old.map(unrecognized).into_iter().flatten().collect();
    let new = unrecognized(definition).into_iter().filter(|format| !known.contains(format));
    new.map(|format| format!("unrecognized format {}", quote(&format))).collect()
}

fn unrecognized(definition: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Spec::of(definition).any_schema(|schema| {
        if !is_recognized(schema) {
            found.push(schema.format.to_owned());
        }
        false
    });
    found
}

fn is_recognized(schema: &JsonSchemaProps<'_>) -> bool {
    match (schema.ty, schema.format) {
        (_, "") => true,
        ("" | "string", format) => {
            let normalized = format.replace('-', "");
            TEXT_FORMATS.contains(&normalized.as_str())
        }
        ("integer", format) => matches!(format, "int32" | "int64"),
        ("number", format) => matches!(format, "float" | "double"),
        _ => false,
    }
}
