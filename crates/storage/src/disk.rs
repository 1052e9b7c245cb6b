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

    pub(super) fn truncate(_: &Path, _: u64, truncate: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        truncate()
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
pub(crate) struct DiskFile {
    file: File,
    path: PathBuf,
}

impl DiskFile {
    /// Creates a file that only its owner can read, or opens the existing one.
    pub(crate) fn create(path: &Path) -> io::Result<DiskFile> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = calls::create(path, || options.open(path))?;
        Ok(DiskFile { file, path: path.to_owned() })
    }

    /// Opens a file for reading; `None` if it does not exist.
    pub(crate) fn open(path: &Path) -> io::Result<Option<DiskFile>> {
        match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => Ok(Some(DiskFile { file: file?, path: path.to_owned() })),
        }
    }

    /// The open file, for calls that leave its contents alone.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        calls::write(&self.path, offset, bytes, |bytes| {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(bytes)
        })
    }

    pub(crate) fn truncate(&self, length: u64) -> io::Result<()> {
        calls::truncate(&self.path, length, || self.file.set_len(length))
    }

    /// Makes the earlier writes durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        calls::sync(&self.path, || self.file.sync_data())
    }
}

/// Makes durable the writes of any process to a file; no effect if the file does not exist.
pub(crate) fn sync_if_there(path: &Path) -> io::Result<()> {
    DiskFile::open(path)?.map_or(Ok(()), |file| file.sync())
}

/// Deletes a file; no effect if it does not exist.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match calls::delete(path, || fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a whole file and its metadata durable.
pub(crate) fn sync_whole(path: &Path) -> io::Result<()> {
    calls::sync(path, || File::open(path)?.sync_all())
}

/// Gives a durable file its name. Until [`sync_directory`], it may have its old one after a power cut.
pub(crate) fn rename(path: &Path, name: &Path) -> io::Result<()> {
    calls::rename(path, name, || fs::rename(path, name))
}

/// Makes the names of the files in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    calls::sync_directory(directory, || File::open(directory)?.sync_all())
}

/// Appends to a file, from its start.
#[derive(Debug)]
pub(crate) struct Appender {
    file: DiskFile,
    length: u64,
}

impl Appender {
    /// An appender to a file without contents.
    pub(crate) fn new(file: DiskFile) -> Appender {
        Appender { file, length: 0 }
    }
}

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(self.length, bytes)?;
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
