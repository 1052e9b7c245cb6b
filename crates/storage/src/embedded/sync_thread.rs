//! A thread that syncs, while the commit thread does something else.

use super::disk::DiskFile;
use parking_lot::{Condvar, Mutex};
use std::{
    io,
    sync::Arc,
    thread::{self, JoinHandle},
};

/// Dropping it ends the thread.
pub(super) struct SyncThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    turn: Mutex<Turn>,
    asked: Condvar,
    done: Condvar,
}

enum Turn {
    Idle,
    Sync(Arc<DiskFile>),
    Done(io::Result<()>),
    End,
}

/// A sync that is being made. Whoever drops it without [`Syncing::wait`] does not learn what came of it.
#[must_use]
pub(super) struct Syncing<'thread>(&'thread Shared);

impl SyncThread {
    pub(super) fn spawn() -> io::Result<SyncThread> {
        let shared = Shared { turn: Mutex::new(Turn::Idle), asked: Condvar::new(), done: Condvar::new() };
        let shared = Arc::new(shared);
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("storage-sync".to_owned()).spawn(move || own.run())?;
        Ok(SyncThread { shared, thread: Some(thread) })
    }

    /// Begins to sync a file.
    pub(super) fn sync(&mut self, file: Arc<DiskFile>) -> Syncing<'_> {
        *self.shared.turn.lock() = Turn::Sync(file);
        self.shared.asked.notify_one();
        Syncing(&self.shared)
    }
}

impl Syncing<'_> {
    /// Waits for its end.
    pub(super) fn wait(self) -> io::Result<()> {
        let mut turn = self.0.turn.lock();
        loop {
            match std::mem::replace(&mut *turn, Turn::Idle) {
                Turn::Done(result) => return result,
                other => *turn = other,
            }
            self.0.done.wait(&mut turn);
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut turn = self.turn.lock();
        loop {
            match &*turn {
                Turn::Sync(file) => {
                    let file = Arc::clone(file);
                    parking_lot::MutexGuard::unlocked(&mut turn, || {
                        let result = file.sync();
                        drop(file);
                        let mut turn = self.turn.lock();
                        if !matches!(*turn, Turn::End) {
                            *turn = Turn::Done(result);
                        }
                    });
                    self.done.notify_one();
                }
                Turn::End => return,
                Turn::Idle | Turn::Done(_) => self.asked.wait(&mut turn),
            }
        }
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        *self.shared.turn.lock() = Turn::End;
        self.shared.asked.notify_one();
        if let Some(thread) = self.thread.take() {
            // It does not panic, and there is nobody to tell.
            let _ = thread.join();
        }
    }
}
