//! Server-side apply (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>).

use super::{
    Entry, FieldManager, FieldSet, Operation,
    compare::{Comparison, compare},
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
        let applied = self.read(config)?;
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
        let new = json::from_value(&object, self.schema).map_err(|error| Status::unknown(error.to_string()))?;
        let mut new = new.value;
        new.set("kind", config.str_at("kind"));
        new.set("apiVersion", config.str_at("apiVersion"));
        let comparison = self.compare(live, &new);
        let changed = comparison.changed();
        if !force {
            self.check_conflicts(live, &new, config, &entries, &changed)?;
        }
        self.disown(live, &new, &mut entries, &changed, &comparison.removed, |_| true);
        let time = match live.is_some_and(|live| self.is_unchanged(live, &new)) {
            true => last.and_then(|last| last.time),
            false => Some(format_time(self.now)),
        };
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
        let decoded =
            json::from_value(config, self.schema).map_err(|error| failed(&error.to_string()))?;
        if let Some(problem) = decoded.problems.first() {
            return Err(failed(&problem.to_string()));
        }
        self.strip(&mut set);
        Ok(set)
    }

    /// Everything in an object that was not tracked belongs to those who wrote it before.
    fn before_first_apply(&self, object: &Value) -> Option<Entry> {
        let fields = self.compare(None, object).changed();
        let manager = FieldManager { manager: "before-first-apply", ..*self };
        let time = Some(format_time(self.now));
        (!fields.is_empty()).then(|| manager.entry(Operation::Update, time, fields))
    }

    /// Takes out of `merged` what the manager applied last, applies no more, and nobody else owns.
    fn prune(&self, merged: Value, last: &Entry, applied: &FieldSet, others: &[Entry]) -> Value {
        let mut given_up = last.fields.clone();
        given_up.difference(applied);
        if given_up.is_empty() && last.api_version == self.api_version {
            return merged;
        }
        if last.api_version == self.api_version {
            return self.prune_in(merged, self.schema, last, applied, others);
        }
        let Some((converted, schema)) = self.versions.convert(&merged, self.api_version, &last.api_version)
        else {
            return merged;
        };
        let pruned = FieldManager { schema, api_version: &last.api_version, ..*self }.prune_in(
            converted,
            schema,
            last,
            &FieldSet::new(),
            others,
        );
        match self.versions.convert(&pruned, &last.api_version, self.api_version) {
            Some((mut pruned, _)) => {
                // What is applied now is in terms of another version: nothing of it may be lost on the way.
                self.restore(&mut pruned, &merged, applied);
                pruned
            }
            None => merged,
        }
    }

    /// Puts the fields of a set back that pruning in another version took away.
    fn restore(&self, pruned: &mut Value, merged: &Value, applied: &FieldSet) {
        let mut keep = merged.clone();
        let mut rest = stored_field_set(merged, self.schema);
        let mut applied = applied.clone();
        ensure_fields_are_members(applied.map_mut(), self.schema);
        ensure_fields_are_members(rest.map_mut(), self.schema);
        rest.difference(&applied);
        remove(&mut keep, rest.map(), self.schema);
        merge(pruned, &keep, self.schema);
    }

    fn prune_in(
        &self,
        merged: Value,
        schema: SchemaRef<'_>,
        last: &Entry,
        applied: &FieldSet,
        others: &[Entry],
    ) -> Value {
        let with_fields = |mut set: FieldSet| {
            ensure_fields_are_members(set.map_mut(), schema);
            set
        };
        let without = |set: &FieldSet| {
            let mut value = merged.clone();
            remove(&mut value, set.map(), schema);
            value
        };
        let last = with_fields(last.fields.clone());
        let mut managed = applied.clone();
        others
            .iter()
            .filter(|entry| entry.api_version == self.api_version)
            .for_each(|entry| managed.union(&entry.fields));
        let all = with_fields(stored_field_set(&merged, schema));
        let pruned = without(&last);
        let mut kept = with_fields(stored_field_set(&pruned, schema));
        kept.union(&with_fields(managed));
        let mut gone = all.clone();
        gone.difference(&kept);
        let pruned = without(&gone);
        let mut gone = all;
        gone.difference(&with_fields(stored_field_set(&pruned, schema)));
        without(&gone.intersection(&last))
    }

    fn check_conflicts(
        &self,
        live: Option<&Value>,
        new: &Value,
        config: &Value,
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
        let _ = config;
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

/// Rewrites the annotation of the client-side apply, where there is one, so that going back finds what was applied.
fn sync_last_applied(object: &mut Value, config: &Value) {
    if object.annotation(LAST_APPLIED).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.at_mut("metadata.annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let Some(annotations) = object.at_mut("metadata.annotations").and_then(Value::as_object_mut) else { return };
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
