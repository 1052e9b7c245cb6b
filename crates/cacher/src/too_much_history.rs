//! Remembers history that is too much for the event log.
//!
//! When many watches fall behind at once, each of them resumes. Only the first of them reads history from the store
//! until it exceeds the bounds of the log.

use pintle_storage::Revision;

/// There were more changes between two revisions than the log may hold. There will not be fewer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TooMuchHistory {
    pub(crate) after: Revision,
    pub(crate) until: Revision,
}

impl TooMuchHistory {
    /// Whether the changes after `after` up to `until` include those that were too many.
    pub(crate) fn is_part_of(self, after: Revision, until: Revision) -> bool {
        after <= self.after && until >= self.until
    }
}
