//! Snapshots, event log and watchers over any storage engine.
//!
//! A [`Cacher`] keeps one resource in memory: it lists the resource once, follows the store from there, and serves every
//! read and watch without asking the store for data.
//!
//! It knows storage and no requests: no HTTP, no selectors' syntax, no encodings. What the stored bytes mean it is told
//! by an [`ObjectDecoder`].

mod cacher;
mod config;
mod error;
mod event;
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
mod reflector;
mod shared;
mod watch_target;
mod watcher_index;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use cacher::Cacher;
pub use config::{CacherConfig, TriggerField};
pub use error::CacherError;
pub use event::{EventType, WatchEvent, WatchItem};
pub use metrics::{CacherMetrics, Histogram};
pub use object::{CachedObject, DecodeError, DecodedObject, Labels, ObjectDecoder, RepresentationId};
pub use reads::Freshness;
pub use snapshot::{Range, Snapshot};
pub use watch_options::{Predicate, Trigger, WatchOptions, WatchScope, WatchStart};
pub use watcher::Watcher;
