//! Converts between bytes and trees, by schema: JSON, YAML, protobuf and CBOR.
//!
//! **The canonical tree.** A decoded tree holds the same facts as a Go struct, so that every reader can rely on its
//! form and two objects with the same meaning are equal:
//! - a field that is absent, or (if it is not a pointer) holds its zero value - `false`, `0`, `""`, an empty list or
//!   map, a struct of only zero values, the zero time, the quantity `0` - is not in the tree; the value of a pointer
//!   is, zero or not;
//! - unknown fields are not in the tree (they are reported), and neither is `null`, except where it is a value: in
//!   custom resources, and inside raw JSON;
//! - quantities, times, durations and base64 are in Go's printed form; a set of fields (`FieldsV1`) is the text of its JSON;
//! - items of lists and values of maps are kept, zero or not.
//!
//! Encoders accept any tree of the right types, omit zero values again, and write the fields that Go's encoder always
//! writes (`"status":{}`, `"creationTimestamp":null`) although the tree lacks them.

pub mod cbor;
mod error;
mod findings;
pub mod json;
pub(crate) mod number;
pub mod protobuf;
mod time;
mod weight;
pub mod yaml;

pub use error::{DecodeError, Decoded, EmptyField, StrictProblem};
pub use time::{Timestamp, parse_micro_time, parse_time};

use crate::quantity::Quantity;
pub(crate) use error::Fallible;
pub(crate) use weight::Weight;

/// The maximum depth of a tree, in levels. Walking and dropping a tree recurses, so this bounds the stack.
pub const MAX_DEPTH: usize = 256;

/// Returns a quantity in Go's printed form.
fn canonical_quantity(text: &str) -> Fallible<String> {
    match Quantity::parse(text) {
        Ok(quantity) => Ok(quantity.to_string()),
        Err(error) => Err(DecodeError::value(error.to_string())),
    }
}

#[cfg(test)]
pub(crate) mod random_tests;
#[cfg(test)]
mod tests;
