//! JSON.
//!
//! Decoding does what Go's decoder does with a struct, in one pass over the bytes: names are matched by case, unknown
//! fields dropped and reported, the first value of a wrong type remembered while the rest is still read
//! (for it may hold a syntax error, which comes first), `null` taken as absent. Encoding writes what
//! Go's encoder writes, to the byte, HTML escapes included.

mod any;
mod convert;
mod decode;
mod encode;
mod parser;

pub use any::{decode_any, decode_any_answer, decode_any_body};
pub use convert::{from_value, pretty, to_value};
pub use decode::{TypeMeta, decode, decode_body, type_meta};
pub use encode::{encode, encode_any, encode_to, write_string};

pub(crate) use any::{decode_plain, decode_raw, decode_within};
pub(crate) use decode::is_zero;

#[cfg(test)]
mod tests;
