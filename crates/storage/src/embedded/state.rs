//! The state that reads see: all acknowledged writes.

use super::backlog::Backlog;
use crate::{Revision, key_index::KeyIndex};

/// The durable state, in the journal or in the database.
pub(super) struct State {
    pub(super) index: KeyIndex,
    pub(super) revision: Revision,
    pub(super) compacted: Revision,
    /// The writes that the database does not have yet.
    pub(super) backlog: Backlog,
}
