//! The options of a watch.

use crate::{CachedObject, Freshness};
use pintle_storage::{Key, Revision};
use std::{fmt, sync::Arc};
use tokio::time::Instant;

/// Returns whether a watcher wants to see an object; usually evaluates its label and field selectors. The reflector's
/// task calls it, so it has to be quick (or [`WatchOptions::has_slow_predicate`]) and must not panic.
pub type Predicate = Arc<dyn Fn(&CachedObject) -> bool + Send + Sync>;

/// The options of a watch.
#[derive(Clone)]
pub struct WatchOptions {
    /// The start of the watch.
    pub start: WatchStart,
    /// The part of the resource to follow.
    pub scope: WatchScope,
    /// The filter on objects, besides the scope; `None` accepts all objects.
    pub predicate: Option<Predicate>,
    /// Whether `predicate` may take longer than a few comparisons. If so, the watcher's own task calls it, and every
    /// event in scope wakes that task.
    pub has_slow_predicate: bool,
    /// An indexed field and its required value, besides `predicate`. Events of objects that neither have nor had that
    /// value do not wake the watcher.
    pub trigger: Option<Trigger>,
    /// Whether the client requests bookmarks.
    pub bookmarks: bool,
    /// The time at which the server ends the watch: a bookmark is sent two seconds earlier.
    pub deadline: Option<Instant>,
}

impl WatchOptions {
    /// A watch of the whole resource from `start` on, without bookmarks.
    pub fn new(start: WatchStart) -> WatchOptions {
        WatchOptions {
            start,
            scope: WatchScope::All,
            predicate: None,
            has_slow_predicate: false,
            trigger: None,
            bookmarks: false,
            deadline: None,
        }
    }
}

impl fmt::Debug for WatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchOptions")
            .field("start", &self.start)
            .field("scope", &self.scope)
            .field("predicate", &self.predicate.is_some())
            .field("trigger", &self.trigger)
            .field("bookmarks", &self.bookmarks)
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// The start of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchStart {
    /// With the first event after a revision (`resourceVersion=N`). For a revision that has not been reached yet, the
    /// watch waits. [`crate::CacherError::Expired`] when the events were compacted.
    After(Revision),
    /// With an ADDED event for each object of the cache's state, however old, then with the changes after it: the
    /// meaning of `resourceVersion=0`, or of no `resourceVersion`, without `sendInitialEvents`.
    State,
    /// Without the state (`sendInitialEvents=false` and no revision, or 0): the changes after a state of this
    /// freshness. The watch does not wait for the cache to reach that state.
    Now(Freshness),
    /// `sendInitialEvents=true`: an ADDED event for each object of a state of this freshness, a bookmark that marks
    /// their end (if [`WatchOptions::bookmarks`]), then the changes after it.
    InitialEvents(Freshness),
}

/// The part of a resource that a watch follows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WatchScope {
    /// All objects.
    #[default]
    All,
    /// The objects of one namespace.
    Namespace(Arc<str>),
    /// One object.
    Object(Key),
}

/// A selectable field with the value that a predicate requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The field's name: one of [`crate::CacherConfig::triggers`] or `metadata.name`; any other has no effect.
    pub field: Arc<str>,
    /// The value.
    pub value: Arc<str>,
}
