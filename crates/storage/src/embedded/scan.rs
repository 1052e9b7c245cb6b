//! Reads the rows of all writes, and detects missing ones.
//!
//! A changed row fails its checksum. But a changed page of the table's tree may hide rows, or repeat them, and SQLite
//! may not detect it. So:
//!
//! - revisions ascend, and are contiguous after the compaction;
//! - the rows up to the compaction have the number and the sum in [`Meta`];
//! - the newest row has its value row, and no value row follows: the end of one tree may be lost, but the same damage
//!   does not remove the same end from both.

use super::{
    damage::{connection_error, damaged},
    locate,
    meta::{Kept, Meta},
    open_error::OpenError,
    row::{self, Entry},
};
use crate::Revision;
use rusqlite::Connection;
use std::path::Path;

/// Reads all rows in order. Returns the store's [`Meta`], with the latest revision found.
///
/// # Errors
/// When rows are damaged or missing. The caller then discards the entries passed to `each`.
pub(super) fn scan(
    path: &Path,
    connection: &Connection,
    version: i64,
    mut each: impl FnMut(Entry),
) -> Result<Meta, OpenError> {
    let failed_in = |table| move |source| connection_error(path, connection, table, source);
    let failed = failed_in("writes");
    let meta = if version == 1 { Meta::read_version_1(connection) } else { Meta::read(connection) };
    let Some(mut meta) = meta.map_err(failed_in("meta"))? else {
        return Err(damaged(path, locate::root(connection, "meta"), "the table meta fails its checksum"));
    };
    let mut kept = Kept::default();
    let mut last = Revision(0);
    let mut entries = connection.prepare(row::SELECT_ENTRIES).map_err(failed)?;
    let mut rows = entries.query(()).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let entry = Entry::from_row(row).map_err(failed)?.map_err(|at| {
            let what = format!("the row of revision {at} fails its checksum");
            damaged(path, locate::row(connection, "writes", at), &what)
        })?;
        let at = entry.revision;
        let missing = |after: Revision| {
            let place = locate::row(connection, "writes", Revision(after.0 + 1));
            damaged(path, place, &format!("the rows after revision {after} are missing"))
        };
        if at <= last {
            let what = format!("the row of revision {at} is there twice");
            return Err(damaged(path, locate::row(connection, "writes", at), &what));
        }
        if at <= meta.compacted {
            kept.add(at);
        } else {
            let before = last.max(meta.compacted).max(Revision(1));
            if at.0 != before.0 + 1 {
                return Err(missing(before));
            }
        }
        last = at;
        each(entry);
    }
    drop(rows);
    if meta.compacted > meta.revision.max(last) {
        let (compacted, newest) = (meta.compacted, meta.revision.max(last));
        let what = format!("it is compacted at {compacted}, after its newest revision {newest}");
        return Err(damaged(path, locate::root(connection, "meta"), &what));
    }
    let newest_value = row::newest_value(connection).map_err(failed_in("vals"))?;
    let whole = match version == 1 {
        true => newest_value <= last,
        false => newest_value == last && kept == meta.kept,
    };
    // Unless it was compacted, the row of the recorded latest revision exists.
    if !whole || meta.revision > last.max(meta.compacted).max(Revision(1)) {
        return Err(damaged(
            path,
            locate::root(connection, "writes"),
            "rows of the table writes are missing",
        ));
    }
    meta.kept = kept;
    meta.revision = meta.revision.max(last);
    Ok(meta)
}
