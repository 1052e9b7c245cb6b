//! Server-side apply (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>).

use super::{
    Entry, FieldManager, FieldSet, Operation,
    compare::{Comparison, compare, is_system_field},
    conflict::{Conflict, conflict_status},
    entry,
    extract::{field_set, stored_field_set},
    merge::{ensure_fields_are_members, merge, remove},
};
use crate::{
    Map, Status, Value, ValueExt,
    codec::json,
    meta::{ObjectMeta, format_time},
};
use pintle_schema::SchemaRef;

/// Where `kubectl apply` keeps what it applied from the client's side.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How large all annotations together may be.
const MAX_ANNOTATIONS: usize = 256 * 1024;

impl FieldManager<'_> {
    /// The object after `config` is applied to `live` (`None` creates it), its defaults not filled in yet and its
    /// `managedFields` up to date. With `force`, fields are taken from other managers.
    ///
    /// # Errors
    /// 409 when other managers own fields with other values; 400 and 500 for what is no configuration of the kind.
    pub fn apply(&self, live: Option<&Value>, config: &Value, force: bool) -> Result<Value, Status> {
        self.check_type(config)?;
        if config.at("metadata.managedFields").is_some() {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        let mut applied = self.read(config)?;
        let mut object = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
        let mut entries = Entry::trusted(entry::take(&mut object).unwrap_or_default());
        if entries.is_empty() && live.is_some() {
            entries.extend(self.before_first_apply(&object));
        }
        let own = self.entry(Operation::Apply, None, FieldSet::new());
        let last = entries.iter().position(|entry| entry.is_of(&own)).map(|at| entries.remove(at));
        merge(&mut object, config, self.schema);
        if let Some(last) = &last {
            object = self.prune(object, last, &applied, &entries);
        }
        let new =
            json::from_value(&object, self.schema).map_err(|error| Status::unknown(error.to_string()))?;
        let mut new = new.value;
        new.set("kind", config.str_at("kind"));
        new.set("apiVersion", config.str_at("apiVersion"));
        let comparison = self.compare(live, &new);
        let changed = comparison.changed();
        if !force {
            self.check_conflicts(live, &new, &entries, &changed)?;
        }
        self.disown(live, &new, &mut entries, &changed, &comparison.removed);
        let time = match live.is_some_and(|live| self.is_unchanged(live, &new)) {
            true => last.and_then(|last| last.time),
            false => Some(format_time(self.now)),
        };
        strip(&mut applied);
        if !applied.is_empty() {
            entries.push(Entry { fields: applied, time, ..own });
        }
        entry::put(&mut new, entries);
        if self.manager == "kubectl" {
            sync_last_applied(&mut new, config);
        }
        if let Some(live) = live {
            keep_times(live, &mut new);
        }
        Ok(new)
    }

    fn check_type(&self, config: &Value) -> Result<(), Status> {
        if config.str_at("kind").is_empty() {
            return Err(Status::bad_request("Object 'Kind' is missing in the applied configuration"));
        }
        let version = config.str_at("apiVersion");
        if version != self.api_version {
            return Err(Status::bad_request(format!(
                "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {}",
                self.api_version
            )));
        }
        Ok(())
    }

    /// The fields that a configuration sets, of those that can be owned.
    fn read(&self, config: &Value) -> Result<FieldSet, Status> {
        let failed = |why: &str| {
            let (group, version) = match self.api_version.split_once('/') {
                Some((group, version)) => (format!("{group}/"), version),
                None => ("/".to_owned(), self.api_version),
            };
            Status::unknown(format!(
                "failed to create typed patch object ({}/{}; {group}{version}, Kind={}): {why}",
                config.namespace(),
                config.name(),
                config.str_at("kind")
            ))
        };
        let mut set = field_set(config, self.schema).map_err(|error| failed(&error))?;
        let decoded = json::from_value(config, self.schema).map_err(|error| failed(&error.to_string()))?;
        if let Some(problem) = decoded.problems.first() {
            return Err(failed(&problem.to_string()));
        }
        self.exclude_reset_fields(&mut set);
        Ok(set)
    }

    /// Everything in an object that was not tracked belongs to those who wrote it before.
    fn before_first_apply(&self, object: &Value) -> Option<Entry> {
        let fields = self.compare(None, object).changed();
        let manager = FieldManager { manager: "before-first-apply", ..*self };
        let time = Some(format_time(self.now));
        (!fields.is_empty()).then(|| manager.entry(Operation::Update, time, fields))
    }

    /// Takes out of `merged` what the manager applied last, applies no more, and nobody else owns. Each entry is looked at
    /// in its own version, the one of the last apply first.
    fn prune(&self, merged: Value, last: &Entry, applied: &FieldSet, others: &[Entry]) -> Value {
        let same_version = last.api_version == self.api_version;
        let mut given_up = last.fields.clone();
        given_up.difference(applied);
        if given_up.is_empty() && same_version {
            return merged;
        }
        self.pruned(&merged, last, applied, others).unwrap_or(merged)
    }

    /// As [`FieldManager::prune`]; `None` when the version of the last apply is no more.
    fn pruned(&self, merged: &Value, last: &Entry, applied: &FieldSet, others: &[Entry]) -> Option<Value> {
        let last_version = last.api_version.as_str();
        let (merged, schema) = self.in_version(merged, self.api_version, last_version)?;
        let last = with_fields(last.fields.clone(), schema);
        let mut managed: Vec<(&str, FieldSet)> = vec![(last_version, FieldSet::new())];
        let own = std::iter::once((self.api_version, applied));
        let others = others.iter().map(|entry| (entry.api_version.as_str(), &entry.fields));
        for (version, fields) in own.chain(others) {
            match managed.iter_mut().find(|(known, _)| *known == version) {
                Some((_, set)) => set.union(fields),
                None => managed.push((version, fields.clone())),
            }
        }
        let mut whole = merged.clone();
        let mut pruned = without(&merged, &last, schema);
        let mut version = last_version;
        for (next, managed) in managed {
            let Some((next_whole, schema)) = self.in_version(&whole, version, next) else { continue };
            let Some((next_pruned, _)) = self.in_version(&pruned, version, next) else { continue };
            let mut kept = with_fields(stored_field_set(&next_pruned, schema), schema);
            kept.union(&with_fields(managed, schema));
            let mut gone = with_fields(stored_field_set(&next_whole, schema), schema);
            gone.difference(&kept);
            pruned = without(&next_whole, &gone, schema);
            whole = next_whole;
            version = next;
        }
        // What goes must have been the manager's own.
        let (pruned, _) = self.in_version(&pruned, version, last_version)?;
        let mut gone = with_fields(stored_field_set(&merged, schema), schema);
        gone.difference(&with_fields(stored_field_set(&pruned, schema), schema));
        let pruned = without(&merged, &gone.intersection(&last), schema);
        self.in_version(&pruned, last_version, self.api_version).map(|(pruned, _)| pruned)
    }

    fn in_version(&self, object: &Value, from: &str, to: &str) -> Option<(Value, SchemaRef<'_>)> {
        if from == to && to == self.api_version {
            return Some((object.clone(), self.schema));
        }
        self.versions.convert(object, from, to)
    }

    fn check_conflicts(
        &self,
        live: Option<&Value>,
        new: &Value,
        others: &[Entry],
        changed: &FieldSet,
    ) -> Result<(), Status> {
        let mut versions: Vec<(String, Option<Comparison>)> = Vec::new();
        let mut conflicts: Vec<Conflict<'_>> = Vec::new();
        for entry in others {
            let fields = match entry.api_version == self.api_version {
                true => entry.fields.intersection(changed),
                false => match self.compare_in(&entry.api_version, live, new, &mut versions) {
                    Some(comparison) => entry.fields.intersection(&comparison.changed()),
                    None => continue,
                },
            };
            if !fields.is_empty() {
                conflicts.push(Conflict { entry, fields });
            }
        }
        if conflicts.is_empty() {
            return Ok(());
        }
        // kubectl takes over what it applied from the client's side.
        if self.manager == "kubectl"
            && let Some(allowed) = live.and_then(|live| self.allowed_by_last_applied(live))
        {
            for conflict in &mut conflicts {
                conflict.fields.difference(&allowed);
            }
            conflicts.retain(|conflict| !conflict.fields.is_empty());
            if conflicts.is_empty() {
                return Ok(());
            }
        }
        Err(conflict_status(conflicts))
    }

    /// The fields that the client-side apply set, and that still have its values.
    fn allowed_by_last_applied(&self, live: &Value) -> Option<FieldSet> {
        let text = live.annotation(LAST_APPLIED).filter(|text| !text.is_empty())?;
        let last: Value = serde_json::from_str(text).ok()?;
        if last.str_at("apiVersion") != self.api_version {
            return None;
        }
        let mut set = field_set(&last, self.schema).ok()?;
        let last = json::from_value(&last, self.schema).ok()?.value;
        let comparison = compare(&last, live, self.schema, |_| false);
        set.difference(&comparison.modified);
        set.difference(&comparison.added);
        set.difference(&comparison.removed);
        Some(set)
    }

    fn is_unchanged(&self, live: &Value, new: &Value) -> bool {
        let same = |name: &str| live.field(name) == new.field(name);
        let (old_metadata, new_metadata) = (live.map_at("metadata"), new.map_at("metadata"));
        let members = |object: &Value| object.as_object().map_or(0, Map::len);
        let bare = |metadata: &Map| metadata.len() - usize::from(metadata.contains_key("managedFields"));
        members(live) == members(new)
            && new.as_object().into_iter().flatten().all(|(name, _)| name == "metadata" || same(name))
            && bare(old_metadata) == bare(new_metadata)
            && new_metadata
                .iter()
                .filter(|(name, _)| *name != "managedFields")
                .all(|(name, value)| old_metadata.get(name) == Some(value))
    }
}

fn with_fields(mut set: FieldSet, schema: SchemaRef<'_>) -> FieldSet {
    ensure_fields_are_members(set.map_mut(), schema);
    set
}

fn without(value: &Value, fields: &FieldSet, schema: SchemaRef<'_>) -> Value {
    let mut value = value.clone();
    remove(&mut value, fields.map(), schema);
    value
}

/// Takes fields out of a set that nobody owns.
fn strip(set: &mut FieldSet) {
    let fields = set.map_mut();
    fields.remove("f:apiVersion");
    fields.remove("f:kind");
    let Some(metadata) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|element, _| element != "." && !element.strip_prefix("f:").is_some_and(is_system_field));
    if metadata.is_empty() {
        fields.remove("f:metadata");
    }
}

/// Rewrites the annotation of the client-side apply, where there is one, so that going back finds what was applied.
fn sync_last_applied(object: &mut Value, config: &Value) {
    if object.annotation(LAST_APPLIED).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.at_mut("metadata.annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let Some(annotations) = object.at_mut("metadata.annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.insert(LAST_APPLIED.to_owned(), Value::String(format!("{config}\n")));
    let size: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(LAST_APPLIED);
    }
}

/// An apply that changed nothing but times changes nothing.
fn keep_times(live: &Value, new: &mut Value) {
    let (old, own) = (entry::entries(live), entry::entries(new));
    let same = |a: &Value, b: &Value| {
        let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return false };
        let names = |entry: &Map| entry.len() - usize::from(entry.contains_key("time"));
        names(a) == names(b) && a.iter().all(|(name, value)| name == "time" || b.get(name) == Some(value))
    };
    let unchanged = old.len() == own.len() && old.iter().zip(own).all(|(old, own)| same(old, own));
    if !unchanged || old == own {
        return;
    }
    let mut kept = new.clone();
    entry::put_values(&mut kept, old.to_vec());
    if kept == *live {
        *new = kept;
    }
}
