//! Replaces files atomically and durably: certificates, keys and other small files that the server generates once and
//! cannot do without.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// The users who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The owner only, from the file's creation on.
    Owner,
    /// Everybody whom the process's mask does not exclude.
    Everybody,
}

/// Replaces the content of a file, which is created if need be. At each moment the file has its old content or the whole new
/// one, also after a loss of power; after this returns it has the new one. A file that has this content already
/// is left as it is, so that this succeeds on a full disk, too. Blocks for the time of two syncs.
///
/// # Errors
/// When the file cannot be written. The old content is kept, and nothing else stays behind.
pub fn replace(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    let new = new_path(path)?;
    let replaced = write(&new, content, readers).and_then(|()| fs::rename(&new, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&new);
    }
    replaced?;
    // The new name is durable when its directory is.
    match path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        Some(directory) => File::open(directory)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

/// The file that becomes `path` when it is complete: in the same directory, and so on the same file system.
fn new_path(path: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(".new");
    Ok(path.with_file_name(name))
}

fn write(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Everybody => 0o666,
    };
    let mut file = File::options().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_is_written_only_if_its_content_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        replace(&path, b"one", Readers::Owner).unwrap();
        let first = fs::metadata(&path).unwrap();
        assert_eq!(first.mode() & 0o777, 0o600);
        replace(&path, b"one", Readers::Owner).unwrap();
        let same = fs::metadata(&path).unwrap();
        assert_eq!((same.ino(), same.mtime_nsec()), (first.ino(), first.mtime_nsec()));
        replace(&path, b"two", Readers::Owner).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else stays behind");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_keeps_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.crt");
        replace(&path, b"one", Readers::Everybody).unwrap();
        // In the way of the new file.
        fs::create_dir(directory.path().join("a.crt.new")).unwrap();
        assert!(replace(&path, b"two", Readers::Everybody).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn what_was_written_in_part_goes_when_the_rename_fails() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.crt");
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"one", Readers::Everybody).is_err());
        let names: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names, [path]);
    }
}
