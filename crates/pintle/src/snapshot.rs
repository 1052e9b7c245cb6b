//! `pintle snapshot`: saves all keys of a store into a file, and restores a file into another store.

mod flags;
mod print;

pub(crate) use flags::{command, read};

use pintle::Options;
use pintle_storage::{
    EmbeddedSnapshot, EtcdOpenError, EtcdOptions, EtcdSnapshotStore, restore_embedded,
    snapshot::{
        RestoreError, RestoreOptions, RestorePhase, Restored, SaveError, SnapshotError, SnapshotSummary,
        restore_snapshot, save_snapshot, verify,
    },
};
use print::{Output, Progress, print_restored, print_summary};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The program name in the header of snapshots.
const PROGRAM: &str = concat!("pintle ", env!("CARGO_PKG_VERSION"));

/// A parsed `pintle snapshot` command.
pub(crate) enum SnapshotCommand {
    /// Saves a store.
    Save { file: PathBuf, store: Store, prefix: String, overwrite: bool, output: Output },
    /// Verifies a file and prints its summary.
    Status { file: PathBuf, output: Output },
    /// Restores a file into a store.
    Restore { file: PathBuf, store: Store, prefix: Option<String>, bump_revision: Bump, output: Output },
}

/// The store to save or restore.
pub(crate) enum Store {
    /// The embedded store in a data directory.
    Embedded(PathBuf),
    /// An etcd cluster; the prefix is not set yet.
    Etcd(Box<EtcdOptions>),
}

/// How a restore sets the store's revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bump {
    /// Beyond the snapshot's revision by this number.
    By(u64),
    /// Unchanged: the etcd cluster keeps its own revision.
    No,
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("the snapshot was not made: {0}")]
    Save(#[from] SaveError),
    #[error("the snapshot was not restored: {0}")]
    Restore(#[from] RestoreError),
    #[error(
        "the snapshot was not restored: {0}; repeating the same command goes on where it stopped, and until then no \
         server should be started"
    )]
    Interrupted(#[source] RestoreError),
    #[error(transparent)]
    Etcd(#[from] EtcdOpenError),
    #[error("{file}: the snapshot's keys are under {found}, not under {asked}; keys keep their names")]
    Prefix { file: String, found: String, asked: String },
    #[error("{0}")]
    Options(&'static str),
    #[error("writing the output: {0}")]
    Output(#[from] io::Error),
}

impl SnapshotCommand {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        match self {
            SnapshotCommand::Save { file, store, prefix, overwrite, output } => {
                let summary = match store {
                    Store::Embedded(directory) => save_embedded(&directory, &prefix, &file, overwrite)?,
                    Store::Etcd(options) => {
                        runtime()?.block_on(save_etcd(*options, prefix, &file, overwrite))?
                    }
                };
                print_summary(&mut out, output, &file, &summary)?;
            }
            SnapshotCommand::Status { file, output } => {
                print_summary(&mut out, output, &file, &verify(&file)?)?;
            }
            SnapshotCommand::Restore { file, store, prefix, bump_revision, output } => {
                let found = verify(&file)?.header.prefix;
                // Keys are restored unchanged; a given prefix only checks that the file has the expected one.
                if let Some(asked) = prefix.filter(|asked| *asked != found) {
                    return Err(CommandError::Prefix { file: file.display().to_string(), found, asked });
                }
                let restored = match store {
                    Store::Embedded(directory) => restore_to_embedded(&directory, &file, bump_revision)?,
                    Store::Etcd(options) => {
                        runtime()?.block_on(restore_to_etcd(*options, found, &file, bump_revision))?
                    }
                };
                print_restored(&mut out, output, &file, &restored)?;
            }
        }
        Ok(out.flush()?)
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn save_embedded(
    data_dir: &Path,
    prefix: &str,
    file: &Path,
    overwrite: bool,
) -> Result<SnapshotSummary, CommandError> {
    let snapshot = EmbeddedSnapshot::open(store_directory(data_dir)).map_err(SaveError::Open)?;
    let mut progress = Progress::default();
    let mut tell = |keys: u64| progress.tell(|| format!("{keys} keys saved"));
    let summary = snapshot.save(prefix, PROGRAM, file, overwrite, &mut tell)?;
    progress.end();
    let outside = snapshot.keys_outside(prefix);
    if outside > 0 {
        eprintln!("pintle: {outside} keys are not under {prefix} and not in the snapshot");
    }
    Ok(summary)
}

async fn save_etcd(
    options: EtcdOptions,
    prefix: String,
    file: &Path,
    overwrite: bool,
) -> Result<SnapshotSummary, CommandError> {
    let store = EtcdSnapshotStore::connect(EtcdOptions { prefix: prefix.clone(), ..options }).await?;
    let mut progress = Progress::default();
    let mut tell = |keys: u64| progress.tell(|| format!("{keys} keys saved"));
    let summary = save_snapshot(&store, &prefix, PROGRAM, file, overwrite, &mut tell).await?;
    progress.end();
    Ok(summary)
}

fn restore_to_embedded(data_dir: &Path, file: &Path, bump: Bump) -> Result<Restored, CommandError> {
    let Bump::By(bump) = bump else {
        return Err(CommandError::Options(
            "--bump-revision=false is for etcd: a new embedded store has the snapshot's revision",
        ));
    };
    let mut progress = Progress::default();
    let mut tell = |keys: u64, of: u64| progress.tell(|| format!("{keys} of {of} keys restored"));
    let restored = restore_embedded(store_directory(data_dir), file, bump, &mut tell)?;
    progress.end();
    Ok(restored)
}

async fn restore_to_etcd(
    options: EtcdOptions,
    prefix: String,
    file: &Path,
    bump: Bump,
) -> Result<Restored, CommandError> {
    let store = EtcdSnapshotStore::connect(EtcdOptions { prefix, ..options }).await?;
    let bump_revision = match bump {
        Bump::By(by) => Some(by),
        Bump::No => None,
    };
    let options = RestoreOptions { bump_revision, ..RestoreOptions::default() };
    let mut progress = Progress::default();
    let mut tell = |phase: RestorePhase, done: u64, of: u64| {
        progress.tell(|| match phase {
            RestorePhase::Revision => format!("the revision is raised: {done} of {of} writes"),
            RestorePhase::Keys => format!("{done} of {of} keys written"),
            RestorePhase::Check => format!("{done} of {of} keys compared"),
        });
    };
    let restored = restore_snapshot(Arc::new(store), file, &options, &mut tell).await;
    progress.end();
    restored.map_err(|error| match error {
        RestoreError::Storage(_) | RestoreError::Write { .. } => CommandError::Interrupted(error),
        error => error.into(),
    })
}

fn store_directory(data_dir: &Path) -> PathBuf {
    data_dir.join("store")
}

/// The storage key prefix of an option.
fn key_prefix(option: &str) -> String {
    Options { etcd_prefix: option.to_owned(), ..Options::default() }.key_prefix()
}

fn default_prefix() -> String {
    Options::default().key_prefix()
}
