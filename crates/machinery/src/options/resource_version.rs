//! Resource versions: numbers to the server, opaque texts to everybody else.
//!
//! What is no number fails in three ways, by where it came from: a list is told so (400), anything else gets a 500,
//! because the API never gave the mistake a status of its own.

use super::query::parse_unsigned;
use crate::{FieldError, FieldPath, Status};

/// The version a get or a watch asks for; 0 when it is "" or `0`.
///
/// # Errors
/// 500 when it is no number.
pub fn parse_resource_version(text: &str) -> Result<u64, Status> {
    parse(text).map_err(Status::unknown)
}

/// The version a list asks for; 0 when it is "" or `0`.
///
/// # Errors
/// 400 when it is no number.
pub fn parse_list_resource_version(text: &str) -> Result<u64, Status> {
    parse(text).map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))
}

/// `metadata.resourceVersion` of an object that a client sent; 0 when it is absent.
///
/// # Errors
/// 500 when it is no number.
pub fn parse_object_resource_version(text: &str) -> Result<u64, Status> {
    match text {
        "" => Ok(0),
        text => parse_unsigned::<u64>(text).map_err(Status::unknown),
    }
}

fn parse(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    parse_unsigned::<u64>(text)
        .map_err(|error| FieldError::invalid(&FieldPath::new("resourceVersion"), text, error).to_string())
}
