//! Selects the page of a snapshot that a list returns.

use super::{encoder::SHARD_INFO, request_scope::RequestScope, selection::Selection};
use crate::{errors, registry::Store};
use pintle_cacher::{CachedObject, CacherError, Freshness, Snapshot};
use pintle_machinery::{
    Status, Value, ValueExt,
    continue_token::ContinueToken,
    options::{ListOptions, ListStart},
};
use pintle_offload::LIGHT;
use pintle_storage::{Key, Revision};
use serde_json::json;
use std::{cell::Cell, sync::Arc};

/// The page of a snapshot that a list returns.
pub(super) struct Page {
    pub(super) snapshot: Snapshot,
    pub(super) prefix: String,
    pub(super) after: Option<Key>,
    pub(super) selection: Arc<Selection>,
    /// The last key of the page, if more objects follow.
    pub(super) last: Option<Key>,
    pub(super) metadata: Value,
}

impl Page {
    /// Selects the snapshot and the page of it that a list returns.
    ///
    /// # Errors
    /// 400 for an invalid continue token or revision, 410 for one that is compacted.
    pub(super) async fn select(
        store: &Store,
        scope: &RequestScope<'_>,
        options: &ListOptions,
        selection: Arc<Selection>,
    ) -> Result<Page, Status> {
        let prefix = match &selection.name {
            // A selector for one name reads one key; the prefix is the key itself, filtered by the selection.
            Some(name) if !store.resource().is_namespaced() || !scope.info.namespace.is_empty() => {
                store.key(&scope.info.namespace, name).as_str().to_owned()
            }
            _ => store.key_prefix(&scope.info.namespace),
        };
        let base = store.key_prefix(&scope.info.namespace);
        let start = options.start(&base)?;
        let mut after = None;
        let cacher = store.cacher();
        let snapshot = match &start {
            ListStart::Latest => cacher.list(&prefix, Freshness::Consistent).await.map_err(errors::cacher)?,
            ListStart::Any => cacher.list(&prefix, Freshness::Any).await.map_err(errors::cacher)?,
            ListStart::NotOlderThan(revision) => {
                let freshness = Freshness::NotOlderThan(Revision(*revision));
                cacher.list(&prefix, freshness).await.map_err(errors::cacher)?
            }
            ListStart::Exact(revision) => exact(store, &prefix, Revision(*revision)).await?,
            ListStart::Continue(token) => {
                after = Some(Key::new(token.start_key.trim_end_matches('\0')));
                match token.resource_version {
                    // The token was issued after its revision was compacted: continue at its key, in the latest state.
                    None => cacher.list(&prefix, Freshness::Consistent).await.map_err(errors::cacher)?,
                    Some(revision) => match cacher.list_at(&prefix, Revision(revision)).await {
                        Err(CacherError::Expired { .. }) => {
                            return Err(expired_token(&base, &token.start_key));
                        }
                        snapshot => snapshot.map_err(errors::cacher)?,
                    },
                }
            }
        };
        let mut metadata = json!({"resourceVersion": snapshot.revision().to_string()});
        if let Some(shards) = selection.shards() {
            metadata.set(SHARD_INFO, json!({"selector": shards.to_string()}));
        }
        let mut page = Page { metadata, snapshot, prefix, after, selection, last: None };
        // Kube-apiserver ignores the limit of a list with `resourceVersion=0` that its watch cache serves.
        if options.limit > 0 && (start != ListStart::Any || !cacher.is_read_cached()) {
            limit(store, scope, &mut page, options.limit);
        }
        Ok(page)
    }

    /// The JSON bytes of the objects, counted up to [`LIGHT`].
    pub(super) fn size(&self) -> usize {
        let mut size = 0;
        for object in self.objects(None) {
            size += object.json().len();
            if size > LIGHT {
                break;
            }
        }
        size
    }

    /// The number of unreadable objects in the key range of the page.
    pub(super) fn unreadable(&self) -> usize {
        let within = |key: &Key| {
            self.after.as_ref().is_none_or(|after| key > after)
                && self.last.as_ref().is_none_or(|last| key <= last)
        };
        self.snapshot.unreadable_range(&self.prefix).filter(|(key, _)| within(key)).count()
    }

    /// The objects of the page after a key.
    pub(super) fn objects<'a>(
        &'a self,
        after: Option<&'a Key>,
    ) -> impl Iterator<Item = &'a Arc<CachedObject>> + 'a {
        self.read(after).filter(|object| self.selection.matches(object))
    }

    /// The objects in the key range of the page after a key, selected or not.
    fn read<'a>(&'a self, after: Option<&'a Key>) -> impl Iterator<Item = &'a Arc<CachedObject>> + 'a {
        let last = self.last.as_ref();
        self.snapshot
            .range(&self.prefix, after.or(self.after.as_ref()))
            .take_while(move |object| last.is_none_or(|last| object.key() <= last))
    }

    /// As [`Page::objects`]; counts the objects that are read, selected or not.
    pub(super) fn counted<'a>(
        &'a self,
        after: Option<&'a Key>,
        read: &'a Cell<usize>,
    ) -> impl Iterator<Item = &'a Arc<CachedObject>> + 'a {
        self.read(after)
            .inspect(|_| read.update(|read| read + 1))
            .filter(|object| self.selection.matches(object))
    }
}

async fn exact(store: &Store, prefix: &str, revision: Revision) -> Result<Snapshot, Status> {
    store.cacher().list_at(prefix, revision).await.map_err(|error| match error {
        CacherError::Expired { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        error => errors::cacher(error),
    })
}

/// Truncates the page to `limit` objects and adds a continue token.
fn limit(store: &Store, scope: &RequestScope<'_>, page: &mut Page, limit: usize) {
    let mut objects = page.objects(None);
    let Some(last) = objects.by_ref().take(limit).last().map(|object| object.key().clone()) else { return };
    let rest = objects.next().is_some();
    drop(objects);
    if !rest {
        return;
    }
    let base = store.key_prefix(&scope.info.namespace);
    let token =
        ContinueToken { resource_version: Some(page.snapshot.revision().0), start_key: format!("{last}\0") };
    page.metadata.set("continue", token.encode(&base));
    // With a selector, the number of matches in the rest is not known. Kube-apiserver counts the objects of all shards.
    if page.selection.has_no_terms() {
        page.metadata.set("remainingItemCount", page.snapshot.count(&page.prefix, Some(&last)));
    }
    page.last = Some(last);
}

/// The 410 for a token whose revision is compacted, with a token that continues in the latest state.
fn expired_token(prefix: &str, start_key: &str) -> Status {
    let token = ContinueToken { resource_version: None, start_key: start_key.to_owned() };
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    status.continue_token = Some(token.encode(prefix));
    status
}
