//! The journal: where a batch of writes becomes durable, by one append and one sync.
//!
//! The database gets the same writes later ([`super::applier`]), in transactions that nobody syncs: the log of the database
//! is synced only now and then, when it is copied. So the journal keeps what the database may not have kept when the
//! process ends or the power is cut, and opening a store brings the database up to it ([`mod@read`]).
//!
//! It has two segments, files that are written in turn, over what was in them: syncing a file that does not grow is
//! cheap. When a segment is long enough, and the database has durably what is in the older one ([`Journal::synced`]), the
//! next batch begins that one anew.
//!
//! Invariants:
//! - A batch is synced before the next one is written. So a hole with an intact batch behind it is damage.
//! - A segment is written over only when all that was in it is durable in the database.
//! - A file that has more than its first sector has had a whole header since it was made.

pub(super) mod format;
mod read;

pub(super) use format::{JournaledWrite, encode_write};
pub(super) use read::{Found, newest, read};

use super::disk::{DiskFile, remove_if_there};
use crate::Revision;
use format::{BATCH_HEADER, BatchHeader, SECTOR, SegmentHeader};
use std::{
    fs::File,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file grows in such steps, by zeros: a sync of what is written over them later has no new length to note.
const GROWTH: u64 = 256 << 10;
/// More room than this is not kept for the next batch.
const MAX_ROOM: usize = 1 << 20;
/// So much room there has to be for a disk not to be full.
const PROBE: usize = 64 << 10;

/// The files of the segments with even and with odd numbers.
pub(super) fn paths(directory: &Path) -> [PathBuf; 2] {
    ["pintle-0.journal", "pintle-1.journal"].map(|name| directory.join(name))
}

fn path(directory: &Path, number: u64) -> PathBuf {
    let [even, odd] = paths(directory);
    if number.is_multiple_of(2) { even } else { odd }
}

/// The journal of an open store, which the commit thread writes.
pub(super) struct Journal {
    directory: PathBuf,
    segment: Segment,
    /// A segment that is longer is followed by the next one.
    segment_bytes: u64,
    /// The last revision before the segment.
    began: Revision,
    /// Up to here all is durable in the database.
    base: Revision,
    /// The next batch: space for a segment's and the batch's header, then its writes.
    next: Vec<u8>,
    count: u32,
}

/// The segment that is written.
#[derive(Clone, Default)]
struct Segment {
    number: u64,
    salt: u64,
    /// None until the first one is begun.
    file: Option<Arc<DiskFile>>,
    length: u64,
    /// Where the next batch comes.
    end: u64,
}

const WRITES: usize = SECTOR + BATCH_HEADER;

impl Journal {
    /// The journal of a store whose database has everything, durably, up to `revision`. `number` is greater than that of
    /// any segment that is there. A segment gets about `segment_bytes` long.
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

    /// Where the writes of the next batch are put, by [`encode_write`].
    pub(super) fn write(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.next);
        self.count += 1;
    }

    /// Forgets the writes of a batch that is not to be.
    pub(super) fn forget(&mut self) {
        self.next.truncate(WRITES);
        self.next.shrink_to(MAX_ROOM);
        self.count = 0;
    }

    /// Writes the batch, whose first write has the revision `first`, and returns the file that has to be synced then.
    /// After an error nothing counts as written.
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

    /// The segment that the next batch is added to, unless that begins another one.
    fn current(&self) -> Option<&Arc<DiskFile>> {
        // What is in the other one is needed until the database has it.
        let over = self.segment.end >= self.segment_bytes && self.base >= self.began;
        self.segment.file.as_ref().filter(|_| !over)
    }

    /// The next segment, of which nothing is written yet, but for the header of a file that is new.
    fn begin(&self, first: Revision) -> io::Result<Segment> {
        let number = self.segment.number + 1;
        let path = path(&self.directory, number);
        let salt = RandomState::new().build_hasher().finish();
        let file = DiskFile::create(&path)?;
        let mut length = file.length()?;
        if length <= SECTOR as u64 {
            file.write(0, &SegmentHeader { number, salt, first, base: self.base }.encode())?;
            // Not to be tried again, whatever it says.
            let synced = file.sync().and_then(|()| File::open(&self.directory)?.sync_all());
            synced.map_err(io::Error::other)?;
            length = SECTOR as u64;
        }
        Ok(Segment { number, salt, file: Some(Arc::new(file)), length, end: 0 })
    }

    /// Looks whether there is room for a batch, whose first write would have the revision `first`.
    pub(super) fn probe(&mut self, first: Revision) -> io::Result<()> {
        let Some(file) = self.current() else {
            // Nothing that is in the other file is needed, but its header.
            let next = self.begin(first)?;
            return next.file.map_or(Ok(()), |file| file.write(SECTOR as u64, &[0; PROBE]));
        };
        file.write(self.segment.end, &[0; PROBE])?;
        self.segment.length = self.segment.length.max(self.segment.end + PROBE as u64);
        Ok(())
    }

    /// The database has been synced with all up to `revision` in it.
    pub(super) fn synced(&mut self, revision: Revision) {
        self.base = self.base.max(revision);
    }

    /// Deletes the files: the database has everything, durably, and nothing follows.
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

/// Makes a file long enough for `end`, if the disk has room for that; if not, what is written says so.
fn grow(file: &DiskFile, length: &mut u64, end: u64) {
    if end > *length {
        let zeros = vec![0; usize::try_from(end.next_multiple_of(GROWTH) - *length).unwrap_or(0)];
        if file.write(*length, &zeros).is_ok() {
            *length += zeros.len() as u64;
        }
    }
}
