//! JSON: decodes and encodes objects as Go's `encoding/json` does.
//!
//! Decoding follows Go's decoder for structs, in one pass over the bytes: names are case-sensitive, unknown fields are
//! dropped and reported, `null` counts as absent. After the first value of a wrong type the rest is still parsed,
//! because a syntax error takes precedence. Encoding writes the same bytes as Go's encoder, HTML escapes included.

mod any;
mod compact;
mod convert;
mod decode;
mod encode;
mod fields;
mod object_writer;
mod parser;
mod plain;
mod raw_members;
mod write;
mod written;

pub use any::{decode_any, decode_any_answer, decode_any_body};
pub use compact::compact;
pub use convert::{from_value, indented, pretty, to_value};
pub use decode::{
    MapTypeMeta, TypeMeta, decode, decode_answer, decode_body, decode_merged, type_meta, type_metas,
};
pub use encode::{encode, encode_to};
pub use fields::{
    close_managed_fields, managed_fields_exceed_depth, open_managed_fields, sort_managed_fields,
};
pub use object_writer::{ObjectWriter, write_list, write_members, write_object};
pub use raw_members::raw_members;
pub(crate) use write::write_escaped;
pub use write::{encode_any, encode_exact, write_string};
pub use written::with_written_fields;

pub(crate) use any::{decode_plain, decode_raw, decode_within};
pub(crate) use decode::{is_zero, zero};
pub(crate) use encode::leaves_out;
pub(crate) use fields::{closed, fields_of_bytes, opened};
pub(crate) use parser::Parser;

#[cfg(test)]
mod tests;
