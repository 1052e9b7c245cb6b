//! The errors for damage, with its place in the files.

use super::{
    locate::{self, Place},
    open_error::OpenError,
};
use crate::{Revision, StorageError};
use rusqlite::{Connection, ErrorCode};
use std::path::Path;

/// Converts an error of SQLite from a place where only the first page and the schema table, which begins there, were
/// read.
pub(super) fn database_error(path: &Path, source: rusqlite::Error) -> OpenError {
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            damaged(path, Some(Place { path: path.to_owned(), offset: 0 }), &source.to_string())
        }
        _ => OpenError::Database { path: path.to_owned(), source },
    }
}

/// Converts an error of SQLite on an open database. For damage it adds the result and the place of SQLite's own
/// check; without a result, the place is the root of `table`.
pub(super) fn connection_error(
    path: &Path,
    connection: &Connection,
    table: &str,
    source: rusqlite::Error,
) -> OpenError {
    if source.sqlite_error_code() != Some(ErrorCode::DatabaseCorrupt) {
        return database_error(path, source);
    }
    let (place, detail) = match locate::complaint(connection) {
        Some((place, complaint)) => (place, format!("{source}: {complaint}")),
        None => (None, source.to_string()),
    };
    match place.or_else(|| locate::root(connection, table)) {
        Some(place) => damaged(path, Some(place), &detail),
        None => database_error(path, source),
    }
}

/// The error for damage, at its place in the database or the WAL if that is known.
pub(super) fn damaged(path: &Path, place: Option<Place>, what: &str) -> OpenError {
    match place {
        Some(Place { path, offset }) => {
            OpenError::Damaged { path, detail: format!("at offset {offset}: {what}") }
        }
        None => OpenError::Damaged { path: path.to_owned(), detail: what.to_owned() },
    }
}

/// The error for a required value that is missing.
pub(super) fn missing_value(connection: &Connection, revision: Revision) -> StorageError {
    corrupt(connection, "vals", revision, "the value of revision", "is missing")
}

/// The error for damage to a revision's row in a table, with its place in the files.
pub(super) fn corrupt(
    connection: &Connection,
    table: &str,
    revision: Revision,
    what: &str,
    how: &str,
) -> StorageError {
    let place =
        locate::row(connection, table, revision).map_or_else(String::new, |place| format!("{place}: "));
    StorageError::Corrupt(format!("{place}{what} {revision} {how}"))
}

/// Converts an error of SQLite.
pub(super) fn storage_error(error: rusqlite::Error) -> StorageError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => StorageError::Corrupt(error.to_string()),
        _ => StorageError::Engine(error.to_string()),
    }
}
