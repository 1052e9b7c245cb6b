//! Syncing SQLite's log, and copying it into the database.
//!
//! The log is synced when enough has been written to it: what it had then is durable in the database, and the journal need
//! not keep it any longer. When it has become long it is copied, all of it, so that SQLite starts it again from its
//! beginning with the next transaction. A reader that needs what is in it hinders that, and it grows until it has gone.
//!
//! Whatever fails here, the log has all of it: SQLite takes nothing of it for copied before the database is synced. But
//! nothing is tried again after a failure that is not a full disk, as with commits.

use super::{batch::Failure, file};
use rusqlite::Connection;
use std::path::Path;

/// A log that grew while somebody read is cut to so many times its usual length.
const LONGEST: u64 = 4;

/// The log is synced when such a part of its usual length has been written.
const SYNC_SHARE: u64 = 2;

pub(super) struct Copier {
    /// The log is copied when it is about so long.
    log_bytes: u64,
    /// About what has been written to the log since it was copied;
    uncopied: u64,
    /// it is copied again when that has become so much.
    next: u64,
    /// About what has been written to it since it was synced.
    unsynced: u64,
}

/// Frames of the log when a copy began.
struct Copied {
    frames: u64,
    copied: u64,
}

impl Copier {
    pub(super) fn new(log_bytes: u64) -> Copier {
        // What an earlier process left in the log is copied soon.
        Copier { log_bytes, uncopied: log_bytes / 2, next: log_bytes, unsynced: 0 }
    }

    /// How long the log stays when somebody has read for long.
    pub(super) fn longest(log_bytes: u64) -> u64 {
        log_bytes.saturating_mul(LONGEST)
    }

    /// Something was written to the log.
    pub(super) fn written(&mut self, bytes: u64) {
        self.uncopied += bytes;
        self.unsynced += bytes;
    }

    /// Syncs the log if it is time, and copies what no reader needs of it if it is time for that. Whether all that was
    /// committed before is durable now.
    pub(super) fn go_on(&mut self, directory: &Path, connection: &Connection) -> Result<bool, Failure> {
        let copies = self.uncopied >= self.next;
        if !copies && self.unsynced < (self.log_bytes / SYNC_SHARE).max(1) {
            return Ok(false);
        }
        if copies {
            // Until a reader has gone, or there is space.
            self.next = self.uncopied + self.log_bytes.div_ceil(2);
        }
        // SQLite's own copy would sync it, too, but not when it finds nothing to copy for those who read.
        file::sync_log(directory).map_err(Failure::Sync)?;
        self.unsynced = 0;
        if copies {
            let Copied { frames, copied } = passive(connection)?;
            if frames <= copied {
                (self.uncopied, self.next) = (0, self.log_bytes);
            }
        }
        Ok(true)
    }
}

fn passive(connection: &Connection) -> rusqlite::Result<Copied> {
    let mut statement = connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?;
    // The first column tells of a lock that somebody has: nobody else copies.
    statement.query_row((), |row| {
        let frames =
            |column| row.get::<_, i64>(column).map(|frames| u64::try_from(frames).unwrap_or_default());
        Ok(Copied { frames: frames(1)?, copied: frames(2)? })
    })
}
