//! Reads the journal when a store is opened.

use super::{
    super::open_error::OpenError,
    format::{BATCH_HEADER, BatchHeader, JournaledWrite, SECTOR, SegmentHeader, decode_writes},
    paths,
};
use crate::Revision;
use crate::disk::DiskFile;
use std::{io, path::Path};

/// The number of bytes searched at a time for a batch after a hole.
const LOOK: usize = 1 << 20;

/// The contents of a journal that the database lacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Found {
    /// Greater than the number of any segment.
    pub(in super::super) next_number: u64,
    /// The revision up to which the database must have all writes.
    pub(in super::super) base: Revision,
    /// The writes after the newest one in the database, in order.
    pub(in super::super) writes: Vec<JournaledWrite>,
}

/// Reads the writes after `newest` from the journal in `directory`. Changes no file.
///
/// # Errors
/// When the journal is damaged, other than by a power cut during its last batch. The caller checks, with
/// [`Found::base`], whether the database lacks writes that the journal treats as durable.
pub(in super::super) fn read(directory: &Path, newest: Revision) -> Result<Found, OpenError> {
    let mut segments = Vec::new();
    for path in paths(directory) {
        segments.extend(SegmentFile::open(&path).map_err(|source| io_error(&path, source))??);
    }
    segments.sort_by_key(|segment| segment.header.number);
    let Some(last) = segments.pop() else { return Ok(Found { next_number: 1, ..Found::default() }) };
    let mut found = Found { next_number: last.header.number + 1, base: last.header.base, writes: Vec::new() };
    if newest < found.base {
        return Ok(found);
    }
    let mut newest = newest;
    // The earlier segment must have the writes up to the start of the last one.
    let before = Revision(last.header.first.0.saturating_sub(1));
    if newest < before {
        let Some(earlier) = segments.pop() else { return Err(last.lacks(before)) };
        newest = earlier.read(newest, Some(before), &mut found.writes)?;
    }
    last.read(newest, None, &mut found.writes)?;
    Ok(found)
}

/// The latest revision in the journal of a store that another process writes meanwhile: no later write was
/// acknowledged before this call.
pub(in super::super) fn newest(directory: &Path) -> Result<Revision, OpenError> {
    loop {
        let Some(last) = last_segment(directory)? else { return Ok(Revision(0)) };
        let newest = last.newest().map_err(|source| io_error(last.file.path(), source))?;
        // Only the second segment after it overwrites it.
        let now = last_segment(directory)?;
        if now.is_none_or(|now| now.header.number <= last.header.number + 1) {
            return Ok(newest);
        }
    }
}

fn last_segment(directory: &Path) -> Result<Option<SegmentFile>, OpenError> {
    let mut last: Option<SegmentFile> = None;
    for path in paths(directory) {
        let segment = SegmentFile::open(&path).map_err(|source| io_error(&path, source))??;
        last = last.into_iter().chain(segment).max_by_key(|segment| segment.header.number);
    }
    Ok(last)
}

fn io_error(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { path: path.to_owned(), source }
}

struct SegmentFile {
    file: DiskFile,
    length: u64,
    header: SegmentHeader,
}

impl SegmentFile {
    /// Opens a segment; `None` if there is no file, or nothing was ever written to it.
    fn open(path: &Path) -> io::Result<Result<Option<SegmentFile>, OpenError>> {
        let Some(file) = DiskFile::open(path)? else { return Ok(Ok(None)) };
        let length = file.length()?;
        let mut sector = [0; SECTOR];
        let (start, _) = sector.split_at_mut(usize::try_from(length).unwrap_or(SECTOR).min(SECTOR));
        file.read(0, start)?;
        match SegmentHeader::decode(&sector) {
            Some(header) => Ok(Ok(Some(SegmentFile { file, length, header }))),
            // The power was cut while it was created.
            None if length <= SECTOR as u64 && sector == [0; SECTOR] => Ok(Ok(None)),
            None => Ok(Err(OpenError::Damaged {
                path: path.to_owned(),
                detail: "at offset 0: the header of the journal fails its checksum".to_owned(),
            })),
        }
    }

    /// Reads the writes after `newest`. Returns the latest revision then: `until`, if that is given.
    fn read(
        &self,
        newest: Revision,
        until: Option<Revision>,
        writes: &mut Vec<JournaledWrite>,
    ) -> Result<Revision, OpenError> {
        let failed = |source| io_error(self.file.path(), source);
        let mut newest = newest;
        let mut expected = self.header.first;
        let mut at = SECTOR as u64;
        while until.is_none_or(|until| expected <= until) {
            let batch = self.batch(at, expected, newest).map_err(failed)?;
            let Some((header, decoded)) = batch else {
                if until.is_some() || self.goes_on(at).map_err(failed)? {
                    return Err(self.damaged(at, &format!("the write of revision {expected} is damaged")));
                }
                break;
            };
            writes.extend(decoded.into_iter().filter(|write| write.entry.revision > newest));
            newest = newest.max(header.last());
            expected = Revision(header.last().0 + 1);
            at += (BATCH_HEADER as u64 + u64::from(header.length)).next_multiple_of(SECTOR as u64);
        }
        Ok(newest)
    }

    /// The last revision before the first batch whose header is not intact.
    fn newest(&self) -> io::Result<Revision> {
        let mut newest = Revision(self.header.first.0.saturating_sub(1));
        let mut at = SECTOR as u64;
        while let Some(header) = self.batch_header(at, Revision(newest.0 + 1))? {
            newest = header.last();
            at += (BATCH_HEADER as u64 + u64::from(header.length)).next_multiple_of(SECTOR as u64);
        }
        Ok(newest)
    }

    /// The header of the batch at an offset, if it is intact and the file has room for its writes.
    fn batch_header(&self, at: u64, expected: Revision) -> io::Result<Option<BatchHeader>> {
        let Some(room) = self.length.checked_sub(at + BATCH_HEADER as u64) else { return Ok(None) };
        let mut bytes = [0; BATCH_HEADER];
        self.file.read(at, &mut bytes)?;
        Ok(BatchHeader::decode(&bytes, self.header.salt)
            .filter(|header| header.first == expected && u64::from(header.length) <= room))
    }

    /// The batch at an offset, if it is intact; without its writes if the database has all of them.
    fn batch(
        &self,
        at: u64,
        expected: Revision,
        newest: Revision,
    ) -> io::Result<Option<(BatchHeader, Vec<JournaledWrite>)>> {
        let Some(header) = self.batch_header(at, expected)? else { return Ok(None) };
        let mut bytes = vec![0; usize::try_from(header.length).unwrap_or(usize::MAX)];
        self.file.read(at + BATCH_HEADER as u64, &mut bytes)?;
        let Some(mut writes) = decode_writes(&header, &bytes) else { return Ok(None) };
        if header.last() <= newest {
            writes.clear();
        }
        Ok(Some((header, writes)))
    }

    /// Whether a batch of this segment follows one that is not intact.
    fn goes_on(&self, hole: u64) -> io::Result<bool> {
        let mut bytes = vec![0; LOOK];
        let mut at = hole + SECTOR as u64;
        while at < self.length {
            let length = usize::try_from(self.length - at).unwrap_or(LOOK).min(LOOK);
            let (some, _) = bytes.split_at_mut(length);
            self.file.read(at, some)?;
            if some.chunks(SECTOR).any(|sector| BatchHeader::decode(sector, self.header.salt).is_some()) {
                return Ok(true);
            }
            at += length as u64;
        }
        Ok(false)
    }

    fn lacks(&self, revision: Revision) -> OpenError {
        self.damaged(0, &format!("the segment before it, with the write of revision {revision}, is missing"))
    }

    fn damaged(&self, offset: u64, what: &str) -> OpenError {
        OpenError::Damaged {
            path: self.file.path().to_owned(),
            detail: format!("at offset {offset}: {what}"),
        }
    }
}
