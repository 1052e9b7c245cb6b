//! The header of the database: it identifies a store of a known format version in WAL mode.

use super::{
    damage::{connection_error, damaged},
    locate::Place,
    open_error::OpenError,
    schema::{FORMAT_VERSION, OLDEST_FORMAT_VERSION, PAGE_SIZE, SCHEMA},
};
use rusqlite::Connection;
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

/// "ptle": the application id by which `file` and SQLite's tools recognize the database.
pub(super) const APPLICATION_ID: i64 = 0x7074_6c65;

/// The offset in the database header of the write and read versions, in bytes.
const MODE_OFFSET: u64 = 18;
/// Their values for a database in WAL mode.
pub(super) const WAL_MODE: [u8; 2] = [2, 2];

/// Checks the first page, and returns the format version.
pub(super) fn check_format(path: &Path, connection: &Connection) -> Result<i64, OpenError> {
    let failed = |source| connection_error(path, connection, "sqlite_schema", source);
    let header = |offset, what: &str| damaged(path, Some(Place { path: path.to_owned(), offset }), what);
    let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, i64>(0));
    let application = pragma("application_id").map_err(failed)?;
    if application != APPLICATION_ID {
        return Err(header(68, &format!("its application id is {application:#x}, not {APPLICATION_ID:#x}")));
    }
    let mode = connection.query_row("PRAGMA journal_mode", (), |row| row.get::<_, String>(0));
    if mode.map_err(failed)? != "wal" {
        return Err(header(MODE_OFFSET, "the database does not name its log"));
    }
    let found = pragma("user_version").map_err(failed)?;
    if !(OLDEST_FORMAT_VERSION..=FORMAT_VERSION).contains(&found) {
        return Err(OpenError::UnknownFormat { path: path.to_owned(), found });
    }
    if pragma("page_size").map_err(failed)? != i64::from(PAGE_SIZE) {
        return Err(header(16, "its pages have another size"));
    }
    if schema(connection).map_err(failed)? != words(SCHEMA) {
        return Err(header(100, "its tables are not those of a store"));
    }
    Ok(found)
}

/// The statements that created the tables, in order.
fn schema(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT sql, rootpage FROM sqlite_schema ORDER BY rowid")?;
    let mut rows = statement.query(())?;
    let (mut found, mut roots) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let sql = row.get_ref(0)?.as_str().unwrap_or_default();
        found.extend(words(&format!("{sql};")));
        let root: i64 = row.get(1)?;
        if roots.contains(&root) {
            found.push("two tables in one place".to_owned());
        }
        roots.push(root);
    }
    Ok(found)
}

fn words(sql: &str) -> Vec<String> {
    sql.split_whitespace().map(str::to_owned).collect()
}

/// The write and read versions in the database's header.
pub(super) fn write_mode(database: &Path) -> io::Result<[u8; 2]> {
    let mut mode = [0; 2];
    let mut file = File::open(database)?;
    file.seek(SeekFrom::Start(MODE_OFFSET))?;
    file.read_exact(&mut mode)?;
    Ok(mode)
}
