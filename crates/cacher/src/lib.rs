//! Snapshots, event log and watchers over any storage engine.
//!
//! A [`Cacher`] keeps one resource in memory: it lists the resource once, follows the store from there, and serves every
//! read and watch without asking the store for data.
//!
//! It knows storage and no requests: no HTTP, no selectors' syntax, no encodings. What the stored bytes mean it is told
//! by an [`ObjectDecoder`].
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
//! - **A read** loads the [`Snapshot`], an immutable persistent map behind an atomic pointer, and keeps it as long as it
//!   likes. How fresh it has to be is a [`Freshness`]. Past states are rebuilt from the event log, or read from the
//!   store's history.
//! - **A write** comes through the store like everybody's. The reflector decodes it once; the object is then shared by
//!   the snapshot, the log and every event.
//! - **A watch** begins with a snapshot or a place in the log and goes on with its queue. An event is offered only to
//!   those that the index names, is one allocation for all of them, and carries the frames they send, so that it is
//!   encoded once. A queue that is full sends its watcher back to the log; a watcher that is behind the log is cut off.
//!
//! **Invariants**: a watcher sees each change after its start exactly once and in order, or it ends; whoever has seen an
//! event finds its state in the snapshot; a consistent read sees every write that was acknowledged before it began; no
//! reader or watcher holds up another or the store.

mod batch;
mod cacher;
mod config;
mod error;
mod event;
mod follow;
mod metrics;
mod object;
mod reads;
mod snapshot;
mod watch_options;
mod watcher;

mod bookmarks;
mod event_log;
mod history;
mod lazy_map;
mod log_budget;
mod reflector;
mod second_look;
mod shared;
mod ticker;
mod watch_target;
mod watcher_index;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use cacher::Cacher;
pub use config::{CacherConfig, ReadSource, TriggerField};
pub use error::CacherError;
pub use event::{EventType, WatchEvent, WatchItem};
pub use follow::{Batch, FollowedWatch, Heard, Names};
pub use log_budget::LogBudget;
pub use metrics::{CacherMetrics, Histogram};
pub use object::{
    CachedObject, DecodeError, DecodedObject, Labels, ObjectDecoder, RepresentationId, UnreadableObject,
};
pub use reads::Freshness;
pub use snapshot::{Range, Snapshot};
pub use watch_options::{Predicate, Trigger, WatchOptions, WatchScope, WatchStart};
pub use watcher::Watcher;
