//! Pending.
use pintle_machinery::{Value, codec::{DecodeError, Decoded}};
use pintle_schema::SchemaRef;
pub(super) fn decode(_: &[u8], _: SchemaRef<'_>) -> Result<Decoded, DecodeError> { Err(DecodeError::Yaml("pending".into())) }
pub(super) fn encode(v: &Value) -> Vec<u8> { v.to_string().into_bytes() }
