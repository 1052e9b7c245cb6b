//! The failures that prevent writes, which [`Storage::health`](crate::Storage::health) reports.

use crate::StorageError;

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
