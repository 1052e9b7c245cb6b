//! Restoring into an engine that gives every write a revision of its own: etcd.
//!
//! 1. The whole file is verified.
//! 2. The store must have no keys under the prefix. A marker key outside it is written, which says which snapshot is
//!    being restored. While it is there, the same snapshot can be restored again, which goes on where it stopped, and
//!    servers know that the keys are not all there yet ([`unfinished_restore`]).
//! 3. The store's revision is raised to the snapshot's by writes to keys of our own. So whatever a client has seen of an
//!    object is older than the object is now.
//! 4. The keys are created, many at once, each with what is left of its time. One write each, and not many in a
//!    transaction: so every object has a revision of its own, as it has when servers write them.
//! 5. All keys are read back and compared.
//! 6. History is compacted, so that who asks for a revision of the old store is told that it is gone. The marker goes.

use super::{
    RestoreError, RestoreTarget, SnapshotError, SnapshotReader, SnapshotRecord, SnapshotSummary,
    now_milliseconds,
};
use crate::{Key, KeyValue, ListRequest, Revision, StorageError, snapshot};
use bytes::Bytes;
use std::{
    fs::File,
    io::BufReader,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::task::JoinSet;

/// Outside every prefix, since prefixes begin with a slash.
const MARKER: &str = "pintle/snapshot-restore";
const REVISION_KEYS: &str = "pintle/snapshot-revision/";
/// So many writes raise the revision before their history is compacted.
const COMPACT_AFTER: u64 = 200_000;
const PAGE_KEYS: usize = 500;

/// How a snapshot is restored.
#[derive(Debug, Clone)]
pub struct RestoreOptions {
    /// The store's revision is raised at least so far beyond the snapshot's before keys are written; `None` leaves it as
    /// it is.
    pub bump_revision: Option<u64>,
    /// How many writes are in flight.
    pub writers: usize,
}

impl Default for RestoreOptions {
    fn default() -> RestoreOptions {
        RestoreOptions { bump_revision: Some(0), writers: 128 }
    }
}

/// What a restore is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestorePhase {
    /// Raising the revision.
    Revision,
    /// Writing keys.
    Keys,
    /// Reading them back.
    Check,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The snapshot.
    pub summary: SnapshotSummary,
    /// The store's revision.
    pub revision: Revision,
    /// Keys that are in the store now.
    pub keys: u64,
    /// Keys of the snapshot that had expired.
    pub expired: u64,
    /// Whether an interrupted restore of the same snapshot was finished.
    pub resumed: bool,
}

/// The hash of the snapshot whose restore into `prefix` was begun and not finished, if there is one.
///
/// # Errors
/// Those of the store.
pub async fn unfinished_restore<T: RestoreTarget + ?Sized>(
    target: &T,
    prefix: &str,
) -> Result<Option<String>, StorageError> {
    let marker = target.read(&marker(prefix)).await?;
    Ok(marker.map(|kv| String::from_utf8_lossy(&kv.value).into_owned()))
}

/// Restores the snapshot at `path` into a store that has no keys under the snapshot's prefix. `progress` is told what it
/// is at, how much of that is done, and how much there is.
///
/// # Errors
/// When the snapshot is damaged or there are keys already, before anything is written. When the store fails, after which
/// the same restore can be repeated and goes on.
pub async fn restore_snapshot(
    target: Arc<dyn RestoreTarget>,
    path: &Path,
    options: &RestoreOptions,
    progress: &mut (dyn FnMut(RestorePhase, u64, u64) + Send),
) -> Result<Restored, RestoreError> {
    let (mut reader, summary) = snapshot::open_verified(path)?;
    let prefix = summary.header.prefix.clone();
    let resumed = begin(&*target, &prefix, &summary.sha256).await?;
    if let Some(beyond) = options.bump_revision {
        let wanted = Revision(summary.header.revision.0.saturating_add(beyond));
        raise_revision(&target, wanted, options.writers.max(1), progress).await?;
    }
    let now = now_milliseconds();
    write_keys(&target, &mut reader, &summary, options.writers.max(1), now, progress).await?;
    let keys = compare(&*target, path, &summary, now, progress).await?;
    let revision = target.revision().await?;
    target.compact_history(revision).await?;
    target.remove(&marker(&prefix)).await?;
    let revision = target.revision().await?;
    Ok(Restored { keys, expired: summary.keys - keys, summary, revision, resumed })
}

fn marker(prefix: &str) -> Key {
    Key::new(format!("{MARKER}{prefix}"))
}

/// Takes the prefix for this snapshot. Returns whether a restore of it had been begun.
async fn begin(target: &dyn RestoreTarget, prefix: &str, sha256: &str) -> Result<bool, RestoreError> {
    match unfinished_restore(target, prefix).await? {
        Some(same) if same == sha256 => return Ok(true),
        Some(other) => {
            let prefix = prefix.to_owned();
            return Err(RestoreError::OtherRestore { marker: marker(&prefix), prefix, other });
        }
        None => {}
    }
    let any = ListRequest { prefix: prefix.to_owned(), start_after: None, limit: 1, revision: None };
    if let Some(kv) = target.list(any).await?.items.into_iter().next() {
        return Err(RestoreError::KeysExist { prefix: prefix.to_owned(), key: kv.key });
    }
    let marker = marker(prefix);
    target.create_key(&marker, Bytes::copy_from_slice(sha256.as_bytes()), 0).await?;
    match target.read(&marker).await? {
        Some(kv) if kv.value == sha256 => Ok(false),
        _ => {
            let detail = "another restore has begun".to_owned();
            Err(RestoreError::Differs { key: marker, detail })
        }
    }
}

/// Writes until the store's revision is `wanted` or more.
async fn raise_revision(
    target: &Arc<dyn RestoreTarget>,
    wanted: Revision,
    writers: usize,
    progress: &mut (dyn FnMut(RestorePhase, u64, u64) + Send),
) -> Result<(), RestoreError> {
    let from = target.revision().await?;
    let total = wanted.0.saturating_sub(from.0);
    let keys: Vec<Key> = (0..writers as u64)
        .take_while(|n| *n < total)
        .map(|n| Key::new(format!("{REVISION_KEYS}{n}")))
        .collect();
    let mut current = from;
    while current < wanted {
        progress(RestorePhase::Revision, current.0.saturating_sub(from.0), total);
        let left = Arc::new(AtomicU64::new((wanted.0 - current.0).min(COMPACT_AFTER)));
        let mut tasks = JoinSet::new();
        for key in keys.clone() {
            let (target, left) = (Arc::clone(target), Arc::clone(&left));
            tasks.spawn(async move { rewrite(&*target, &key, &left).await });
        }
        join(&mut tasks).await?;
        let reached = target.revision().await?;
        if reached <= current {
            return Err(RestoreError::Revision { reached, wanted });
        }
        current = reached;
        // Nobody needs the history of these keys, and it would fill the disk.
        target.compact_history(current).await?;
    }
    for key in &keys {
        target.remove(key).await?;
    }
    progress(RestorePhase::Revision, total, total);
    Ok(())
}

/// Writes a key of our own as long as writes are left.
async fn rewrite(target: &dyn RestoreTarget, key: &Key, left: &AtomicU64) -> Result<(), RestoreError> {
    let take = |left: u64| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        target.touch(key).await?;
    }
    Ok(())
}

async fn write_keys(
    target: &Arc<dyn RestoreTarget>,
    reader: &mut SnapshotReader<BufReader<File>>,
    summary: &SnapshotSummary,
    writers: usize,
    now: u64,
    progress: &mut (dyn FnMut(RestorePhase, u64, u64) + Send),
) -> Result<(), RestoreError> {
    let mut tasks = JoinSet::new();
    let failed = Arc::new(AtomicBool::new(false));
    let mut written = 0;
    while let Some(record) = reader.next_record()? {
        if tasks.len() >= writers
            && let Some(result) = tasks.join_next().await
        {
            finished(result)?;
            written += 1;
            if written % 1000 == 0 {
                progress(RestorePhase::Keys, written, summary.keys);
            }
        }
        if is_expired(&record, now) {
            continue;
        }
        let (target, failed) = (Arc::clone(target), Arc::clone(&failed));
        tasks.spawn(async move {
            if failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            // One that exists may be from before an interruption. What it holds is looked at in the end.
            let created = target.create_key(&record.key, record.value, record.expires).await;
            created.map_err(|error| {
                failed.store(true, Ordering::Relaxed);
                RestoreError::Write { key: record.key.clone(), source: error }
            })
        });
    }
    join(&mut tasks).await?;
    progress(RestorePhase::Keys, summary.keys, summary.keys);
    // The file may have been changed since it was verified.
    match reader.summary() {
        Some(again) if again == *summary => Ok(()),
        _ => {
            let error = std::io::Error::other("the file was changed while it was read");
            Err(SnapshotError::Io { path: reader.path().to_owned(), source: error }.into())
        }
    }
}

fn is_expired(record: &SnapshotRecord, now: u64) -> bool {
    record.expires != 0 && record.expires <= now
}

/// Reads the keys back and compares them with the snapshot. Returns how many there are.
async fn compare(
    target: &dyn RestoreTarget,
    path: &Path,
    summary: &SnapshotSummary,
    now: u64,
    progress: &mut (dyn FnMut(RestorePhase, u64, u64) + Send),
) -> Result<u64, RestoreError> {
    let input = File::open(path).map_err(|source| SnapshotError::Io { path: path.to_owned(), source })?;
    let mut reader = SnapshotReader::new(path, BufReader::with_capacity(1 << 18, input))?;
    let mut stored = Stored::new(target, &summary.header.prefix);
    let differs = |key: Key, detail: &str| RestoreError::Differs { key, detail: detail.to_owned() };
    let (mut keys, mut looked_at) = (0, 0);
    while let Some(record) = reader.next_record()? {
        looked_at += 1;
        if looked_at % 1000 == 0 {
            progress(RestorePhase::Check, looked_at, summary.keys);
        }
        let there = match stored.peek().await? {
            Some(kv) if kv.key < record.key => {
                return Err(differs(kv.key.clone(), "the snapshot does not have it"));
            }
            Some(kv) if kv.key == record.key => stored.next(),
            Some(_) | None => None,
        };
        match there {
            Some(kv) if kv.value == record.value => keys += 1,
            Some(kv) => return Err(differs(kv.key, "it has another value")),
            // It was left out, or has gone since.
            None if record.expires != 0 && record.expires <= now_milliseconds().max(now) + 1000 => {}
            None => return Err(differs(record.key, "it is not there")),
        }
    }
    if let Some(kv) = stored.peek().await? {
        return Err(differs(kv.key.clone(), "the snapshot does not have it"));
    }
    progress(RestorePhase::Check, summary.keys, summary.keys);
    Ok(keys)
}

/// The keys of a prefix at one revision, read page by page.
struct Stored<'a> {
    target: &'a dyn RestoreTarget,
    request: ListRequest,
    page: std::vec::IntoIter<KeyValue>,
    next: Option<KeyValue>,
    more: bool,
}

impl<'a> Stored<'a> {
    fn new(target: &'a dyn RestoreTarget, prefix: &str) -> Stored<'a> {
        let request =
            ListRequest { prefix: prefix.to_owned(), start_after: None, limit: PAGE_KEYS, revision: None };
        Stored { target, request, page: Vec::new().into_iter(), next: None, more: true }
    }

    async fn peek(&mut self) -> Result<Option<&KeyValue>, StorageError> {
        if self.next.is_none() {
            self.next = self.page.next();
        }
        if self.next.is_none() && self.more {
            let response = self.target.list(self.request.clone()).await?;
            self.request.revision = Some(response.revision);
            self.more = response.more;
            match response.items.last() {
                Some(last) => self.request.start_after = Some(last.key.clone()),
                None if self.more => {
                    let what = format!("there are keys under {} that are no text", self.request.prefix);
                    return Err(StorageError::Corrupt(what));
                }
                None => {}
            }
            self.page = response.items.into_iter();
            self.next = self.page.next();
        }
        Ok(self.next.as_ref())
    }

    fn next(&mut self) -> Option<KeyValue> {
        self.next.take()
    }
}

async fn join(tasks: &mut JoinSet<Result<(), RestoreError>>) -> Result<(), RestoreError> {
    while let Some(result) = tasks.join_next().await {
        finished(result)?;
    }
    Ok(())
}

fn finished(result: Result<Result<(), RestoreError>, tokio::task::JoinError>) -> Result<(), RestoreError> {
    result.unwrap_or_else(|error| Err(StorageError::Engine(error.to_string()).into()))
}
