//! Computes the possible contents of a disk after a power cut.
//!
//! Synced bytes are there. Each sector that was written after the last sync may be there or not, independently of the
//! others; a file may have its new length or its old one; a created file may be missing; a deleted file may still be
//! there; a renamed file may have its old name until its directory is synced. A sector is written completely or not at all, and no other sector is damaged.

use std::{collections::BTreeMap, fs, io, path::Path};

/// The size of a sector, which is written atomically, in bytes.
const SECTOR: usize = 512;

/// An operation on a file, which is named relative to the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// The file was created.
    Create {
        /// The file.
        file: String,
    },
    /// Bytes were written.
    Write {
        /// The file.
        file: String,
        /// The position in the file, in bytes.
        offset: u64,
        /// The written bytes.
        bytes: Vec<u8>,
    },
    /// The file was truncated, or extended with zeros.
    Truncate {
        /// The file.
        file: String,
        /// The new length, in bytes.
        length: u64,
    },
    /// All earlier operations on the file are durable.
    Sync {
        /// The file.
        file: String,
    },
    /// The file was deleted.
    Delete {
        /// The file.
        file: String,
        /// Whether its directory was synced afterwards.
        synced: bool,
    },
    /// The file was renamed. Nothing is done with the new name before the directory is synced.
    Rename {
        /// The file.
        file: String,
        /// Its new name.
        to: String,
    },
    /// All earlier renames are durable.
    SyncDirectory,
    /// A mark of [`crate::FaultDisk::mark`].
    Mark(u64),
}

impl Operation {
    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Operation::Create { file }
            | Operation::Write { file, .. }
            | Operation::Truncate { file, .. }
            | Operation::Sync { file }
            | Operation::Delete { file, .. } => Some(file),
            Operation::Rename { .. } | Operation::SyncDirectory | Operation::Mark(_) => None,
        }
    }
}

/// A record: the initial state of the directory, and the operations since.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The initial files, all of them durable.
    pub base: Image,
    /// The operations, in order.
    pub operations: Vec<Operation>,
}

impl Trace {
    /// A possible disk after a power cut behind the first `done` operations.
    pub fn cut(&self, done: usize, random: &mut Random) -> Image {
        let mut durable = self.base.clone();
        let mut pending: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
        let mut renamed = None;
        for operation in self.operations.iter().take(done) {
            match operation {
                Operation::Rename { file, to } => renamed = Some((file.as_str(), to.as_str())),
                Operation::SyncDirectory => {
                    if let Some((file, to)) = renamed.take() {
                        durable.rename(file, to);
                        let moved = pending.remove(file).unwrap_or_default();
                        pending.insert(to, moved);
                    }
                }
                _ => {}
            }
            let Some(file) = operation.file() else { continue };
            match operation {
                Operation::Sync { .. } => {
                    durable.files.entry(file.to_owned()).or_default();
                    for operation in pending.remove(file).unwrap_or_default() {
                        durable.apply(operation, &mut |_| true);
                    }
                }
                Operation::Delete { synced: true, .. } => {
                    pending.remove(file);
                    durable.apply(operation, &mut |_| true);
                }
                _ => pending.entry(file).or_default().push(operation),
            }
        }
        for operations in pending.into_values() {
            // The share of kept sectors in percent: from none to all of them.
            let share = random.below(5) * 25;
            for operation in operations {
                durable.apply(operation, &mut |_| random.below(100) < share);
            }
        }
        if let Some((file, to)) = renamed.filter(|_| random.below(2) == 0) {
            durable.rename(file, to);
        }
        durable
    }

    /// The marks among the first `done` operations.
    pub fn marks(&self, done: usize) -> impl Iterator<Item = u64> + '_ {
        self.operations.iter().take(done).filter_map(|operation| match operation {
            Operation::Mark(mark) => Some(*mark),
            _ => None,
        })
    }
}

/// The files of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// The contents of the files, by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// The current files of a directory, without the shared memory of connections.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn read(directory: &Path) -> io::Result<Image> {
        let mut image = Image::default();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && entry.file_type()?.is_file()
                && !name.ends_with("-shm")
            {
                image.files.insert(name, fs::read(entry.path())?);
            }
        }
        Ok(image)
    }

    /// Replaces the contents of a directory by these files.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            fs::remove_file(entry?.path())?;
        }
        for (name, bytes) in &self.files {
            fs::write(directory.join(name), bytes)?;
        }
        Ok(())
    }

    /// Applies an operation, or those parts of it that are `kept`.
    fn apply(&mut self, operation: &Operation, kept: &mut dyn FnMut(()) -> bool) {
        match operation {
            Operation::Create { file } => {
                if kept(()) {
                    self.files.entry(file.clone()).or_default();
                }
            }
            Operation::Write { file, offset, bytes } => {
                let mut at = usize::try_from(*offset).unwrap_or(usize::MAX);
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let (piece, after) = rest.split_at(rest.len().min(SECTOR - at % SECTOR));
                    if kept(()) {
                        self.put(file, at, piece);
                    }
                    at += piece.len();
                    rest = after;
                }
                if kept(()) {
                    // The file has its new length, although not all bytes were written.
                    let content = self.files.entry(file.clone()).or_default();
                    content.resize(content.len().max(at), 0);
                }
            }
            Operation::Truncate { file, length } => {
                if kept(()) {
                    let length = usize::try_from(*length).unwrap_or(usize::MAX);
                    self.files.entry(file.clone()).or_default().resize(length, 0);
                }
            }
            Operation::Delete { file, .. } => {
                if kept(()) {
                    self.files.remove(file);
                }
            }
            Operation::Rename { .. }
            | Operation::SyncDirectory
            | Operation::Sync { .. }
            | Operation::Mark(_) => {}
        }
    }

    fn rename(&mut self, file: &str, to: &str) {
        if let Some(content) = self.files.remove(file) {
            self.files.insert(to.to_owned(), content);
        }
    }

    fn put(&mut self, file: &str, at: usize, piece: &[u8]) {
        let content = self.files.entry(file.to_owned()).or_default();
        let end = at + piece.len();
        content.resize(content.len().max(end), 0);
        if let Some(there) = content.get_mut(at..end) {
            there.copy_from_slice(piece);
        }
    }
}

/// A pseudo-random generator, deterministic for each seed (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number, less than `end`; zero when that is zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number().checked_rem(end).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, byte: u8, length: usize) -> Operation {
        Operation::Write { file: "a".to_owned(), offset, bytes: vec![byte; length] }
    }

    #[test]
    fn a_cut_keeps_what_was_synced_and_any_sectors_of_the_rest() {
        let operations = vec![
            write(0, 1, 1024),
            Operation::Sync { file: "a".to_owned() },
            Operation::Mark(7),
            write(512, 2, 1024),
        ];
        let trace = Trace { base: Image::default(), operations };
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let image = trace.cut(4, &mut Random::new(seed));
            let bytes = &image.files["a"];
            assert!(bytes[..512].iter().all(|byte| *byte == 1), "synced and never written again");
            assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
            seen.insert(bytes.chunks(512).skip(1).map(|sector| sector[0]).collect::<Vec<_>>());
        }
        // The first sector is old or new; behind it is nothing, zeros or the new second sector.
        let all: Vec<&[u8]> = vec![&[1], &[1, 0], &[1, 2], &[2], &[2, 0], &[2, 2]];
        assert_eq!(seen.iter().map(Vec::as_slice).collect::<Vec<_>>(), all);
        assert_eq!(trace.cut(1, &mut Random::new(3)).files.len() as u64 + trace.marks(4).sum::<u64>(), 8);
        assert_eq!(trace.marks(2).count(), 0);
    }
}
