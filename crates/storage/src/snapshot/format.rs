//! The contents of a snapshot, and their encoding.
//!
//! All numbers are big-endian.
//!
//! ```text
//! header   magic (8), format version (4), length of the fields (4), fields, CRC-32 of all of this (4)
//!          a field: length of its name (2), name, length of its value (4), value; unknown ones are skipped
//! record   tag 1 (1), length of the key (4), length of the value (4), create revision (8), mod revision (8),
//!          expires (8), CRC-32 of this head (4), key, value, CRC-32 of key and value (4)
//! ...
//! trailer  tag 2 (1), records (8), bytes of keys (8), bytes of values (8), CRC-32 of this head (4),
//!          SHA-256 of everything before it (32)
//! ```

use crate::{Key, Revision};
use bytes::Bytes;
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the format. A program reads only the versions it knows.
pub const FORMAT_VERSION: u32 = 1;

/// Not text, no byte order mark, and broken by a conversion of line ends.
pub(super) const MAGIC: [u8; 8] = *b"\x89PTLSN\r\n";

/// The largest lengths, in bytes; larger ones are damage. The engines have the same limit for values.
pub(super) const MAX_HEADER_BYTES: u32 = 1 << 16;
pub(super) const MAX_KEY_BYTES: u32 = 1 << 20;
pub(super) const MAX_VALUE_BYTES: u32 = 256 << 20;
/// Below the 63 bits that the engines have for revisions, so that revisions can still grow.
pub(super) const MAX_REVISION: u64 = u64::MAX >> 2;

/// The length in bytes of the part before a header's fields, before a record's key, and before a trailer's hash,
/// without the tag.
pub(super) const HEADER_HEAD: usize = 16;
pub(super) const RECORD_HEAD: usize = 36;
pub(super) const TRAILER_HEAD: usize = 28;

pub(super) const RECORD: u8 = 1;
pub(super) const TRAILER: u8 = 2;

/// The metadata of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The prefix of all keys, such as `/registry/`.
    pub prefix: String,
    /// The revision of the store at which the keys were read.
    pub revision: Revision,
    /// The time of the save, in milliseconds since 1970.
    pub saved: u64,
    /// The engine that was saved: `embedded` or `etcd`.
    pub source: String,
    /// The program that made the snapshot, with its version.
    pub program: String,
}

/// A key with its value, revisions and expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRecord {
    /// The key.
    pub key: Key,
    /// The value in its stored form.
    pub value: Bytes,
    /// The revision that created the key.
    pub create_revision: Revision,
    /// The revision that set the value.
    pub mod_revision: Revision,
    /// The expiry of the key, in milliseconds since 1970; zero is never.
    pub expires: u64,
}

/// The totals of a complete snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// The snapshot's metadata.
    pub header: SnapshotHeader,
    /// The number of keys.
    pub keys: u64,
    /// The size of all keys, in bytes.
    pub key_bytes: u64,
    /// The size of all values, in bytes.
    pub value_bytes: u64,
    /// The number of keys that expire.
    pub expiring: u64,
    /// The number of values of each form.
    pub forms: ValueForms,
    /// The size of the file, in bytes.
    pub file_bytes: u64,
    /// The SHA-256 of the whole file except the hash itself, in hexadecimal.
    pub sha256: String,
}

/// The number of values of each form, determined by their first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ValueForms {
    /// JSON objects.
    pub json: u64,
    /// Kubernetes' protobuf envelope.
    pub protobuf: u64,
    /// Encrypted at rest: reading them after a restore requires the keys.
    pub encrypted: u64,
    /// Anything else.
    pub other: u64,
}

impl ValueForms {
    pub(super) fn count(&mut self, value: &[u8]) {
        let count = match value {
            [b'{', ..] => &mut self.json,
            [b'k', b'8', b's', 0, ..] => &mut self.protobuf,
            value if value.starts_with(b"k8s:enc:") => &mut self.encrypted,
            _ => &mut self.other,
        };
        *count += 1;
    }
}

impl SnapshotHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        for (name, value) in [
            ("prefix", self.prefix.as_str()),
            ("revision", &self.revision.to_string()),
            ("saved", &self.saved.to_string()),
            ("source", &self.source),
            ("program", &self.program),
        ] {
            // The names are short, and a prefix is no longer than a key.
            fields.extend(u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes());
            fields.extend(name.as_bytes());
            fields.extend(u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
            fields.extend(value.as_bytes());
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT_VERSION.to_be_bytes());
        bytes.extend(u32::try_from(fields.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(fields);
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    /// Decodes the fields.
    pub(super) fn decode(mut fields: &[u8]) -> Result<SnapshotHeader, &'static str> {
        let (mut prefix, mut revision, mut saved, mut source, mut program) = (None, None, None, None, None);
        while !fields.is_empty() {
            let name = u16::from_be_bytes(take(&mut fields)?);
            let name = take_text(&mut fields, usize::from(name))?;
            let length = u32::from_be_bytes(take(&mut fields)?);
            let value = take_text(&mut fields, usize::try_from(length).unwrap_or(usize::MAX))?;
            let number = || value.parse::<u64>().map_err(|_| "a field of the header is no number");
            match name {
                "prefix" => prefix = Some(value.to_owned()),
                "revision" => revision = Some(Revision(number()?)),
                "saved" => saved = Some(number()?),
                "source" => source = Some(value.to_owned()),
                "program" => program = Some(value.to_owned()),
                _ => {}
            }
        }
        Ok(SnapshotHeader {
            prefix: prefix.ok_or("the header has no prefix")?,
            revision: revision
                .filter(|revision| (1..=MAX_REVISION).contains(&revision.0))
                .ok_or("the header has no revision that can be")?,
            saved: saved.ok_or("the header has no time")?,
            source: source.unwrap_or_default(),
            program: program.unwrap_or_default(),
        })
    }
}

/// A record without its key and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) key_length: u32,
    pub(super) value_length: u32,
    pub(super) create_revision: Revision,
    pub(super) mod_revision: Revision,
    pub(super) expires: u64,
}

impl RecordHead {
    pub(super) fn encode(&self) -> [u8; RECORD_HEAD + 1] {
        let mut bytes = [0; RECORD_HEAD + 1];
        let mut rest = bytes.as_mut_slice();
        put(&mut rest, &[RECORD]);
        put(&mut rest, &self.key_length.to_be_bytes());
        put(&mut rest, &self.value_length.to_be_bytes());
        put(&mut rest, &self.create_revision.0.to_be_bytes());
        put(&mut rest, &self.mod_revision.0.to_be_bytes());
        put(&mut rest, &self.expires.to_be_bytes());
        seal(&mut bytes);
        bytes
    }

    /// Decodes the bytes after the tag.
    pub(super) fn decode(bytes: &[u8; RECORD_HEAD]) -> Result<RecordHead, &'static str> {
        let mut rest = sealed(RECORD, bytes).ok_or("the head of a record fails its checksum")?;
        Ok(RecordHead {
            key_length: u32::from_be_bytes(take(&mut rest)?),
            value_length: u32::from_be_bytes(take(&mut rest)?),
            create_revision: Revision(u64::from_be_bytes(take(&mut rest)?)),
            mod_revision: Revision(u64::from_be_bytes(take(&mut rest)?)),
            expires: u64::from_be_bytes(take(&mut rest)?),
        })
    }
}

/// The counts of a trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) keys: u64,
    pub(super) key_bytes: u64,
    pub(super) value_bytes: u64,
}

impl Counts {
    pub(super) fn add(&mut self, record: &SnapshotRecord) {
        self.keys += 1;
        self.key_bytes += record.key.as_str().len() as u64;
        self.value_bytes += record.value.len() as u64;
    }

    pub(super) fn encode(&self) -> [u8; TRAILER_HEAD + 1] {
        let mut bytes = [0; TRAILER_HEAD + 1];
        let mut rest = bytes.as_mut_slice();
        put(&mut rest, &[TRAILER]);
        put(&mut rest, &self.keys.to_be_bytes());
        put(&mut rest, &self.key_bytes.to_be_bytes());
        put(&mut rest, &self.value_bytes.to_be_bytes());
        seal(&mut bytes);
        bytes
    }

    /// Decodes the bytes after the tag.
    pub(super) fn decode(bytes: &[u8; TRAILER_HEAD]) -> Result<Counts, &'static str> {
        let mut rest = sealed(TRAILER, bytes).ok_or("the head of the trailer fails its checksum")?;
        Ok(Counts {
            keys: u64::from_be_bytes(take(&mut rest)?),
            key_bytes: u64::from_be_bytes(take(&mut rest)?),
            value_bytes: u64::from_be_bytes(take(&mut rest)?),
        })
    }
}

/// The checksum after a record's value.
pub(super) fn pair_checksum(key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(value);
    hasher.finalize()
}

/// Checks a record against the header and the previous key.
pub(super) fn check_record(
    header: &SnapshotHeader,
    previous: Option<&Key>,
    record: &SnapshotRecord,
) -> Result<(), &'static str> {
    let text = record.key.as_str();
    if !text.starts_with(&header.prefix) {
        return Err("the key does not have the snapshot's prefix");
    }
    if previous.is_some_and(|previous| previous >= &record.key) {
        return Err("the keys do not ascend");
    }
    let revisions_fit = Revision(0) < record.create_revision
        && record.create_revision <= record.mod_revision
        && record.mod_revision <= header.revision;
    if revisions_fit { Ok(()) } else { Err("the revisions do not fit together") }
}

/// Encodes bytes in hexadecimal.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Milliseconds since 1970.
pub(crate) fn now_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(since).unwrap_or(u64::MAX)
}

/// Copies `bytes` to the start of `rest`, and moves `rest` behind them. The callers' arrays have the room.
fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    if let Some((place, behind)) = std::mem::take(rest).split_at_mut_checked(bytes.len()) {
        place.copy_from_slice(bytes);
        *rest = behind;
    }
}

/// Writes the checksum of the preceding bytes into the last four.
fn seal(bytes: &mut [u8]) {
    if let Some((head, checksum)) = bytes.split_last_chunk_mut::<4>() {
        *checksum = crc32fast::hash(head).to_be_bytes();
    }
}

/// The sealed bytes after the tag, if their checksum is valid.
fn sealed(tag: u8, bytes: &[u8]) -> Option<&[u8]> {
    let (head, checksum) = bytes.split_last_chunk::<4>()?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[tag]);
    hasher.update(head);
    (hasher.finalize() == u32::from_be_bytes(*checksum)).then_some(head)
}

fn take<const LENGTH: usize>(rest: &mut &[u8]) -> Result<[u8; LENGTH], &'static str> {
    let (bytes, behind) = rest.split_first_chunk().ok_or("a field is cut off")?;
    *rest = behind;
    Ok(*bytes)
}

fn take_text<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a str, &'static str> {
    let (bytes, behind) = rest.split_at_checked(length).ok_or("a field is cut off")?;
    *rest = behind;
    std::str::from_utf8(bytes).map_err(|_| "a field is no text")
}
