//! Reads values of JSON with the errors of Go's decoder.

use pintle_go_forms::base64;
use pintle_machinery::{Value, text::go_json_type};
use x509_parser::prelude::{FromDer, X509Certificate};

/// A string of JSON; null is the empty one.
pub(crate) fn string(value: &Value) -> Result<String, String> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.to_string()),
        other => Err(wrong_type(other, "string")),
    }
}

/// A list of strings.
pub(crate) fn strings(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(string).collect(),
        other => Err(wrong_type(other, "[]string")),
    }
}

/// The error for a value of another type.
pub(crate) fn wrong_type(found: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {wanted}", go_json_type(found))
}

/// The certificates of a chain, in DER.
pub(crate) fn certificates(value: &Value) -> Result<Vec<Vec<u8>>, String> {
    let certificate = |text: String| {
        let der = base64::decode(&text)?;
        let is_whole = X509Certificate::from_der(&der).is_ok_and(|(rest, _)| rest.is_empty());
        if is_whole { Ok(der) } else { Err("x509: malformed certificate".to_owned()) }
    };
    strings(value)?.into_iter().map(certificate).collect()
}
