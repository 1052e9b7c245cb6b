//! Restores a snapshot into an engine that assigns its own revisions: etcd.
//!
//! 1. The whole file is verified.
//! 2. The store must have no keys under the prefix. A marker key outside it is written, with the hash of the
//!    snapshot. While the marker exists, the same snapshot can be restored again, which continues the restore, and
//!    servers know that the keys are incomplete ([`unfinished_restore`]).
//! 3. The store's revision is raised to the snapshot's by writes to separate keys. So every revision of an object
//!    that a client has seen is older than the restored object.
//! 4. The keys are created, many concurrently, each with its remaining time to live. Each key is one write, not a
//!    part of a larger transaction: so every object has its own revision, as when servers write them.
//! 5. All keys are read back and compared.
//! 6. History is compacted, so that requests for a revision of the old store fail as compacted. The marker is
//!    deleted.

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
/// The number of writes to raise the revision after which their history is compacted.
const COMPACT_AFTER: u64 = 200_000;
const PAGE_KEYS: usize = 500;
/// A restored store begins below this revision. Revisions are 64-bit numbers with a sign, so that as many remain.
const REVISIONS_END: u64 = 1 << 62;

/// The options of a restore.
#[derive(Debug, Clone)]
pub struct RestoreOptions {
    /// The revisions by which the store's revision must exceed the snapshot's before keys are written, at least;
    /// `None` leaves the store's revision unchanged.
    pub bump_revision: Option<u64>,
    /// The number of concurrent writes.
    pub writers: usize,
}

impl Default for RestoreOptions {
    fn default() -> RestoreOptions {
        RestoreOptions { bump_revision: Some(0), writers: 128 }
    }
}

/// The phase of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestorePhase {
    /// Raises the revision.
    Revision,
    /// Writes the keys.
    Keys,
    /// Reads the keys back and compares them.
    Check,
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The snapshot's totals.
    pub summary: SnapshotSummary,
    /// The store's revision after the restore.
    pub revision: Revision,
    /// The number of keys in the store.
    pub keys: u64,
    /// The number of the snapshot's keys that had expired.
    pub expired: u64,
    /// Whether this run finished an interrupted restore of the same snapshot.
    pub resumed: bool,
}

/// The SHA-256 of the snapshot whose restore into `prefix` is unfinished, if there is one.
///
/// # Errors
/// The errors of the store.
pub async fn unfinished_restore<T: RestoreTarget + ?Sized>(
    target: &T,
    prefix: &str,
) -> Result<Option<String>, StorageError> {
    let marker = target.read(&marker(prefix)).await?;
    Ok(marker.map(|kv| String::from_utf8_lossy(&kv.value).into_owned()))
}

/// Restores the snapshot at `path` into a store that has no keys under the snapshot's prefix. Calls `progress` with
/// the phase, the number of completed steps, and the total.
///
/// # Errors
/// When the snapshot is damaged or there are keys already: before anything is written. When the store fails:
/// repeating the same restore then continues it.
pub async fn restore_snapshot(
    target: Arc<dyn RestoreTarget>,
    path: &Path,
    options: &RestoreOptions,
    progress: &mut (dyn FnMut(RestorePhase, u64, u64) + Send),
) -> Result<Restored, RestoreError> {
    let (mut reader, summary) = snapshot::open_verified(path)?;
    let prefix = summary.header.prefix.clone();
    let wanted = options.bump_revision.map(|bump| raised(summary.header.revision, bump)).transpose()?;
    let resumed = begin(&*target, &prefix, &summary.sha256).await?;
    if let Some(wanted) = wanted {
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

/// The revision from which a restored store goes on.
///
/// # Errors
/// [`RestoreError::RevisionTooHigh`].
pub(crate) fn raised(of_snapshot: Revision, bump: u64) -> Result<Revision, RestoreError> {
    let raised = of_snapshot.0.checked_add(bump).filter(|raised| *raised < REVISIONS_END);
    raised.map(Revision).ok_or(RestoreError::RevisionTooHigh { of_snapshot: of_snapshot.0, bump })
}

fn marker(prefix: &str) -> Key {
    Key::new(format!("{MARKER}{prefix}"))
}

/// Marks the prefix as being restored from this snapshot. Returns whether an unfinished restore of it is continued.
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
        Some(kv) if kv.value.bytes == sha256 => Ok(false),
        _ => {
            let detail = "another restore has begun".to_owned();
            Err(RestoreError::Differs { key: marker, detail })
        }
    }
}

/// Writes until the store's revision is at least `wanted`.
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
        // The history of these keys is not needed, and would fill the disk.
        target.compact_history(current).await?;
    }
    for key in &keys {
        target.remove(key).await?;
    }
    progress(RestorePhase::Revision, total, total);
    Ok(())
}

/// Writes a separate key as long as writes are left.
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
            // An existing key may be from before an interruption. Its value is compared at the end.
            let created = target.create_key(&record.key, record.value, record.expires).await;
            created.map_err(|error| {
                failed.store(true, Ordering::Relaxed);
                RestoreError::Write { key: record.key.clone(), source: error }
            })
        });
    }
    join(&mut tasks).await?;
    progress(RestorePhase::Keys, summary.keys, summary.keys);
    // The file may have changed since it was verified.
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

/// Reads the keys back and compares them with the snapshot. Returns their number.
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
            Some(kv) if kv.value.bytes == record.value => keys += 1,
            Some(kv) => return Err(differs(kv.key, "it has another value")),
            // The key was omitted as expired, or has expired since.
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
