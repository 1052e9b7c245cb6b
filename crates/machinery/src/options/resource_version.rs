//! Parses resource versions: numbers for the server, opaque texts for clients.
//!
//! The status of a malformed version depends on its origin: 400 for a list and for a get that no cache serves, 500
//! for all other requests, because the API never defined a status for this error.

use super::query::parse_unsigned;
use crate::{FieldError, FieldPath, Status};

/// The resourceVersion of a get or a watch; 0 when it is "" or `0`.
///
/// # Errors
/// 500 when it is not a number.
pub fn parse_resource_version(text: &str) -> Result<u64, Status> {
    parse(text).map_err(Status::unknown)
}

/// The resourceVersion of a written object; 0 when it is "" or `0`.
///
/// # Errors
/// 500 when it is not a number.
pub fn parse_written_resource_version(text: &str) -> Result<u64, Status> {
    match text {
        "" => Ok(0),
        text => parse_unsigned(text).map_err(Status::unknown),
    }
}

/// The resourceVersion of a list, or of a get that no cache serves; 0 when it is "" or `0`.
///
/// # Errors
/// 400 when it is not a number.
pub fn parse_list_resource_version(text: &str) -> Result<u64, Status> {
    parse(text).map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))
}

fn parse(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    parse_unsigned::<u64>(text)
        .map_err(|error| FieldError::invalid(&FieldPath::new("resourceVersion"), text, error).to_string())
}
