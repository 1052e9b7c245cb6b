//! Reads, compares and writes the entries of `metadata.managedFields`.

use super::{FieldSet, atom::object};
use crate::{Map, Value};
use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

/// The operation by which a manager owns its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// The fields that one manager owns.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The manager's name.
    pub manager: String,
    /// The operation by which it owns them.
    pub operation: Operation,
    /// The version of the fields.
    pub api_version: String,
    /// The time when it last changed its set or a value, RFC 3339; `None` when it changed no value.
    pub time: Option<String>,
    /// The subresource it wrote through, or "".
    pub subresource: String,
    /// Its fields.
    pub fields: FieldSet,
}

impl Entry {
    /// Reads the entries of a stored object; malformed ones are dropped.
    pub(super) fn trusted(entries: Vec<Value>) -> Vec<Entry> {
        Entry::distinct(entries.into_iter().filter_map(|entry| Entry::read(entry, false).ok()).collect())
    }

    /// Parses the entries of a client's object.
    ///
    /// # Errors
    /// When one of them is malformed.
    pub(super) fn parse(entries: Vec<Value>) -> Result<Vec<Entry>, String> {
        let parsed: Result<Vec<Entry>, String> =
            entries.into_iter().map(|entry| Entry::read(entry, true)).collect();
        Ok(Entry::distinct(parsed?))
    }

    /// Of several entries of one manager keeps the last one, at the position of the first.
    fn distinct(mut entries: Vec<Entry>) -> Vec<Entry> {
        if entries.len() < 2 {
            return entries;
        }
        let mut places: HashMap<_, usize> = HashMap::with_capacity(entries.len());
        let mut last: Vec<usize> = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let place = *places.entry(entry.owner()).or_insert(last.len());
            match last.get_mut(place) {
                Some(last) => *last = at,
                None => last.push(at),
            }
        }
        if last.len() == entries.len() {
            return entries;
        }
        drop(places);
        let mut taken: Vec<Option<Entry>> = entries.drain(..).map(Some).collect();
        last.into_iter().filter_map(|at| taken.get_mut(at).and_then(Option::take)).collect()
    }

    /// The identity of a manager, see [`Entry::is_of`].
    fn owner(&self) -> (&str, Operation, &str, &str) {
        let version = if self.operation == Operation::Apply { "" } else { self.api_version.as_str() };
        (&self.manager, self.operation, &self.subresource, version)
    }

    fn read(entry: Value, check: bool) -> Result<Entry, String> {
        let Value::Object(mut entry) = entry else { return Err("an entry must be an object".to_owned()) };
        let mut text = |name: &str| match entry.remove(name) {
            Some(Value::String(text)) => text.into(),
            _ => String::new(),
        };
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".to_owned()),
        };
        let (manager, api_version) = (text("manager"), text("apiVersion"));
        if api_version.is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        if text("fieldsType") != "FieldsV1" {
            return Err("fieldsType must be FieldsV1".to_owned());
        }
        let (time, subresource) = (Some(text("time")).filter(|time| !time.is_empty()), text("subresource"));
        let fields = match entry.remove("fieldsV1") {
            None | Some(Value::Null) => FieldSet::new(),
            Some(fields) if check => FieldSet::from_fields_v1(&fields)?,
            Some(Value::String(fields)) if fields.starts_with('{') => FieldSet::stored(fields),
            Some(Value::Object(fields)) => FieldSet::trusted(fields),
            Some(_) => return Err("fieldsV1 must be an object".to_owned()),
        };
        Ok(Entry { manager, operation, api_version, time, subresource, fields })
    }

    /// Whether two entries belong to one manager. Updates in another version or through another subresource belong to
    /// another manager; applies belong to the same manager in every version.
    pub(super) fn is_of(&self, other: &Entry) -> bool {
        self.owner() == other.owner()
    }

    /// The order of entries in an object.
    pub(super) fn compare(&self, other: &Entry) -> Ordering {
        fn time(entry: &Entry) -> &str {
            entry.time.as_deref().unwrap_or_default()
        }
        (self.operation.cmp(&other.operation))
            .then_with(|| time(self).cmp(time(other)))
            .then_with(|| self.manager.cmp(&other.manager))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }

    fn into_value(self) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, text: String| {
            if !text.is_empty() {
                entry.insert(name, Value::from(text));
            }
        };
        put("manager", self.manager);
        put("operation", self.operation.as_str().to_owned());
        put("apiVersion", self.api_version);
        put("time", self.time.unwrap_or_default());
        put("fieldsType", "FieldsV1".to_owned());
        put("subresource", self.subresource);
        entry.insert("fieldsV1", self.fields.into_fields_v1());
        Value::Object(entry)
    }
}

/// Removes an object's entries and returns them.
pub(super) fn take(object: &mut Value) -> Option<Vec<Value>> {
    match object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")? {
        Value::Array(entries) => Some(entries),
        _ => None,
    }
}

/// An object's entries.
pub(super) fn entries(object: &Value) -> &[Value] {
    let entries = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    entries.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether each encoded entry is of another manager. The scale of an object can leave two of one.
pub(super) fn are_distinct(entries: &[Value]) -> bool {
    if entries.len() < 2 {
        return true;
    }
    let mut owners = HashSet::with_capacity(entries.len());
    entries.iter().all(|entry| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = text("operation");
        let version = if operation == Operation::Apply.as_str() { "" } else { text("apiVersion") };
        owners.insert((text("manager"), operation, text("subresource"), version))
    })
}

/// Sorts entries and puts them into an object; without entries, `managedFields` stays absent.
pub(super) fn put(object: &mut Value, mut entries: Vec<Entry>) {
    entries.sort_by(Entry::compare);
    put_values(object, entries.into_iter().map(Entry::into_value).collect());
}

/// Puts encoded entries into an object.
pub(super) fn put_values(object: &mut Value, entries: Vec<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    if entries.is_empty() {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        return;
    }
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields", Value::Array(entries));
    }
}

/// The result of [`keep_times`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimesComparison {
    /// The entries differ in more than times, or not at all: the objects were not compared.
    UnequalFast,
    /// The entries differ in times alone, the objects in other values.
    UnequalSlow,
    /// The objects differ in times alone.
    Equal,
}

/// Copies the times of the old object's entries to the new one when nothing else differs, so that a write that would
/// change only times is a no-op. Both trees are canonical and about to be compared in stored form.
pub fn keep_times(old: &Value, new: &mut Value) -> TimesComparison {
    let same = |a: &Value, b: &Value| {
        let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return false };
        same_but(a, b, "time")
    };
    let (before, after) = (entries(old), entries(new));
    if before.len() != after.len() || before == after || !before.iter().zip(after).all(|(a, b)| same(a, b)) {
        return TimesComparison::UnequalFast;
    }
    if !is_same_but_owners(old, new) {
        return TimesComparison::UnequalSlow;
    }
    put_values(new, before.to_vec());
    TimesComparison::Equal
}

/// Whether two objects differ in their managed fields at most.
pub fn is_same_but_owners(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let same_metadata = match (object(old.get("metadata")), object(new.get("metadata"))) {
        (Some(old), Some(new)) => same_but(old, new, "managedFields"),
        (_, _) => false,
    };
    same_metadata && same_but(old, new, "metadata")
}

/// Gives an object the managed fields of another one, which loses them; without entries there, it has none.
pub fn take_owners(object: &mut Value, from: &mut Value) {
    put_values(object, take(from).unwrap_or_default());
}

fn same_but(a: &Map, b: &Map, name: &str) -> bool {
    let count = |map: &Map| map.len() - usize::from(map.contains_key(name));
    count(a) == count(b) && a.iter().all(|(key, value)| key == name || b.get(key) == Some(value))
}
