//! Protobuf, as the reference speaks it with its own clients and stores built-in kinds.
//!
//! A body is four magic bytes and a `runtime.Unknown` message: kind, apiVersion and the object's own message as bytes.
//! Messages are those that Go's generated code writes, to the byte: fields by number, map entries by key,
//! fields that are no pointers always, even when zero.

mod decode;
mod emptiness;
mod encode;
mod envelope;
mod wire;

pub use decode::{decode, decode_body, decode_message};
pub use emptiness::drop_empty;
pub use encode::{encode, encode_message};
pub use envelope::{PREFIX, SEAL_FOOT, Unknown, open, seal, seal_head, watch_frame};
pub use wire::{field_len, write_bytes as write_field, write_head as write_field_head};

#[cfg(test)]
mod tests;
