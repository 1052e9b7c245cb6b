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

/// What a strategic merge patch does with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PatchStrategy {
    /// Lists are merged by the merge key, or as sets.
    pub merge: bool,
    /// Keys that the patch does not list are dropped.
    pub retain_keys: bool,
    /// Replaced as a whole, said explicitly.
    pub replace: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Name,
    pub(crate) node: NodeId,
    /// Zero for fields without a protobuf number and those that came from an embedded struct.
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

/// A struct's part in its protobuf message.
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

/// A field in the order of names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByName {
    /// The first bytes of the name, which nearly always tell it from others without looking at it.
    pub(crate) prefix: u64,
    /// From the start of the struct's fields.
    pub(crate) offset: u16,
}

/// The first eight bytes of a name, ordered as names are.
pub(crate) fn name_prefix(name: &str) -> u64 {
    match name.as_bytes().first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            name.bytes().fold(0, |prefix, byte| prefix << 8 | u64::from(byte))
                << (8 * (8 - name.len()).min(7))
        }
    }
}
