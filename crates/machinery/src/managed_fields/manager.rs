//! The field manager: updates `metadata.managedFields` for writes of all kinds.

use super::{
    Entry, FieldSet, Operation,
    atom::{Shape, Trees},
    compare::{Comparison, compare_trees},
    created::compare_created,
    empty_items::with_empty_items,
    empty_metadata::keep_empty_metadata,
    entry,
    keyless::may_lack_keys,
    reconcile::{entry_needs, reconcile},
    validate::fits_object,
};
use crate::{Map, Value, codec::EmptyField, meta::format_time};
use jiff::Timestamp;
use pintle_schema::SchemaRef;
use std::collections::HashMap;

/// The maximum number of update entries of an object; the oldest are merged.
pub const MAX_UPDATE_MANAGERS: usize = 10;

/// Converts objects to other versions of their kind, for entries in those versions.
pub trait VersionConverter: Sync {
    /// The schema of another version; `None` when the kind does not have it.
    fn schema<'a>(&'a self, version: &str) -> Option<SchemaRef<'a>>;

    /// The object in another version, with the schema of that version; `None` when the kind does not have it.
    fn convert<'a>(&'a self, object: &Value, from: &str, to: &str) -> Option<(Value, SchemaRef<'a>)>;
}

/// The converter of kinds with one version.
#[derive(Debug, Clone, Copy)]
pub struct OneVersion;

impl VersionConverter for OneVersion {
    fn schema<'a>(&'a self, _: &str) -> Option<SchemaRef<'a>> {
        None
    }

    fn convert<'a>(&'a self, _: &Value, _: &str, _: &str) -> Option<(Value, SchemaRef<'a>)> {
        None
    }
}

/// The context of a write: the manager, the object's kind and version, and the schema.
pub struct FieldManager<'a> {
    /// The name of the manager; "" is recorded as `unknown`.
    pub manager: &'a str,
    /// The kind of the object.
    pub kind: &'a str,
    /// The group and version of the request and of the trees.
    pub api_version: &'a str,
    /// The subresource that is written, or "".
    pub subresource: &'a str,
    /// The time of the request.
    pub now: Timestamp,
    /// The schema of the trees.
    pub schema: SchemaRef<'a>,
    /// Dotted paths of fields that a write to this resource or subresource does not change.
    pub reset_fields: &'a [&'a str],
    /// The empty lists and maps in the body of an update, by their paths in the version of the trees.
    pub empty_fields: &'a [EmptyField],
    /// The other versions of the kind.
    pub versions: &'a dyn VersionConverter,
}

impl FieldManager<'_> {
    /// Updates `managedFields` of `new`, which is about to be written over `live` (`None` on create) by any write
    /// except an apply. An untracked object (its entries were reset) stays untracked until the next apply. An object
    /// that the manager [cannot read](FieldManager::reads), or that has an item without its keys, loses its entries.
    pub fn update(&self, live: Option<&Value>, new: &mut Value) {
        let stored = live.map(entry::entries).unwrap_or_default();
        let sent = entry::take(new);
        if !self.reads(new) || live.is_some_and(|live| !self.reads(live)) {
            return;
        }
        let entries = match sent {
            _ if !self.subresource.is_empty() => Source::Stored,
            None => Source::Stored,
            Some(sent) if is_reset(&sent) => Source::Reset,
            Some(sent) if sent == stored => Source::Same(sent),
            Some(sent) => match Entry::parse(sent) {
                Ok(entries) if !entries.is_empty() => Source::Sent(entries),
                Ok(_) | Err(_) => Source::Stored,
            },
        };
        let tracked = match &entries {
            Source::Stored => !stored.is_empty(),
            Source::Reset => false,
            Source::Same(_) | Source::Sent(_) => true,
        };
        // An untracked object stays untracked on update.
        if !tracked && live.is_some() {
            return;
        }
        let with_items = live.and_then(|_| with_empty_items(new, self.schema, self.empty_fields));
        let compared = with_items.as_ref();
        let comparison = self.compare(live, compared.unwrap_or(new));
        if comparison.lacks_keys {
            return;
        }
        let entries = match entries {
            Source::Stored if comparison.is_same() && self.is_current(stored) => {
                return entry::put_values(new, stored.to_vec());
            }
            Source::Same(entries) if comparison.is_same() && self.is_current(&entries) => {
                return entry::put_values(new, entries);
            }
            Source::Stored => Entry::trusted(stored.to_vec()),
            Source::Same(entries) => Entry::trusted(entries),
            Source::Sent(entries) => entries,
            Source::Reset => Vec::new(),
        };
        let mut entries = entries;
        if self.unreadable_version(&entries).is_some() {
            return;
        }
        self.reconcile(&mut entries);
        let entries = self.record(live, compared.unwrap_or(new), entries, comparison);
        entry::put(new, entries);
    }

    /// Whether the fields of an object are known. Those of a custom resource are not if it claims another kind, which a
    /// status may, if a value does not fit its schema, which has changed since, or if a set has objects or lists. Those of
    /// any object are not if an item lacks the values that identify it.
    fn reads(&self, object: &Value) -> bool {
        if !self.schema.is_structural() {
            return !may_lack_keys(self.schema) || fits_object(object, Shape::of(self.schema));
        }
        let named = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        named("kind") == self.kind
            && self.schema_of(named("apiVersion")).is_some()
            && fits_object(object, Shape::of(self.schema))
    }

    /// Compares the fields that this write can change.
    pub(super) fn compare(&self, live: Option<&Value>, new: &Value) -> Comparison {
        match live {
            Some(live) => self.compare_trees(live, new, Trees::Canonical),
            None => self.exclude_nested(compare_created(new, self.schema, |name| self.is_reset(name))),
        }
    }

    pub(super) fn compare_trees(&self, live: &Value, new: &Value, trees: Trees) -> Comparison {
        self.exclude_nested(compare_trees(live, new, self.schema, trees, |name| self.is_reset(name)))
    }

    fn is_reset(&self, name: &str) -> bool {
        self.reset_fields.contains(&name)
    }

    fn exclude_nested(&self, mut comparison: Comparison) -> Comparison {
        let nested = self.nested_reset_fields();
        if !nested.is_empty() {
            comparison.exclude(&nested);
        }
        comparison
    }

    /// Removes the fields that this write cannot change from a set.
    pub(super) fn exclude_reset_fields(&self, set: &mut FieldSet) {
        for name in self.reset_fields {
            set.recursive_difference(&FieldSet::of_fields(name.split('.')));
        }
    }

    fn nested_reset_fields(&self) -> FieldSet {
        let mut set = FieldSet::new();
        for name in self.reset_fields.iter().filter(|name| name.contains('.')) {
            set.union(&FieldSet::of_fields(name.split('.')));
        }
        set
    }

    /// The schema of a version of the kind.
    pub(super) fn schema_of(&self, version: &str) -> Option<SchemaRef<'_>> {
        match version == self.api_version {
            true => Some(self.schema),
            false => self.versions.schema(version),
        }
    }

    /// The version of an entry that makes all entries unreadable: a malformed version, or with a structural schema a
    /// version that no longer exists. With other schemas an entry of a missing version is dropped alone.
    pub(super) fn unreadable_version<'e>(&self, entries: &'e [Entry]) -> Option<&'e str> {
        let is_structural = self.schema.is_structural();
        let mut versions = entries.iter().map(|entry| entry.api_version.as_str());
        versions.find(|version| {
            version.matches('/').count() > 1 || (is_structural && self.schema_of(version).is_none())
        })
    }

    /// Whether all encoded entries have existing versions and fit the current types, and no two are of one manager.
    fn is_current(&self, entries: &[Value]) -> bool {
        entry::are_distinct(entries)
            && entries.iter().all(|entry| {
                let version = entry.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
                self.schema_of(version).is_some_and(|schema| !entry_needs(entry, Shape::of(schema)))
            })
    }

    /// Removes entries of versions that no longer exist, and adapts the others to types that have changed.
    pub(super) fn reconcile(&self, entries: &mut Vec<Entry>) {
        entries.retain_mut(|entry| match self.schema_of(&entry.api_version) {
            Some(schema) => {
                reconcile(&mut entry.fields, Shape::of(schema));
                true
            }
            None => false,
        });
    }

    fn record(
        &self,
        live: Option<&Value>,
        new: &Value,
        mut entries: Vec<Entry>,
        comparison: Comparison,
    ) -> Vec<Entry> {
        let (changed, removed) = comparison.into_changed_and_removed();
        // The manager owns afterwards what it changes, and mostly did before.
        let mut own = self.entry(Operation::Update, Some(format_time(self.now)), FieldSet::new());
        if let Some(at) = entries.iter().position(|entry| !changed.is_empty() && entry.is_of(&own)) {
            own.fields = entries.swap_remove(at).fields;
            own.fields.difference(&removed);
        }
        self.disown(live, &|| new.clone(), &mut entries, &changed, &removed);
        if !changed.is_empty() {
            own.fields.append(changed);
            entries.push(own);
        }
        cap(&mut entries);
        entries
    }

    /// Removes changed and removed fields from all entries, and removes entries that become empty or have a version
    /// that no longer exists.
    pub(super) fn disown(
        &self,
        live: Option<&Value>,
        new: &dyn Fn() -> Value,
        entries: &mut Vec<Entry>,
        changed: &FieldSet,
        removed: &FieldSet,
    ) {
        let mut versions = Comparisons::new();
        entries.retain_mut(|entry| {
            if entry.api_version == self.api_version {
                entry.fields.difference(changed);
                entry.fields.difference(removed);
                return !entry.fields.is_empty();
            }
            let Some(comparison) = self.compare_in(&entry.api_version, live, new, &mut versions) else {
                return false;
            };
            entry.fields.difference(&comparison.changed());
            entry.fields.difference(&comparison.removed);
            !entry.fields.is_empty()
        });
    }

    /// The comparison in another version; `None` when the version does not exist.
    pub(super) fn compare_in<'c>(
        &self,
        version: &str,
        live: Option<&Value>,
        new: &dyn Fn() -> Value,
        versions: &'c mut Comparisons,
    ) -> Option<&'c Comparison> {
        if !versions.contains_key(version) {
            // A client chooses the names of versions, and objects are large: nothing is converted for unknown versions.
            let comparison = self.schema_of(version).and_then(|_| {
                let convert = |object: &Value| self.versions.convert(object, self.api_version, version);
                let given = new();
                let (mut new, schema) = convert(&given)?;
                if schema.is_structural() {
                    keep_empty_metadata(&mut new, &given);
                }
                let live = live.and_then(convert).map(|(live, _)| live);
                Some(FieldManager { schema, api_version: version, ..*self }.compare(live.as_ref(), &new))
            });
            versions.insert(version.to_owned(), comparison);
        }
        versions.get(version).and_then(Option::as_ref)
    }

    pub(super) fn entry(&self, operation: Operation, time: Option<String>, fields: FieldSet) -> Entry {
        let manager = if self.manager.is_empty() { "unknown" } else { self.manager };
        Entry {
            manager: manager.to_owned(),
            operation,
            api_version: self.api_version.to_owned(),
            time,
            subresource: self.subresource.to_owned(),
            fields,
        }
    }
}

/// Comparisons by version.
pub(super) type Comparisons = HashMap<String, Option<Comparison>>;

/// The origin of the entries before a write.
enum Source {
    /// The stored object.
    Stored,
    /// The request, with the entries of the stored object.
    Same(Vec<Value>),
    /// The request, with other entries.
    Sent(Vec<Entry>),
    /// The request resets all entries.
    Reset,
}

/// Whether the entries are an empty list, or one empty entry, which resets ownership.
fn is_reset(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        [one] => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Merges the oldest update entries, one bucket for each version, until the maximum is met.
fn cap(entries: &mut Vec<Entry>) {
    let is_update = |entry: &Entry| entry.operation == Operation::Update;
    let mut count = entries.iter().filter(|entry| is_update(entry)).count();
    if count <= MAX_UPDATE_MANAGERS {
        return;
    }
    let mut updates: Vec<Entry> = Vec::with_capacity(count);
    let mut kept = Vec::with_capacity(entries.len());
    for entry in entries.drain(..) {
        if is_update(&entry) { updates.push(entry) } else { kept.push(entry) }
    }
    updates.sort_by(Entry::compare);
    let mut merged: Vec<Entry> = Vec::with_capacity(count);
    let mut buckets: HashMap<String, usize> = HashMap::new();
    for entry in updates {
        let bucket = *buckets.entry(entry.api_version.clone()).or_insert(merged.len());
        match merged.get_mut(bucket) {
            Some(bucket) if count > MAX_UPDATE_MANAGERS => {
                bucket.fields.union(&entry.fields);
                bucket.time = entry.time;
                bucket.manager = "ancient-changes".to_owned();
                bucket.subresource = String::new();
                count -= 1;
            }
            _ => merged.push(entry),
        }
    }
    kept.append(&mut merged);
    *entries = kept;
}
