//! The envelope around a message: `runtime.Unknown` behind four magic bytes.

use super::wire::{BYTES, Reader, field_len, write_bytes, write_head, wrong_type};
use crate::codec::error::{DecodeError, Fallible};

/// The magic bytes that a body starts with.
pub const PREFIX: &[u8] = b"k8s\0";

/// An opened body: the type it declares, and the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown<'d> {
    /// `apiVersion`; empty where absent.
    pub api_version: String,
    /// `kind`; empty where absent.
    pub kind: String,
    /// The object's own message.
    pub raw: &'d [u8],
}

/// Opens a body.
///
/// # Errors
/// When the magic bytes are missing or the envelope is malformed.
pub fn open(body: &[u8]) -> Result<Unknown<'_>, DecodeError> {
    let message = match body.strip_prefix(PREFIX) {
        _ if body.is_empty() => return Err(DecodeError::Protobuf("empty data".to_owned())),
        None => {
            return Err(DecodeError::Protobuf(
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
                    .to_owned(),
            ));
        }
        Some([]) => return Err(DecodeError::Protobuf("empty body".to_owned())),
        Some(message) => message,
    };
    read(message).map_err(|error| *error)
}

fn read(message: &[u8]) -> Fallible<Unknown<'_>> {
    let mut unknown = Unknown::default();
    let mut reader = Reader::new(message);
    while let Some((number, wire_type)) = reader.tag("Unknown")? {
        let field = match number {
            1 => "TypeMeta",
            2 => "Raw",
            3 => "ContentEncoding",
            4 => "ContentType",
            _ => {
                reader.skip(wire_type)?;
                continue;
            }
        };
        if wire_type != BYTES {
            return Err(wrong_type(wire_type, field));
        }
        let bytes = reader.bytes()?;
        match number {
            1 => read_type_meta(bytes, &mut unknown)?,
            2 => unknown.raw = bytes,
            _ => {}
        }
    }
    Ok(unknown)
}

fn read_type_meta(message: &[u8], unknown: &mut Unknown<'_>) -> Fallible<()> {
    let mut reader = Reader::new(message);
    while let Some((number, wire_type)) = reader.tag("TypeMeta")? {
        let (slot, field) = match number {
            1 => (&mut unknown.api_version, "APIVersion"),
            2 => (&mut unknown.kind, "Kind"),
            _ => {
                reader.skip(wire_type)?;
                continue;
            }
        };
        if wire_type != BYTES {
            return Err(wrong_type(wire_type, field));
        }
        *slot = String::from_utf8_lossy(reader.bytes()?).into_owned();
    }
    Ok(())
}

/// Wraps a message into a body.
pub fn seal(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = seal_head(api_version, kind, message.len());
    out.reserve(message.len() + SEAL_FOOT.len());
    out.extend_from_slice(message);
    out.extend_from_slice(SEAL_FOOT);
    out
}

/// The bytes before a message of this length in a body; [`SEAL_FOOT`] follows the message.
pub fn seal_head(api_version: &str, kind: &str, message_len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(api_version.len() + kind.len() + 24);
    out.extend_from_slice(PREFIX);
    let mut type_meta = Vec::with_capacity(api_version.len() + kind.len() + 4);
    write_bytes(&mut type_meta, 1, api_version.as_bytes());
    write_bytes(&mut type_meta, 2, kind.as_bytes());
    write_bytes(&mut out, 1, &type_meta);
    write_head(&mut out, 2, message_len);
    out
}

/// The bytes after the message in a body: content encoding and content type are empty, which means protobuf.
pub const SEAL_FOOT: &[u8] = &[3 << 3 | BYTES, 0, 4 << 3 | BYTES, 0];

/// Encodes a watch event as a frame of a stream: its length in four bytes, big-endian, and the bare event. Only the
/// object in it, itself a body, has an envelope.
pub fn watch_frame(event_type: &str, object: &[u8]) -> Vec<u8> {
    let raw = field_len(object.len());
    let event = field_len(event_type.len()) + field_len(raw);
    let mut frame = Vec::with_capacity(4 + event);
    frame.extend_from_slice(&u32::try_from(event).unwrap_or(u32::MAX).to_be_bytes());
    write_bytes(&mut frame, 1, event_type.as_bytes());
    // `object` is a RawExtension, whose first field holds the bytes.
    write_head(&mut frame, 2, raw);
    write_bytes(&mut frame, 1, object);
    frame
}
