//! YAML, which is converted to JSON and then decoded as JSON, as in the reference.
//!
//! Scalars resolve as in YAML 1.1: `y`, `no` and `on` are booleans, `010` is eight. Keys become strings. Maps are
//! sorted by key, so problems are reported in that order; of a duplicate key the last value counts. Only the first
//! document of a stream is read. The output has the form of Go's library: keys in natural order, literal blocks for
//! text of several lines, lines folded at 80 columns.

mod emit;
mod flow;
mod parse;
mod resolve;

use pintle_schema::SchemaRef;
use pintle_tree::Value;

use super::error::{DecodeError, Decoded, StrictProblem};
use super::json;
use super::weight::Weight;

/// A YAML document converted to JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// The JSON text.
    pub json: Vec<u8>,
    /// Duplicate keys, as one problem; reported before the problems of the JSON decoder.
    pub problems: Vec<StrictProblem>,
}

/// Converts the first document to JSON, or to `null` when there is none. The size is bounded in proportion to the text,
/// even when aliases repeat values.
///
/// # Errors
/// When the text is not YAML, or its value takes too much memory.
pub fn to_json(text: &[u8]) -> Result<Converted, DecodeError> {
    to_json_within(text, Weight::of_body(text.len()))
}

/// As [`to_json`], for the response to a request of `question` bytes: the memory of the value is bounded as for a body of
/// twice that size.
///
/// # Errors
/// As [`to_json`].
pub fn answer_to_json(text: &[u8], question: usize) -> Result<Converted, DecodeError> {
    to_json_within(text, Weight::of_answer(question))
}

/// As [`to_json`], without a memory bound, for texts that this server wrote.
///
/// # Errors
/// When the text is not YAML.
pub fn own_to_json(text: &[u8]) -> Result<Converted, DecodeError> {
    to_json_within(text, Weight::UNLIMITED)
}

fn to_json_within(text: &[u8], weight: Weight) -> Result<Converted, DecodeError> {
    let parsed = parse::parse(text, weight)?;
    let problems = match parsed.duplicates.is_empty() {
        true => Vec::new(),
        false => vec![StrictProblem::Yaml(parsed.duplicates)],
    };
    Ok(Converted { json: json::encode_any(&parsed.value), problems })
}

/// Decodes the first document as the type that the schema describes.
///
/// # Errors
/// When the text is not YAML, or not an object of that type.
pub fn decode(text: &[u8], schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    decode_converted(to_json(text)?, schema)
}

/// As [`decode`], for a document that has been converted to JSON already.
///
/// # Errors
/// When it is not an object of that type.
pub fn decode_converted(converted: Converted, schema: SchemaRef<'_>) -> Result<Decoded, DecodeError> {
    let Converted { json, mut problems } = converted;
    let decoded = json::decode(&json, schema)?;
    problems.extend(decoded.problems);
    Ok(Decoded { problems, ..decoded })
}

/// Encodes an object as YAML.
pub fn encode(tree: &Value, schema: SchemaRef<'_>) -> Vec<u8> {
    // The JSON encoder decides which fields are omitted and which are always written.
    encode_any(&json::to_value(tree, schema))
}

/// Converts a JSON text to YAML.
///
/// # Errors
/// When the text is not JSON.
pub fn from_json(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    match json::decode_raw(text) {
        Ok(value) => Ok(encode_any(&value)),
        Err(error) => Err(*error),
    }
}

/// Encodes a value without a schema as YAML.
pub fn encode_any(value: &Value) -> Vec<u8> {
    emit::emit(value).into_bytes()
}

#[cfg(test)]
mod tests;
