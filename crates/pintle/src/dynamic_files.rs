//! Reloads files that change while the server runs.
//!
//! File metadata is checked once a second, and contents are read once a minute even without a change of metadata. A
//! file that is replaced by another, as Kubernetes does with mounted secrets, counts as changed.

use crate::file_stamp::FileStamp;
use pintle_go_forms::read_file;
use pintle_supervisor::Supervisor;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    sync::watch,
    task::{JoinHandle, spawn_blocking},
    time::MissedTickBehavior,
};

/// Puts the contents of files in force, in the order of their paths. A failure leaves the old contents in force; it is
/// not retried until the contents change.
pub(crate) type Apply = Box<dyn FnMut(&[Vec<u8>]) -> Result<(), String> + Send>;

/// Files that are put in force again when they change.
pub(crate) trait Watched: Send {
    /// Checks the files, and puts changed contents in force. With `read_anyway` the contents are read even without a change
    /// of metadata.
    fn look(&mut self, read_anyway: bool);
}

/// Files that are reloaded together, such as a certificate and its key.
pub(crate) struct DynamicFiles {
    name: &'static str,
    paths: Vec<PathBuf>,
    stamps: Vec<Option<FileStamp>>,
    /// The contents that were read last, usable or not.
    last_read: Vec<Vec<u8>>,
    apply: Apply,
    /// Is called when files cannot be read or used.
    failed: Box<dyn FnMut() + Send>,
    /// The last error, which is logged once.
    error: Option<String>,
}

const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Every how many checks the files are read without a change of metadata.
const READ_AT: u32 = 60;

impl DynamicFiles {
    /// Files whose contents `applied` are in force already.
    pub(crate) fn new(
        name: &'static str,
        paths: Vec<PathBuf>,
        applied: Vec<Vec<u8>>,
        apply: Apply,
    ) -> DynamicFiles {
        // Whether the files have changed since they were read is found at the first check.
        let failed = Box::new(|| {});
        DynamicFiles { name, stamps: Vec::new(), paths, last_read: applied, apply, failed, error: None }
    }

    /// Calls `failed` each time when the files cannot be read, and once for contents that cannot be used.
    pub(crate) fn on_failure(self, failed: impl FnMut() + Send + 'static) -> DynamicFiles {
        DynamicFiles { failed: Box::new(failed), ..self }
    }
}

impl Watched for DynamicFiles {
    fn look(&mut self, read_anyway: bool) {
        let stamps: Vec<_> = self.paths.iter().map(|path| FileStamp::of(path)).collect();
        if stamps == self.stamps && !read_anyway {
            return;
        }
        self.stamps = stamps;
        let contents = self.paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>();
        let outcome = match contents {
            Ok(contents) if contents == self.last_read => {
                self.error = None;
                return;
            }
            Ok(contents) => {
                let outcome = (self.apply)(&contents);
                self.last_read = contents;
                outcome
            }
            Err(error) => Err(error),
        };
        match &outcome {
            Ok(()) => tracing::info!(files = self.name, "changed files are in force"),
            Err(error) => {
                (self.failed)();
                if self.error.as_ref() != Some(error) {
                    tracing::error!(
                        files = self.name,
                        error,
                        "changed files cannot be used, what was in force stays"
                    );
                }
            }
        }
        self.error = outcome.err();
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    read_file(path).map_err(|error| error.to_string())
}

/// Checks files until the server stops; `None` without files.
pub(crate) fn watch(
    mut files: Vec<Box<dyn Watched>>,
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
                // File systems may block.
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
                        // The runtime shuts down.
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
    use std::{
        fs,
        sync::{Arc, Mutex},
    };

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

    #[test]
    fn a_failure_is_told_once_for_contents_and_each_time_for_files_that_are_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "1").unwrap();
        let counts = Arc::new(Mutex::new((0, 0)));
        let [applied, failed] = [counts.clone(), counts.clone()];
        let apply: Apply =
            Box::new(move |contents| match contents.first().is_some_and(|text| text == b"bad") {
                true => Err("bad".to_owned()),
                false => {
                    applied.lock().unwrap().0 += 1;
                    Ok(())
                }
            });
        let files = DynamicFiles::new("test", vec![path.clone()], vec![b"1".to_vec()], apply);
        let mut files = files.on_failure(move || failed.lock().unwrap().1 += 1);
        let mut check = |read_anyway: bool, expected: (u32, u32)| {
            files.look(read_anyway);
            assert_eq!(*counts.lock().unwrap(), expected);
        };
        check(true, (0, 0));
        fs::write(&path, "bad").unwrap();
        check(false, (0, 1));
        check(true, (0, 1));
        // The former contents are put in force again.
        fs::write(&path, "1").unwrap();
        check(false, (1, 1));
        fs::remove_file(&path).unwrap();
        check(false, (1, 2));
        check(true, (1, 3));
        fs::write(&path, "1").unwrap();
        check(false, (1, 3));
    }
}
