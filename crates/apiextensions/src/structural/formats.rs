//! String formats that custom resources know; others are ignored
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation>).

use super::node::{Flags, JsonType, Node};

/// By the name without dashes, as formats are compared.
const STRING_FORMATS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether a node's format means anything for its type.
pub(super) fn is_supported(node: &Node, format: &str) -> bool {
    let ty = if node.flags.has(Flags::INT_OR_STRING) { None } else { node.ty };
    match ty {
        None | Some(JsonType::String) => STRING_FORMATS.contains(&format.replace('-', "").as_str()),
        Some(JsonType::Integer) => matches!(format, "int32" | "int64"),
        Some(JsonType::Number) => matches!(format, "float" | "double"),
        Some(JsonType::Array | JsonType::Boolean | JsonType::Object) => false,
    }
}
