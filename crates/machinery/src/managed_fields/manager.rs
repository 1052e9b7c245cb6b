//! The field manager: bookkeeping for writes of all kinds.

use super::{
    Entry, FieldSet, Operation,
    atom::{Shape, Trees},
    compare::{Comparison, compare_trees},
    entry,
    reconcile::{entry_needs, reconcile},
};
use crate::{Map, Value, meta::format_time};
use jiff::Timestamp;
use pintle_schema::SchemaRef;
use std::collections::HashMap;

/// How many entries of updates an object has at most; the oldest are merged.
pub const MAX_UPDATE_MANAGERS: usize = 10;

/// Objects in other versions of their kind, for entries that speak of those.
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

/// Who writes, to what, by which rules.
pub struct FieldManager<'a> {
    /// The name of the writer; "" is `unknown`.
    pub manager: &'a str,
    /// The kind of the object.
    pub kind: &'a str,
    /// The group and version of the request, in which the trees are.
    pub api_version: &'a str,
    /// The subresource written through, or "".
    pub subresource: &'a str,
    /// The time of the request.
    pub now: Timestamp,
    /// The schema of the trees.
    pub schema: SchemaRef<'a>,
    /// Dotted paths of fields that this way of writing does not change, whatever a request says.
    pub reset_fields: &'a [&'a str],
    /// The other versions of the kind.
    pub versions: &'a dyn VersionConverter,
}

impl FieldManager<'_> {
    /// Brings `managedFields` of `new` up to date, as it is about to be written over `live` (`None` on create) by
    /// anything but an apply. An object that is not tracked (its entries were reset) stays so until it is applied to.
    pub fn update(&self, live: Option<&Value>, new: &mut Value) {
        let stored = live.map(entry::entries).unwrap_or_default();
        let sent = entry::take(new);
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
        // What has a uid was there before.
        if !tracked && live.is_some() {
            return;
        }
        let comparison = self.compare(live, new);
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
        let entries = self.record(live, new, entries, &comparison);
        entry::put(new, entries);
    }

    /// What differs, of what this way of writing can change.
    pub(super) fn compare(&self, live: Option<&Value>, new: &Value) -> Comparison {
        static NOTHING: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| Value::Object(Map::new()));
        self.compare_trees(live.unwrap_or(&NOTHING), new, Trees::Canonical)
    }

    pub(super) fn compare_trees(&self, live: &Value, new: &Value, trees: Trees) -> Comparison {
        let mut comparison =
            compare_trees(live, new, self.schema, trees, |name| self.reset_fields.contains(&name));
        let nested = self.nested_reset_fields();
        if !nested.is_empty() {
            comparison.exclude(&nested);
        }
        comparison
    }

    /// Takes the fields that this way of writing cannot change out of a set.
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

    /// The version of an entry that makes nothing of all of them: of what is no version, and of a version that a custom
    /// resource no longer has. Other kinds drop the entry alone.
    pub(super) fn unreadable_version<'e>(&self, entries: &'e [Entry]) -> Option<&'e str> {
        let is_custom = self.schema.is_structural();
        let mut versions = entries.iter().map(|entry| entry.api_version.as_str());
        versions.find(|version| {
            version.matches('/').count() > 1 || (is_custom && self.schema_of(version).is_none())
        })
    }

    /// Whether encoded entries are of versions that the kind still has, and of types as they still are.
    fn is_current(&self, entries: &[Value]) -> bool {
        entries.iter().all(|entry| {
            let version = entry.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            self.schema_of(version).is_some_and(|schema| !entry_needs(entry, Shape::of(schema)))
        })
    }

    /// Takes away entries of versions that the kind no longer has, and brings the others up to date with types that have
    /// changed.
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
        comparison: &Comparison,
    ) -> Vec<Entry> {
        let changed = comparison.changed();
        self.disown(live, &|| new.clone(), &mut entries, &changed, &comparison.removed);
        if !changed.is_empty() {
            self.own(&mut entries, changed);
        }
        cap(&mut entries);
        entries
    }

    /// Takes changed and removed fields from all entries, and entries away that own nothing more or
    /// speak of a version the kind no longer has.
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

    /// What differs in another version; `None` when there is no such version.
    pub(super) fn compare_in<'c>(
        &self,
        version: &str,
        live: Option<&Value>,
        new: &dyn Fn() -> Value,
        versions: &'c mut Comparisons,
    ) -> Option<&'c Comparison> {
        if !versions.contains_key(version) {
            // A client chooses the names of versions, and an object is large: nothing is made of it for those that are none.
            let comparison = self.schema_of(version).and_then(|_| {
                let convert = |object: &Value| self.versions.convert(object, self.api_version, version);
                let (new, schema) = convert(&new())?;
                let live = live.and_then(convert).map(|(live, _)| live);
                Some(FieldManager { schema, api_version: version, ..*self }.compare(live.as_ref(), &new))
            });
            versions.insert(version.to_owned(), comparison);
        }
        versions.get(version).and_then(Option::as_ref)
    }

    /// Gives fields to the writer's entry.
    pub(super) fn own(&self, entries: &mut Vec<Entry>, fields: FieldSet) {
        let entry = self.entry(Operation::Update, Some(format_time(self.now)), fields);
        match entries.iter_mut().find(|own| own.is_of(&entry)) {
            Some(own) => {
                own.fields.union(&entry.fields);
                own.time = entry.time;
            }
            None => entries.push(entry),
        }
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

/// What differs in other versions.
pub(super) type Comparisons = HashMap<String, Option<Comparison>>;

/// Where the entries before a write come from.
enum Source {
    /// From the stored object.
    Stored,
    /// From the request, which has those of the stored object.
    Same(Vec<Value>),
    /// From the request, which has others.
    Sent(Vec<Entry>),
    /// The request takes all of them away.
    Reset,
}

/// An empty list, or one empty entry, asks for a fresh start.
fn is_reset(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        [one] => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Merges the oldest entries of updates, a bucket for each version, until there are few enough.
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
