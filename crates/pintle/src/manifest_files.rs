//! Reloads directories of static manifests.

use crate::{dynamic_files::Watched, file_stamp::FileStamp};
use pintle_dynamic_admission::static_manifests::ManifestDirectory;
use std::{fs, path::PathBuf, sync::Arc};

/// A directory that is read again when it or one of its files changes.
pub(crate) struct ManifestFiles {
    directory: Arc<dyn ManifestDirectory>,
    stamps: Vec<(PathBuf, Option<FileStamp>)>,
}

impl ManifestFiles {
    pub(crate) fn new(directory: Arc<dyn ManifestDirectory>) -> ManifestFiles {
        // Whether the directory has changed since it was read is found at the first check.
        ManifestFiles { directory, stamps: Vec::new() }
    }

    /// The state of the directory and of its files; the stamps of a directory that cannot be read are none.
    fn stamps(&self) -> Vec<(PathBuf, Option<FileStamp>)> {
        let path = self.directory.path();
        let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut stamps: Vec<_> = entries
            .chain([path.to_owned()])
            .map(|path| {
                let stamp = FileStamp::of(&path);
                (path, stamp)
            })
            .collect();
        stamps.sort_by(|(one, _), (other, _)| one.cmp(other));
        stamps
    }
}

impl Watched for ManifestFiles {
    fn look(&mut self, read_anyway: bool) {
        let stamps = self.stamps();
        if stamps != self.stamps || read_anyway {
            self.stamps = stamps;
            self.directory.reload();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::core::Collector;
    use std::{
        path::Path,
        sync::atomic::{AtomicUsize, Ordering},
    };

    struct Counting {
        path: PathBuf,
        reloads: AtomicUsize,
    }

    impl ManifestDirectory for Counting {
        fn path(&self) -> &Path {
            &self.path
        }

        fn reload(&self) {
            self.reloads.fetch_add(1, Ordering::Relaxed);
        }

        fn collectors(&self) -> Vec<Box<dyn Collector>> {
            Vec::new()
        }
    }

    #[test]
    fn a_directory_is_read_again_after_each_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("manifests");
        let counting = Arc::new(Counting { path: path.clone(), reloads: AtomicUsize::new(0) });
        let mut files = ManifestFiles::new(counting.clone());
        let mut check = |read_anyway: bool, expected: usize| {
            files.look(read_anyway);
            files.look(false);
            assert_eq!(counting.reloads.load(Ordering::Relaxed), expected);
        };
        check(false, 1);
        fs::create_dir(&path).unwrap();
        check(false, 2);
        fs::write(path.join("a.yaml"), "a").unwrap();
        check(false, 3);
        fs::write(path.join("a.yaml"), "b").unwrap();
        check(false, 4);
        // As Kubernetes mounts config maps: a link to a file behind a link that is replaced.
        std::os::unix::fs::symlink(dir.path().join("b"), path.join("b.yaml")).unwrap();
        check(false, 5);
        fs::write(dir.path().join("b"), "b").unwrap();
        check(false, 6);
        check(true, 7);
        fs::remove_file(path.join("a.yaml")).unwrap();
        check(false, 8);
        check(false, 8);
    }
}
