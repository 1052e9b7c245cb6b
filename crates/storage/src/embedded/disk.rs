//! The files that are not SQLite's. Every change to one passes through this module, so that tests can inject failures
//! and power cuts, as the VFS layer does for SQLite's files.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

#[cfg(any(test, feature = "faults"))]
use pintle_fault_vfs::beside as calls;

#[cfg(not(any(test, feature = "faults")))]
mod calls {
    use std::{io, path::Path};

    pub(super) fn write(
        _: &Path,
        _: u64,
        bytes: &[u8],
        write: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        write(bytes)
    }

    pub(super) fn create<T>(_: &Path, create: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        create()
    }

    pub(super) fn sync(_: &Path, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        sync()
    }

    pub(super) fn delete(_: &Path, delete: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        delete()
    }

    pub(super) fn rename(_: &Path, _: &Path, rename: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        rename()
    }

    pub(super) fn sync_directory(_: &Path, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        sync()
    }
}

/// An open file. One thread writes to it at a time; other threads may sync it meanwhile.
#[derive(Debug)]
pub(super) struct DiskFile {
    file: File,
    path: PathBuf,
}

impl DiskFile {
    /// Creates a file that only its owner can read, or opens the existing one.
    pub(super) fn create(path: &Path) -> io::Result<DiskFile> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = calls::create(path, || options.open(path))?;
        Ok(DiskFile { file, path: path.to_owned() })
    }

    /// Opens a file for reading; `None` if it does not exist.
    pub(super) fn open(path: &Path) -> io::Result<Option<DiskFile>> {
        match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => Ok(Some(DiskFile { file: file?, path: path.to_owned() })),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        calls::write(&self.path, offset, bytes, |bytes| {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(bytes)
        })
    }

    /// Makes the earlier writes durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        calls::sync(&self.path, || self.file.sync_data())
    }
}

/// Makes durable the writes of any process to a file; no effect if the file does not exist.
pub(super) fn sync_if_there(path: &Path) -> io::Result<()> {
    DiskFile::open(path)?.map_or(Ok(()), |file| file.sync())
}

/// Deletes a file; no effect if it does not exist.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match calls::delete(path, || fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Gives a complete file its name. Until [`sync_directory`], it may have its old one after a power cut.
pub(super) fn publish(path: &Path, name: &Path) -> io::Result<()> {
    calls::sync(path, || File::open(path)?.sync_all())?;
    calls::rename(path, name, || fs::rename(path, name))
}

/// Makes the names of the files in a directory durable.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    calls::sync_directory(directory, || File::open(directory)?.sync_all())
}
