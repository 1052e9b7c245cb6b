//! The encodings of an object that the cache keeps.
//!
//! The objects that were written last are open: their JSON is shared with every reader, and with it the other encodings
//! that were asked for. The rest of a large resource is packed, a quarter to a third of the size. A packed object is
//! decompressed for each reader, which takes a few microseconds, and stays packed: a list of all objects would otherwise
//! need the memory of all of them. Only the length of one encoding is kept, for lists that begin with their length.

use crate::lazy_map::LazyMap;
use bytes::Bytes;
use pintle_storage::Packed;
use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies an encoding of an object other than its JSON: protobuf, another version, a Table row. The caller
/// assigns the numbers, which should be small, per resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepresentationId(pub u32);

/// The encodings of one object. Immutable, but for the representations that are added on first use.
#[derive(Debug)]
pub(crate) enum Contents {
    Open {
        json: Bytes,
        representations: LazyMap<RepresentationId, Bytes>,
        /// The JSON, compressed, if the storage has done that.
        packed: Option<Packed>,
    },
    Packed {
        packed: Packed,
        measured: Measured,
    },
}

/// The length of one encoding, the last that was measured. It is a fact about immutable contents, so that writers may
/// overwrite each other's.
#[derive(Debug, Default)]
pub(crate) struct Measured(AtomicU64);

impl Measured {
    /// The length; `None` if that of another encoding is kept, or none.
    fn get(&self, id: RepresentationId) -> Option<usize> {
        let value = self.0.load(Ordering::Relaxed);
        let (of, length) = ((value >> 32) as u32, value as u32);
        (of == id.0 && length > 0).then(|| length as usize - 1)
    }

    fn set(&self, id: RepresentationId, length: usize) {
        if let Some(length) = u32::try_from(length).ok().and_then(|length| length.checked_add(1)) {
            self.0.store(u64::from(id.0) << 32 | u64::from(length), Ordering::Relaxed);
        }
    }
}

impl Contents {
    pub(crate) fn open(json: Bytes, packed: Option<Packed>) -> Contents {
        Contents::Open { json, representations: LazyMap::default(), packed }
    }

    /// The contents of a compressed JSON.
    pub(crate) fn of_packed(packed: Packed) -> Contents {
        Contents::Packed { packed, measured: Measured::default() }
    }

    pub(crate) fn json(&self) -> Bytes {
        match self {
            Contents::Open { json, .. } => json.clone(),
            Contents::Packed { packed, .. } => packed.unpack(),
        }
    }

    pub(crate) fn representation<E>(
        &self,
        id: RepresentationId,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        match self {
            Contents::Open { representations, .. } => representations.get_or_try_init(id, make).cloned(),
            Contents::Packed { .. } => make(),
        }
    }

    /// The length of an encoding or of a part of it, which `measure` computes. That of packed contents is kept.
    pub(crate) fn measured<E>(
        &self,
        id: RepresentationId,
        measure: impl FnOnce() -> Result<usize, E>,
    ) -> Result<usize, E> {
        let Contents::Packed { measured, .. } = self else { return measure() };
        if let Some(length) = measured.get(id) {
            return Ok(length);
        }
        measure().inspect(|length| measured.set(id, *length))
    }

    pub(crate) fn existing_representation(&self, id: RepresentationId) -> Option<Bytes> {
        match self {
            Contents::Open { representations, .. } => representations.get(id).cloned(),
            Contents::Packed { .. } => None,
        }
    }

    /// The same contents, packed and without the other encodings; `None` if they are packed already.
    pub(crate) fn packed(&self) -> Option<Contents> {
        match self {
            Contents::Open { json, packed, .. } => {
                Some(Contents::of_packed(packed.clone().unwrap_or_else(|| Packed::new(json))))
            }
            Contents::Packed { .. } => None,
        }
    }

    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Contents::Packed { .. })
    }

    /// The bytes of the JSON, in all forms.
    pub(crate) fn json_memory(&self) -> usize {
        match self {
            Contents::Open { json, packed, .. } => json.len() + packed.as_ref().map_or(0, Packed::memory),
            Contents::Packed { packed, .. } => packed.memory(),
        }
    }

    /// The bytes of all encodings.
    pub(crate) fn memory(&self) -> usize {
        let others = match self {
            Contents::Open { representations, .. } => representations.values().map(Bytes::len).sum(),
            Contents::Packed { .. } => 0,
        };
        self.json_memory() + others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_the_last_measured_encoding_of_packed_contents_is_kept() {
        let open = Contents::open(Bytes::from_static(b"{}"), None);
        let packed = open.packed().unwrap();
        let measure = |contents: &Contents, id, length: usize| {
            let mut is_asked = false;
            let found = contents.measured(RepresentationId(id), || {
                is_asked = true;
                Ok::<_, ()>(length)
            });
            (found.unwrap(), is_asked)
        };
        assert_eq!([measure(&open, 1, 5), measure(&open, 1, 5)], [(5, true); 2]);
        assert_eq!([measure(&packed, 0, 0), measure(&packed, 0, 0)], [(0, true), (0, false)]);
        assert_eq!([measure(&packed, 1, 5), measure(&packed, 1, 5)], [(5, true), (5, false)]);
        assert_eq!([measure(&packed, 2, 7), measure(&packed, 1, 5)], [(7, true), (5, true)]);
        // A failure keeps nothing, and so does a length of more than 32 bits.
        assert_eq!(packed.measured(RepresentationId(3), || Err(())), Err(()));
        assert_eq!([measure(&packed, 3, 1 << 33), measure(&packed, 3, 1)], [(1 << 33, true), (1, true)]);
    }
}
