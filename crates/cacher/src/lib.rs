//! Serves the reads and watches of one resource from memory, over any storage engine.
//!
//! A [`Cacher`] keeps one resource in memory: it lists the resource once, watches the store from there, and serves
//! every read and watch without requesting data from the store.
//!
//! The crate depends on storage and on nothing of requests: no HTTP, no selector syntax, no encodings. An
//! [`ObjectDecoder`] decodes the stored bytes.
//!
//! ```text
//!                     list, watch                 changes
//!   storage engine ──────────────► reflector ───────────────► Shared::apply
//!                                 (decodes once)             │
//!                                              ┌─────────────┼──────────────────┐
//!                                              ▼             ▼                  ▼
//!                                          snapshot      event log        watcher index
//!                                              │             │                  │
//!                                              ▼             │                  ▼
//!                                         get, list          └──► Watcher ◄── queues
//! ```
//!
//! - **A read** loads the [`Snapshot`], an immutable persistent map behind an atomic pointer, and may hold it for any
//!   time. A [`Freshness`] says how fresh the snapshot has to be. Past states are rebuilt from the event log, or read
//!   from the store's history.
//! - **A write** reaches the cache through the storage watch. The reflector decodes it once; the snapshot, the event
//!   log and every watch event share the object.
//! - **A watch** begins with a snapshot or a position in the event log and continues with its queue. The watcher
//!   index selects the watchers that an event is offered to. They share one allocation of the event, which also holds
//!   its encoded frames, so that each frame is encoded once. A watcher whose queue is full reads the event log again;
//!   a watcher that needs an event the log has dropped is cut off.
//!
//! **Invariants**: a watcher sees each change after its start exactly once and in order, or it ends; a reader that
//! has seen an event finds the event's state in the snapshot; a consistent read sees every write that was
//! acknowledged before the read began; no reader or watcher delays another one or the store.

mod batch;
mod cacher;
mod config;
mod error;
mod event;
mod freshness;
mod label;
mod metrics;
mod object;
mod page;
mod reads;
mod requirement;
mod snapshot;
mod storage_list;
mod watch_options;
mod watcher;

mod bookmarks;
mod bucket;
mod byte_budget;
mod contents;
mod counted_tree;
mod event_log;
mod held;
mod history;
mod label_demand;
mod label_index;
mod last_changes;
mod lazy_map;
mod object_map;
mod open_objects;
mod place;
mod placed;
mod reflector;
mod remaining_counts;
mod retained;
mod second_look;
mod shared;
mod ticker;
mod too_much_history;
mod value_index;
mod watch_target;
mod watcher_index;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use byte_budget::ByteBudget;
pub use cacher::Cacher;
pub use config::{CacherConfig, ReadSource, TriggerField};
pub use contents::RepresentationId;
pub use error::CacherError;
pub use event::{EventType, WatchEvent, WatchItem};
pub use freshness::Freshness;
pub use held::Held;
pub use label::Label;
pub use metrics::CacherMetrics;
pub use object::{
    CachedObject, DecodeError, DecodedObject, Labels, ObjectDecoder, Selectable, UnreadableObject,
};
pub use page::{Matches, PageRead, PageRequest, PageState, StoragePage};
pub use requirement::Requirement;
pub use snapshot::{Range, Snapshot};
pub use watch_options::{Predicate, Trigger, WatchOptions, WatchScope, WatchStart};
pub use watcher::Watcher;
