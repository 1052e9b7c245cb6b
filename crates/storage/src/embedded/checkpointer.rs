//! Syncs and checkpoints SQLite's WAL.
//!
//! The WAL is synced when enough has been written to it: the transactions in it are then durable in the database, and
//! the journal may drop them. When the WAL has become long, a checkpoint copies all of it, so that SQLite restarts it
//! from the beginning with the next transaction. A reader that still needs frames of the WAL prevents that, and the
//! WAL grows until the reader has ended.
//!
//! After any failure here the WAL is still complete: SQLite treats no frame as checkpointed before the database is
//! synced. As with commits, only a full disk is retried.

use super::{failures::Failure, paths};
use rusqlite::Connection;
use std::path::Path;

/// A WAL that grew during a long read is truncated to this multiple of its usual length.
const LONGEST: u64 = 4;

/// The WAL is synced after each such fraction (a half) of its usual length.
const SYNC_SHARE: u64 = 2;

pub(super) struct Checkpointer {
    /// The length of the WAL at which it is checkpointed, in bytes, approximately.
    wal_bytes: u64,
    /// The bytes written to the WAL since the last complete checkpoint, approximately.
    since_checkpoint: u64,
    /// The value of `since_checkpoint` at which the next checkpoint starts.
    next: u64,
    /// The bytes written to the WAL since its last sync, approximately.
    since_sync: u64,
}

/// The WAL's frames after a checkpoint: all of them, and those that it copied.
struct Checkpointed {
    frames: u64,
    checkpointed: u64,
}

impl Checkpointer {
    pub(super) fn new(wal_bytes: u64) -> Checkpointer {
        // A WAL that an earlier process left is checkpointed soon.
        Checkpointer { wal_bytes, since_checkpoint: wal_bytes / 2, next: wal_bytes, since_sync: 0 }
    }

    /// The length in bytes to which the WAL is truncated after it grew during a long read.
    pub(super) fn longest(wal_bytes: u64) -> u64 {
        wal_bytes.saturating_mul(LONGEST)
    }

    /// Accounts for bytes written to the WAL.
    pub(super) fn written(&mut self, bytes: u64) {
        self.since_checkpoint += bytes;
        self.since_sync += bytes;
    }

    /// Syncs the WAL if it is due, and checkpoints the frames that no reader needs if that is due. Returns whether
    /// all earlier transactions are durable now.
    pub(super) fn proceed(&mut self, directory: &Path, connection: &Connection) -> Result<bool, Failure> {
        let checkpoints = self.since_checkpoint >= self.next;
        if !checkpoints && self.since_sync < (self.wal_bytes / SYNC_SHARE).max(1) {
            return Ok(false);
        }
        if checkpoints {
            // The next attempt, if a reader or a full disk prevents this one.
            self.next = self.since_checkpoint + self.wal_bytes.div_ceil(2);
        }
        // SQLite's checkpoint also syncs the WAL, but not when readers leave it no frame to copy.
        paths::sync_wal(directory).map_err(Failure::Sync)?;
        self.since_sync = 0;
        if checkpoints {
            let Checkpointed { frames, checkpointed } = passive(connection)?;
            if frames <= checkpointed {
                (self.since_checkpoint, self.next) = (0, self.wal_bytes);
            }
        }
        Ok(true)
    }
}

fn passive(connection: &Connection) -> rusqlite::Result<Checkpointed> {
    let mut statement = connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?;
    // The first column reports a lock held by another checkpoint: no other thread or process checkpoints.
    statement.query_row((), |row| {
        let frames =
            |column| row.get::<_, i64>(column).map(|frames| u64::try_from(frames).unwrap_or_default());
        Ok(Checkpointed { frames: frames(1)?, checkpointed: frames(2)? })
    })
}
