//! `pintle snapshot`: all keys of a store into a file, and out of it into another store.

mod flags;
mod print;

pub(crate) use flags::{command, read};

use pintle::Options;
use pintle_storage::{
    EmbeddedSnapshot, restore_embedded,
    snapshot::{RestoreError, SaveError, SnapshotError, verify},
};
use print::{Output, Progress, print_restored, print_summary};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Who made a snapshot, as its header says.
const PROGRAM: &str = concat!("pintle ", env!("CARGO_PKG_VERSION"));

/// A `pintle snapshot` command line, read.
pub(crate) enum SnapshotCommand {
    /// Save a store.
    Save { file: PathBuf, store: Store, prefix: String, overwrite: bool, output: Output },
    /// Verify a file and say what it is.
    Status { file: PathBuf, output: Output },
    /// Make a store.
    Restore { file: PathBuf, store: Store, prefix: Option<String>, bump_revision: Bump, output: Output },
}

/// The store that is saved or made.
pub(crate) enum Store {
    /// That of a data directory.
    Embedded(PathBuf),
}

/// What becomes of a store's revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bump {
    /// It is so far beyond the snapshot's.
    By(u64),
    /// It stays what it is.
    No,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("the snapshot was not made: {0}")]
    Save(#[from] SaveError),
    #[error("the snapshot was not restored: {0}")]
    Restore(#[from] RestoreError),
    #[error("{file}: the snapshot's keys are under {found}, not under {asked}; keys keep their names")]
    Prefix { file: String, found: String, asked: String },
    #[error("{0}")]
    Options(&'static str),
    #[error("writing the output: {0}")]
    Output(#[from] io::Error),
}

impl SnapshotCommand {
    /// Does it.
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        match self {
            SnapshotCommand::Save { file, store: Store::Embedded(directory), prefix, overwrite, output } => {
                let snapshot =
                    EmbeddedSnapshot::open(store_directory(&directory)).map_err(SaveError::Open)?;
                let mut progress = Progress::new("saved");
                let summary =
                    snapshot.save(&prefix, PROGRAM, &file, overwrite, &mut |keys| progress.keys(keys))?;
                progress.end();
                let outside = snapshot.keys_outside(&prefix);
                if outside > 0 {
                    eprintln!("pintle: {outside} keys are not under {prefix} and not in the snapshot");
                }
                print_summary(&mut out, output, &file, &summary)?;
            }
            SnapshotCommand::Status { file, output } => {
                print_summary(&mut out, output, &file, &verify(&file)?)?;
            }
            SnapshotCommand::Restore {
                file,
                store: Store::Embedded(directory),
                prefix,
                bump_revision,
                output,
            } => {
                check_prefix(&file, prefix)?;
                let Bump::By(bump) = bump_revision else {
                    return Err(CommandError::Options(
                        "--bump-revision=false is for etcd: a new embedded store has the snapshot's revision",
                    ));
                };
                let mut progress = Progress::new("restored");
                let restored =
                    restore_embedded(store_directory(&directory), &file, bump, &mut |keys, of| {
                        progress.keys_of(keys, of);
                    })?;
                progress.end();
                print_restored(&mut out, output, &file, &restored)?;
            }
        }
        Ok(out.flush()?)
    }
}

/// Keys are restored as they are; a prefix that was given says where they are expected.
fn check_prefix(file: &Path, asked: Option<String>) -> Result<(), CommandError> {
    let Some(asked) = asked else { return Ok(()) };
    let found = verify(file)?.header.prefix;
    if found == asked {
        return Ok(());
    }
    Err(CommandError::Prefix { file: file.display().to_string(), found, asked })
}

fn store_directory(data_dir: &Path) -> PathBuf {
    data_dir.join("store")
}

/// The prefix as keys have it.
fn key_prefix(option: &str) -> String {
    match option.trim_matches('/') {
        "" => "/".to_owned(),
        prefix => format!("/{prefix}/"),
    }
}

fn default_prefix() -> String {
    key_prefix(&Options::default().etcd_prefix)
}
