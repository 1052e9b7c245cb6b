//! Copies the log into the database beside the commit thread, which goes on writing.
//!
//! What is written meanwhile is left in the log, so copying is done in passes, each of which leaves less. The last and
//! smallest is the commit thread's own: only when everything is copied does SQLite start the log again.
//!
//! The other thread sees no more than what is committed, and so synced; it syncs the database before SQLite takes note
//! that the log was copied. A pass that fails changes nothing, and the commit thread decides what follows from it.

use super::{EmbeddedOptions, Shared, file, inbox::Command};
use rusqlite::Connection;
use std::{io, sync::Arc, thread::JoinHandle};

/// A pass over a smaller log is not worth another thread.
const MIN_LOG_BYTES: u64 = 1 << 20;

pub(super) struct Copier {
    options: EmbeddedOptions,
    connection: Option<Connection>,
    running: Option<JoinHandle<Pass>>,
}

/// The connection, to be used again, and how it went.
type Pass = (Option<Connection>, rusqlite::Result<()>);

impl Copier {
    pub(super) fn new(options: EmbeddedOptions) -> Copier {
        Copier { options, connection: None, running: None }
    }

    pub(super) fn is_worthwhile(&self) -> bool {
        self.options.log_bytes >= MIN_LOG_BYTES
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Begins a pass. When it ends, the commit thread finds [`Command::Copied`] in its inbox.
    pub(super) fn start(&mut self, shared: &Arc<Shared>) -> io::Result<()> {
        let (shared, options) = (Arc::clone(shared), self.options.clone());
        let connection = self.connection.take();
        let thread = std::thread::Builder::new().name("storage-copy".to_owned());
        self.running = Some(thread.spawn(move || {
            let pass = match connection {
                Some(connection) => copy(connection),
                None => match file::writer(&file::database_path(&shared.directory), &options) {
                    Ok(connection) => copy(connection),
                    Err(error) => (None, Err(error)),
                },
            };
            // Nobody looks there any more when the engine is closed, which waits for this thread by itself.
            let _ = shared.inbox.push(Command::Copied);
            pass
        })?);
        Ok(())
    }

    /// Waits for the pass that is running, if one is.
    pub(super) fn finish(&mut self) -> rusqlite::Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        match running.join() {
            Ok((connection, result)) => {
                self.connection = connection;
                result
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        self.connection = None;
    }
}

impl Drop for Copier {
    /// Nobody else may open the store before its last connection is closed.
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            drop(running.join());
        }
    }
}

fn copy(connection: Connection) -> Pass {
    let result = super::committer::checkpoint(&connection, "PRAGMA wal_checkpoint(PASSIVE)");
    (Some(connection), result.map(drop))
}
