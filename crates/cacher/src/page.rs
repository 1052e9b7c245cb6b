//! Reads of one page of a list.
//!
//! A page comes from a state in memory where there is one: the present one, one that was retained for the list's
//! continue token, or one that the event log can rebuild. Otherwise it is read from the store, in batches: no more than
//! the page is decoded, unless a selector has to look at each object, and no more than the page is kept.

use crate::{
    CachedObject, Cacher, CacherError, Freshness, ReadSource, Snapshot, metrics, reads::refuse_older,
    remaining_counts, shared::Shared, snapshot::UnreadableMap,
};
use pintle_storage::{Key, ListRequest, Revision, StorageError};
use std::sync::Arc;
use tokio::time::Instant;

/// The state that a page is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageState {
    /// A present state, as in [`Cacher::list`].
    Fresh(Freshness),
    /// The state at a revision, as in [`Cacher::list_at`].
    Exact(Revision),
}

/// A test of objects.
pub type Matches<'a> = &'a (dyn Fn(&CachedObject) -> bool + Send + Sync);

/// A page of a list.
#[derive(Clone, Copy)]
pub struct PageRequest<'a> {
    /// The prefix of the keys.
    pub prefix: &'a str,
    /// Only objects after this key.
    pub start_after: Option<&'a Key>,
    /// The greatest number of objects, at least 1. [`usize::MAX`] for all.
    pub limit: usize,
    /// The objects that the page is made of; `None` for all.
    pub matches: Option<Matches<'a>>,
    /// Whether the number of objects after the page is needed, those that do not match included.
    pub counts_rest: bool,
}

/// The result of [`Cacher::page`].
#[derive(Debug)]
pub enum PageRead {
    /// A state that has the page, and may have any other object.
    State(Snapshot),
    /// The page alone.
    Page(StoragePage),
}

/// A page that was read from the store.
#[derive(Debug)]
pub struct StoragePage {
    /// The objects of the page that match, and the unreadable objects that were found.
    pub snapshot: Snapshot,
    /// The last key of the page, if it is full and more objects follow, whether they match or not.
    pub last: Option<Key>,
    /// The number of objects after the page, if it was requested and more follow.
    pub remaining: Option<usize>,
}

impl Cacher {
    /// A page of a list.
    ///
    /// # Errors
    /// As [`Cacher::list`] and [`Cacher::list_at`].
    pub async fn page(&self, state: PageState, request: PageRequest<'_>) -> Result<PageRead, CacherError> {
        let shared = &self.shared;
        let revision = match (state, shared.config.read_source) {
            (PageState::Fresh(freshness), ReadSource::Cache | ReadSource::NewestOfCache) => {
                return self.list(request.prefix, freshness).await.map(PageRead::State);
            }
            (PageState::Exact(revision), source @ (ReadSource::Cache | ReadSource::NewestOfCache)) => {
                if source == ReadSource::NewestOfCache {
                    shared.refuse_future(Freshness::NotOlderThan(revision)).await?;
                }
                if let Some(snapshot) = shared.past_in_memory(revision).await? {
                    return Ok(PageRead::State(snapshot));
                }
                Some(revision)
            }
            (PageState::Fresh(_), ReadSource::Storage) => None,
            (PageState::Exact(revision), ReadSource::Storage) => Some(revision),
        };
        if shared.config.read_source == ReadSource::Storage {
            shared.refuse_stopped()?;
        }
        let page = match (shared.page_from_storage(revision, request).await, revision) {
            (Err(StorageError::Compacted { compacted }), Some(requested)) => {
                return Err(CacherError::Expired { requested, oldest: compacted });
            }
            (page, _) => page?,
        };
        if let PageState::Fresh(freshness) = state {
            refuse_older(freshness, page.snapshot.revision())?;
        }
        Ok(PageRead::Page(page))
    }

    /// Keeps what the next page needs, because a continue token after `last` is issued for a list of `snapshot`.
    /// `remaining` is the number of objects with the prefix after `last`, if it is known.
    pub fn keep_for_token(&self, snapshot: &Snapshot, prefix: &str, last: &Key, remaining: Option<usize>) {
        if let Some(remaining) = remaining {
            let (revision, prefix, last) = (snapshot.revision(), prefix.into(), last.clone());
            let page = remaining_counts::Page { revision, prefix, last };
            self.shared.remaining.lock().insert(page, remaining);
        }
        if snapshot.is_of_cache() {
            self.shared.retain(snapshot);
        }
    }
}

impl Shared {
    /// Retains a state for later pages, unless it is an old one.
    fn retain(&self, snapshot: &Snapshot) {
        let now = Instant::now();
        let (is_retained, dropped) = self.retained.lock().retain(snapshot, now);
        drop(dropped);
        if !is_retained {
            let dropped = {
                // No change is noted while the state is locked.
                let state = self.state.lock();
                let Some(since) = state.log.few_after(snapshot.revision()) else { return };
                self.retained.lock().retain_past(snapshot, &since, now)
            };
            drop(dropped);
        }
        // The ticker drops it when it is old.
        if self.retained.lock().len() == 1 {
            self.due_changed.notify_one();
        }
    }

    async fn page_from_storage(
        &self,
        revision: Option<Revision>,
        request: PageRequest<'_>,
    ) -> Result<StoragePage, StorageError> {
        let PageRequest { prefix, limit, matches, .. } = request;
        let page_size = self.config.page_size.max(1);
        // Other pages keep few objects in memory. Reads of the present state are those of a resource without a cache.
        let _turn = match limit > page_size && revision.is_some() {
            true => Some(self.large_reads.acquire().await),
            false => None,
        };
        metrics::add(&self.metrics.storage_lists, 1);
        let mut revision = revision;
        let mut start_after = request.start_after.cloned();
        let mut objects: Vec<Arc<CachedObject>> = Vec::new();
        let mut unreadable = UnreadableMap::new();
        let more = 'batches: loop {
            let missing = limit - objects.len();
            let batch = ListRequest {
                prefix: prefix.to_owned(),
                start_after: start_after.take(),
                // With a selector, the number of objects among which the missing ones are is not known.
                limit: if matches.is_some() { page_size } else { missing.clamp(1, page_size) },
                revision,
            };
            let batch = self.storage.get_list(batch).await?;
            revision.get_or_insert(batch.revision);
            metrics::add(&self.metrics.storage_list_fetched, batch.items.len());
            start_after = batch.items.last().map(|kv| kv.key.clone());
            for kv in batch.items {
                if objects.len() == limit {
                    break 'batches true;
                }
                match self.decode(&kv) {
                    Ok(object) if matches.is_none_or(|matches| matches(&object)) => objects.push(object),
                    Ok(_) => {}
                    Err(object) => drop(unreadable.insert(kv.key, Arc::new(object))),
                }
            }
            if !batch.more || start_after.is_none() {
                break false;
            }
            if objects.len() == limit {
                break true;
            }
            tokio::task::yield_now().await;
        };
        metrics::add(&self.metrics.storage_list_returned, objects.len());
        let revision = revision.unwrap_or_default();
        let last = objects.last().filter(|_| more).map(|last| last.key().clone());
        let remaining = match &last {
            Some(last) if request.counts_rest => {
                Some(self.remaining(revision, request, objects.len(), last).await?)
            }
            _ => None,
        };
        let snapshot = Snapshot::of_storage(objects.into_iter().collect(), unreadable, revision);
        Ok(StoragePage { snapshot, last, remaining })
    }

    /// The number of objects after a page of `len` objects.
    async fn remaining(
        &self,
        revision: Revision,
        request: PageRequest<'_>,
        len: usize,
        last: &Key,
    ) -> Result<usize, StorageError> {
        if let Some(before) = request.start_after.filter(|_| request.matches.is_none()) {
            let before =
                remaining_counts::Page { revision, prefix: request.prefix.into(), last: before.clone() };
            if let Some(remaining) = self.remaining.lock().get(&before) {
                return Ok(remaining.saturating_sub(len));
            }
        }
        let rest = ListRequest {
            prefix: request.prefix.to_owned(),
            start_after: Some(last.clone()),
            limit: 0,
            revision: Some(revision),
        };
        self.storage.count(rest).await
    }
}
