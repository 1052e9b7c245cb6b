//! The failures that prevent writes, which [`Storage::health`](crate::Storage::health) reports.

use super::damage::storage_error;
use crate::StorageError;
use std::io;

/// The last failures, until a write succeeds again.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// Permanent: the state of the disk is unknown.
    pub(super) poison: Option<StorageError>,
    /// The journal had no room for a batch.
    pub(super) journal: Option<StorageError>,
    /// The database had no room for a transaction, or for a checkpoint of its WAL.
    pub(super) database: Option<StorageError>,
}

impl Failures {
    pub(super) fn any(&self) -> Option<&StorageError> {
        self.poison.as_ref().or(self.journal.as_ref()).or(self.database.as_ref())
    }
}

/// The cause of a failed write.
#[derive(Debug)]
pub(super) enum Failure {
    Database(rusqlite::Error),
    /// The batch was not appended; nothing that was written counts.
    Journal(io::Error),
    /// It is unknown whether the written data is on the disk.
    Sync(io::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Database(error)
    }
}

impl Failure {
    /// Whether the failure can be rolled back and retried: the disk was full, and nothing was kept. After any other
    /// failure the state of the disk is unknown.
    pub(super) fn is_disk_full(&self) -> bool {
        match self {
            Failure::Database(error) => error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
            Failure::Journal(error) => {
                matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Failure::Sync(_) => false,
        }
    }
}

/// Converts a failure into the error for callers.
impl From<Failure> for StorageError {
    fn from(failure: Failure) -> StorageError {
        if failure.is_disk_full() {
            return StorageError::Engine("the disk is full".to_owned());
        }
        match failure {
            Failure::Database(error) => storage_error(error),
            Failure::Journal(error) => StorageError::Engine(format!("the journal: {error}")),
            Failure::Sync(error) => StorageError::Engine(format!("a sync: {error}")),
        }
    }
}
