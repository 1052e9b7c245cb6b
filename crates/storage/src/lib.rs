//! Stores keys, bytes and revisions.
//!
//! [`Storage`] is the one interface between the registry and a storage engine, in etcd's terms
//! (<https://etcd.io/docs/v3.6/learning/data_model/>): a flat, ordered key space, one revision counter over all keys,
//! a new revision for every write, and history that is kept until it is compacted.
//!
//! The crate does not depend on Kubernetes kinds or on HTTP. Values are bytes; a write may carry their decoded form to
//! its event ([`Payload`]).
//!
//! Every engine passes the same contract suite, [`contract`].

mod compression;
pub mod contract;
mod disk;
mod embedded;
mod error;
mod etcd;
mod future;
mod hub;
mod key;
mod key_index;
mod key_value;
mod memory;
#[cfg(test)]
mod model;
mod payload;
mod replay;
pub mod snapshot;
mod storage;
mod transform;
mod transformed;
mod watch;

pub use compression::Packed;
pub use embedded::{EmbeddedOptions, EmbeddedSnapshot, EmbeddedStorage, OpenError, restore_embedded};
pub use error::{StorageError, WriteError};
pub use etcd::{
    EtcdConnection, EtcdDialer, EtcdObserver, EtcdOpenError, EtcdOptions, EtcdSnapshotStore, EtcdStorage,
};
pub use future::BoxFuture;
pub use key::{Key, Revision};
pub use key_value::{GetResponse, KeyValue, ListRequest, ListResponse};
pub use memory::MemoryStorage;
pub use payload::Payload;
pub use storage::{CompactionRound, Storage};
pub use transform::{ReadError, TransformError, Transformed, ValueState, ValueTransformer};
pub use transformed::TransformedStorage;
pub use watch::{EventKind, StorageEvent, WatchReceiver, WatchRequest, WatchStream};
