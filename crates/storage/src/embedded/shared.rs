//! The state that the callers and the threads of a store share.

use super::{
    failures::Failures,
    handover::{Handover, Order},
    inbox::{Command, Inbox},
    readers::Readers,
    state::State,
};
use crate::{Revision, StorageError, hub::WatchHub};
use parking_lot::{Mutex, RwLock};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::sync::{Semaphore, oneshot};

/// The state that the callers and the threads share.
///
/// Lock order: `state`, then the hub; the other locks are held alone. The committer holds the lock of the state while it
/// publishes, so a revision is visible to reads and queued to watches at the same moment.
pub(super) struct Shared {
    pub(super) directory: PathBuf,
    pub(super) state: RwLock<State>,
    /// The newest published revision, for readers that need nothing else of the state: the committer holds its lock while
    /// it publishes.
    pub(super) published: AtomicU64,
    pub(super) hub: Arc<WatchHub>,
    pub(super) inbox: Inbox,
    pub(super) handover: Handover,
    /// The bytes of keys and stored values that are worth a transaction of the database.
    pub(super) transaction_bytes: u64,
    /// The revision up to which the database is durable without the journal.
    pub(super) durable: AtomicU64,
    pub(super) readers: Readers,
    pub(super) waiting: Arc<Semaphore>,
    pub(super) closed: AtomicBool,
    pub(super) failures: Mutex<Failures>,
}

impl Shared {
    /// The newest revision: that of a write that is answered, or of a later one.
    pub(super) fn revision(&self) -> Revision {
        Revision(self.published.load(Ordering::Acquire))
    }

    pub(super) fn open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) { Err(StorageError::Closed) } else { Ok(()) }
    }

    /// Applies the writes up to a revision to the database. Blocks the thread.
    pub(super) fn apply(&self, until: Revision) -> Result<(), StorageError> {
        let (reply, answer) = oneshot::channel();
        self.handover.order(Order::Apply { until, reply });
        #[expect(
            clippy::disallowed_methods,
            reason = "the thread of the committer waits, and threads for what blocks"
        )]
        answer.blocking_recv().unwrap_or_else(|_| Err(ended()))
    }

    /// The reason why the store refuses all writes, if it does.
    pub(super) fn poisoned(&self) -> Option<StorageError> {
        self.failures.lock().poison.clone()
    }

    /// Refuses all writes from now on. Returns the error for the writers, which names this reason or an earlier one.
    pub(super) fn poison(&self, error: &StorageError) -> StorageError {
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

/// The error when the commit thread ended without an answer.
pub(super) fn ended() -> StorageError {
    StorageError::Poisoned("the commit thread ended".to_owned())
}
