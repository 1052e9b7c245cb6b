//! Locates damage in the files, for error messages.
//!
//! Best effort, after errors only: SQLite does not report where it read, so this module follows the
//! [tree](https://www.sqlite.org/fileformat.html#b_tree_pages) to the page that should have a row. For a page that is
//! in the WAL, the database has only an older copy.

use super::{
    schema::{PAGE_SIZE, integer},
    wal,
};
use crate::Revision;
use rusqlite::{Connection, OptionalExtension};
use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

const PAGE: usize = PAGE_SIZE as usize;
/// SQLite's trees are never deeper.
const MAX_DEPTH: usize = 20;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at offset {}", self.path.display(), self.offset)
    }
}

/// The first page of a table.
pub(super) fn root(connection: &Connection, table: &str) -> Option<Place> {
    Some(Pages::open(connection)?.read(root_page(connection, table)?)?.1)
}

/// The place of a revision's row in a table, or of the page that should have it.
pub(super) fn row(connection: &Connection, table: &str, revision: Revision) -> Option<Place> {
    let mut pages = Pages::open(connection)?;
    let mut number = root_page(connection, table)?;
    let mut place = None;
    for _ in 0..MAX_DEPTH {
        // If a page is missing, the result is its parent page.
        let Some((bytes, at)) = pages.read(number) else { break };
        let page = Page { bytes: &bytes, header: if number == 1 { 100 } else { 0 } };
        let offset = at.offset;
        place = Some(at);
        match page.find(integer(revision)) {
            Found::Child(child) => number = child,
            Found::Cell(cell) => {
                return place.map(|place| Place { offset: offset + cell as u64, ..place });
            }
            Found::Nothing => break,
        }
    }
    place
}

/// The page that SQLite's own check reports, and the report.
pub(super) fn complaint(connection: &Connection) -> Option<(Option<Place>, String)> {
    let check = "PRAGMA quick_check(1)";
    let complaint: String = connection.query_row(check, (), |row| row.get(0)).ok()?;
    if complaint == "ok" {
        return None;
    }
    let complaint = complaint.replace("*** in database main ***\n", "");
    let number = complaint.split_once("page ").and_then(|(_, rest)| {
        let digits = rest.split(|character: char| !character.is_ascii_digit()).next()?;
        digits.parse().ok()
    });
    // The first page has the start of the free page list.
    let number = number.or_else(|| complaint.starts_with("Freelist").then_some(1));
    let place = number.and_then(|number| Some(Pages::open(connection)?.read(number)?.1));
    Some((place, complaint))
}

fn root_page(connection: &Connection, table: &str) -> Option<u32> {
    let query = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
    connection.query_row(query, (table,), |row| row.get(0)).optional().ok()?
}

struct Pages {
    path: PathBuf,
    database: File,
    /// The WAL, with the offsets of the latest copies of pages in it.
    wal: Option<(PathBuf, File, HashMap<u32, u64>)>,
}

impl Pages {
    fn open(connection: &Connection) -> Option<Pages> {
        let path = PathBuf::from(connection.path()?);
        let wal_path = path.with_extension("db-wal");
        let wal = File::open(&wal_path).ok().and_then(|file| {
            let pages = wal::pages(&file).ok()?;
            Some((wal_path, file, pages))
        });
        Some(Pages { database: File::open(&path).ok()?, path, wal })
    }

    fn read(&mut self, number: u32) -> Option<(Vec<u8>, Place)> {
        let read = |mut file: &File, path: &Path, offset| {
            let mut bytes = vec![0; PAGE];
            file.seek(SeekFrom::Start(offset)).ok()?;
            file.read_exact(&mut bytes).ok()?;
            Some((bytes, Place { path: path.to_owned(), offset }))
        };
        if let Some((path, file, pages)) = &self.wal
            && let Some(offset) = pages.get(&number)
        {
            return read(file, path, *offset);
        }
        read(&self.database, &self.path, u64::from(number.checked_sub(1)?) * PAGE as u64)
    }
}

struct Page<'bytes> {
    bytes: &'bytes [u8],
    /// The offset of the page header: 100 on the first page, which begins with the database header.
    header: usize,
}

enum Found {
    Child(u32),
    /// The offset of the cell in the page, in bytes.
    Cell(usize),
    Nothing,
}

impl Page<'_> {
    fn find(&self, key: i64) -> Found {
        self.try_find(key).unwrap_or(Found::Nothing)
    }

    fn try_find(&self, key: i64) -> Option<Found> {
        let kind = *self.bytes.get(self.header)?;
        let cells = usize::from(self.u16(self.header + 3)?);
        let pointers = self.header + if kind == 5 { 12 } else { 8 };
        for cell in 0..cells {
            let at = usize::from(self.u16(pointers + cell * 2)?);
            match kind {
                5 if self.varint(at + 4)?.0 >= key => return Some(Found::Child(self.u32(at)?)),
                13 => {
                    let (_, length) = self.varint(at)?;
                    if self.varint(at + length)?.0 == key {
                        return Some(Found::Cell(at));
                    }
                }
                _ => {}
            }
        }
        (kind == 5).then(|| self.u32(self.header + 8).map(Found::Child))?
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Reads a variable-length integer of one to nine bytes; returns it with its length.
    fn varint(&self, at: usize) -> Option<(i64, usize)> {
        let mut number = 0_u64;
        for (length, byte) in self.bytes.get(at..)?.iter().take(9).enumerate() {
            if length == 8 {
                return Some(((number << 8 | u64::from(*byte)).cast_signed(), 9));
            }
            number = number << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Some((number.cast_signed(), length + 1));
            }
        }
        None
    }
}
