//! Copying the log into the database, beside the commits.
//!
//! A piece of the log is copied by a thread of its own, with a connection of its own, while the commit thread goes on
//! writing to the end of the log. Pieces are small: syncs of the journal queue behind what the disk is given for them. When
//! the log is long enough and little was written since the last copy, the commit thread copies that itself, so that all of
//! the log is in the database for once, and SQLite starts it again from its beginning. Writers wait only for that last part;
//! a log that grows faster than it is copied makes them wait for the rest as well.
//!
//! A copy begins with a sync of the log, which nobody else syncs: what it had then is durable in the database, and the
//! journal need not keep it any longer. So each copy begins a new segment of the journal, over the one before the last.
//!
//! Whatever fails here, the log has all of it: SQLite takes nothing of it for copied before the database is synced. But
//! nothing is tried again after a failure that is not a full disk, as with commits.

use super::{Shared, batch::Failure, file, journal::Journal, row};
use crate::Revision;
use rusqlite::Connection;
use std::sync::{
    Arc,
    mpsc::{self, Receiver, TryRecvError},
};

/// The thread copies when such a part of the log's usual length has been written.
const PIECE: u64 = 8;
/// The commit thread itself copies at most such a part of the log's usual length.
const LAST_PART: u64 = 16;
/// How much the thread gives way to others, between 0 and 19.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;
/// A log that is so much longer than usual is copied while writers wait.
const TOO_LONG: u64 = 3;

pub(super) struct Copier {
    shared: Arc<Shared>,
    /// The log is copied when it is about so long.
    log_bytes: u64,
    /// About what has been written to the log since it was begun,
    length: u64,
    /// and since the last copy was;
    uncopied: u64,
    /// the next one is when that has become so much.
    next: u64,
    /// The newest revision when the copy began.
    began: Revision,
    /// The thread's, while it does not use it.
    connection: Option<Connection>,
    /// Where the thread leaves it and what came of the copy, while there is one.
    thread: Option<Receiver<Ended>>,
}

type Ended = (Connection, Result<Copied, Failure>);

/// Frames of the log when a copy began.
struct Copied {
    frames: u64,
    copied: u64,
}

impl Copier {
    pub(super) fn new(shared: Arc<Shared>, log_bytes: u64) -> Copier {
        // What an earlier process left in the log is copied soon.
        let length = log_bytes / 2;
        let (began, next) = (Revision(0), length + piece(log_bytes));
        Copier { shared, log_bytes, length, uncopied: length, next, began, connection: None, thread: None }
    }

    /// How long the log may become when nobody reads for long.
    pub(super) fn longest(log_bytes: u64) -> u64 {
        log_bytes.saturating_mul(TOO_LONG)
    }

    /// Something was written to the log.
    pub(super) fn written(&mut self, bytes: u64) {
        self.length += bytes;
        self.uncopied += bytes;
    }

    /// Copies, or has copied, what there is to copy now. `own` is the commit thread's connection, in no transaction.
    pub(super) fn copy(&mut self, own: &Connection, journal: &mut Journal) -> Result<(), Failure> {
        let too_long = self.length >= Copier::longest(self.log_bytes);
        let ended = match &self.thread {
            Some(thread) if too_long => thread.recv().ok(),
            Some(thread) => match thread.try_recv() {
                Err(TryRecvError::Empty) => return Ok(()),
                ended => ended.ok(),
            },
            None if self.uncopied >= self.next => return self.begin(own, journal),
            None => return Ok(()),
        };
        if !self.ended(ended, journal)? {
            return Ok(());
        }
        let long = self.length >= self.log_bytes;
        if too_long || (long && self.uncopied <= self.log_bytes / LAST_PART) {
            self.copy_all(own, journal)
        } else if long || self.uncopied >= self.next {
            self.begin(own, journal)
        } else {
            Ok(())
        }
    }

    /// Has the log copied as it is now.
    fn begin(&mut self, own: &Connection, journal: &mut Journal) -> Result<(), Failure> {
        let (shared, connection) = (Arc::clone(&self.shared), self.connection.take());
        let connection = match connection {
            Some(connection) => connection,
            None => file::copier(&shared.directory)?,
        };
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("storage-copy".to_owned()).spawn(move || {
            give_way();
            let copied = synced_and_copied(&shared, &connection);
            // The commit thread waits for it before it ends.
            let _ = sender.send((connection, copied));
            shared.inbox.nudge();
        });
        match thread {
            Ok(_) => {
                self.thread = Some(receiver);
                self.uncopied = 0;
                self.next = piece(self.log_bytes);
                self.began = self.shared.state.read().revision;
                journal.seal(self.began);
                Ok(())
            }
            // No thread, no help.
            Err(_) => self.copy_all(own, journal),
        }
    }

    /// Takes what the thread returned. Whether it copied all that was there when it began.
    fn ended(&mut self, ended: Option<Ended>, journal: &mut Journal) -> Result<bool, Failure> {
        self.thread = None;
        // It panicked.
        let Some((connection, copied)) = ended else { return Err(rusqlite::Error::UnwindingPanic.into()) };
        self.connection = Some(connection);
        let Copied { frames, copied } = copied.inspect_err(|_| self.later())?;
        journal.synced(self.began);
        // How much it was is told by nobody before.
        self.length = self.uncopied + frames * u64::from(row::PAGE_SIZE);
        // The transaction that was being written can look like a reader.
        let left = (frames - copied.min(frames)) * u64::from(row::PAGE_SIZE);
        self.uncopied += left;
        if left > self.log_bytes / LAST_PART {
            self.later();
            return Ok(false);
        }
        Ok(true)
    }

    /// Copies what there is, at once.
    fn copy_all(&mut self, own: &Connection, journal: &mut Journal) -> Result<(), Failure> {
        let Copied { frames, copied } = synced_and_copied(&self.shared, own).inspect_err(|_| self.later())?;
        let newest = self.shared.state.read().revision;
        journal.synced(newest);
        journal.seal(newest);
        if frames == copied {
            self.length = 0;
            self.uncopied = 0;
            self.next = piece(self.log_bytes);
        } else {
            self.later();
        }
        Ok(())
    }

    /// A reader still needs the log, or there was no space for a copy.
    fn later(&mut self) {
        self.next = self.uncopied + self.log_bytes.div_ceil(2);
    }

    /// Waits for a copy that is being made. What the commit thread does with the database then, it does alone.
    pub(super) fn end(&mut self, journal: &mut Journal) -> Result<(), Failure> {
        match self.thread.take() {
            Some(thread) => self.ended(thread.recv().ok(), journal).map(drop),
            None => Ok(()),
        }
    }
}

fn piece(log_bytes: u64) -> u64 {
    (log_bytes / PIECE).max(1)
}

/// Lets the commit thread and the writers go first: they sleep and wake all the time, and a thread that only computes
/// and copies would make them wait for a processor each time. As far as the system can say so of a single thread.
fn give_way() {
    #[cfg(target_os = "linux")]
    // Where it may not, it is as it was.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
}

/// Syncs the log, and copies it.
fn synced_and_copied(shared: &Shared, connection: &Connection) -> Result<Copied, Failure> {
    // SQLite's own copy would sync it, too, but not when it finds nothing to copy for those who read.
    file::sync_log(&shared.directory).map_err(Failure::Sync)?;
    Ok(passive(connection)?)
}

/// Copies what no reader needs in the log.
fn passive(connection: &Connection) -> rusqlite::Result<Copied> {
    let mut statement = connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?;
    // The first column tells of a lock that somebody has: nobody else copies.
    statement.query_row((), |row| {
        let frames =
            |column| row.get::<_, i64>(column).map(|frames| u64::try_from(frames).unwrap_or_default());
        Ok(Copied { frames: frames(1)?, copied: frames(2)? })
    })
}
