//! Between bytes and trees, by schema: JSON, YAML and protobuf.
//!
//! **The canonical tree.** A decoded tree is what a Go struct would hold, so that every reader can rely on it and
//! two objects that mean the same are equal:
//! - a field that is absent, or (being no pointer) holds its zero value - `false`, `0`, `""`, an empty list or map,
//!   a struct of nothing but zero values, the zero time, the quantity `0` - is not in the tree; a pointer's value is, zero or not;
//! - fields the schema does not know are not in the tree (they are reported), and neither is `null`, except where
//!   it is a value: in custom resources, and inside raw JSON;
//! - quantities, times, durations and base64 are in the form Go prints them;
//! - items of lists and values of maps are kept, zero or not.
//!
//! Encoders accept any tree of the right types, leave out zero values again, and write what Go's encoder
//! always writes (`"status":{}`, `"creationTimestamp":null`) even though the tree does not have it.

mod base64;
mod config_kind;
mod duration;
mod error;
pub mod json;
pub(crate) mod number;
pub mod protobuf;
mod time;
mod weight;
pub mod yaml;

pub use config_kind::ConfigKind;
pub use duration::{format_duration, parse_duration};
pub use error::{DecodeError, Decoded, StrictProblem};
pub use time::{Timestamp, parse_micro_time, parse_time};

use crate::quantity::Quantity;
use error::Fallible;

/// How deep a tree may be. Walking and dropping a tree recurses, so this bounds the stack.
pub const MAX_DEPTH: usize = 256;

/// A quantity in the form that Go prints it in.
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
