//! Reads the format from untrusted input.
//!
//! Lengths are used only after their checksum has been verified, and memory is allocated only for bytes that have
//! been read. A record is returned when its own checksum is valid; callers that must not act on a truncated file read
//! all of it first ([`open_verified`]).

use super::{
    FORMAT_VERSION, SnapshotError, SnapshotHeader, SnapshotRecord, SnapshotSummary, ValueForms,
    format::{
        Counts, HEADER_HEAD, MAGIC, MAX_HEADER_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, RECORD, RECORD_HEAD,
        RecordHead, TRAILER, TRAILER_HEAD, check_record, hexadecimal, pair_checksum,
    },
};
use crate::Key;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

const BUFFER_BYTES: usize = 1 << 18;

/// Reads a snapshot, record by record.
pub struct SnapshotReader<R> {
    input: R,
    path: PathBuf,
    header: SnapshotHeader,
    hasher: Sha256,
    counts: Counts,
    expiring: u64,
    forms: ValueForms,
    /// The number of bytes read so far.
    offset: u64,
    last: Option<Key>,
    state: State,
}

enum State {
    Records,
    /// The trailer was read and is valid; the SHA-256.
    Whole(String),
    /// An error was returned.
    Failed,
}

/// Reads a whole snapshot, and returns its totals.
///
/// # Errors
/// When it cannot be read, is not a snapshot, or is damaged.
pub fn verify(path: &Path) -> Result<SnapshotSummary, SnapshotError> {
    open_verified(path).map(|(_, summary)| summary)
}

/// Reads and verifies a whole snapshot, and opens it again at its first record.
///
/// # Errors
/// When it cannot be read, is not a snapshot, or is damaged.
pub fn open_verified(
    path: &Path,
) -> Result<(SnapshotReader<BufReader<File>>, SnapshotSummary), SnapshotError> {
    let failed = |source| SnapshotError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let mut reader = SnapshotReader::new(path, BufReader::with_capacity(BUFFER_BYTES, &file))?;
    while reader.next_record()?.is_some() {}
    let summary = reader.summary().ok_or_else(|| reader.damaged(0, "there is no trailer"))?;
    drop(reader);
    // The same file, even if its name refers to another one by now.
    (&file).seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok((SnapshotReader::new(path, BufReader::with_capacity(BUFFER_BYTES, file))?, summary))
}

impl<R: Read> SnapshotReader<R> {
    /// Reads the header. `path` is used in errors.
    ///
    /// # Errors
    /// When the input is not a snapshot, has an unknown format, or is damaged.
    pub fn new(path: &Path, input: R) -> Result<SnapshotReader<R>, SnapshotError> {
        let nothing = SnapshotHeader {
            prefix: String::new(),
            revision: crate::Revision(0),
            saved: 0,
            source: String::new(),
            program: String::new(),
        };
        let mut reader = SnapshotReader {
            input,
            path: path.to_owned(),
            header: nothing,
            hasher: Sha256::new(),
            counts: Counts::default(),
            expiring: 0,
            forms: ValueForms::default(),
            offset: 0,
            last: None,
            state: State::Records,
        };
        reader.header = reader.read_header()?;
        Ok(reader)
    }

    /// The snapshot's metadata.
    pub fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next record; `None` after the last one, when counts and hash are verified.
    ///
    /// # Errors
    /// When the snapshot is damaged or cannot be read. Every later call fails, too.
    pub fn next_record(&mut self) -> Result<Option<SnapshotRecord>, SnapshotError> {
        match self.state {
            State::Whole(_) => return Ok(None),
            State::Failed => return Err(self.damaged(self.offset, "reading it has failed before")),
            State::Records => {}
        }
        let record = self.read_record();
        if record.is_err() {
            self.state = State::Failed;
        }
        record
    }

    /// The snapshot's totals, once [`SnapshotReader::next_record`] has returned `None`.
    pub fn summary(&self) -> Option<SnapshotSummary> {
        let State::Whole(sha256) = &self.state else { return None };
        Some(SnapshotSummary {
            header: self.header.clone(),
            keys: self.counts.keys,
            key_bytes: self.counts.key_bytes,
            value_bytes: self.counts.value_bytes,
            expiring: self.expiring,
            forms: self.forms,
            file_bytes: self.offset,
            sha256: sha256.clone(),
        })
    }

    fn read_header(&mut self) -> Result<SnapshotHeader, SnapshotError> {
        let head = self.read_array::<HEADER_HEAD>().map_err(|error| match error {
            // Too short for a header.
            SnapshotError::Damaged { path, .. } => SnapshotError::Foreign { path },
            error => error,
        })?;
        let (magic, numbers) = head.split_at(MAGIC.len());
        let words: Vec<u32> =
            numbers.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
        let [version, length] = *words.as_slice() else { return Err(self.foreign()) };
        if magic != MAGIC {
            return Err(self.foreign());
        }
        if version != FORMAT_VERSION {
            return Err(SnapshotError::UnknownFormat { path: self.path.clone(), found: version });
        }
        if length > MAX_HEADER_BYTES {
            return Err(self.damaged(0, "the header is longer than it can be"));
        }
        let rest = self.read_bytes(length).and_then(|fields| Ok((fields, self.read_array()?)));
        let (fields, checksum) = rest.map_err(|error| match error {
            SnapshotError::Damaged { detail, path, .. } => SnapshotError::Damaged { path, offset: 0, detail },
            error => error,
        })?;
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&head);
        hasher.update(&fields);
        if hasher.finalize() != u32::from_be_bytes(checksum) {
            return Err(self.damaged(0, "the header fails its checksum"));
        }
        SnapshotHeader::decode(&fields).map_err(|what| self.damaged(HEADER_HEAD as u64, what))
    }

    fn read_record(&mut self) -> Result<Option<SnapshotRecord>, SnapshotError> {
        let start = self.offset;
        match self.read_array()? {
            [RECORD] => {}
            [TRAILER] => {
                self.read_trailer(start)?;
                return Ok(None);
            }
            [_] => return Err(self.damaged(start, "neither a record nor the trailer")),
        }
        let head = self.read_array::<RECORD_HEAD>()?;
        let head = RecordHead::decode(&head).map_err(|what| self.damaged(start, what))?;
        if head.key_length > MAX_KEY_BYTES || head.value_length > MAX_VALUE_BYTES {
            return Err(self.damaged(start, "a record is longer than it can be"));
        }
        let key = self.read_bytes(head.key_length)?;
        let value = self.read_bytes(head.value_length)?;
        if u32::from_be_bytes(self.read_array()?) != pair_checksum(&key, &value) {
            return Err(self.damaged(start, "a record fails its checksum"));
        }
        let key = String::from_utf8(key).map_err(|_| self.damaged(start, "a key is no text"))?;
        let record = SnapshotRecord {
            key: Key::new(key),
            value: Bytes::from(value),
            create_revision: head.create_revision,
            mod_revision: head.mod_revision,
            expires: head.expires,
        };
        let fits = check_record(&self.header, self.last.as_ref(), &record);
        fits.map_err(|what| self.damaged(start, what))?;
        self.counts.add(&record);
        self.expiring += u64::from(record.expires != 0);
        self.forms.count(&record.value);
        self.last = Some(record.key.clone());
        Ok(Some(record))
    }

    fn read_trailer(&mut self, start: u64) -> Result<(), SnapshotError> {
        let head = self.read_array::<TRAILER_HEAD>()?;
        let counts = Counts::decode(&head).map_err(|what| self.damaged(start, what))?;
        if counts != self.counts {
            return Err(self.damaged(start, "records are missing"));
        }
        let hash = std::mem::take(&mut self.hasher).finalize();
        let at = self.offset;
        if self.read_array::<32>()? != <[u8; 32]>::from(hash) {
            return Err(self.damaged(at, "the snapshot fails its hash"));
        }
        let mut byte = [0];
        let behind = retry(|| self.input.read(&mut byte)).map_err(|source| self.failed(source))?;
        if behind != 0 {
            return Err(self.damaged(self.offset, "something follows the trailer"));
        }
        self.state = State::Whole(hexadecimal(&hash));
        Ok(())
    }

    fn read_array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], SnapshotError> {
        let mut bytes = [0; LENGTH];
        match self.input.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(self.cut()),
            read => read.map_err(|source| self.failed(source))?,
        }
        self.hasher.update(bytes);
        self.offset += LENGTH as u64;
        Ok(bytes)
    }

    fn read_bytes(&mut self, length: u32) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(u64::from(length)).read_to_end(&mut bytes);
        if read.map_err(|source| self.failed(source))? as u64 != u64::from(length) {
            return Err(self.cut());
        }
        self.hasher.update(&bytes);
        self.offset += u64::from(length);
        Ok(bytes)
    }

    fn cut(&self) -> SnapshotError {
        self.damaged(self.offset, "the file ends within what begins here")
    }

    fn foreign(&self) -> SnapshotError {
        SnapshotError::Foreign { path: self.path.clone() }
    }

    fn failed(&self, source: io::Error) -> SnapshotError {
        SnapshotError::Io { path: self.path.clone(), source }
    }

    fn damaged(&self, offset: u64, detail: &str) -> SnapshotError {
        SnapshotError::Damaged { path: self.path.clone(), offset, detail: detail.to_owned() }
    }
}

fn retry(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
