//! Files whose content counts while the server runs.
//!
//! They are looked at once a second, and read once a minute even when they look the same. A file that is replaced by another
//! one, as Kubernetes does with mounted secrets, is another one too.

use pintle_supervisor::Supervisor;
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    sync::watch,
    task::{JoinHandle, spawn_blocking},
    time::MissedTickBehavior,
};

/// Puts the contents of some files in force, in the order of their paths. Failing changes nothing, and is tried again when
/// the files change, or a minute later.
pub(crate) type Apply = Box<dyn FnMut(&[Vec<u8>]) -> Result<(), String> + Send>;

/// Files that belong together, such as a certificate and its key.
pub(crate) struct DynamicFiles {
    name: &'static str,
    paths: Vec<PathBuf>,
    stamps: Vec<Option<Stamp>>,
    applied: Option<Vec<Vec<u8>>>,
    apply: Apply,
    /// What went wrong last, which is told once.
    error: Option<String>,
}

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let metadata = fs::metadata(path).ok()?;
        Some(Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// At every which look files are read that look the same.
const READ_AT: u32 = 60;

impl DynamicFiles {
    /// Files of which `applied` is in force already.
    pub(crate) fn new(
        name: &'static str,
        paths: Vec<PathBuf>,
        applied: Vec<Vec<u8>>,
        apply: Apply,
    ) -> DynamicFiles {
        // The content was read before: whether it is still that is found out at the first look.
        DynamicFiles { name, stamps: Vec::new(), paths, applied: Some(applied), apply, error: None }
    }

    /// Looks at the files, and puts them in force if they changed.
    fn look(&mut self, read_anyway: bool) {
        let stamps: Vec<_> = self.paths.iter().map(|path| Stamp::of(path)).collect();
        if stamps == self.stamps && !read_anyway {
            return;
        }
        let outcome = self.paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>();
        let outcome = outcome.and_then(|contents| match self.applied.as_ref() == Some(&contents) {
            true => Ok(()),
            false => {
                (self.apply)(&contents)?;
                self.applied = Some(contents);
                tracing::info!(files = self.name, "changed files are in force");
                Ok(())
            }
        });
        self.stamps = stamps;
        let error = outcome.err();
        if let Some(error) = error.as_ref().filter(|error| self.error.as_ref() != Some(error)) {
            tracing::error!(
                files = self.name,
                error,
                "changed files cannot be used, what was in force stays"
            );
        }
        self.error = error;
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error: io::Error| format!("{}: {error}", path.display()))
}

/// Looks at files until the server stops.
pub(crate) fn watch(
    mut files: Vec<DynamicFiles>,
    supervisor: &Supervisor,
    stopping: &watch::Receiver<bool>,
) -> Option<JoinHandle<()>> {
    if files.is_empty() {
        return None;
    }
    let mut stopping = stopping.clone();
    Some(supervisor.spawn("dynamic-files", async move {
        let looks = async {
            let mut ticks = tokio::time::interval(LOOK_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            for look in 0_u32.. {
                ticks.tick().await;
                // A file system may take its time.
                let looking = spawn_blocking(move || {
                    for files in &mut files {
                        files.look(look.is_multiple_of(READ_AT));
                    }
                    files
                });
                files = match looking.await {
                    Ok(files) => files,
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        // The runtime ends.
                        Err(_) => return,
                    },
                };
            }
        };
        tokio::select! {
            () = looks => {}
            () = pintle_apiserver::serving::stopped(&mut stopping) => {}
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn changes_are_put_in_force_once_and_failures_until_they_end() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| dir.path().join(name));
        for path in &paths {
            fs::write(path, "1").unwrap();
        }
        let applied = Arc::new(Mutex::new(Vec::new()));
        let seen = applied.clone();
        let apply: Apply = Box::new(move |contents| {
            let texts: Vec<_> =
                contents.iter().map(|text| String::from_utf8(text.clone()).unwrap()).collect();
            match texts.contains(&"bad".to_owned()) {
                true => Err("bad".to_owned()),
                false => {
                    seen.lock().unwrap().push(texts.join("+"));
                    Ok(())
                }
            }
        });
        let mut files = DynamicFiles::new("test", paths.to_vec(), vec![b"1".to_vec(), b"1".to_vec()], apply);
        let mut check = |expected: &[&str]| {
            files.look(false);
            files.look(false);
            assert_eq!(*applied.lock().unwrap(), expected);
        };
        check(&[]);
        fs::write(&paths[0], "2").unwrap();
        check(&["2+1"]);
        fs::write(&paths[1], "bad").unwrap();
        check(&["2+1"]);
        fs::remove_file(&paths[1]).unwrap();
        check(&["2+1"]);
        // Replaced by a file of the same age and size.
        fs::write(dir.path().join("new"), "3").unwrap();
        fs::rename(dir.path().join("new"), &paths[1]).unwrap();
        check(&["2+1", "2+3"]);
    }
}
