//! What a watcher asks for.

use crate::{CachedObject, Freshness};
use pintle_storage::{Key, Revision};
use std::{fmt, sync::Arc};
use tokio::time::Instant;

/// Whether a watcher wants to see an object; usually its label and field selectors. Called from the one task that
/// follows the store, so it has to be quick (or [`WatchOptions::has_slow_predicate`]), and it must not panic.
pub type Predicate = Arc<dyn Fn(&CachedObject) -> bool + Send + Sync>;

/// How to watch.
#[derive(Clone)]
pub struct WatchOptions {
    /// Where to start.
    pub start: WatchStart,
    /// Which part of the resource to follow.
    pub scope: WatchScope,
    /// Which objects to see, besides the scope; `None` sees all.
    pub predicate: Option<Predicate>,
    /// Whether `predicate` may take longer than a few comparisons. It is then called by the watcher's own task instead,
    /// which is woken by every event in scope.
    pub has_slow_predicate: bool,
    /// An indexed field and the value it has to have, besides what `predicate` says. Events of objects which neither
    /// have nor had that value do not even wake the watcher.
    pub trigger: Option<Trigger>,
    /// Whether the client understands bookmarks.
    pub bookmarks: bool,
    /// When the server will end the watch: a bookmark comes two seconds before.
    pub deadline: Option<Instant>,
}

impl WatchOptions {
    /// Everything of the resource from `start` on, without bookmarks.
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

/// Where a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchStart {
    /// With the first event after a revision (`resourceVersion=N`). A revision that has not happened yet is waited
    /// for. [`crate::CacherError::Expired`] when the events are gone.
    After(Revision),
    /// With an ADDED event for each object of the cache's state, whatever its age, then what happens from there: the
    /// meaning of `resourceVersion=0`, or none, without `sendInitialEvents`.
    State,
    /// Without the state (`sendInitialEvents=false` and no revision, or 0): what happens after a state as fresh as
    /// this. The cache is not waited for.
    Now(Freshness),
    /// `sendInitialEvents=true`: an ADDED event for each object of a state as fresh as this, a bookmark that marks
    /// their end (if [`WatchOptions::bookmarks`]), then what happens from there.
    InitialEvents(Freshness),
}

/// Which part of a resource a watch follows.
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
    /// The field's name: one of [`crate::CacherConfig::triggers`] or `metadata.name`; another has no effect.
    pub field: Arc<str>,
    /// The value.
    pub value: Arc<str>,
}
