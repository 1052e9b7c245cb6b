//! Values as they are stored: compressed, where that makes them smaller.
//!
//! An object of Kubernetes is half names of fields (managed fields above all), and what a write costs is mostly bytes:
//! they are put into the log, summed, synced, copied into the database and synced again. So a value is compressed
//! ([LZ4 block](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)), by who writes it, before it waits for the
//! commit thread. Values of format version 2 and before are stored as they are, as here those that do not shrink.
//!
//! A row's `checksum` has a CRC-32 of what is stored in its lower 32 bits, and above them the value's size if it is
//! compressed.

use crate::Revision;
use bytes::Bytes;

/// Smaller values are stored as they are.
const MIN_COMPRESSED: usize = 128;

/// No value is larger, which SQLite could not store.
pub(super) const MAX_VALUE_BYTES: usize = 256 << 20;

/// What is stored of a value.
#[derive(Debug, Clone)]
pub(super) enum StoredValue {
    Plain(Bytes),
    Compressed {
        /// Of the value.
        size: u32,
        block: Vec<u8>,
    },
}

impl StoredValue {
    /// What a write stores of its value. One that deletes has none.
    pub(super) fn new(value: Option<&Bytes>) -> StoredValue {
        let Some(value) = value else { return StoredValue::empty() };
        if (MIN_COMPRESSED..=MAX_VALUE_BYTES).contains(&value.len())
            && let Ok(size) = u32::try_from(value.len())
        {
            let block = lz4_flex::block::compress(value);
            if block.len() < value.len() {
                return StoredValue::Compressed { size, block };
            }
        }
        StoredValue::Plain(value.clone())
    }

    /// What a delete stores.
    pub(super) fn empty() -> StoredValue {
        StoredValue::Plain(Bytes::new())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            StoredValue::Plain(value) => value,
            StoredValue::Compressed { block, .. } => block,
        }
    }

    /// The column of that name in the row of a revision.
    pub(super) fn checksum(&self, revision: Revision) -> i64 {
        let size = match self {
            StoredValue::Plain(_) => 0,
            StoredValue::Compressed { size, .. } => *size,
        };
        checksum(revision, size, self.bytes())
    }
}

/// The value that a row tells of, or `None` when it is damaged.
pub(super) fn read(revision: Revision, found: i64, stored: &[u8]) -> Option<Bytes> {
    let size = u32::try_from(found >> 32).ok()?;
    if checksum(revision, size, stored) != found {
        return None;
    }
    if size == 0 {
        return Some(Bytes::copy_from_slice(stored));
    }
    let size = usize::try_from(size).ok().filter(|size| *size <= MAX_VALUE_BYTES)?;
    let value = lz4_flex::block::decompress(stored, size).ok()?;
    (value.len() == size).then(|| Bytes::from(value))
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
