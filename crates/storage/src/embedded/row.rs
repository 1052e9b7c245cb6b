//! The rows of the database: columns, statements and checksums.
//!
//! SQLite has checksums in its WAL but not in its pages, so every row has a CRC-32 of its contents, revision
//! included: a flipped bit on the disk is an error and never another value.

use super::{
    damage::{corrupt, storage_error},
    schema::{self, integer, kind, kind_number},
    value::{self, ReadValue, StoredValue},
};
use crate::{EventKind, Key, Revision, StorageError};
use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row};

/// One write, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) revision: Revision,
    pub(super) kind: EventKind,
    pub(super) key: Key,
    /// The revision that created the key; in a delete the one that created the deleted key.
    pub(super) create_revision: Revision,
    /// The revision of the key's previous write; zero in a create.
    pub(super) previous: Revision,
    /// The expiry of the key, in milliseconds since 1970; zero is never.
    pub(super) expires: u64,
}

/// Selects the columns in the order in which [`Entry::from_row`] reads them.
macro_rules! select_entries {
    ($condition:literal) => {
        concat!(
            "SELECT revision, kind, create_revision, previous, expires, checksum, key FROM writes ",
            $condition,
            " ORDER BY revision"
        )
    };
}

pub(super) const SELECT_ENTRIES: &str = select_entries!("");
pub(super) const SELECT_ENTRIES_BETWEEN: &str = select_entries!("WHERE revision > ? AND revision <= ?");
const INSERT_ENTRY: &str = "INSERT INTO writes
    (revision, kind, create_revision, previous, expires, checksum, key) VALUES (?, ?, ?, ?, ?, ?, ?)";
const INSERT_VALUE: &str = "INSERT INTO vals (revision, checksum, value) VALUES (?, ?, ?)";
const SELECT_VALUE: &str = "SELECT checksum, value FROM vals WHERE revision = ?";
const DELETE_ENTRIES: &str = "DELETE FROM writes WHERE revision BETWEEN ? AND ?";
const DELETE_VALUES: &str = "DELETE FROM vals WHERE revision BETWEEN ? AND ?";

/// The statements of a writing transaction, prepared once for all its rows.
pub(super) struct Inserts<'connection> {
    entry: CachedStatement<'connection>,
    value: CachedStatement<'connection>,
}

impl Inserts<'_> {
    pub(super) fn new(connection: &Connection) -> rusqlite::Result<Inserts<'_>> {
        Ok(Inserts {
            entry: connection.prepare_cached(INSERT_ENTRY)?,
            value: connection.prepare_cached(INSERT_VALUE)?,
        })
    }

    /// Inserts a write and its stored value with its checksum. A delete has an empty value, which is never read: with
    /// a value row for every write, a lost end of either table is detected.
    pub(super) fn insert(&mut self, entry: &Entry, checksum: i64, stored: &[u8]) -> rusqlite::Result<()> {
        let revision = integer(entry.revision);
        self.entry.execute((
            revision,
            kind_number(entry.kind),
            integer(entry.create_revision),
            integer(entry.previous),
            entry.expires.cast_signed(),
            entry.checksum(),
            entry.key.as_str(),
        ))?;
        self.value.execute((revision, checksum, stored)).map(drop)
    }

    /// Inserts only the value row.
    pub(super) fn value(&mut self, revision: Revision, value: &StoredValue) -> rusqlite::Result<()> {
        self.value.execute((integer(revision), value.checksum(revision), value.bytes())).map(drop)
    }
}

/// The latest revision that has a value row; zero when there is none.
pub(super) fn newest_value(connection: &Connection) -> rusqlite::Result<Revision> {
    let newest = "SELECT max(revision) FROM vals";
    connection
        .query_row(newest, (), |row| row.get::<_, Option<i64>>(0))
        .map(|at| schema::revision(at.unwrap_or(0)))
}

/// Deletes the rows of the revisions from `first` to `last`, inclusive.
pub(super) fn delete(connection: &Connection, first: Revision, last: Revision) -> rusqlite::Result<()> {
    for statement in [DELETE_VALUES, DELETE_ENTRIES] {
        connection.prepare_cached(statement)?.execute((integer(first), integer(last)))?;
    }
    Ok(())
}

/// The value written at a revision, or `None` when there is no such row.
pub(super) fn value(connection: &Connection, revision: Revision) -> Result<Option<Bytes>, StorageError> {
    value_by(connection, revision, value::read)
}

/// As [`value`], but a compressed value stays so.
pub(super) fn packed_value(
    connection: &Connection,
    revision: Revision,
) -> Result<Option<ReadValue>, StorageError> {
    value_by(connection, revision, value::read_packed)
}

fn value_by<T>(
    connection: &Connection,
    revision: Revision,
    read_value: impl Fn(Revision, i64, &[u8]) -> Option<T>,
) -> Result<Option<T>, StorageError> {
    let mut statement = connection.prepare_cached(SELECT_VALUE).map_err(storage_error)?;
    let read = |row: &Row<'_>| {
        let (checksum, stored) = (row.get_ref(0)?.as_i64(), row.get_ref(1)?.as_blob());
        Ok(checksum
            .ok()
            .zip(stored.ok())
            .and_then(|(checksum, stored)| read_value(revision, checksum, stored)))
    };
    match statement.query_row((integer(revision),), read).optional().map_err(storage_error)? {
        None => Ok(None),
        Some(Some(value)) => Ok(Some(value)),
        Some(None) => {
            Err(corrupt(connection, "vals", revision, "the value of revision", "fails its checksum"))
        }
    }
}

impl Entry {
    /// Reads a row of the `select_entries` statements; `Err` has the revision of a damaged row.
    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Result<Entry, Revision>> {
        let revision = schema::revision(row.get(0)?);
        Ok(Entry::intact(revision, row).ok_or(revision))
    }

    /// `None` for a damaged row, which may have any types and values in its columns.
    fn intact(revision: Revision, row: &Row<'_>) -> Option<Entry> {
        let number = |column| row.get_ref(column).ok()?.as_i64().ok();
        let entry = Entry {
            revision,
            kind: kind(number(1)?)?,
            key: Key::new(row.get_ref(6).ok()?.as_str().ok()?),
            create_revision: schema::revision(number(2)?),
            previous: schema::revision(number(3)?),
            expires: number(4)?.cast_unsigned(),
        };
        (number(5)? == entry.checksum()).then_some(entry)
    }

    fn checksum(&self) -> i64 {
        let mut hasher = crc32fast::Hasher::new();
        for number in [self.revision.0, self.create_revision.0, self.previous.0, self.expires] {
            hasher.update(&number.to_be_bytes());
        }
        hasher.update(&kind_number(self.kind).to_be_bytes());
        hasher.update(self.key.as_str().as_bytes());
        i64::from(hasher.finalize())
    }
}
