//! Writes a snapshot to a file.
//!
//! The file is written under the name with `.partial` appended, synced, and renamed when it is complete. So a file of
//! the final name is never a partial snapshot. A crash leaves only the `.partial` file, and the next snapshot of that
//! name overwrites it. Only the owner can read the files: they contain secrets.

use super::{SnapshotError, SnapshotHeader, SnapshotRecord, SnapshotSummary, SnapshotWriter};
use crate::{
    disk::{self, Appender, DiskFile},
    snapshot::SaveError,
};
use std::{
    ffi::OsString,
    fs::TryLockError,
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

/// A snapshot file that is being written. Dropping it without [`SnapshotFile::finish`] leaves no file.
pub struct SnapshotFile {
    path: PathBuf,
    partial: PathBuf,
    overwrite: bool,
    writer: Option<SnapshotWriter<BufWriter<Appender>>>,
}

impl SnapshotFile {
    /// Begins a snapshot that will be at `path`.
    ///
    /// # Errors
    /// [`SnapshotError::Exists`] when there is such a file and `overwrite` is off; [`SnapshotError::Busy`] when
    /// another process writes it; the errors of the file system.
    pub fn create(
        path: &Path,
        overwrite: bool,
        header: SnapshotHeader,
    ) -> Result<SnapshotFile, SnapshotError> {
        refuse_existing(path, overwrite)?;
        let mut partial = OsString::from(path);
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let failed = |source| SnapshotError::Io { path: partial.clone(), source };
        let file = private(&partial).map_err(failed)?;
        match file.file().try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SnapshotError::Busy { path: partial }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.truncate(0).map_err(failed)?;
        let output = BufWriter::with_capacity(1 << 18, Appender::new(file));
        let writer = SnapshotWriter::new(output, header).map_err(failed)?;
        Ok(SnapshotFile { path: path.to_owned(), partial, overwrite, writer: Some(writer) })
    }

    /// Appends the next record.
    ///
    /// # Errors
    /// When a snapshot may not contain the record, or the file system fails.
    pub fn write(&mut self, record: &SnapshotRecord) -> Result<(), SaveError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write(record).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidInput => {
                SaveError::Record { key: record.key.clone(), detail: source.to_string() }
            }
            _ => SnapshotError::Io { path: self.partial.clone(), source }.into(),
        })
    }

    /// The number of records written.
    pub fn keys(&self) -> u64 {
        self.writer.as_ref().map_or(0, SnapshotWriter::keys)
    }

    /// Writes the trailer, syncs, and renames the file.
    ///
    /// # Errors
    /// The errors of the file system, and [`SnapshotError::Exists`] when the file was created meanwhile.
    pub fn finish(mut self) -> Result<SnapshotSummary, SnapshotError> {
        let failed = |source| SnapshotError::Io { path: self.partial.clone(), source };
        let Some(writer) = self.writer.take() else {
            return Err(failed(io::Error::other("it is finished")));
        };
        // The unfinished file is removed after any failure.
        let partial = Remove(Some(&self.partial));
        let (output, summary) = writer.finish().map_err(failed)?;
        let _lock = output.into_inner().map_err(|error| failed(error.into_error()))?;
        disk::sync_whole(&self.partial).map_err(failed)?;
        refuse_existing(&self.path, self.overwrite)?;
        let named = |source| SnapshotError::Io { path: self.path.clone(), source };
        disk::rename(&self.partial, &self.path).map_err(named)?;
        partial.keep();
        sync_parent(&self.path).map_err(named)?;
        Ok(summary)
    }
}

impl Drop for SnapshotFile {
    fn drop(&mut self) {
        if self.writer.is_some() {
            drop(Remove(Some(&self.partial)));
        }
    }
}

/// Removes a file on drop.
struct Remove<'a>(Option<&'a Path>);

impl Remove<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Remove<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // The file does not have a snapshot's name, and the next snapshot overwrites it.
            let _ = disk::remove_if_there(path);
        }
    }
}

fn refuse_existing(path: &Path, overwrite: bool) -> Result<(), SnapshotError> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(SnapshotError::Io { path: path.to_owned(), source }),
        Ok(metadata) if overwrite && metadata.is_file() => Ok(()),
        Ok(_) => Err(SnapshotError::Exists { path: path.to_owned() }),
    }
}

/// Opens a file that only its owner can read and write.
fn private(path: &Path) -> io::Result<DiskFile> {
    let file = DiskFile::create(path)?;
    #[cfg(unix)]
    {
        // An existing file may have other permissions.
        let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        file.file().set_permissions(owner_only)?;
    }
    Ok(file)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    disk::sync_directory(parent.unwrap_or(Path::new(".")))
}
