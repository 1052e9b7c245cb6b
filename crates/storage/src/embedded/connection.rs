//! Opens connections to the database.

use super::{checkpointer::Checkpointer, options::EmbeddedOptions, paths, schema::PAGE_SIZE};
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::path::Path;

/// The sync settings of a writing connection: only checkpoints sync. The journal has the writes that are not synced.
const SYNCING: &str = "PRAGMA synchronous = NORMAL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
    PRAGMA wal_autocheckpoint = 0; PRAGMA trusted_schema = OFF;";

fn connect(path: &Path, flags: OpenFlags, cache_bytes: u64) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite need not lock it.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // Only the apply thread checkpoints: a checkpoint must not follow a failed sync.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch(&format!(
        "PRAGMA cache_size = -{}; PRAGMA cell_size_check = ON;",
        cache_bytes / 1024
    ))?;
    Ok(connection)
}

/// Opens the connection that writes.
pub(super) fn writer(path: &Path, options: &EmbeddedOptions) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, options.cache_bytes)?;
    // A WAL that grew during a long read is truncated when it restarts.
    let wal_limit = Checkpointer::longest(options.wal_bytes);
    connection.execute_batch(&format!("{SYNCING} PRAGMA journal_size_limit = {wal_limit};"))?;
    Ok(connection)
}

/// Limits the growth of the database from now on. Journaled writes beyond the limit were accepted before.
pub(super) fn set_quota(connection: &Connection, options: &EmbeddedOptions) -> rusqlite::Result<()> {
    let Some(bytes) = options.quota_bytes else { return Ok(()) };
    let pages = bytes / u64::from(PAGE_SIZE);
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), (), |_| Ok(()))
}

/// Opens a read-only connection.
pub(super) fn reader(directory: &Path, cache_bytes: u64) -> rusqlite::Result<Connection> {
    connect(&paths::database(directory), OpenFlags::SQLITE_OPEN_READ_ONLY, cache_bytes)
}
