//! The journal: one append and one sync make a batch of writes durable.
//!
//! The database gets the same writes later ([`super::applier`]), in transactions without a sync: its WAL is synced
//! only now and then. So the journal keeps the writes that the database may lose when the process ends or the power
//! is cut, and opening a store applies them to the database ([`mod@read`]).
//!
//! The journal has two segments, files that are overwritten in turn: syncing a file that does not grow is cheap. When
//! a segment is long enough, and the writes in the older one are durable in the database ([`Journal::synced`]), the
//! next batch restarts the older one.
//!
//! Invariants:
//! - A batch is synced before the next one is written. So a hole before an intact batch is damage.
//! - A segment is overwritten only when all its writes are durable in the database.
//! - A file that is longer than its first sector has had a complete header since it was created.

pub(super) mod format;
mod read;

pub(super) use format::{JournaledWrite, encode_write};
pub(super) use read::{Found, newest, read};

use crate::Revision;
use crate::disk::{DiskFile, remove_if_there};
use format::{BATCH_HEADER, BatchHeader, SECTOR, SegmentHeader};
use std::{
    fs::File,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file grows by this number of zero bytes at a time: a later sync of data written over them need not record a new
/// length.
const GROWTH: u64 = 256 << 10;
/// The largest buffer that is kept for the next batch, in bytes.
const MAX_ROOM: usize = 1 << 20;
/// The free space, in bytes, without which the disk counts as full.
const PROBE: usize = 64 << 10;

/// The files of the even-numbered and of the odd-numbered segments.
pub(super) fn paths(directory: &Path) -> [PathBuf; 2] {
    ["pintle-0.journal", "pintle-1.journal"].map(|name| directory.join(name))
}

fn path(directory: &Path, number: u64) -> PathBuf {
    let [even, odd] = paths(directory);
    if number.is_multiple_of(2) { even } else { odd }
}

/// The journal of an open store; the commit thread writes it.
pub(super) struct Journal {
    directory: PathBuf,
    segment: Segment,
    /// The length in bytes above which a segment is followed by the next one.
    segment_bytes: u64,
    /// The last revision before the segment.
    began: Revision,
    /// The revision up to which the database is durable.
    base: Revision,
    /// The next batch: space for the segment's header and the batch's header, then its writes.
    next: Vec<u8>,
    count: u32,
}

/// The current segment.
#[derive(Clone, Default)]
struct Segment {
    number: u64,
    salt: u64,
    /// `None` until the first segment is begun.
    file: Option<Arc<DiskFile>>,
    length: u64,
    /// The offset of the next batch.
    end: u64,
}

const WRITES: usize = SECTOR + BATCH_HEADER;

impl Journal {
    /// The journal of a store whose database is durable up to `revision`. `number` must be greater than that of any
    /// existing segment. A segment gets about `segment_bytes` long.
    pub(super) fn new(directory: &Path, number: u64, revision: Revision, segment_bytes: u64) -> Journal {
        Journal {
            directory: directory.to_owned(),
            segment: Segment { number: number.saturating_sub(1), ..Segment::default() },
            segment_bytes,
            began: revision,
            base: revision,
            next: vec![0; WRITES],
            count: 0,
        }
    }

    /// Appends a write to the next batch; `encode` is [`encode_write`].
    pub(super) fn write(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.next);
        self.count += 1;
    }

    /// Discards the writes of the next batch.
    pub(super) fn forget(&mut self) {
        self.next.truncate(WRITES);
        self.next.shrink_to(MAX_ROOM);
        self.count = 0;
    }

    /// Writes the batch, whose first write has the revision `first`, and returns the file, which the caller then
    /// syncs. After an error the batch is not written.
    pub(super) fn append(&mut self, first: Revision) -> io::Result<Arc<DiskFile>> {
        let appended = self.try_append(first);
        self.forget();
        appended
    }

    fn try_append(&mut self, first: Revision) -> io::Result<Arc<DiskFile>> {
        let (mut segment, begins) = match self.current() {
            Some(_) => (self.segment.clone(), false),
            None => (self.begin(first)?, true),
        };
        let file = segment.file.clone().ok_or_else(|| io::Error::other("there is no segment"))?;
        let writes = self.next.get(WRITES..).unwrap_or_default();
        let length = u32::try_from(writes.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let checksum = crc32fast::hash(writes);
        let header = BatchHeader { salt: segment.salt, first, count: self.count, length, checksum };
        put(&mut self.next, SECTOR, &header.encode());
        self.next.resize(self.next.len().next_multiple_of(SECTOR), 0);
        let batch = if begins {
            let header = SegmentHeader { number: segment.number, salt: segment.salt, first, base: self.base };
            put(&mut self.next, 0, &header.encode());
            self.next.as_slice()
        } else {
            self.next.get(SECTOR..).unwrap_or_default()
        };
        grow(&file, &mut segment.length, segment.end + batch.len() as u64);
        file.write(segment.end, batch)?;
        segment.end += batch.len() as u64;
        segment.length = segment.length.max(segment.end);
        self.segment = segment;
        if begins {
            self.began = Revision(first.0.saturating_sub(1));
        }
        Ok(file)
    }

    /// The segment for the next batch, unless that begins another one.
    fn current(&self) -> Option<&Arc<DiskFile>> {
        // The other segment is needed until the database has its writes.
        let over = self.segment.end >= self.segment_bytes && self.base >= self.began;
        self.segment.file.as_ref().filter(|_| !over)
    }

    /// The next segment, which is empty except for the header of a new file.
    fn begin(&self, first: Revision) -> io::Result<Segment> {
        let number = self.segment.number + 1;
        let path = path(&self.directory, number);
        let salt = RandomState::new().build_hasher().finish();
        let file = DiskFile::create(&path)?;
        let mut length = file.length()?;
        if length <= SECTOR as u64 {
            file.write(0, &SegmentHeader { number, salt, first, base: self.base }.encode())?;
            // A failed sync is not retried, whatever the error is.
            let synced = file.sync().and_then(|()| File::open(&self.directory)?.sync_all());
            synced.map_err(io::Error::other)?;
            length = SECTOR as u64;
        }
        Ok(Segment { number, salt, file: Some(Arc::new(file)), length, end: 0 })
    }

    /// Checks that the disk has room for a batch, whose first write would have the revision `first`.
    pub(super) fn probe(&mut self, first: Revision) -> io::Result<()> {
        let Some(file) = self.current() else {
            // Only the header of the other file is still needed.
            let next = self.begin(first)?;
            return next.file.map_or(Ok(()), |file| file.write(SECTOR as u64, &[0; PROBE]));
        };
        file.write(self.segment.end, &[0; PROBE])?;
        self.segment.length = self.segment.length.max(self.segment.end + PROBE as u64);
        Ok(())
    }

    /// Reports that the database is durable up to `revision`.
    pub(super) fn synced(&mut self, revision: Revision) {
        self.base = self.base.max(revision);
    }

    /// Deletes the files. The database has all writes, durably, and no batch follows.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        for path in paths(&self.directory) {
            remove_if_there(&path)?;
        }
        File::open(&self.directory)?.sync_all()
    }
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at + what.len()) {
        to.copy_from_slice(what);
    }
}

/// Makes a file long enough for `end`, if the disk has room; if not, the following write fails.
fn grow(file: &DiskFile, length: &mut u64, end: u64) {
    if end > *length {
        let zeros = vec![0; usize::try_from(end.next_multiple_of(GROWTH) - *length).unwrap_or(0)];
        if file.write(*length, &zeros).is_ok() {
            *length += zeros.len() as u64;
        }
    }
}
