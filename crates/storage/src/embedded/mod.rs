//! The engine on the local disk: SQLite in write-ahead-log mode, used as an append-only table of writes, and beside it a
//! journal that is synced for each batch of them, while SQLite is synced now and then.
//!
//! `docs/storage.md` tells the format and why it survives what it survives; `docs/decisions/0001-embedded-store.md`
//! why it is SQLite.
//!
//! - [`inbox`]: where writes wait; one thread, the [`committer`], takes all that wait, decides them ([`batch`]), appends
//!   them to the [`journal`], which is synced once, publishes and answers. So sixteen writers share a sync.
//! - [`backlog`]: what was written and is not in the database yet; another thread, the [`applier`], brings it there, many
//!   writes to a transaction ([`handover`]), copies SQLite's log ([`copier`]) and compacts.
//! - In memory there are the [`KeyIndex`] and the backlog: conflicts are found without reading, values are read back only
//!   for lists, gets, conflicts and deletes ([`read`]).
//! - [`watch`]: history from the table and the backlog, then live events from the hub.
//! - [`mod@file`]: opening, creating, the lock and the format version; [`log`]: looking
//!   for damage that SQLite overlooks. [`row`]: what a row is, and its checksums; [`meta`] and [`scan`]: that none is
//!   missing; [`locate`]: where damage is.
//! - [`mod@snapshot`]: saving beside a running server, and making a store out of a snapshot.
//!
//! Lock order: `Shared::state`, then the hub, the others alone. The committer holds the state's lock while it publishes, so nobody sees
//! a revision through a read that a watch has not been handed yet, or the other way around.

mod applier;
mod backlog;
mod batch;
mod committer;
mod copier;
mod disk;
mod failures;
mod file;
mod handover;
mod inbox;
mod journal;
mod locate;
mod log;
mod meta;
mod read;
mod row;
mod scan;
mod snapshot;
mod value;
mod watch;

#[cfg(test)]
mod tests;

pub use file::OpenError;
pub use snapshot::{EmbeddedSnapshot, restore_embedded};

use crate::{
    BoxFuture, CompactionRound, GetResponse, Key, ListRequest, ListResponse, Revision, Storage, StorageError,
    WatchRequest, WatchStream, WriteError, hub::WatchHub, key_index::KeyIndex,
};
use applier::Applier;
use backlog::Backlog;
use batch::{Write, WriteKind};
use bytes::Bytes;
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

/// So many writes may wait for the disk; more wait for their turn to wait.
const MAX_WAITING_WRITES: usize = 4096;

/// A transaction of the database is worth such a part of the log's usual length.
const TRANSACTION_SHARE: u64 = 32;

/// How an [`EmbeddedStorage`] uses memory and disk.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The write-ahead log is copied into the database and used again from its start when it has grown to about this.
    pub log_bytes: u64,
    /// Memory for pages of the database, for each connection (one writes, a few read).
    pub cache_bytes: u64,
    /// The database refuses to grow beyond this, as if the disk were full.
    pub quota_bytes: Option<u64>,
    /// Unused pages of the database beyond this, and beyond half of it, are given back to the file system.
    pub spare_bytes: u64,
}

impl Default for EmbeddedOptions {
    fn default() -> EmbeddedOptions {
        EmbeddedOptions {
            log_bytes: 16 << 20,
            cache_bytes: 2 << 20,
            quota_bytes: None,
            spare_bytes: 16 << 20,
        }
    }
}

/// The durable engine: a directory on the local disk, which one process has open at a time.
///
/// Dropping it without [`Storage::close`] finishes accepted writes, which blocks the dropping thread for a moment.
pub struct EmbeddedStorage {
    shared: Arc<Shared>,
    committer: Option<JoinHandle<()>>,
}

/// What the callers and the commit thread share.
struct Shared {
    directory: PathBuf,
    state: RwLock<State>,
    hub: Arc<WatchHub>,
    inbox: Inbox,
    handover: Handover,
    /// So many bytes of keys and stored values are worth a transaction of the database.
    transaction_bytes: u64,
    /// Up to this revision the database has everything durably, whatever becomes of the journal.
    durable: AtomicU64,
    readers: Readers,
    waiting: Arc<Semaphore>,
    closed: AtomicBool,
    failures: Mutex<Failures>,
}

/// What is durable, in the journal or in the database.
struct State {
    index: KeyIndex,
    revision: Revision,
    compacted: Revision,
    /// What the database does not have.
    backlog: Backlog,
}

impl Shared {
    fn open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) { Err(StorageError::Closed) } else { Ok(()) }
    }

    /// Brings the database up to a revision that has been written. Waits: not for tasks.
    fn apply(&self, until: Revision) -> Result<(), StorageError> {
        let (reply, answer) = oneshot::channel();
        self.handover.order(Order::Apply { until, reply });
        #[expect(
            clippy::disallowed_methods,
            reason = "the thread of the committer waits, and threads for what blocks"
        )]
        answer.blocking_recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Why nothing may be written any more, if that is so.
    fn poisoned(&self) -> Option<StorageError> {
        self.failures.lock().poison.clone()
    }

    /// Refuses all writes from now on, for this or an earlier reason, which is returned as the writers are told.
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
                    // Who asked may have gone away.
                    let _ = reply.send(Err(poison.clone()));
                }
            }
        }
        poison
    }
}

impl EmbeddedStorage {
    /// Opens the store in `directory`, which is made with an empty store in it if there is nothing yet.
    ///
    /// # Errors
    /// When another process has it open, when it is of an unknown format, when it is damaged, or when the file system
    /// says no. An existing store is never replaced by an empty one.
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
            transaction_bytes: (options.log_bytes / TRANSACTION_SHARE).max(1),
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

    /// Runs something that reads the disk where it holds up nobody.
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

/// The commit thread went away without an answer.
fn ended() -> StorageError {
    StorageError::Poisoned("the commit thread ended".to_owned())
}

impl Drop for EmbeddedStorage {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.inbox.close(None);
        if let Some(committer) = self.committer.take() {
            // A panic of the thread has been answered to everybody who waited for it.
            let _ = committer.join();
        }
    }
}

impl Storage for EmbeddedStorage {
    fn create(
        &self,
        key: &Key,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        self.write(key, WriteKind::Create { value, ttl })
    }

    fn update(
        &self,
        key: &Key,
        value: Bytes,
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
                // The disk was full. Nobody may write again before this says that it is not.
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
            let database = [file::database_path(&shared.directory), file::log_path(&shared.directory)];
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
