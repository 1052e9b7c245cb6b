//! The freshness that a read requires.

use pintle_storage::Revision;

/// The freshness that a read requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The cache's present state (`resourceVersion=0`).
    Any,
    /// Not older than a revision (`resourceVersion=N`, `resourceVersionMatch=NotOlderThan`).
    NotOlderThan(Revision),
    /// Not older than any write that was acknowledged before the read began (no `resourceVersion`).
    Consistent,
}
