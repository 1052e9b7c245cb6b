//! Saving from an engine that is asked page by page.
//!
//! All pages are of one revision, that of the first. History goes on being compacted meanwhile, and if that revision is
//! compacted before the last page, the save begins again with a newer one. Compaction leaves minutes of history, and
//! reading all keys takes seconds, so that is rare.

use super::{SaveError, SnapshotFile, SnapshotHeader, SnapshotRecord, SnapshotSummary, now_milliseconds};
use crate::{BoxFuture, Key, ListRequest, Revision, StorageError};
use std::path::Path;

/// So often a save is begun before it is given up.
const ATTEMPTS: u32 = 5;
/// A page should have about so many bytes of values, and at least and at most so many keys.
const PAGE_BYTES: usize = 4 << 20;
const PAGE_KEYS: std::ops::RangeInclusive<usize> = 16..=2000;

/// An engine that can be asked for pages of records. What [`Storage::get_list`](crate::Storage::get_list) gives, and
/// besides that when keys expire.
pub trait SnapshotSource: Send + Sync {
    /// The engine's name, for the header.
    fn name(&self) -> &'static str;

    /// Reads a range of keys from one revision.
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

/// Saves all keys under `prefix` into a new file at `path`. `progress` is told how many keys have been written.
///
/// # Errors
/// When the store fails, when there are no keys, when the file cannot be written. There is no file then.
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
            // Otherwise the rest would be left out in silence.
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
