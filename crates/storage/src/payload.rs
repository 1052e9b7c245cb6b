//! The value that goes through the layers of storage, and back in the event of its write.
//!
//! ```text
//!   registry            Payload { bytes: JSON, stored: protobuf made from the tree, decoded: labels and fields }
//!      │        ▲
//!      ▼        │ in the event of the write
//!   TransformedStorage  Payload { bytes: JSON, stored: ciphertext, decoded: labels and fields }
//!      │        ▲
//!      ▼        │ in the event of the write
//!   engine              writes the ciphertext
//! ```
//!
//! So the watch cache decodes no write of its own process again. Values that an engine has read, and writes of other
//! processes, have only bytes: their stored form.

use crate::Packed;
use bytes::Bytes;
use std::{any::Any, fmt, ops::Deref, sync::Arc};

/// A value: its bytes, and the results that its writer has computed from them.
#[derive(Clone, Default)]
pub struct Payload {
    /// The bytes. In a [`crate::TransformedStorage`] they are the value before its transformation.
    pub bytes: Bytes,
    /// The stored form of `bytes`, if it differs and is known. The writer to a [`crate::TransformedStorage`] may set it
    /// to the result of the first transformer, which is then not called.
    pub stored: Option<Bytes>,
    /// The compressed form of `bytes`, if an engine has read or written it.
    pub packed: Option<Arc<Packed>>,
    /// The contents of the object that `bytes` encode, if they are known. Only the layers above storage know the type.
    pub decoded: Option<Arc<dyn Any + Send + Sync>>,
    /// The [`crate::TransformedStorage`] that it was written through, or 0. Another one over the same engine, with another
    /// schema perhaps, cannot use the results of this one's writer.
    pub(crate) writer: u64,
}

impl Payload {
    /// A value with the results of its writer.
    pub fn new(bytes: Bytes, stored: Option<Bytes>, decoded: Option<Arc<dyn Any + Send + Sync>>) -> Payload {
        Payload { bytes, stored, packed: None, decoded, writer: 0 }
    }

    /// The bytes that an engine writes.
    pub fn stored_form(&self) -> &Bytes {
        self.stored.as_ref().unwrap_or(&self.bytes)
    }

    /// The contents of the object, if they are known and of this type.
    pub fn decoded<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.decoded.clone()?.downcast().ok()
    }

    /// Whether it has more than bytes, so that its event is worth more than the stored form.
    pub(crate) fn is_decoded(&self) -> bool {
        self.stored.is_some() || self.decoded.is_some()
    }

    /// Drops everything but the stored form: for history, which may be kept for long.
    pub(crate) fn keep_stored_form(&mut self) {
        if let Some(stored) = self.stored.take() {
            self.bytes = stored;
            self.packed = None;
        }
        self.decoded = None;
        self.writer = 0;
    }

    /// The memory that the bytes occupy, in bytes.
    pub(crate) fn size(&self) -> usize {
        let stored = self.stored.as_ref().filter(|stored| stored.as_ptr() != self.bytes.as_ptr());
        self.bytes.len() + stored.map_or(0, Bytes::len)
    }
}

impl Deref for Payload {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

impl<T: Into<Bytes>> From<T> for Payload {
    fn from(bytes: T) -> Payload {
        Payload { bytes: bytes.into(), ..Payload::default() }
    }
}

/// Compares the bytes, from which the other fields follow.
impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(f)
    }
}
