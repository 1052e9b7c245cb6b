//! Saves a snapshot from an engine that returns pages of records.
//!
//! All pages are read at one revision, that of the first. Compaction continues meanwhile; if it reaches that revision
//! before the last page, the save restarts at a newer one. Compaction leaves minutes of history, and reading all keys
//! takes seconds, so that is rare.

use super::{SaveError, SnapshotFile, SnapshotHeader, SnapshotRecord, SnapshotSummary, now_milliseconds};
use crate::{BoxFuture, Key, ListRequest, Revision, StorageError};
use std::path::Path;

/// The number of attempts before a save fails.
const ATTEMPTS: u32 = 5;
/// The size of a page: the intended bytes of values, and the smallest and largest number of keys.
const PAGE_BYTES: usize = 4 << 20;
const PAGE_KEYS: std::ops::RangeInclusive<usize> = 16..=2000;

/// An engine that returns pages of records: the data of [`Storage::get_list`](crate::Storage::get_list), and the
/// expiry of keys.
pub trait SnapshotSource: Send + Sync {
    /// The engine's name, for the header.
    fn name(&self) -> &'static str;

    /// Reads a range of keys at one revision.
    ///
    /// # Errors
    /// As [`Storage::get_list`](crate::Storage::get_list).
    fn page(&self, request: ListRequest) -> BoxFuture<'_, Result<SnapshotPage, StorageError>>;
}

/// The answer to [`SnapshotSource::page`].
#[derive(Debug, Clone)]
pub struct SnapshotPage {
    /// In key order.
    pub records: Vec<SnapshotRecord>,
    /// Whether keys of the prefix remain after the last one.
    pub more: bool,
    /// The revision whose state was read.
    pub revision: Revision,
}

/// Saves all keys under `prefix` into a new file at `path`. Calls `progress` with the number of keys written.
///
/// # Errors
/// When the store fails, when there are no keys, or when the file cannot be written. No file is left then.
pub async fn save_snapshot(
    source: &dyn SnapshotSource,
    prefix: &str,
    program: &str,
    path: &Path,
    overwrite: bool,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<SnapshotSummary, SaveError> {
    let mut attempt = 1;
    loop {
        match save_once(source, prefix, program, path, overwrite, progress).await {
            Err(SaveError::Storage(StorageError::Compacted { compacted })) if attempt < ATTEMPTS => {
                tracing::warn!("the revision was compacted (up to {compacted}) while it was read: once more");
                attempt += 1;
            }
            result => return result,
        }
    }
}

async fn save_once(
    source: &dyn SnapshotSource,
    prefix: &str,
    program: &str,
    path: &Path,
    overwrite: bool,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<SnapshotSummary, SaveError> {
    let mut limit = *PAGE_KEYS.start();
    let request = |start_after: Option<Key>, limit, revision| ListRequest {
        prefix: prefix.to_owned(),
        start_after,
        limit,
        revision,
    };
    let mut page = source.page(request(None, limit, None)).await?;
    if page.records.is_empty() {
        return Err(SaveError::Empty { prefix: prefix.to_owned() });
    }
    let revision = page.revision;
    let header = SnapshotHeader {
        prefix: prefix.to_owned(),
        revision,
        saved: now_milliseconds(),
        source: source.name().to_owned(),
        program: program.to_owned(),
    };
    let mut file = SnapshotFile::create(path, overwrite, header)?;
    loop {
        for record in &page.records {
            file.write(record)?;
        }
        progress(file.keys());
        if !page.more {
            break;
        }
        let Some(last) = page.records.last() else {
            // Otherwise the remaining keys would be omitted silently.
            let what = format!("there are keys under {prefix} that are no text, and too many to pass over");
            return Err(StorageError::Corrupt(what).into());
        };
        let bytes: usize = page.records.iter().map(|record| record.value.len()).sum();
        limit = (PAGE_BYTES / (bytes / page.records.len()).max(1))
            .min(limit * 4)
            .clamp(*PAGE_KEYS.start(), *PAGE_KEYS.end());
        page = source.page(request(Some(last.key.clone()), limit, Some(revision))).await?;
    }
    Ok(file.finish()?)
}
