//! CBOR ([RFC 8949]): an encoding between the reference and its clients, and of stored custom resources.
//!
//! A body is one data item behind the tag of self-described CBOR, 55799. Encoding is deterministic ([section 4.2.1]):
//! shortest heads and floats, map keys in the order of their encoding. Texts are byte strings, as the reference writes
//! them; the bytes of a `[]byte` field have tag 22 around them, so that a reader without a schema makes base64 of them.
//! Integers and floats stay apart, which JSON cannot do: `1.0` is a float.
//!
//! Decoding accepts text strings and byte strings alike, indefinite lengths, and tags. It refuses integers beyond 64
//! bits, infinities, `undefined`, and duplicate keys, which are errors here and no strict problems.
//!
//! [RFC 8949]: https://www.rfc-editor.org/rfc/rfc8949.html
//! [section 4.2.1]: https://www.rfc-editor.org/rfc/rfc8949.html#section-4.2.1

mod any;
mod decode;
mod diagnose;
mod encode;
mod items;
mod reader;
mod well_formed;
mod write;

pub use any::{decode_any, decode_any_body};
pub use decode::{decode, decode_body, type_meta};
pub use diagnose::diagnose;
pub use encode::{encode, encode_any};
pub use items::{list_foot, list_head, watch_frame, without_type_meta};

/// The head of the tag that encloses every encoded object.
pub const PREFIX: &[u8] = &[0xd9, 0xd9, 0xf7];

#[cfg(test)]
mod tests;
