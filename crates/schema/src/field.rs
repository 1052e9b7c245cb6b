//! Fields of struct nodes.

use crate::node::{Name, NodeId};

/// When an encoder leaves a field out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Omit {
    /// Never: an absent field is written as its zero value (`""`, `0`, `null` for lists and maps).
    #[default]
    Never,
    /// When zero or absent, but a struct that is not a pointer is written all the same.
    Empty,
    /// When zero or absent, whatever its type.
    Zero,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PatchStrategy {
    /// Lists are merged by the merge key, or as sets.
    pub merge: bool,
    /// Keys that are not in the patch are dropped.
    pub retain_keys: bool,
    /// The value is replaced as a whole, declared explicitly.
    pub replace: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Name,
    pub(crate) node: NodeId,
    /// Zero for fields without a protobuf number and for fields of an embedded struct.
    pub(crate) number: u32,
    /// The embedded struct that a flattened field came from.
    pub(crate) embedded_in: Option<NodeId>,
    /// One more than an index into the schema's defaults; zero for none.
    pub(crate) default: u32,
    pub(crate) patch_merge_key: Name,
    pub(crate) patch_strategy: PatchStrategy,
    pub(crate) omit: Omit,
    pub(crate) pointer: bool,
    pub(crate) required: bool,
    pub(crate) optional: bool,
    pub(crate) topology_marked: bool,
}

/// A member of a struct's protobuf message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProtoMember {
    /// Offset of the field from the start of the struct's fields.
    Field { number: u32, offset: u32 },
    /// An embedded struct: flat in JSON, a message of its own in protobuf.
    Embedded { number: u32, node: NodeId },
}

impl ProtoMember {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Field { number, .. } | Self::Embedded { number, .. } => number,
        }
    }
}

/// A hash of a name, for the table of a struct's fields. It reads the first and the last bytes and the length, in which
/// nearly all names of a struct differ.
pub(crate) fn name_hash(name: &str) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let bytes = name.as_bytes();
    let (first, last) = if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
    } else {
        (bytes.iter().fold(0, |bytes, byte| bytes << 8 | u64::from(*byte)), 0)
    };
    let mixed = (first ^ last.rotate_left(32) ^ bytes.len() as u64).wrapping_mul(ODD);
    (mixed >> 32) as usize
}
