//! Lists from the store, page by page.
//!
//! The store reads the next page while earlier ones are decoded: those of a request by the task that lists, those of a
//! resource's first list by tasks of their own, so that a start uses all cores.

use crate::{
    CachedObject, DecodedObject, Snapshot, UnreadableObject, metrics, shared::Shared, snapshot::UnreadableMap,
};
use pintle_storage::{Key, KeyValue, ListRequest, Revision, StorageError};
use std::{collections::VecDeque, panic, sync::Arc};

/// The number of pages of a first list that are decoded at the same time, while the next one is read.
const PAGES_AT_ONCE: usize = 2;

/// A page of fewer objects is not worth a task.
const FEW: usize = 32;

/// Makes an object of what was decoded.
type Make = fn(Key, Revision, DecodedObject) -> CachedObject;

/// The objects of a page.
#[derive(Default)]
struct DecodedPage {
    objects: Vec<Arc<CachedObject>>,
    unreadable: Vec<(Key, UnreadableObject)>,
}

impl Shared {
    /// Reads the whole resource from the store, at `revision` or at its latest state.
    pub(crate) async fn list_from_storage(
        &self,
        revision: Option<Revision>,
    ) -> Result<Snapshot, StorageError> {
        self.list_prefix_from_storage(&self.config.prefix, revision).await
    }

    /// Reads the keys with a prefix from the store, at `revision` or at their latest state.
    pub(crate) async fn list_prefix_from_storage(
        &self,
        prefix: &str,
        revision: Option<Revision>,
    ) -> Result<Snapshot, StorageError> {
        let decode = |items, make| async move { Ok(self.decode_page(items, make)) };
        self.list_pages(prefix, revision, 1, decode, |_| false).await
    }

    /// Reads the whole resource from the store at its latest state, with several pages decoded at the same time. Calls
    /// `each` with the objects of each page; when it returns true, the objects of later pages are packed where their
    /// compressed form is at hand.
    pub(crate) async fn first_list(
        self: &Arc<Shared>,
        each: impl FnMut(&[Arc<CachedObject>]) -> bool,
    ) -> Result<Snapshot, StorageError> {
        let decode = |items: Vec<KeyValue>, make| {
            let page = match items.len() < FEW {
                true => Ok(self.decode_page(items, make)),
                false => {
                    let shared = self.clone();
                    Err(tokio::spawn(async move { shared.decode_page(items, make) }))
                }
            };
            async move {
                match page {
                    Ok(page) => Ok(page),
                    Err(task) => task.await.map_err(|error| match error.try_into_panic() {
                        Ok(panic) => panic::resume_unwind(panic),
                        // The runtime shuts down.
                        Err(_) => StorageError::Closed,
                    }),
                }
            }
        };
        self.list_pages(&self.config.prefix, None, PAGES_AT_ONCE, decode, each).await
    }

    /// Reads the keys with a prefix. The pages are taken in order: the oldest of `at_once` that `decode` was called for,
    /// while the next one is read.
    async fn list_pages<F: Future<Output = Result<DecodedPage, StorageError>>>(
        &self,
        prefix: &str,
        revision: Option<Revision>,
        at_once: usize,
        decode: impl Fn(Vec<KeyValue>, Make) -> F,
        mut each: impl FnMut(&[Arc<CachedObject>]) -> bool,
    ) -> Result<Snapshot, StorageError> {
        let get_page = |start_after, revision| {
            let prefix = prefix.to_owned();
            self.storage.get_list(ListRequest { prefix, start_after, limit: self.config.page_size, revision })
        };
        let mut objects = Vec::new();
        let mut unreadable = UnreadableMap::new();
        let mut make: Make = CachedObject::new;
        let mut add = |page: DecodedPage, make: &mut Make| {
            unreadable.extend(page.unreadable.into_iter().map(|(key, object)| (key, Arc::new(object))));
            if each(&page.objects) {
                *make = CachedObject::new_packed;
            }
            objects.extend(page.objects);
        };
        metrics::add(&self.metrics.storage_lists, 1);
        let mut page = get_page(None, revision).await?;
        // All pages are read at the revision of the first.
        let revision = revision.unwrap_or(page.revision);
        let mut decoding = VecDeque::new();
        loop {
            metrics::add(&self.metrics.storage_list_fetched, page.items.len());
            let last = page.items.last().filter(|_| page.more).map(|kv| kv.key.clone());
            decoding.push_back(decode(page.items, make));
            let Some(last) = last else { break };
            let oldest = match decoding.len() < at_once {
                true => None,
                false => decoding.pop_front(),
            };
            let decoded = async {
                match oldest {
                    Some(page) => page.await,
                    None => Ok(DecodedPage::default()),
                }
            };
            let (next, decoded) = tokio::join!(get_page(Some(last), Some(revision)), decoded);
            add(decoded?, &mut make);
            page = next?;
            tokio::task::yield_now().await;
        }
        for decoded in decoding {
            add(decoded.await?, &mut make);
        }
        metrics::add(&self.metrics.storage_list_returned, objects.len());
        Ok(Snapshot::of_storage(objects.into_iter().collect(), unreadable, revision))
    }

    fn decode_page(&self, items: Vec<KeyValue>, make: Make) -> DecodedPage {
        let mut page = DecodedPage { objects: Vec::with_capacity(items.len()), unreadable: Vec::new() };
        for kv in items {
            match self.decode_by(&kv, make) {
                Ok(object) => page.objects.push(object),
                Err(object) => page.unreadable.push((kv.key, object)),
            }
        }
        page
    }
}
