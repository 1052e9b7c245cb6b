//! Distinguishes a damaged WAL from one that ends at a power cut.
//!
//! SQLite uses its [WAL](https://www.sqlite.org/fileformat.html#the_write_ahead_log) up to the first frame that fails
//! its checksum, and ignores the rest as never written. That is right after a power cut: a part of the last
//! transaction may be there. Up to format version 3 each transaction was synced before the next began, so at most one
//! can be partial. If frames of two or more transactions follow the failing one, that one had been complete on the
//! disk, and acknowledged writes would be lost silently. (Damage in the very last transaction cannot be distinguished
//! from a power cut.)
//!
//! Since version 4 the WAL is not synced for each transaction, and any part of the writes since the last sync may be
//! there. The journal has the lost writes, and records the revision up to which none may be missing.

use super::open_error::OpenError;
use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first word of a WAL; with the lowest bit set, checksums are of big-endian words.
const MAGIC: u32 = 0x377f_0682;

/// Checks a WAL that a program of an earlier format version left, and truncates it after its valid frames. SQLite
/// found the first `frames` frames valid.
pub(super) fn check(path: &Path, frames: u64) -> Result<(), OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let Some((file, header)) = open(path)? else { return Ok(()) };
    let end = header.end(frames);
    if header.rest(&file, end).map_err(failed)?.transactions > 1 {
        return Err(damaged(path, end, "frames of the log fail their checksums, but good ones follow"));
    }
    cut(path, frames)
}

/// Truncates a WAL after its valid frames: the remainder of an interrupted write must not follow later frames.
pub(super) fn cut(path: &Path, frames: u64) -> Result<(), OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let Some((file, header)) = open(path)? else { return Ok(()) };
    let end = header.end(frames);
    if header.rest(&file, end).map_err(failed)?.frames > 0 {
        file.set_len(end).and_then(|()| file.sync_all()).map_err(failed)?;
    }
    Ok(())
}

/// The end of the valid frames, as an offset, if more bytes follow.
pub(super) fn end(path: &Path, frames: u64) -> Option<u64> {
    let (file, header) = open(path).ok()??;
    let end = header.end(frames);
    (file.metadata().ok()?.len() > end).then_some(end)
}

/// Opens a WAL; `None` if it does not exist or was never written.
fn open(path: &Path) -> Result<Option<(File, Header)>, OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let file = match File::options().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    let Some(header) = Header::read(&file).map_err(failed)? else { return Ok(None) };
    if !header.intact() {
        return Err(damaged(path, 0, "the header of the log fails its checksum"));
    }
    Ok(Some((file, header)))
}

fn damaged(path: &Path, offset: u64, what: &str) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), detail: format!("at offset {offset}: {what}") }
}

/// The offsets of the latest committed copies of pages in a WAL.
pub(super) fn pages(file: &File) -> io::Result<HashMap<u32, u64>> {
    let Some(header) = Header::read(file)? else { return Ok(HashMap::new()) };
    let (mut pages, mut uncommitted) = (HashMap::new(), Vec::new());
    header.frames(file, HEADER as u64, |offset, [page, pages_after_commit, ..]| {
        uncommitted.push((page, offset + FRAME_HEADER as u64));
        if pages_after_commit != 0 {
            pages.extend(uncommitted.drain(..));
        }
    })?;
    Ok(pages)
}

type Checksum = [u32; 2];

struct Header {
    words: [u32; HEADER / 4],
}

/// The frames after the valid part of a WAL that were written since the WAL was last restarted.
#[derive(Default)]
struct Rest {
    frames: u64,
    /// Valid frames that end a transaction.
    transactions: u64,
}

impl Header {
    /// Reads the header; `None` when the WAL was never written.
    fn read(mut file: &File) -> io::Result<Option<Header>> {
        let mut bytes = [0; HEADER];
        match file.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        Ok((bytes != [0; HEADER]).then_some(Header { words: big_endian_words(&bytes) }))
    }

    fn intact(&self) -> bool {
        let [magic, _, _, _, _, _, expected_0, expected_1] = self.words;
        let (summed, _) = self.words.split_at(6);
        magic & !1 == MAGIC && self.checksum([0, 0], summed) == [expected_0, expected_1]
    }

    /// Continues a checksum over words that were read as big-endian.
    fn checksum(&self, [mut sum_0, mut sum_1]: Checksum, words: &[u32]) -> Checksum {
        let [magic, ..] = self.words;
        for pair in words.chunks_exact(2) {
            if let [a, b] = *pair {
                let (a, b) = if magic == MAGIC { (a.swap_bytes(), b.swap_bytes()) } else { (a, b) };
                sum_0 = sum_0.wrapping_add(a).wrapping_add(sum_1);
                sum_1 = sum_1.wrapping_add(b).wrapping_add(sum_0);
            }
        }
        [sum_0, sum_1]
    }

    /// The offset at which `frames` frames end.
    fn end(&self, frames: u64) -> u64 {
        HEADER as u64 + frames * self.frame_length()
    }

    fn frame_length(&self) -> u64 {
        let [_, _, page_size, ..] = self.words;
        FRAME_HEADER as u64 + u64::from(page_size)
    }

    /// Examines the frames from `offset` on, where one fails its checksum. Frames from before a restart have other
    /// salts.
    fn rest(&self, file: &File, offset: u64) -> io::Result<Rest> {
        let mut rest = Rest::default();
        self.frames(file, offset, |_, _| rest.frames += 1)?;
        if rest.frames > 0 {
            rest.transactions = self.transactions(file, offset)?;
        }
        Ok(rest)
    }

    /// Counts the valid frames from `offset` on that end a transaction.
    ///
    /// A frame's checksum continues that of the frame before: either the recorded or the computed one, because either
    /// frame may be the damaged one. Without this check, a frame header that spans two sectors, of which a power cut
    /// left one unwritten, could pass for the end of a transaction from before a restart.
    fn transactions(&self, mut file: &File, mut offset: u64) -> io::Result<u64> {
        let [_, _, _, _, salt_1, salt_2, header_0, header_1] = self.words;
        let length = file.metadata()?.len();
        let mut bytes = vec![0; usize::try_from(self.frame_length()).unwrap_or(0)];
        let mut said = [header_0, header_1];
        if let Some(before) =
            offset.checked_sub(self.frame_length()).filter(|before| *before >= HEADER as u64)
        {
            let mut bytes = [0; FRAME_HEADER];
            file.seek(SeekFrom::Start(before))?;
            file.read_exact(&mut bytes)?;
            let [_, _, _, _, sum_0, sum_1]: [u32; FRAME_HEADER / 4] = big_endian_words(&bytes);
            said = [sum_0, sum_1];
        }
        let mut computed = said;
        let mut transactions = 0;
        file.seek(SeekFrom::Start(offset))?;
        while offset + self.frame_length() <= length {
            file.read_exact(&mut bytes)?;
            let (header, page) = bytes.split_at(FRAME_HEADER);
            let words: [u32; FRAME_HEADER / 4] = big_endian_words(header);
            let [number, pages_after_commit, frame_salt_1, frame_salt_2, sum_0, sum_1] = words;
            let page: Vec<u32> =
                page.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
            let go_on = |from| self.checksum(self.checksum(from, &[number, pages_after_commit]), &page);
            let sums = [go_on(said), go_on(computed)];
            let good = (frame_salt_1, frame_salt_2) == (salt_1, salt_2) && sums.contains(&[sum_0, sum_1]);
            transactions += u64::from(good && pages_after_commit != 0);
            said = [sum_0, sum_1];
            [computed, _] = sums;
            offset += self.frame_length();
        }
        Ok(transactions)
    }

    /// Calls `each` with the offset and the header of every frame from `offset` on that was written since the last
    /// restart.
    fn frames(
        &self,
        mut file: &File,
        mut offset: u64,
        mut each: impl FnMut(u64, [u32; FRAME_HEADER / 4]),
    ) -> io::Result<()> {
        let [_, _, _, _, salt_1, salt_2, ..] = self.words;
        let length = file.metadata()?.len();
        while offset + FRAME_HEADER as u64 <= length {
            let mut bytes = [0; FRAME_HEADER];
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut bytes)?;
            let words: [u32; FRAME_HEADER / 4] = big_endian_words(&bytes);
            let [_, _, frame_salt_1, frame_salt_2, ..] = words;
            if (frame_salt_1, frame_salt_2) == (salt_1, salt_2) {
                each(offset, words);
            }
            offset += self.frame_length();
        }
        Ok(())
    }
}

fn big_endian_words<const WORDS: usize>(bytes: &[u8]) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    words
}
