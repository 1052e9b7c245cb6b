//! The lock of a store: one process at a time has it open.

use super::{open_error::OpenError, paths};
use std::{
    fs::{File, TryLockError},
    path::Path,
    time::{Duration, Instant},
};

/// The longest wait for the lock: a process that was just killed may still hold it, and so may a child between fork
/// and exec.
const PATIENCE: Duration = Duration::from_millis(250);

/// Takes the lock of the store in `directory`; creates its file if there is none. The lock is held until the file is
/// dropped.
///
/// # Errors
/// [`OpenError::Locked`] when another process has it, or another engine of this process.
pub(super) fn take(directory: &Path) -> Result<File, OpenError> {
    let path = paths::lock(directory);
    let failed = |source| OpenError::Io { path: path.clone(), source };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                #[expect(clippy::disallowed_methods, reason = "a store is opened before anybody is served")]
                std::thread::sleep(PATIENCE / 50);
            }
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}
