//! Writes snapshots.

use super::{
    SnapshotHeader, SnapshotRecord, SnapshotSummary, ValueForms,
    format::{Counts, MAX_KEY_BYTES, MAX_VALUE_BYTES, RecordHead, check_record, hexadecimal, pair_checksum},
};
use crate::Key;
use sha2::{Digest, Sha256};
use std::io::{self, Write};

/// Writes a snapshot, record by record, in the order of the keys.
pub struct SnapshotWriter<W> {
    output: W,
    header: SnapshotHeader,
    hasher: Sha256,
    counts: Counts,
    expiring: u64,
    forms: ValueForms,
    written: u64,
    last: Option<Key>,
}

impl<W: Write> SnapshotWriter<W> {
    /// Begins a snapshot. The output should be buffered.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn new(output: W, header: SnapshotHeader) -> io::Result<SnapshotWriter<W>> {
        let encoded = header.encode();
        let mut writer = SnapshotWriter {
            output,
            header,
            hasher: Sha256::new(),
            counts: Counts::default(),
            expiring: 0,
            forms: ValueForms::default(),
            written: 0,
            last: None,
        };
        writer.put(&encoded)?;
        Ok(writer)
    }

    /// The snapshot's metadata.
    pub fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// The number of records written.
    pub fn keys(&self) -> u64 {
        self.counts.keys
    }

    /// Writes the next record.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a record that a snapshot may not contain (its key does not follow the
    /// previous one, its revision is newer than the snapshot's…): nothing was written then; and the errors of the
    /// output.
    pub fn write(&mut self, record: &SnapshotRecord) -> io::Result<()> {
        let invalid = |what: &'static str| io::Error::new(io::ErrorKind::InvalidInput, what);
        check_record(&self.header, self.last.as_ref(), record).map_err(invalid)?;
        let key = record.key.as_str().as_bytes();
        let key_length = u32::try_from(key.len()).ok().filter(|length| *length <= MAX_KEY_BYTES);
        let value_length = u32::try_from(record.value.len()).ok().filter(|length| *length <= MAX_VALUE_BYTES);
        let head = RecordHead {
            key_length: key_length.ok_or_else(|| invalid("the key is too long"))?,
            value_length: value_length.ok_or_else(|| invalid("the value is too long"))?,
            create_revision: record.create_revision,
            mod_revision: record.mod_revision,
            expires: record.expires,
        };
        self.put(&head.encode())?;
        self.put(key)?;
        self.put(&record.value)?;
        self.put(&pair_checksum(key, &record.value).to_be_bytes())?;
        self.counts.add(record);
        self.expiring += u64::from(record.expires != 0);
        self.forms.count(&record.value);
        self.last = Some(record.key.clone());
        Ok(())
    }

    /// Writes the trailer, and returns the flushed output and the totals.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn finish(mut self) -> io::Result<(W, SnapshotSummary)> {
        self.put(&self.counts.encode())?;
        let hash = self.hasher.finalize();
        self.output.write_all(&hash)?;
        self.output.flush()?;
        let summary = SnapshotSummary {
            header: self.header,
            keys: self.counts.keys,
            key_bytes: self.counts.key_bytes,
            value_bytes: self.counts.value_bytes,
            expiring: self.expiring,
            forms: self.forms,
            file_bytes: self.written + hash.len() as u64,
            sha256: hexadecimal(&hash),
        };
        Ok((self.output, summary))
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        self.output.write_all(bytes)
    }
}
