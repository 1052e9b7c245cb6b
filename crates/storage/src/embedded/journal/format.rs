//! The format of the journal. All numbers are little-endian, all checksums CRC-32.
//!
//! ```text
//! segment: header | batch | batch | ...            the header and each batch begin at a multiple of 512
//! header:  "ptlejrnl" | version u32 | 0 u32 | number u64 | salt u64 | first u64 | base u64 | checksum u32
//! batch:   salt u64 | first u64 | count u32 | length u32 | checksum of the writes u32 | checksum u32 | writes
//! write:   kind u8 | create revision u64 | previous u64 | expires u64 | checksum column of the value u64
//!          | length of the key u32 | length of the value u32 | key | value, as the database has it
//! ```
//!
//! `first` is the revision of the first write; later writes have the following ones. The writes up to `base` were
//! durable in the database when the segment was begun. The salt is random: the remains of an earlier segment in the
//! same file, or a client's own bytes, never pass for a batch of this segment.

use super::super::{
    row::Entry,
    schema::{kind, kind_number},
};
use crate::{Key, Revision};

/// The alignment of headers and batches, in bytes: a disk writes a sector as a whole or not at all.
pub(in super::super) const SECTOR: usize = 512;
pub(in super::super) const BATCH_HEADER: usize = 32;
const MAGIC: [u8; 8] = *b"ptlejrnl";
const VERSION: u32 = 1;
/// The number of bytes of a segment's header that its checksum covers.
const SUMMED: usize = 48;

/// The first sector of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct SegmentHeader {
    pub(in super::super) number: u64,
    pub(in super::super) salt: u64,
    pub(in super::super) first: Revision,
    pub(in super::super) base: Revision,
}

impl SegmentHeader {
    pub(in super::super) fn encode(&self) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        let numbers = [self.number, self.salt, self.first.0, self.base.0];
        let bytes = MAGIC
            .into_iter()
            .chain(VERSION.to_le_bytes())
            .chain([0; 4])
            .chain(numbers.into_iter().flat_map(u64::to_le_bytes));
        for (to, byte) in sector.iter_mut().zip(bytes) {
            *to = byte;
        }
        let checksum = sector.first_chunk::<SUMMED>().map_or(0, |summed| crc32fast::hash(summed));
        for (to, byte) in sector.iter_mut().skip(SUMMED).zip(checksum.to_le_bytes()) {
            *to = byte;
        }
        sector
    }

    /// Decodes a first sector; `None` when it is not one, or damaged.
    pub(in super::super) fn decode(sector: &[u8]) -> Option<SegmentHeader> {
        let mut bytes = Reader(sector);
        let known = bytes.take(8)? == MAGIC && bytes.u32()? == VERSION && bytes.u32()? == 0;
        let header = SegmentHeader {
            number: bytes.u64()?,
            salt: bytes.u64()?,
            first: Revision(bytes.u64()?),
            base: Revision(bytes.u64()?),
        };
        (known && bytes.u32()? == crc32fast::hash(sector.get(..SUMMED)?)).then_some(header)
    }
}

/// The header of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct BatchHeader {
    pub(in super::super) salt: u64,
    pub(in super::super) first: Revision,
    pub(in super::super) count: u32,
    /// The length of the writes, in bytes.
    pub(in super::super) length: u32,
    pub(in super::super) checksum: u32,
}

impl BatchHeader {
    pub(in super::super) fn encode(&self) -> [u8; BATCH_HEADER] {
        let mut header = [0; BATCH_HEADER];
        let bytes = self.salt.to_le_bytes().into_iter().chain(self.first.0.to_le_bytes());
        let numbers = [self.count, self.length, self.checksum];
        for (to, byte) in header.iter_mut().zip(bytes.chain(numbers.into_iter().flat_map(u32::to_le_bytes))) {
            *to = byte;
        }
        let checksum = header.first_chunk::<28>().map_or(0, |summed| crc32fast::hash(summed));
        for (to, byte) in header.iter_mut().skip(28).zip(checksum.to_le_bytes()) {
            *to = byte;
        }
        header
    }

    /// Decodes the header at the start of `bytes`; `None` unless it is intact and of a segment with this salt.
    pub(in super::super) fn decode(bytes: &[u8], salt: u64) -> Option<BatchHeader> {
        let summed = bytes.get(..28)?;
        let mut bytes = Reader(bytes);
        let header = BatchHeader {
            salt: bytes.u64()?,
            first: Revision(bytes.u64()?),
            count: bytes.u32()?,
            length: bytes.u32()?,
            checksum: bytes.u32()?,
        };
        let good = header.salt == salt && header.count > 0 && bytes.u32()? == crc32fast::hash(summed);
        good.then_some(header)
    }

    /// The revision of the last write.
    pub(in super::super) fn last(&self) -> Revision {
        Revision(self.first.0.saturating_add(u64::from(self.count)).saturating_sub(1))
    }
}

/// A write, in the form in which it is inserted into the database.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct JournaledWrite {
    pub(in super::super) entry: Entry,
    /// The column `checksum` of the value's row.
    pub(in super::super) checksum: i64,
    pub(in super::super) stored: Vec<u8>,
}

/// Appends a write to the writes of a batch.
pub(in super::super) fn encode_write(to: &mut Vec<u8>, entry: &Entry, checksum: i64, stored: &[u8]) {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    let key = entry.key.as_str().as_bytes();
    to.push(kind_number(entry.kind));
    for number in [entry.create_revision.0, entry.previous.0, entry.expires, checksum.cast_unsigned()] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to.extend_from_slice(&length(key));
    to.extend_from_slice(&length(stored));
    to.extend_from_slice(key);
    to.extend_from_slice(stored);
}

/// Decodes the writes of a batch whose header is intact; `None` when they are damaged.
pub(in super::super) fn decode_writes(header: &BatchHeader, writes: &[u8]) -> Option<Vec<JournaledWrite>> {
    if crc32fast::hash(writes) != header.checksum {
        return None;
    }
    let mut bytes = Reader(writes);
    let mut decoded = Vec::new();
    for number in 0..u64::from(header.count) {
        let revision = Revision(header.first.0.checked_add(number)?);
        let kind = kind(i64::from(*bytes.take(1)?.first()?))?;
        let (create_revision, previous) = (Revision(bytes.u64()?), Revision(bytes.u64()?));
        let (expires, checksum) = (bytes.u64()?, bytes.u64()?.cast_signed());
        let (key, stored) = (usize::try_from(bytes.u32()?).ok()?, usize::try_from(bytes.u32()?).ok()?);
        let key = Key::new(std::str::from_utf8(bytes.take(key)?).ok()?);
        let stored = bytes.take(stored)?.to_vec();
        let entry = Entry { revision, kind, key, create_revision, previous, expires };
        decoded.push(JournaledWrite { entry, checksum, stored });
    }
    bytes.0.is_empty().then_some(decoded)
}

struct Reader<'bytes>(&'bytes [u8]);

impl<'bytes> Reader<'bytes> {
    fn take(&mut self, length: usize) -> Option<&'bytes [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;

    fn writes() -> Vec<JournaledWrite> {
        [("/r/a", EventKind::Create, 0), ("/r/schlüssel", EventKind::Delete, 700)]
            .into_iter()
            .zip(7..)
            .map(|((key, kind, size), at)| JournaledWrite {
                entry: Entry {
                    revision: Revision(at),
                    kind,
                    key: Key::new(key),
                    create_revision: Revision(at - 2),
                    previous: Revision(at - 1),
                    expires: at * 1_000,
                },
                checksum: -5,
                stored: vec![7; size],
            })
            .collect()
    }

    fn batch() -> (BatchHeader, Vec<u8>) {
        let mut bytes = Vec::new();
        for JournaledWrite { entry, checksum, stored } in &writes() {
            encode_write(&mut bytes, entry, *checksum, stored);
        }
        let (length, checksum) = (bytes.len() as u32, crc32fast::hash(&bytes));
        (BatchHeader { salt: 3, first: Revision(7), count: 2, length, checksum }, bytes)
    }

    #[test]
    fn what_is_written_is_read() {
        let header = SegmentHeader { number: 1 << 40, salt: u64::MAX, first: Revision(8), base: Revision(6) };
        assert_eq!(SegmentHeader::decode(&header.encode()), Some(header));
        let (header, bytes) = batch();
        assert_eq!(BatchHeader::decode(&header.encode(), 3), Some(header));
        assert_eq!(BatchHeader::decode(&header.encode(), 4), None, "of another segment");
        assert_eq!(header.last(), Revision(8));
        assert_eq!(decode_writes(&header, &bytes), Some(writes()));
    }

    #[test]
    fn no_flipped_bit_and_no_cut_passes() {
        let segment = SegmentHeader { number: 2, salt: 9, first: Revision(8), base: Revision(6) }.encode();
        for bit in 0..(SUMMED + 4) * 8 {
            let mut segment = segment;
            segment[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&segment), None, "bit {bit}");
        }
        let (header, bytes) = batch();
        for bit in 0..BATCH_HEADER * 8 {
            let mut header = header.encode();
            header[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BatchHeader::decode(&header, 3), None, "bit {bit}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_writes(&header, &bytes), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            // With a valid checksum.
            let cut = &bytes[..length];
            let header = BatchHeader { checksum: crc32fast::hash(cut), ..header };
            assert_eq!(decode_writes(&header, cut), None, "{length} bytes");
        }
        assert_eq!(SegmentHeader::decode(&[0; SECTOR]), None);
        assert_eq!(BatchHeader::decode(&[0; BATCH_HEADER], 0), None, "no writes are no batch");
    }
}
