//! Protobuf: the encoding between the reference and its own clients, and of stored built-in kinds.
//!
//! A body is four magic bytes and a `runtime.Unknown` message: kind, apiVersion and the object's own message as bytes.
//! The messages have the same bytes as those of Go's generated code: fields by number, map entries by key, and fields
//! that are not pointers always, even when zero.

mod decode;
mod emptiness;
mod encode;
mod envelope;
mod go_names;
mod wire;

pub use decode::{decode, decode_body, decode_message};
pub use emptiness::drop_empty;
pub use encode::{encode, encode_message};
pub use envelope::{PREFIX, SEAL_FOOT, Unknown, open, seal, seal_head, watch_frame};
pub use wire::{field_len, write_bytes as write_field, write_head as write_field_head};

#[cfg(test)]
mod tests;
