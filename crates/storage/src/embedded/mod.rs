//! The engine on the local disk: SQLite in WAL mode, used as an append-only table of writes, and a journal beside it
//! that is synced for each batch of writes, while SQLite's WAL is synced now and then.
//!
//! `docs/storage.md` describes the format and the failures that it survives; `docs/decisions/0001-embedded-store.md`
//! gives the reasons for SQLite.
//!
//! - [`inbox`]: the queue of writes. One thread, the [`committer`], takes all waiting writes, decides them
//!   ([`batch`]), appends them to the [`journal`], syncs it once, publishes and answers. So sixteen writers share a
//!   sync (group commit).
//! - [`backlog`]: the writes that are not in the database yet. Another thread, the [`applier`], applies them, many
//!   writes per transaction ([`handover`]), checkpoints SQLite's WAL ([`checkpointer`]) and compacts.
//! - The [`KeyIndex`] and the backlog are in memory: conflicts are detected without a read, values are read back only
//!   for lists, gets, conflicts and deletes ([`read`]).
//! - [`watch`]: history from the table and the backlog, then live events from the hub.
//! - [`mod@file`]: opening, creating, the lock and the format version; [`wal`]: detection of damage to the WAL that
//!   SQLite overlooks. [`row`]: the rows and their checksums; [`meta`] and [`scan`]: detection of missing rows;
//!   [`locate`]: the place of damage.
//! - [`mod@snapshot`]: saving a store beside a running server, and restoring one from a snapshot.
//!
//! Lock order: `Shared::state`, then the hub; the other locks are held alone. The committer holds the state's lock
//! while it publishes, so a revision is visible to reads and queued to watches at the same moment.

mod applier;
mod backlog;
mod batch;
mod checkpointer;
mod committer;
mod disk;
mod failures;
mod file;
mod handover;
mod inbox;
mod journal;
mod locate;
mod meta;
mod open_error;
mod paths;
mod read;
mod row;
mod scan;
mod snapshot;
mod value;
mod wal;
mod watch;

#[cfg(test)]
mod tests;

pub use open_error::OpenError;
pub use snapshot::{EmbeddedSnapshot, restore_embedded};

use crate::{
    BoxFuture, CompactionRound, GetResponse, Key, ListRequest, ListResponse, Payload, Revision, Storage,
    StorageError, WatchRequest, WatchStream, WriteError, hub::WatchHub, key_index::KeyIndex,
};
use applier::Applier;
use backlog::Backlog;
use batch::{Write, WriteKind};
use committer::{Committer, Owned};
use failures::Failures;
use file::Opened;
use handover::{Handover, Order};
use inbox::{Command, Inbox};
use parking_lot::{Mutex, RwLock};
use read::Readers;
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
use watch::EmbeddedWatch;

/// The number of writes that may wait in the inbox; further writers wait for a permit.
const MAX_WAITING_WRITES: usize = 4096;

/// A transaction of the database is worthwhile from this fraction of the WAL's usual length.
const TRANSACTION_SHARE: u64 = 32;

/// The memory and disk limits of an [`EmbeddedStorage`].
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The length of the WAL, in bytes, at about which it is checkpointed and restarted.
    pub wal_bytes: u64,
    /// The page cache of each connection, in bytes (one connection writes, a few read).
    pub cache_bytes: u64,
    /// The size in bytes beyond which the database refuses to grow, as if the disk were full; `None` is no limit.
    pub quota_bytes: Option<u64>,
    /// Free pages beyond this number of bytes, and beyond half of the database, are returned to the file system.
    pub spare_bytes: u64,
}

impl Default for EmbeddedOptions {
    fn default() -> EmbeddedOptions {
        EmbeddedOptions {
            wal_bytes: 16 << 20,
            cache_bytes: 2 << 20,
            quota_bytes: None,
            spare_bytes: 16 << 20,
        }
    }
}

/// The durable engine: a directory on the local disk, which one process at a time has open.
///
/// Dropping it without [`Storage::close`] finishes accepted writes, which blocks the dropping thread for a short
/// time.
pub struct EmbeddedStorage {
    shared: Arc<Shared>,
    committer: Option<JoinHandle<()>>,
}

/// The state that the callers and the threads share.
struct Shared {
    directory: PathBuf,
    state: RwLock<State>,
    hub: Arc<WatchHub>,
    inbox: Inbox,
    handover: Handover,
    /// The bytes of keys and stored values that are worth a transaction of the database.
    transaction_bytes: u64,
    /// The revision up to which the database is durable without the journal.
    durable: AtomicU64,
    readers: Readers,
    waiting: Arc<Semaphore>,
    closed: AtomicBool,
    failures: Mutex<Failures>,
}

/// The durable state, in the journal or in the database.
struct State {
    index: KeyIndex,
    revision: Revision,
    compacted: Revision,
    /// The writes that the database does not have yet.
    backlog: Backlog,
}

impl Shared {
    fn open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) { Err(StorageError::Closed) } else { Ok(()) }
    }

    /// Applies the writes up to a revision to the database. Blocks the thread.
    fn apply(&self, until: Revision) -> Result<(), StorageError> {
        let (reply, answer) = oneshot::channel();
        self.handover.order(Order::Apply { until, reply });
        #[expect(
            clippy::disallowed_methods,
            reason = "the thread of the committer waits, and threads for what blocks"
        )]
        answer.blocking_recv().unwrap_or_else(|_| Err(ended()))
    }

    /// The reason why the store refuses all writes, if it does.
    fn poisoned(&self) -> Option<StorageError> {
        self.failures.lock().poison.clone()
    }

    /// Refuses all writes from now on. Returns the error for the writers, which names this reason or an earlier one.
    fn poison(&self, error: &StorageError) -> StorageError {
        let poison = StorageError::Poisoned(match error {
            StorageError::Poisoned(why) => why.clone(),
            error => format!("{}: {error}", self.directory.display()),
        });
        let poison = self.failures.lock().poison.get_or_insert(poison).clone();
        tracing::error!("{poison}");
        for command in self.inbox.poison(&poison) {
            match command {
                Command::Write(write) => write.answer(Err(poison.clone().into())),
                Command::Probe { reply } => {
                    // The caller may have been dropped.
                    let _ = reply.send(Err(poison.clone()));
                }
            }
        }
        poison
    }
}

impl EmbeddedStorage {
    /// Opens the store in `directory`. Creates the directory, and an empty store, if there is none yet.
    ///
    /// # Errors
    /// When another process has it open, when its format is unknown, when it is damaged, or when the file system
    /// fails. An existing store is never replaced by an empty one.
    pub fn open(directory: impl AsRef<Path>, options: EmbeddedOptions) -> Result<EmbeddedStorage, OpenError> {
        let failed = |source| OpenError::Io { path: directory.as_ref().to_owned(), source };
        let (opened, index) = file::open(directory.as_ref(), &options)?;
        let Opened { lock, connection, journal, meta, expirations, garbage } = opened;
        let (revision, compacted) = (meta.revision, meta.compacted);
        let shared = Arc::new(Shared {
            directory: directory.as_ref().to_owned(),
            state: RwLock::new(State { index, revision, compacted, backlog: Backlog::new(revision) }),
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

    fn write(&self, key: &Key, kind: WriteKind) -> BoxFuture<'_, Result<Revision, WriteError>> {
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
            let write = Write { key, kind, stored, reply, runtime: batch::current_runtime() };
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

/// The error when the commit thread ended without an answer.
fn ended() -> StorageError {
    StorageError::Poisoned("the commit thread ended".to_owned())
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
        self.write(key, WriteKind::Delete { expected })
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<GetResponse, StorageError>> {
        let key = key.clone();
        Box::pin(self.blocking(move |shared| read::get(shared, &key)))
    }

    fn get_list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>> {
        Box::pin(self.blocking(move |shared| read::get_list(shared, &request)))
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
            let watch = EmbeddedWatch::new(Arc::clone(&self.shared), live, request, history);
            Ok(Box::new(watch) as WatchStream)
        })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        Box::pin(async move {
            self.shared.open()?;
            Ok(self.shared.state.read().revision)
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
