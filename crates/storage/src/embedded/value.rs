//! Stores values compressed, where that makes them smaller.
//!
//! About half of a Kubernetes object consists of field names (mostly in managed fields), and the cost of a write is
//! mostly bytes: they are journaled, written to the WAL, checksummed, synced, checkpointed into the database and
//! synced again. So the writer compresses a value ([LZ4
//! block](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)) before it waits for the commit thread, with a
//! dictionary of text that is common in objects. Values that do not shrink are stored unchanged, as are all values of
//! format versions 1 and 2; versions 3 and 4 had no dictionary.
//!
//! The lower 32 bits of a row's `checksum` are a CRC-32 of the stored bytes. If the value is compressed, the upper
//! bits are its size and, in bits 62 and 63, the number of the dictionary or 0.

use crate::{
    Packed, Payload, Revision,
    compression::{compress, expand_plain},
};
use bytes::Bytes;
use std::sync::Arc;

/// The bit in a value's size for dictionary 1: no value is that large.
const WITH_DICTIONARY_1: u32 = 1 << 30;
const DICTIONARIES: u32 = 3 << 30;

/// Smaller values are stored unchanged. In bytes.
const MIN_COMPRESSED: usize = 128;

/// The size of the largest value, in bytes; SQLite could not store a larger one.
pub(super) const MAX_VALUE_BYTES: usize = 256 << 20;

/// The stored form of a value.
#[derive(Debug, Clone)]
pub(super) enum StoredValue {
    Plain(Bytes),
    Compressed {
        /// The value's size, with the number of the dictionary in its upper bits.
        size: u32,
        block: Arc<[u8]>,
    },
}

impl StoredValue {
    /// The stored form of a write's value; a delete has none.
    pub(super) fn new(value: Option<&Bytes>) -> StoredValue {
        let Some(value) = value else { return StoredValue::empty() };
        if (MIN_COMPRESSED..=MAX_VALUE_BYTES).contains(&value.len())
            && let Ok(size) = u32::try_from(value.len())
        {
            let block = compress(value);
            if block.len() < value.len() {
                return StoredValue::Compressed { size: size | WITH_DICTIONARY_1, block };
            }
        }
        StoredValue::Plain(value.clone())
    }

    /// The stored form of a delete.
    pub(super) fn empty() -> StoredValue {
        StoredValue::Plain(Bytes::new())
    }

    /// The value, compressed; `None` unless that saves much.
    pub(super) fn packed(&self) -> Option<Packed> {
        match self {
            StoredValue::Plain(_) => None,
            StoredValue::Compressed { size, block } => {
                Packed::worthwhile(block, usize::try_from(size & !DICTIONARIES).ok()?)
            }
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            StoredValue::Plain(value) => value,
            StoredValue::Compressed { block, .. } => block,
        }
    }

    /// The column `checksum` in the row of a revision.
    pub(super) fn checksum(&self, revision: Revision) -> i64 {
        let size = match self {
            StoredValue::Plain(_) => 0,
            StoredValue::Compressed { size, .. } => *size,
        };
        checksum(revision, size, self.bytes())
    }
}

/// The value of a row, compressed if it was stored so.
pub(super) enum ReadValue {
    Plain(Bytes),
    Packed(Packed),
}

impl ReadValue {
    /// The value with its compressed form; `None` when it is damaged.
    pub(super) fn unpack(self) -> Option<Payload> {
        match self {
            ReadValue::Plain(value) => Some(value.into()),
            ReadValue::Packed(packed) => {
                let bytes = packed.try_unpack()?;
                Some(Payload { packed: Some(Arc::new(packed)), ..bytes.into() })
            }
        }
    }
}

/// Reads the value of a row, or `None` when it is damaged.
pub(super) fn read(revision: Revision, found: i64, stored: &[u8]) -> Option<Bytes> {
    read_packed(revision, found, stored)?.unpack().map(|value| value.bytes)
}

/// Reads the value of a row without decompressing it, or `None` when it is damaged.
pub(super) fn read_packed(revision: Revision, found: i64, stored: &[u8]) -> Option<ReadValue> {
    let size = u32::try_from(found >> 32).ok()?;
    if checksum(revision, size, stored) != found {
        return None;
    }
    if size == 0 {
        return Some(ReadValue::Plain(Bytes::copy_from_slice(stored)));
    }
    let dictionary = size & DICTIONARIES;
    let size = usize::try_from(size & !DICTIONARIES).ok().filter(|size| *size <= MAX_VALUE_BYTES)?;
    match dictionary {
        0 => expand_plain(stored, size).map(|value| ReadValue::Plain(value.into())),
        WITH_DICTIONARY_1 => Some(ReadValue::Packed(Packed::of_block(stored.into(), size))),
        _ => None,
    }
}

fn checksum(revision: Revision, size: u32, stored: &[u8]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&revision.0.to_be_bytes());
    if size != 0 {
        hasher.update(&size.to_be_bytes());
    }
    hasher.update(stored);
    i64::from(size) << 32 | i64::from(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_fault_vfs::Random;

    const AT: Revision = Revision(7);

    fn noise(size: usize) -> Bytes {
        let mut random = Random::new(3);
        (0..size).map(|_| random.number().to_be_bytes()[0]).collect()
    }

    #[test]
    fn values_come_back_whether_they_shrink_or_not() {
        let rows = [
            (Bytes::new(), false),
            (Bytes::from_static(b"k8s\0"), false),
            (Bytes::from(vec![0; MIN_COMPRESSED - 1]), false),
            (Bytes::from(vec![0; MIN_COMPRESSED]), true),
            (Bytes::from(r#"{"f:metadata":{"f:labels":{".":{}}}}"#.repeat(50)), true),
            (Bytes::from(vec![1; 3 << 20]), true),
            (noise(3_000), false),
            (noise(100_000), false),
        ];
        for (value, shrinks) in rows {
            let stored = StoredValue::new(Some(&value));
            let compressed = matches!(stored, StoredValue::Compressed { .. });
            assert_eq!(compressed, shrinks, "{} bytes", value.len());
            assert!(stored.bytes().len() <= value.len());
            assert_eq!(read(AT, stored.checksum(AT), stored.bytes()), Some(value));
        }
    }

    #[test]
    fn what_older_versions_stored_is_read() {
        // CRC-32 of the revision in eight bytes, and of the value.
        let stored = b"\0\0\0\0\0\0\0\x07one certain value";
        let plain = i64::from(crc32fast::hash(stored));
        assert_eq!(read(AT, plain, b"one certain value").as_deref(), Some(&b"one certain value"[..]));
        assert_eq!(read(Revision(8), plain, b"one certain value"), None);
        // Also of the value's size, and of its block: "a" and 299 copies of the previous byte.
        let (size, block) = (300, [0x1f, b'a', 1, 0, 255, 20, 0x50, b'a', b'a', b'a', b'a', b'a']);
        let stored = checksum(AT, size, &block);
        assert_eq!(read(AT, stored, &block), Some(Bytes::from(vec![b'a'; 300])));
    }

    #[test]
    fn the_dictionary_is_as_it_always_was() {
        assert_eq!(crc32fast::hash(crate::compression::DICTIONARY_1), 1_765_116_970);
        let pod = include_bytes!("../../benches/pods/pod.pb");
        let stored = StoredValue::new(Some(&Bytes::from_static(pod)));
        assert!(stored.bytes().len() * 5 < pod.len() * 2, "{} bytes", stored.bytes().len());
    }

    #[test]
    fn no_flipped_bit_is_another_value() {
        for value in [Bytes::from(vec![b'a'; 300]), noise(60)] {
            let stored = StoredValue::new(Some(&value));
            let (checksum, bytes) = (stored.checksum(AT), stored.bytes());
            for bit in 0..64 {
                assert_eq!(read(AT, checksum ^ (1 << bit), bytes), None, "bit {bit} of the checksum");
            }
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(read(AT, checksum, &bytes), None, "bit {bit}");
            }
        }
    }
}
