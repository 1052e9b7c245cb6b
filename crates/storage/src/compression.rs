//! Compresses values in memory and on disk: [LZ4 blocks](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md) with
//! a dictionary of text that is common in Kubernetes objects.

use bytes::Bytes;
use lz4_flex::block::{
    compress_into_with_dict, compress_with_dict, decompress, decompress_into_with_dict,
    get_maximum_output_size,
};
use std::{cell::RefCell, sync::Arc};

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
pub(crate) fn compress(value: &[u8]) -> Arc<[u8]> {
    let with_scratch = |scratch: &RefCell<Vec<u8>>| {
        let room = &mut *scratch.borrow_mut();
        room.resize(room.len().max(get_maximum_output_size(value.len())), 0);
        let length = compress_into_with_dict(value, room, DICTIONARY_1).ok()?;
        room.get(..length).map(Arc::from)
    };
    let block = if value.len() <= MAX_SCRATCH { SCRATCH.with(with_scratch) } else { None };
    block.unwrap_or_else(|| compress_with_dict(value, DICTIONARY_1).into())
}

/// The value of `size` bytes of a block without a dictionary, as older versions stored it.
pub(crate) fn expand_plain(block: &[u8], size: usize) -> Option<Vec<u8>> {
    decompress(block, size).ok().filter(|value| value.len() == size)
}

/// Bytes that are kept compressed in memory, where that saves much.
#[derive(Debug, Clone)]
pub struct Packed {
    form: Form,
    inserted: Option<Box<Insertion>>,
}

#[derive(Debug, Clone)]
enum Form {
    Block { block: Arc<[u8]>, size: usize },
    Plain(Bytes),
}

/// Bytes that belong between those of the block.
#[derive(Debug, Clone)]
struct Insertion {
    at: usize,
    text: Box<[u8]>,
}

impl Packed {
    /// Compresses bytes, unless that saves less than a quarter of them.
    pub fn new(bytes: &Bytes) -> Packed {
        let block = compress(bytes);
        Packed::worthwhile(&block, bytes.len())
            .unwrap_or_else(|| Packed { form: Form::Plain(bytes.clone()), inserted: None })
    }

    /// The `size` bytes that [`compress`] made the block of, unless that saves less than a quarter of them.
    pub(crate) fn worthwhile(block: &Arc<[u8]>, size: usize) -> Option<Packed> {
        (block.len() <= size / 4 * 3).then(|| Packed::of_block(Arc::clone(block), size))
    }

    /// The `size` bytes that [`compress`] made the block of.
    pub(crate) fn of_block(block: Arc<[u8]>, size: usize) -> Packed {
        Packed { form: Form::Block { block, size }, inserted: None }
    }

    /// The bytes with others inserted at a position, which must not be behind them. Only the last insertion counts.
    #[must_use]
    pub fn with_insertion(self, at: usize, text: &[u8]) -> Packed {
        Packed { inserted: Some(Box::new(Insertion { at, text: text.into() })), ..self }
    }

    /// The bytes.
    pub fn unpack(&self) -> Bytes {
        // A block of this process always has its value.
        self.try_unpack().unwrap_or_default()
    }

    /// The bytes; `None` if the block is not that of as many bytes.
    pub(crate) fn try_unpack(&self) -> Option<Bytes> {
        let (at, text) = self.inserted.as_deref().map_or((0, &[][..]), |found| (found.at, &found.text[..]));
        if let (Form::Plain(bytes), []) = (&self.form, text) {
            return Some(bytes.clone());
        }
        let mut out = vec![0; self.size()];
        let size = out.len() - text.len();
        let bare = out.get_mut(..size)?;
        match &self.form {
            Form::Block { block, .. } => {
                let expanded = decompress_into_with_dict(block, bare, DICTIONARY_1);
                expanded.ok().filter(|expanded| *expanded == size)?;
            }
            Form::Plain(bytes) => bare.copy_from_slice(bytes),
        }
        if !text.is_empty() {
            out.copy_within(at..size, at + text.len());
            out.get_mut(at..at + text.len())?.copy_from_slice(text);
        }
        Some(out.into())
    }

    /// The number of bytes.
    pub fn size(&self) -> usize {
        let size = match &self.form {
            Form::Block { size, .. } => *size,
            Form::Plain(bytes) => bytes.len(),
        };
        size + self.inserted.as_ref().map_or(0, |inserted| inserted.text.len())
    }

    /// The number of bytes that are kept in memory.
    pub fn memory(&self) -> usize {
        match &self.form {
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

    #[test]
    fn an_insertion_is_part_of_the_bytes() {
        let text = r#"{"metadata":{"name":"a"},"list":["#.to_owned() + &"1,".repeat(100) + "1]}";
        for packed in
            [Packed::new(&text.clone().into()), Packed::of_block(compress(text.as_bytes()), text.len())]
        {
            for at in [0, 23, text.len()] {
                let packed = packed.clone().with_insertion(at, b"inserted");
                let expected = format!("{}inserted{}", &text[..at], &text[at..]);
                assert_eq!((packed.size(), packed.unpack()), (expected.len(), expected.into()));
            }
        }
        let plain = Packed::new(&Bytes::from_static(b"ab")).with_insertion(1, b"-");
        assert_eq!(plain.unpack(), "a-b");
        assert_eq!(Packed::of_block((*b"\xf0").into(), 7).try_unpack(), None);
        assert_eq!(Packed::of_block(compress(text.as_bytes()), text.len() - 1).try_unpack(), None);
        assert_eq!(Packed::of_block(compress(text.as_bytes()), text.len() + 1).try_unpack(), None);
    }
}
