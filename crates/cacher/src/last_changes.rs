//! The changes after which all watches of a cacher end: [`LastChanges`].

use crate::{event::Change, event_log::Position};

/// The changes of a log when its watches ended. The watchers that were behind share it, so that many of them take no more
/// memory than one.
#[derive(Debug)]
pub(crate) struct LastChanges {
    first: Position,
    changes: Vec<Change>,
}

impl LastChanges {
    pub(crate) fn new(first: Position, changes: Vec<Change>) -> LastChanges {
        LastChanges { first, changes }
    }

    /// The changes from a position on; `None` when the log had dropped the first of them, or there are none.
    pub(crate) fn rest(&self, from: Position) -> Option<&[Change]> {
        self.changes.get(from.after(self.first)?..).filter(|rest| !rest.is_empty())
    }
}
