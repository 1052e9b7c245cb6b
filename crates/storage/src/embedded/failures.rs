//! What keeps a store from writing: what [`Storage::health`](crate::Storage::health) tells.

use crate::StorageError;

/// What failed last, until it works again.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// For good: nobody knows what is on the disk.
    pub(super) poison: Option<StorageError>,
    /// There was no room for a batch in the journal,
    pub(super) journal: Option<StorageError>,
    /// or for one in the database, or for a copy of its log.
    pub(super) database: Option<StorageError>,
}

impl Failures {
    pub(super) fn any(&self) -> Option<&StorageError> {
        self.poison.as_ref().or(self.journal.as_ref()).or(self.database.as_ref())
    }
}
