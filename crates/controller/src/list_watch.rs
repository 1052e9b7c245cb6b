//! Turns a watch of a whole resource into deltas: the initial list, and then every change.

use pintle_cacher::{CachedObject, EventType, Freshness, WatchItem, WatchOptions, WatchStart};
use pintle_storage::Revision;
use std::{collections::HashSet, sync::Arc};

/// A change of the resource.
#[derive(Debug)]
pub enum Delta<'item> {
    /// An object was created or changed, or is in the initial list. This is its present state.
    Set(&'item Arc<CachedObject>),
    /// An object was deleted. This is its last state.
    Removed(&'item Arc<CachedObject>),
    /// The initial list is complete: objects that are not in it do not exist any more.
    Listed(&'item Names),
}

/// A set of object names, with their namespaces.
#[derive(Debug, Default)]
pub struct Names(HashSet<(String, String)>);

impl Names {
    /// Whether the set has this object. `namespace` is empty for cluster-scoped objects.
    pub fn contains(&self, namespace: &str, name: &str) -> bool {
        self.0.contains(&(namespace.to_owned(), name.to_owned()))
    }
}

/// The state of one watch that was started with [`ListWatch::options`].
#[derive(Debug)]
pub struct ListWatch {
    /// The names in the initial list, until it is complete.
    initial: Option<Names>,
}

impl ListWatch {
    /// The options of the watch: the whole resource, with initial events.
    pub fn options() -> WatchOptions {
        WatchOptions { bookmarks: true, ..WatchOptions::new(WatchStart::InitialEvents(Freshness::Any)) }
    }

    /// The state at the start of the watch.
    pub fn begin() -> ListWatch {
        ListWatch { initial: Some(Names::default()) }
    }

    /// Passes the delta of one item, if it has one, to `handle`. Returns the revision up to which all changes were
    /// passed; `None` while the initial list is incomplete.
    pub fn accept(&mut self, item: &WatchItem, handle: &mut dyn FnMut(Delta<'_>)) -> Option<Revision> {
        match item {
            WatchItem::Event { event_type, event } => {
                let object = event.current().or(event.previous())?;
                if let Some(Names(names)) = &mut self.initial {
                    names.insert((object.namespace().to_owned(), object.name().to_owned()));
                }
                handle(match event_type {
                    EventType::Added | EventType::Modified => Delta::Set(object),
                    EventType::Deleted => Delta::Removed(object),
                });
                self.initial.is_none().then(|| event.revision())
            }
            WatchItem::Bookmark { revision, initial_events_end } => {
                if let Some(names) = self.initial.take_if(|_| *initial_events_end) {
                    handle(Delta::Listed(&names));
                }
                self.initial.is_none().then_some(*revision)
            }
        }
    }
}

/// Deltas that a watch delivered together.
pub struct Deltas<'watch> {
    watch: &'watch mut ListWatch,
    items: std::vec::Drain<'watch, WatchItem>,
}

impl<'watch> Deltas<'watch> {
    /// The deltas of these items.
    pub(crate) fn new(watch: &'watch mut ListWatch, items: &'watch mut Vec<WatchItem>) -> Deltas<'watch> {
        Deltas { watch, items: items.drain(..) }
    }

    /// Passes the deltas to `handle`, in order. Returns the last revision that [`ListWatch::accept`] returned.
    pub fn for_each(self, mut handle: impl FnMut(Delta<'_>)) -> Option<Revision> {
        let Deltas { watch, items } = self;
        items.fold(None, |reached, item| watch.accept(&item, &mut handle).or(reached))
    }
}
