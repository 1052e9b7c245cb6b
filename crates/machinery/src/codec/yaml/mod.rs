//! YAML, which the reference turns into JSON and then reads as such.
//!
//! Scalars resolve as in YAML 1.1: `y`, `no` and `on` are booleans, `010` is eight. Keys become strings. Maps are
//! sorted by key on the way, so problems are reported in that order; of a key that comes twice the last one
//! counts. Only the first document of a stream is read. What is written is what Go's library writes: keys in
//! natural order, literal blocks for text of several lines, lines folded at 80 columns.

mod emit;
mod flow;
mod parse;
mod resolve;

use pintle_schema::SchemaRef;
use serde_json::Value;

use super::error::{DecodeError, Decoded, StrictProblem};
use super::json;
use super::weight::Weight;

/// A YAML document as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// The JSON text.
    pub json: Vec<u8>,
    /// Keys that came twice, as one problem; these are reported before what JSON's decoder finds.
    pub problems: Vec<StrictProblem>,
}

/// Turns the first document into JSON, which is not much larger than the text, whatever aliases repeat. No document at
/// all is `null`.
pub fn to_json(text: &[u8]) -> Result<Converted, DecodeError> {
    to_json_within(text, Weight::of_body(text.len()))
}

/// As [`to_json`], for what this server wrote.
pub fn own_to_json(text: &[u8]) -> Result<Converted, DecodeError> {
    to_json_within(text, Weight::UNLIMITED)
}

fn to_json_within(text: &[u8], weight: Weight) -> Result<Converted, DecodeError> {
    let parsed = parse::parse(text, weight)?;
    let problems = match parsed.duplicates.as_slice() {
        [] => Vec::new(),
        duplicates => {
            let message = format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  "));
            vec![StrictProblem::Yaml(message)]
        }
    };
    Ok(Converted { json: json::encode_any(&parsed.value), problems })
}

/// Reads the first document as the type that the schema describes.
pub fn decode(text: &[u8], schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    let Converted { json, mut problems } = to_json(text)?;
    let decoded = json::decode(&json, schema)?;
    problems.extend(decoded.problems);
    Ok(Decoded { value: decoded.value, problems })
}

/// The YAML of an object.
pub fn encode(tree: &Value, schema: SchemaRef<'_>) -> Vec<u8> {
    // The encoder for JSON knows what is left out and what is always written.
    encode_any(&json::to_value(tree, schema))
}

/// The YAML of a JSON text.
pub fn from_json(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    match json::decode_raw(text) {
        Ok(value) => Ok(encode_any(&value)),
        Err(error) => Err(*error),
    }
}

/// The YAML of a value without schema.
pub fn encode_any(value: &Value) -> Vec<u8> {
    emit::emit(value).into_bytes()
}

#[cfg(test)]
mod tests;
