//! The read-only connections to the database: each read has one of its own.

use super::{connection, damage::storage_error, options::EmbeddedOptions};
use crate::StorageError;
use parking_lot::Mutex;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// The number of idle connections that are kept for later reads.
const MAX_IDLE: usize = 4;

pub(super) struct Readers {
    directory: PathBuf,
    cache_bytes: u64,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    connections: Vec<Connection>,
    closed: bool,
}

impl Readers {
    pub(super) fn new(directory: &Path, options: &EmbeddedOptions) -> Readers {
        Readers { directory: directory.to_owned(), cache_bytes: options.cache_bytes, idle: Mutex::default() }
    }

    /// Runs a read on its own connection.
    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let idle = {
            let mut idle = self.idle.lock();
            if idle.closed {
                return Err(StorageError::Closed);
            }
            idle.connections.pop()
        };
        let connection = match idle {
            Some(connection) => connection,
            None => connection::reader(&self.directory, self.cache_bytes).map_err(storage_error)?,
        };
        let result = read(&connection);
        let mut idle = self.idle.lock();
        if result.is_ok() && !idle.closed && idle.connections.len() < MAX_IDLE {
            idle.connections.push(connection);
        }
        result
    }

    /// Closes the idle connections.
    #[cfg(test)]
    pub(super) fn forget(&self) {
        self.idle.lock().connections.clear();
    }

    pub(super) fn close(&self) {
        let mut idle = self.idle.lock();
        idle.closed = true;
        idle.connections.clear();
    }
}
