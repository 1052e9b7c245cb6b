//! Snapshots, event log and watchers over any storage engine.
//!
//! A [`Cacher`] keeps one resource in memory: it lists the resource once, follows the store from there, and serves every
//! read and watch without asking the store for data.
//!
//! It knows storage and no requests: no HTTP, no selectors' syntax, no encodings. What the stored bytes mean it is told
//! by an [`ObjectDecoder`].

#![allow(clippy::todo, unused_variables)]

mod cacher;
mod config;
mod error;
mod event;
mod lazy_map;
mod metrics;
mod object;
mod snapshot;
#[cfg(test)]
mod testing;
mod watch_options;
mod watcher;

pub use cacher::{Cacher, Freshness};
pub use config::{CacherConfig, TriggerField};
pub use error::CacherError;
pub use event::{EventType, WatchEvent, WatchItem};
pub use metrics::{CacherMetrics, Histogram};
pub use object::{CachedObject, DecodeError, DecodedObject, Labels, ObjectDecoder, RepresentationId};
pub use snapshot::{Range, Snapshot};
pub use watch_options::{Predicate, Trigger, WatchOptions, WatchScope, WatchStart};
pub use watcher::Watcher;
