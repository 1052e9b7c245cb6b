//! The engine on the local disk: SQLite in WAL mode, used as an append-only table of writes, and a journal beside it
//! that is synced for each batch of writes, while SQLite's WAL is synced now and then.
//!
//! `docs/storage.md` describes the format and the failures that it survives; `docs/decisions/0001-embedded-store.md`
//! gives the reasons for SQLite.
//!
//! The modules, each of which uses those before it only:
//!
//! - The format: [`schema`] has the tables and the format versions, [`row`] the rows and their checksums, [`mod@value`]
//!   the stored form of values. [`meta`] and [`scan`] detect missing rows, [`wal`] damage to the WAL that SQLite
//!   overlooks; [`locate`] finds the place of damage, [`damage`] makes it an error.
//! - [`journal`]: the writes that the database may lose at a power cut.
//! - The files: [`mod@create`], [`mod@open`] (with [`lock`], [`header`] and [`load`]), [`connection`]; the
//!   [`checkpointer`] of SQLite's WAL.
//! - The shared state: [`state`] has the [`KeyIndex`](crate::key_index::KeyIndex) and the [`backlog`], the writes that
//!   are not in the database yet. Both are in memory: conflicts are detected without a read, values are read back only
//!   for lists, gets, conflicts, and deletes whose caller does not have the value. [`inbox`] is the queue of [`mod@write`]s, [`handover`] that of orders for
//!   the applier; [`shared`] holds them together.
//! - [`read`]: gets, lists and history. [`watch`]: the history of watches, which [`replay`](crate::replay) puts before
//!   the live events from the hub. [`deciding`]: the writes of a [`batch`] against the index.
//! - The threads: the [`committer`] takes all waiting writes, decides them, appends them to the journal, syncs it once,
//!   publishes and answers. So sixteen writers share a sync (group commit). The [`applier`] applies the backlog to the
//!   database, many writes per transaction, checkpoints SQLite's WAL and compacts.
//! - [`EmbeddedStorage`] assembles them. [`mod@snapshot`] saves a store beside a running server, and restores one from
//!   a snapshot.

mod open_error;
mod options;
mod schema;

mod paths;
mod value;
mod wal;

mod damage;
mod locate;
mod meta;
mod row;
mod scan;

mod journal;

mod checkpointer;
mod connection;
mod create;
mod expirations;
mod failures;
mod header;
mod load;
mod lock;
mod open;

mod backlog;
mod batch;
mod handover;
mod inbox;
mod readers;
mod shared;
mod state;
mod write;

mod deciding;
mod read;
mod watch;

mod applier;
mod committer;

mod snapshot;

#[cfg(test)]
mod tests;

pub use open_error::OpenError;
pub use options::EmbeddedOptions;
pub use snapshot::{EmbeddedSnapshot, restore_embedded};

use crate::{
    BoxFuture, CompactionRound, GetResponse, Key, ListRequest, ListResponse, Payload, Revision, Storage,
    StorageError, WatchRequest, WatchStream, WriteError, hub::WatchHub, replay::ReplayWatch,
};
use applier::Applier;
use backlog::Backlog;
use committer::{Committer, Owned};
use handover::{Handover, Order};
use inbox::{Command, Inbox};
use open::Opened;
use parking_lot::{Mutex, RwLock};
use readers::Readers;
use shared::{Shared, ended};
use state::State;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::{Semaphore, oneshot};
use value::{MAX_VALUE_BYTES, StoredValue};
use watch::EmbeddedHistory;
use write::{Write, WriteKind};

/// The number of writes that may wait in the inbox; further writers wait for a permit.
const MAX_WAITING_WRITES: usize = 4096;

/// A transaction of the database is worthwhile from this fraction of the WAL's usual length.
const TRANSACTION_SHARE: u64 = 32;

/// The durable engine: a directory on the local disk, which one process at a time has open.
///
/// Dropping it without [`Storage::close`] finishes accepted writes, which blocks the dropping thread for a short
/// time.
pub struct EmbeddedStorage {
    shared: Arc<Shared>,
    committer: Option<JoinHandle<()>>,
}

impl EmbeddedStorage {
    /// Opens the store in `directory`. Creates the directory, and an empty store, if there is none yet.
    ///
    /// # Errors
    /// When another process has it open, when its format is unknown, when it is damaged, or when the file system
    /// fails. An existing store is never replaced by an empty one.
    pub fn open(directory: impl AsRef<Path>, options: EmbeddedOptions) -> Result<EmbeddedStorage, OpenError> {
        let failed = |source| OpenError::Io { path: directory.as_ref().to_owned(), source };
        let (opened, index) = open::open(directory.as_ref(), &options)?;
        let Opened { lock, connection, journal, meta, expirations, garbage } = opened;
        let (revision, compacted) = (meta.revision, meta.compacted);
        let shared = Arc::new(Shared {
            directory: directory.as_ref().to_owned(),
            state: RwLock::new(State { index, revision, compacted, backlog: Backlog::new(revision) }),
            published: AtomicU64::new(revision.0),
            hub: WatchHub::new(revision),
            inbox: Inbox::default(),
            handover: Handover::default(),
            transaction_bytes: (options.wal_bytes / TRANSACTION_SHARE).max(1),
            durable: AtomicU64::new(revision.0),
            readers: Readers::new(directory.as_ref(), &options),
            waiting: Arc::new(Semaphore::new(MAX_WAITING_WRITES)),
            closed: AtomicBool::new(false),
            failures: Mutex::default(),
        });
        let applier = Applier::new(Arc::clone(&shared), connection, meta, garbage, &options);
        let thread = std::thread::Builder::new().name("storage-apply".to_owned());
        let applier = thread.spawn(move || applier.run()).map_err(failed)?;
        let committer = Committer::new(Arc::clone(&shared), Owned { lock, journal, expirations }, applier);
        let thread = std::thread::Builder::new().name("storage-commit".to_owned());
        let committer = thread.spawn(move || committer.run()).inspect_err(|_| shared.handover.close());
        Ok(EmbeddedStorage { shared: Arc::clone(&shared), committer: Some(committer.map_err(failed)?) })
    }

    fn write(&self, key: &Key, mut kind: WriteKind) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            let permit = Arc::clone(&self.shared.waiting).acquire_owned().await;
            let permit = permit.map_err(|_| StorageError::Closed)?;
            let (reply, answer) = oneshot::channel();
            let reply = Some((reply, permit));
            if kind.value().is_some_and(|value| value.len() > MAX_VALUE_BYTES) {
                let error = format!("the value has more than {MAX_VALUE_BYTES} bytes");
                return Err(StorageError::Engine(error).into());
            }
            let stored = StoredValue::new(kind.value());
            kind.set_packed(&stored);
            let write = Write { key, kind, stored, reply, runtime: write::current_runtime() };
            self.shared.inbox.push(Command::Write(write))?;
            answer.await.unwrap_or_else(|_| Err(ended().into()))
        })
    }

    /// Runs a read of the disk on the pool for blocking calls.
    async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Shared) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        self.shared.open()?;
        let shared = Arc::clone(&self.shared);
        match tokio::task::spawn_blocking(move || read(&shared)).await {
            Ok(result) => result,
            Err(error) => Err(StorageError::Engine(error.to_string())),
        }
    }
}

impl Drop for EmbeddedStorage {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.inbox.close(None);
        if let Some(committer) = self.committer.take() {
            // The callers of a panicked thread have been answered.
            let _ = committer.join();
        }
    }
}

impl Storage for EmbeddedStorage {
    fn create(
        &self,
        key: &Key,
        value: Payload,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        self.write(key, WriteKind::Create { value, ttl })
    }

    fn update(
        &self,
        key: &Key,
        value: Payload,
        expected: Revision,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        self.write(key, WriteKind::Update { value, expected, ttl })
    }

    fn delete(&self, key: &Key, expected: Revision) -> BoxFuture<'_, Result<Revision, WriteError>> {
        self.write(key, WriteKind::Delete { expected, existing: None })
    }

    fn delete_existing(
        &self,
        key: &Key,
        expected: Revision,
        existing: Payload,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        self.write(key, WriteKind::Delete { expected, existing: Some(existing) })
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<GetResponse, StorageError>> {
        let key = key.clone();
        Box::pin(async move {
            self.shared.open()?;
            match read::known(&self.shared, &key) {
                Some(answer) => Ok(answer),
                None => self.blocking(move |shared| read::get(shared, &key)).await,
            }
        })
    }

    fn get_list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>> {
        Box::pin(async move {
            self.shared.open()?;
            match read::empty_list(&self.shared, &request)? {
                Some(empty) => Ok(empty),
                None => self.blocking(move |shared| read::get_list(shared, &request)).await?.unpack(),
            }
        })
    }

    fn count(&self, request: ListRequest) -> BoxFuture<'_, Result<usize, StorageError>> {
        Box::pin(self.blocking(move |shared| read::count(shared, &request)))
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        Box::pin(async move {
            self.shared.open()?;
            let state = self.shared.state.read();
            if request.after < state.compacted {
                return Err(StorageError::Compacted { compacted: state.compacted });
            }
            let (live, published) = self.shared.hub.watch(request.prefix.clone(), request.after)?;
            let history = (request.after < published).then_some(published);
            let watch = ReplayWatch::new(EmbeddedHistory(Arc::clone(&self.shared)), live, request, history);
            Ok(Box::new(watch) as WatchStream)
        })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        Box::pin(async move {
            self.shared.open()?;
            Ok(self.shared.revision())
        })
    }

    fn request_progress(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.shared.open()?;
            self.shared.hub.progress();
            Ok(())
        })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.shared.open()?;
            self.shared.handover.order(Order::Compact { revision, reply });
            answer.await.unwrap_or_else(|_| Err(ended()))
        })
    }

    fn compact_periodically(
        &self,
        last: CompactionRound,
    ) -> BoxFuture<'_, Result<CompactionRound, StorageError>> {
        Box::pin(last.alone(self))
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.shared.open()?;
            let failure = self.shared.failures.lock().any().cloned();
            match failure {
                None => Ok(()),
                Some(error @ StorageError::Poisoned(_)) => Err(error),
                // The disk was full. Writes are refused until a probe succeeds.
                Some(_) => {
                    let (reply, answer) = oneshot::channel();
                    self.shared.inbox.push(Command::Probe { reply })?;
                    answer.await.unwrap_or_else(|_| Err(ended()))
                }
            }
        })
    }

    fn compacted_revision(&self) -> Revision {
        self.shared.state.read().compacted
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        Box::pin(self.blocking(|shared| {
            let length = |path: PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
            let [even, odd] = journal::paths(&shared.directory);
            let database = [paths::database(&shared.directory), paths::wal(&shared.directory)];
            Ok(database.into_iter().chain([even, odd]).map(length).sum())
        }))
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.shared.closed.store(true, Ordering::Release);
            let (reply, answer) = oneshot::channel();
            if !self.shared.inbox.close(Some(reply)) {
                return Ok(());
            }
            answer.await.unwrap_or_else(|_| Err(ended()))
        })
    }
}
