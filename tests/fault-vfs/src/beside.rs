//! Injects faults into, and records, the operations on files that SQLite does not manage. Each function gets the
//! operation as a closure, records it like SQLite's own calls, and runs it unless a [`Fault`](crate::Fault) makes it
//! fail.

use crate::{
    disk::{Call, Disk, Effect},
    image::Operation,
};
use std::{io, path::Path};

/// Writes `bytes` at `offset`.
///
/// # Errors
/// Those of `write`, and faults.
pub fn write(
    path: &Path,
    offset: u64,
    bytes: &[u8],
    write: impl FnOnce(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let Some((disk, file)) = Disk::of(path) else { return write(bytes) };
    let (bytes, failure) = match disk.fault(Call::Write, &file) {
        None => (bytes, None),
        // A write within one sector is complete or absent.
        Some(Effect::ShortWrite) if bytes.len() > 512 => {
            (bytes.get(..bytes.len() / 2).unwrap_or_default(), Some(error(Effect::ShortWrite)))
        }
        Some(effect) => return Err(error(effect)),
    };
    disk.note(|| Operation::Write { file, offset, bytes: bytes.to_vec() });
    write(bytes)?;
    failure.map_or(Ok(()), Err)
}

/// Truncates a file to `length` bytes.
///
/// # Errors
/// Those of `truncate`, and faults.
pub fn truncate(path: &Path, length: u64, truncate: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if let Some((disk, file)) = Disk::of(path) {
        if let Some(effect) = disk.fault(Call::Truncate, &file) {
            return Err(error(effect));
        }
        disk.note(|| Operation::Truncate { file, length });
    }
    truncate()
}

/// Opens a file, and creates it if it does not exist.
///
/// # Errors
/// Those of `create`, and faults.
pub fn create<T>(path: &Path, create: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if let Some((disk, file)) = Disk::of(path) {
        if let Some(effect) = disk.fault(Call::Open, &file) {
            return Err(error(effect));
        }
        disk.note(|| Operation::Create { file });
    }
    create()
}

/// Syncs a file.
///
/// # Errors
/// Those of `sync`, and faults.
pub fn sync(path: &Path, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if let Some((disk, file)) = Disk::of(path) {
        if let Some(effect) = disk.fault(Call::Sync, &file) {
            return Err(error(effect));
        }
        // Recorded before the sync: writes during the sync need not become durable by it.
        disk.note(|| Operation::Sync { file });
    }
    sync()
}

/// Deletes a file. Its directory is not synced.
///
/// # Errors
/// Those of `delete`.
pub fn delete(path: &Path, delete: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if let Some((disk, file)) = Disk::of(path) {
        disk.note(|| Operation::Delete { file, synced: false });
    }
    delete()
}

/// Renames a file within its directory. The directory is not synced.
///
/// # Errors
/// Those of `rename`.
pub fn rename(path: &Path, to: &Path, rename: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if let (Some((disk, file)), Some((_, to))) = (Disk::of(path), Disk::of(to)) {
        disk.note(|| Operation::Rename { file, to });
    }
    rename()
}

/// Syncs a directory.
///
/// # Errors
/// Those of `sync`.
pub fn sync_directory(directory: &Path, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if let Some((disk, _)) = Disk::of(&directory.join("file")) {
        disk.note(|| Operation::SyncDirectory);
    }
    sync()
}

/// The error of a failing call.
///
/// # Panics
/// With [`Effect::Panic`].
fn error(effect: Effect) -> io::Error {
    io::Error::from(match effect {
        Effect::IoError => return io::Error::other("the disk fails on command"),
        Effect::DiskFull | Effect::ShortWrite => io::ErrorKind::StorageFull,
        Effect::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
        Effect::Panic => panic!("the thread panics on command"),
    })
}
