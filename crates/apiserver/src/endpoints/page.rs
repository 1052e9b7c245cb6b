//! Selects the page of a snapshot that a list returns.

use super::{encoder::SHARD_INFO, request_scope::RequestScope, selection::Selection};
use crate::{
    errors,
    registry::{Store, is_of_version},
};
use pintle_cacher::{
    CachedObject, CacherError, Freshness, PageRead, PageRequest, PageState, Requirement, Snapshot,
    StoragePage,
};
use pintle_machinery::{
    Status, Value, ValueExt,
    continue_token::ContinueToken,
    json,
    options::{ListOptions, ListStart},
};
use pintle_offload::{LIGHT, weigh};
use pintle_storage::{Key, Revision};
use std::{cell::Cell, sync::Arc};

/// The work of matching an object, as bytes for [`weigh`].
const MATCH: usize = 8;
/// The same where a match is [long](Selection::is_long).
pub(super) const LONG_MATCH: usize = 128;

/// The page of a snapshot that a list returns.
pub(super) struct Page {
    pub(super) snapshot: Snapshot,
    pub(super) prefix: String,
    pub(super) after: Option<Key>,
    pub(super) selection: Arc<Selection>,
    requirement: Option<Requirement>,
    /// The objects of the page if some of them are converted: the cache must not drop what was converted.
    opened: Option<Snapshot>,
    /// What is known of the objects of a selective page.
    found: Option<Found>,
    /// The last key of the page, if more objects follow.
    pub(super) last: Option<Key>,
    pub(super) metadata: Value,
}

/// The result of a first search for the selected objects.
enum Found {
    /// All of them, which have at most [`LIGHT`] bytes, and the number of objects that were read.
    Few { items: Vec<Arc<CachedObject>>, read: usize },
    /// They have more bytes, so that to find them again costs little beside what is done with them.
    Many,
}

impl Found {
    fn search<'a>(objects: impl Iterator<Item = &'a Arc<CachedObject>>, read: &Cell<usize>) -> Found {
        let (mut items, mut size) = (Vec::new(), 0);
        for object in objects {
            size += object.size();
            if size > LIGHT {
                return Found::Many;
            }
            items.push(object.clone());
        }
        Found::Few { items, read: read.get() }
    }
}

impl Page {
    /// Selects the snapshot and the page of it that a list returns.
    ///
    /// # Errors
    /// 400 for an invalid continue token or revision, 410 for one that is compacted; the errors of conversions.
    pub(super) async fn select(
        store: &Store,
        scope: &RequestScope<'_>,
        options: &ListOptions,
        selection: Arc<Selection>,
    ) -> Result<Page, Status> {
        let namespace = selection.namespace_within(&scope.info.namespace, store.resource());
        // A selector for one name reads one key; the prefix is the key itself, filtered by the selection.
        let is_keyed = !store.resource().is_namespaced() || !namespace.is_empty();
        let one_name = selection.name.as_deref().filter(|_| is_keyed);
        let prefix = match one_name {
            Some(name) => store.key(namespace, name).as_str().to_owned(),
            None => store.key_prefix(namespace),
        };
        let base = store.key_prefix(&scope.info.namespace);
        let start = options.start(&base, one_name.is_some())?;
        let mut after = None;
        let cacher = store.cacher();
        let state = match &start {
            ListStart::Latest => PageState::Fresh(Freshness::Consistent),
            ListStart::Any => PageState::Fresh(Freshness::Any),
            ListStart::NotOlderThan(revision) => {
                PageState::Fresh(Freshness::NotOlderThan(Revision(*revision)))
            }
            ListStart::Exact(revision) => PageState::Exact(Revision(*revision)),
            ListStart::Continue(token) => {
                after = Some(key_before(&token.start_key));
                match token.resource_version {
                    // The token was issued after its revision was compacted: continue at its key, in the latest state.
                    None => PageState::Fresh(Freshness::Consistent),
                    Some(revision) => PageState::Exact(Revision(revision)),
                }
            }
        };
        let is_limited = (1..usize::MAX).contains(&options.limit)
            && one_name.is_none()
            && !(options.is_at_any_version() && cacher.is_read_cached());
        let limit = if is_limited { options.limit } else { usize::MAX };
        let matches = |object: &CachedObject| selection.matches(object);
        // Objects that have to be converted first are all read.
        let waits = selection.waits();
        let request = PageRequest {
            prefix: &prefix,
            start_after: after.as_ref(),
            limit: if waits { usize::MAX } else { limit },
            matches: (!selection.is_everything() && !waits).then_some(&matches),
            counts_rest: selection.has_no_terms(),
        };
        let read = cacher.page(state, request).await;
        let read = read.map_err(|error| match (error, &start) {
            (CacherError::Expired { .. }, ListStart::Continue(token)) => {
                expired_token(&base, &token.start_key)
            }
            (CacherError::Expired { .. }, ListStart::Exact(_)) => {
                Status::expired("The resourceVersion for the provided list is too old.")
            }
            (error, _) => errors::cacher(error),
        })?;
        let (snapshot, rest) = match read {
            PageRead::State(snapshot) => (snapshot, None),
            PageRead::Page(StoragePage { snapshot, .. }) if waits => (snapshot, None),
            PageRead::Page(StoragePage { snapshot, last, remaining }) => (snapshot, Some((last, remaining))),
        };
        let mut metadata = json!({"resourceVersion": snapshot.revision().to_string()});
        if let Some(shards) = selection.shards() {
            metadata.set(SHARD_INFO, json!({"selector": shards.to_string()}));
        }
        let requirement = selection.requirement();
        requirement.iter().for_each(|requirement| cacher.note_list(&snapshot, requirement));
        let (opened, found, last) = (None, None, None);
        let mut page =
            Page { metadata, snapshot, prefix, after, selection, requirement, opened, found, last };
        if waits {
            page.open();
            page.selection.prepare(page.read(None)).await?;
        }
        if !page.selection.is_everything() {
            weigh(page.selection_weight()).await;
            let read = Cell::new(0);
            page.found = Some(Found::search(page.counted(None, &read).take(limit), &read));
        }
        let rest = match rest {
            None if is_limited => {
                // Kube-apiserver reads the present state by the index of a field, and other states as they are.
                let is_of_index = !matches!(start, ListStart::Exact(_) | ListStart::Continue(_));
                page.rest(limit, is_of_index)
            }
            None => (None, None),
            Some(rest) => rest,
        };
        if let (Some(last), remaining) = rest {
            cacher.keep_for_token(&page.snapshot, &page.prefix, &last, remaining);
            // As in kube-apiserver, the key in a token of its watch cache begins with a slash.
            let base = match cacher.is_read_cached() {
                true => base.strip_suffix('/').unwrap_or(&base),
                false => &base,
            };
            page.end_at(last, remaining, base);
        }
        let resource = &scope.resource.resource;
        let is_own = |object: &Arc<CachedObject>| is_of_version(&object.json(), resource);
        if resource.converter.is_some() && !waits && !page.objects(None).all(is_own) {
            page.open();
        }
        Ok(page)
    }

    /// Whether the page needs only its own objects, not the whole state.
    pub(super) fn is_narrow(&self) -> bool {
        self.last.is_some() || self.opened.is_some() || self.few().is_some()
    }

    /// The objects, if they were found and are few.
    fn few(&self) -> Option<&[Arc<CachedObject>]> {
        match &self.found {
            Some(Found::Few { items, .. }) => Some(items),
            Some(Found::Many) | None => None,
        }
    }

    /// The state that has the objects of the page, possibly no others.
    pub(super) fn state(&self) -> &Snapshot {
        self.opened.as_ref().unwrap_or(&self.snapshot)
    }

    fn open(&mut self) {
        let opened = match self.few() {
            Some(items) => self.snapshot.opened(items.iter()),
            None => self.snapshot.opened(self.read(None)),
        };
        if let Some(Found::Few { items, .. }) = &mut self.found {
            *items = opened.range("", None).cloned().collect();
        }
        self.opened = Some(opened);
    }

    /// The work of selecting among all objects that the page may read, as bytes for [`weigh`].
    fn selection_weight(&self) -> usize {
        let (_, most) = self.read(None).size_hint();
        let weight = if self.selection.is_long() { LONG_MATCH } else { MATCH };
        most.map_or(usize::MAX, |most| most.saturating_mul(weight))
    }

    /// The last key of a full page of `limit` objects if more objects follow, selected or not, and their number.
    fn rest(&self, limit: usize, is_of_index: bool) -> (Option<Key>, Option<usize>) {
        let mut count = 0;
        let last = self.objects(None).take(limit).inspect(|_| count += 1).last();
        let Some(last) = last.map(|last| last.key().clone()) else { return (None, None) };
        if count < limit {
            return (None, None);
        }
        let follows = match &self.requirement {
            Some(requirement @ Requirement::Field(..)) if is_of_index => self
                .snapshot
                .candidates(&self.prefix, Some(&last), Some(requirement))
                .any(|object| requirement.matches(object)),
            _ => self.snapshot.count(&self.prefix, Some(&last)) > 0,
        };
        if !follows {
            return (None, None);
        }
        // With a selector, the number of matches in the rest is not known. Kube-apiserver counts the objects of all
        // shards.
        let is_known = self.selection.has_no_terms();
        let remaining = is_known.then(|| self.snapshot.count(&self.prefix, Some(&last)));
        (Some(last), remaining)
    }

    /// Ends the page at a key, with a continue token. `base` is the key prefix of the listed collection.
    fn end_at(&mut self, last: Key, remaining: Option<usize>, base: &str) {
        let token = ContinueToken {
            resource_version: Some(self.snapshot.revision().0),
            start_key: format!("{last}\0"),
        };
        self.metadata.set("continue", token.encode(base));
        if let Some(remaining) = remaining {
            self.metadata.set("remainingItemCount", remaining);
        }
        self.last = Some(last);
    }

    /// The JSON bytes of the objects, counted up to [`LIGHT`].
    pub(super) fn size(&self) -> usize {
        if matches!(self.found, Some(Found::Many)) {
            return LIGHT + 1;
        }
        let mut size = 0;
        for object in self.objects(None) {
            size += object.size();
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
        self.selected(after, || ())
    }

    /// As [`Page::objects`]; counts the objects that are read, selected or not.
    pub(super) fn counted<'a>(
        &'a self,
        after: Option<&'a Key>,
        read: &'a Cell<usize>,
    ) -> impl Iterator<Item = &'a Arc<CachedObject>> + 'a {
        if let (Some(Found::Few { read: earlier, .. }), None) = (&self.found, after) {
            read.update(|read| read + earlier);
        }
        self.selected(after, || read.update(|read| read + 1))
    }

    fn selected<'a>(
        &'a self,
        after: Option<&'a Key>,
        on_read: impl Fn() + 'a,
    ) -> impl Iterator<Item = &'a Arc<CachedObject>> + 'a {
        let few = self.few().map(|items| {
            let start = after.map_or(0, |after| items.partition_point(|object| object.key() <= after));
            items.iter().skip(start)
        });
        let selected = few.is_none().then(|| {
            self.read(after).inspect(move |_| on_read()).filter(|object| self.selection.matches(object))
        });
        few.into_iter().flatten().chain(selected.into_iter().flatten())
    }

    /// The objects in the key range of the page after a key; all that are selected, and others if no index tells them
    /// apart.
    fn read<'a>(&'a self, after: Option<&'a Key>) -> impl Iterator<Item = &'a Arc<CachedObject>> + 'a {
        let last = self.last.as_ref();
        self.state()
            .candidates(&self.prefix, after.or(self.after.as_ref()), self.requirement.as_ref())
            .take_while(move |object| last.is_none_or(|last| object.key() <= last))
    }
}

/// The last key before the one that a token starts at.
fn key_before(start: &str) -> Key {
    let mut key = start.to_owned();
    match key.pop() {
        // The tokens of this server start at the first key after one: at the key and a null character.
        Some('\0') | None => {}
        // No key ends with the last character that there is.
        Some(last) => key.extend(('\0'..last).next_back().into_iter().chain([char::MAX])),
    }
    Key::new(key)
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
