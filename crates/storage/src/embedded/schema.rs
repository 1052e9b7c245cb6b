//! The tables of the database, their format versions, and the stored form of revisions and kinds of writes.

use crate::{EventKind, Revision};

/// The version of tables and rows. A program opens only the versions it knows.
pub(super) const FORMAT_VERSION: i64 = 5;
/// The oldest version that can be read. Opening a store upgrades it to the latest version.
pub(super) const OLDEST_FORMAT_VERSION: i64 = 1;
/// The first version with a journal. Earlier versions synced the WAL for each write.
pub(super) const JOURNAL_FORMAT_VERSION: i64 = 4;

/// In bytes. Two values of a typical object fit into a page; measured against 4 and 16 KB.
pub(super) const PAGE_SIZE: u32 = 8192;

pub(super) const SCHEMA: &str = "
    CREATE TABLE meta (name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE writes (
        revision INTEGER PRIMARY KEY, kind INTEGER NOT NULL, create_revision INTEGER NOT NULL,
        previous INTEGER NOT NULL, expires INTEGER NOT NULL, checksum INTEGER NOT NULL, key TEXT NOT NULL);
    CREATE TABLE vals (revision INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, value BLOB NOT NULL);
";

/// SQLite has signed integers only. Revisions fit into 63 bits.
pub(super) fn integer(revision: Revision) -> i64 {
    revision.0.cast_signed()
}

pub(super) fn revision(integer: i64) -> Revision {
    Revision(integer.cast_unsigned())
}

pub(super) fn kind_number(kind: EventKind) -> u8 {
    match kind {
        EventKind::Create => 1,
        EventKind::Update => 2,
        EventKind::Delete => 3,
    }
}

pub(super) fn kind(number: i64) -> Option<EventKind> {
    match number {
        1 => Some(EventKind::Create),
        2 => Some(EventKind::Update),
        3 => Some(EventKind::Delete),
        _ => None,
    }
}
