//! Compresses values in memory and on disk: [LZ4 blocks](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md) with
//! a dictionary of text that is common in Kubernetes objects.

use bytes::Bytes;
use lz4_flex::block::{
    compress_into_with_dict, compress_with_dict, decompress, decompress_with_dict, get_maximum_output_size,
};
use std::cell::RefCell;

/// Field names, as in managed fields, and other text that the objects of a cluster share. It must never change:
/// values on disk that are compressed with it need every byte of it. A better one would be another dictionary.
pub(crate) const DICTIONARY_1: &[u8] = include_bytes!("compression/dictionary_1.bin");

/// The largest value, in bytes, for which a thread keeps its buffer.
const MAX_SCRATCH: usize = 32 << 10;

thread_local! {
    /// A buffer for values of the usual size, whose compression mostly needs more room than the value.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The block of a value, which may be longer than the value.
pub(crate) fn compress(value: &[u8]) -> Vec<u8> {
    let with_scratch = |scratch: &RefCell<Vec<u8>>| {
        let room = &mut *scratch.borrow_mut();
        room.resize(room.len().max(get_maximum_output_size(value.len())), 0);
        let length = compress_into_with_dict(value, room, DICTIONARY_1).ok()?;
        room.get(..length).map(<[u8]>::to_vec)
    };
    let block = if value.len() <= MAX_SCRATCH { SCRATCH.with(with_scratch) } else { None };
    block.unwrap_or_else(|| compress_with_dict(value, DICTIONARY_1))
}

/// The value of `size` bytes that [`compress`] made the block of.
pub(crate) fn expand(block: &[u8], size: usize) -> Option<Vec<u8>> {
    decompress_with_dict(block, size, DICTIONARY_1).ok().filter(|value| value.len() == size)
}

/// The value of `size` bytes of a block without a dictionary, as older versions stored it.
pub(crate) fn expand_plain(block: &[u8], size: usize) -> Option<Vec<u8>> {
    decompress(block, size).ok().filter(|value| value.len() == size)
}

/// Bytes that are kept compressed in memory, where that saves much.
#[derive(Debug, Clone)]
pub struct Packed(Form);

#[derive(Debug, Clone)]
enum Form {
    Block { block: Box<[u8]>, size: usize },
    Plain(Bytes),
}

impl Packed {
    /// Compresses bytes, unless that saves less than a quarter of them.
    pub fn new(bytes: &Bytes) -> Packed {
        let block = compress(bytes);
        match block.len() <= bytes.len() / 4 * 3 {
            true => Packed(Form::Block { block: block.into(), size: bytes.len() }),
            false => Packed(Form::Plain(bytes.clone())),
        }
    }

    /// The bytes.
    pub fn unpack(&self) -> Bytes {
        match &self.0 {
            // A block of this process always has its value.
            Form::Block { block, size } => expand(block, *size).unwrap_or_default().into(),
            Form::Plain(bytes) => bytes.clone(),
        }
    }

    /// The number of bytes that are kept in memory.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Form::Block { block, .. } => block.len(),
            Form::Plain(bytes) => bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_come_back_and_what_does_not_shrink_is_kept() {
        let pod = include_bytes!("../benches/pods/pod.pb");
        for bytes in [&pod[..], &[b'a'; 100_000], &br#"{"f:metadata":{"f:labels":{".":{}}}}"#.repeat(3)] {
            let bytes = Bytes::copy_from_slice(bytes);
            let packed = Packed::new(&bytes);
            assert!(packed.memory() < bytes.len() / 4 * 3);
            assert_eq!(packed.unpack(), bytes);
        }
        for bytes in ["", "0123456789abcdef"] {
            let packed = Packed::new(&Bytes::from_static(bytes.as_bytes()));
            assert_eq!((packed.memory(), &packed.unpack()[..]), (bytes.len(), bytes.as_bytes()));
        }
    }
}
