//! The encodings of an object that the cache keeps.
//!
//! The objects that were written last are open: their JSON is shared with every reader, and with it the other encodings
//! that were asked for. The rest of a large resource is packed, a quarter to a third of the size. A packed object is
//! decompressed for each reader, which takes a few microseconds, and stays packed: a list of all objects would otherwise
//! need the memory of all of them.

use crate::lazy_map::LazyMap;
use bytes::Bytes;
use pintle_storage::Packed;

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
    Packed(Packed),
}

impl Contents {
    pub(crate) fn open(json: Bytes, packed: Option<Packed>) -> Contents {
        Contents::Open { json, representations: LazyMap::default(), packed }
    }

    pub(crate) fn json(&self) -> Bytes {
        match self {
            Contents::Open { json, .. } => json.clone(),
            Contents::Packed(packed) => packed.unpack(),
        }
    }

    pub(crate) fn representation<E>(
        &self,
        id: RepresentationId,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        match self {
            Contents::Open { representations, .. } => representations.get_or_try_init(id, make).cloned(),
            Contents::Packed(_) => make(),
        }
    }

    pub(crate) fn existing_representation(&self, id: RepresentationId) -> Option<Bytes> {
        match self {
            Contents::Open { representations, .. } => representations.get(id).cloned(),
            Contents::Packed(_) => None,
        }
    }

    /// The same contents, packed and without the other encodings; `None` if they are packed already.
    pub(crate) fn packed(&self) -> Option<Contents> {
        match self {
            Contents::Open { json, packed, .. } => {
                Some(Contents::Packed(packed.clone().unwrap_or_else(|| Packed::new(json))))
            }
            Contents::Packed(_) => None,
        }
    }

    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Contents::Packed(_))
    }

    /// The bytes of the JSON, in all forms.
    pub(crate) fn json_memory(&self) -> usize {
        match self {
            Contents::Open { json, packed, .. } => json.len() + packed.as_ref().map_or(0, Packed::memory),
            Contents::Packed(packed) => packed.memory(),
        }
    }

    /// The bytes of all encodings.
    pub(crate) fn memory(&self) -> usize {
        let others = match self {
            Contents::Open { representations, .. } => representations.values().map(Bytes::len).sum(),
            Contents::Packed(_) => 0,
        };
        self.json_memory() + others
    }
}
