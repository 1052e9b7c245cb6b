//! Server-side apply (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>).

use super::{
    Entry, FieldManager, FieldSet, Operation,
    atom::{Shape, Trees, same},
    compare::{compare_trees, is_system_field},
    conflict::{Conflict, conflict_status},
    empty_metadata::keep_empty_metadata,
    entry,
    extract::field_set,
    keyless::may_lack_keys,
    manager::Comparisons,
    merge::{ensure_fields_are_members, merge, remove},
    validate::{Faults, canonical, describe, restored, validate, validate_object, with_go_numbers},
};
use crate::{
    GroupVersion, Map, Status, Value, ValueExt,
    codec::{EmptyField, json},
    meta::{ObjectMeta, format_time},
};
use pintle_tree::json;
use std::collections::HashMap;

/// The annotation in which client-side `kubectl apply` keeps its last configuration.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The maximum size of all annotations together, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The result of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The object with the configuration, not defaulted.
    pub object: Value,
    /// The empty lists and maps of the configuration, which the tree omits.
    pub empty_fields: Vec<EmptyField>,
}

impl FieldManager<'_> {
    /// Returns the object after `config` is applied to `live` (`None` creates it), with `managedFields` updated and
    /// before defaulting. `force` takes conflicting fields from other managers.
    ///
    /// The configuration is merged in JSON form, and its values are compared as written: a value in another notation
    /// (`1000m` for `1`) is another value.
    ///
    /// # Errors
    /// 409 when other managers own fields with other values; 400 and 500 when `config` is not a configuration of the
    /// kind.
    pub fn apply(&self, live: Option<&Value>, config: &Value, force: bool) -> Result<Applied, Status> {
        self.check_type(config)?;
        if self.has_managed_fields(config) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        let mut object = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
        object.set("kind", self.kind);
        object.set("apiVersion", self.api_version);
        let mut entries = Entry::trusted(entry::take(&mut object).unwrap_or_default());
        if entries.is_empty() {
            self.check_untracked(&object)?;
        }
        let mut config = config.clone();
        config.set("apiVersion", self.api_version);
        with_go_numbers(&mut config);
        let config = &config;
        let shape = Shape::of(self.schema);
        let faults = validate(config, shape);
        if !faults.is_empty() {
            let what = self.describe_object(config);
            return Err(Status::unknown(format!(
                "failed to create typed patch object ({what}): {}",
                describe(&faults)
            )));
        }
        self.check_object(&object)?;
        if entries.is_empty() && live.is_some() {
            entries.extend(self.before_first_apply(&object));
        }
        if let Some(version) = self.unreadable_version(&entries) {
            return Err(Status::unknown(format!(
                "request to convert CR to an invalid group/version: {version}"
            )));
        }
        self.reconcile(&mut entries);
        let own = self.entry(Operation::Apply, None, FieldSet::new());
        let last = entries.iter().position(|entry| entry.is_of(&own)).map(|at| entries.remove(at));
        let mut applied = field_set(config, shape, Trees::Written);
        self.exclude_reset_fields(&mut applied);
        let old = json::to_value(&object, self.schema);
        let mut new = old.clone();
        merge(&mut new, config, self.schema);
        self.check_convertible(&new, config, last.as_ref(), &entries)?;
        if let Some(last) = &last {
            new = self.prune(new, last, &applied, &entries);
        }
        let comparison = self.compare_trees(&old, &new, Trees::Written);
        let (changed, removed) = comparison.into_changed_and_removed();
        // Comparisons in other versions are made only for versions that an entry has.
        let read = || match restored(new.clone(), config, self.schema) {
            Ok(mut restored) => {
                if self.schema.is_structural() {
                    keep_empty_metadata(&mut restored.value, &new);
                }
                restored.value
            }
            Err(_) => object.clone(),
        };
        if !force {
            self.check_conflicts(live, &old, &read, &entries, &changed)?;
        }
        self.disown(live, &read, &mut entries, &changed, &removed);
        let unchanged = same(&old, &new);
        let time = match unchanged {
            true => last.and_then(|last| last.time),
            false => Some(format_time(self.now)),
        };
        let (mut new, empty_fields) = match unchanged {
            true => (object, Vec::new()),
            false => {
                let restored = restored(new, config, self.schema).map_err(|why| {
                    let (what, why) = (self.describe_object(config), self.not_convertible(&why));
                    Status::unknown(format!("failed to convert new object ({what}) to proper version: {why}"))
                })?;
                (restored.value, restored.empty_fields)
            }
        };
        strip(&mut applied);
        if !applied.is_empty() {
            entries.push(Entry { fields: applied, time, ..own });
        }
        entry::put(&mut new, entries);
        if self.manager == "kubectl" {
            sync_last_applied(&mut new, config);
        }
        Ok(Applied { object: new, empty_fields })
    }

    /// Checks that a configuration names exactly the kind and version that it is applied to.
    fn check_type(&self, config: &Value) -> Result<(), Status> {
        let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        // A version of the core group may be written `/v1`.
        let is_own = version == self.api_version
            || GroupVersion::parse(version).is_some_and(|found| found.to_string() == self.api_version);
        if is_own && kind == self.kind {
            return Ok(());
        }
        let found = match version.split('/').collect::<Vec<_>>().as_slice() {
            [""] => format!("/, Kind={kind}"),
            [version] => format!("/{version}, Kind={kind}"),
            [group, version] => format!("{group}/{version}, Kind={kind}"),
            _ => "/, Kind=".to_owned(),
        };
        Err(Status::bad_request(format!("invalid object type: {found}")))
    }

    /// Whether a configuration has a list of managed fields. One that does not decode is a fault of its type instead.
    fn has_managed_fields(&self, config: &Value) -> bool {
        let Some(entries) = config.at("metadata.managedFields").filter(|entries| entries.is_array()) else {
            return false;
        };
        let metadata = json!({"managedFields": entries.clone()});
        self.schema.field("metadata").is_none_or(|field| canonical(&metadata, field.ty()).is_ok())
    }

    /// Checks that the merged object can be converted to the versions of the entries. An object that cannot be converted
    /// to its own version is found later, in another step, if all entries have that version.
    fn check_convertible(
        &self,
        merged: &Value,
        config: &Value,
        last: Option<&Entry>,
        others: &[Entry],
    ) -> Result<(), Status> {
        let is_other = |entry: &&Entry| {
            entry.api_version != self.api_version && self.schema_of(&entry.api_version).is_some()
        };
        let Some(first) = last.into_iter().chain(others).find(is_other) else { return Ok(()) };
        if self.schema.is_structural() || canonical(merged, self.schema).is_ok() {
            return Ok(());
        }
        let Err(why) = restored(merged.clone(), config, self.schema) else { return Ok(()) };
        let step = match last {
            None => "failed to convert new object".to_owned(),
            Some(last) if last.api_version == first.api_version => {
                "failed to prune fields: failed to convert merged object to last applied version".to_owned()
            }
            Some(_) => format!(
                "failed to prune fields: failed add back owned items: failed to convert merged object at version {}",
                first.api_version
            ),
        };
        Err(Status::unknown(format!("{step}: {}", self.not_convertible(&why))))
    }

    fn not_convertible(&self, why: &str) -> String {
        format!("unable to convert unstructured object to {}: {why}", self.describe_kind())
    }

    /// Checks that all fields of an object can have owners: see [`FieldManager::update`].
    fn check_object(&self, object: &Value) -> Result<(), Status> {
        match self.object_faults(object) {
            faults if faults.is_empty() => Ok(()),
            faults => {
                let (what, why) = (self.describe_object(object), describe(&faults));
                Err(Status::unknown(format!("failed to create typed live object ({what}): {why}")))
            }
        }
    }

    /// As [`FieldManager::check_object`], for an object without owners.
    fn check_untracked(&self, object: &Value) -> Result<(), Status> {
        match self.object_faults(object) {
            faults if faults.is_empty() => Ok(()),
            faults => {
                let (what, why) = (self.describe_object(object), describe(&faults));
                Err(Status::unknown(format!(
                    "failed to create manager for existing fields: failed to convert new object ({what}) to smd typed: \
                     {why}"
                )))
            }
        }
    }

    fn object_faults(&self, object: &Value) -> Faults {
        match self.schema.is_structural() || may_lack_keys(self.schema) {
            true => validate_object(object, Shape::of(self.schema)),
            false => Faults::new(),
        }
    }

    /// Group, version and kind in Go's printed form.
    fn describe_kind(&self) -> String {
        let slash = if self.api_version.contains('/') { "" } else { "/" };
        format!("{slash}{}, Kind={}", self.api_version, self.kind)
    }

    fn describe_object(&self, config: &Value) -> String {
        format!("{}/{}; {}", config.namespace(), config.name(), self.describe_kind())
    }

    /// Assigns all fields of an untracked object to the manager `before-first-apply`.
    fn before_first_apply(&self, object: &Value) -> Option<Entry> {
        let (fields, _) = self.compare(None, object).into_changed_and_removed();
        let manager = FieldManager { manager: "before-first-apply", ..*self };
        let time = Some(format_time(self.now));
        (!fields.is_empty()).then(|| manager.entry(Operation::Update, time, fields))
    }

    /// Removes from `merged` the fields that the manager applied last time, does not apply now, and no other manager
    /// owns. Each entry is evaluated in its own version, starting with the version of the last apply.
    fn prune(&self, merged: Value, last: &Entry, applied: &FieldSet, others: &[Entry]) -> Value {
        let same_version = last.api_version == self.api_version;
        let mut given_up = last.fields.clone();
        given_up.difference(applied);
        if given_up.is_empty() && same_version {
            return merged;
        }
        self.pruned(&merged, last, applied, others).unwrap_or(merged)
    }

    /// As [`FieldManager::prune`]; `None` when the version of the last apply no longer exists.
    fn pruned(&self, merged: &Value, last: &Entry, applied: &FieldSet, others: &[Entry]) -> Option<Value> {
        let last_version = last.api_version.as_str();
        let (merged, shape) = self.in_version(merged, self.api_version, last_version)?;
        let last = with_fields(last.fields.clone(), shape);
        let mut managed: Vec<(&str, FieldSet)> = vec![(last_version, FieldSet::new())];
        let mut places: HashMap<&str, usize> = HashMap::from([(last_version, 0)]);
        let own = std::iter::once((self.api_version, applied));
        let others = others.iter().map(|entry| (entry.api_version.as_str(), &entry.fields));
        for (version, fields) in own.chain(others) {
            match places.get(version).and_then(|at| managed.get_mut(*at)) {
                Some((_, set)) => set.union(fields),
                None => {
                    places.insert(version, managed.len());
                    managed.push((version, fields.clone()));
                }
            }
        }
        let mut whole = merged.clone();
        let mut pruned = without(&merged, &last, shape);
        let mut version = last_version;
        for (next, managed) in managed {
            let Some((next_whole, shape)) = self.in_version(&whole, version, next) else { continue };
            let Some((next_pruned, _)) = self.in_version(&pruned, version, next) else { continue };
            let mut kept = all_fields(&next_pruned, shape);
            kept.union(&with_fields(managed, shape));
            let mut gone = all_fields(&next_whole, shape);
            gone.difference(&kept);
            pruned = without(&next_whole, &gone, shape);
            whole = next_whole;
            version = next;
        }
        // Only fields that the manager owned are removed.
        let (pruned, _) = self.in_version(&pruned, version, last_version)?;
        let mut gone = all_fields(&merged, shape);
        gone.difference(&all_fields(&pruned, shape));
        let pruned = without(&merged, &gone.intersection(&last), shape);
        self.in_version(&pruned, last_version, self.api_version).map(|(pruned, _)| pruned)
    }

    /// Converts a tree in JSON form to another version.
    fn in_version(&self, tree: &Value, from: &str, to: &str) -> Option<(Value, Shape<'_>)> {
        if from == to {
            return Some((tree.clone(), Shape::of(self.schema_of(to)?)));
        }
        let object = canonical(tree, self.schema_of(from)?).ok()?;
        let (object, schema) = self.versions.convert(&object, from, to)?;
        let mut converted = json::to_value(&object, schema);
        if schema.is_structural() {
            keep_empty_metadata(&mut converted, tree);
        }
        Some((converted, Shape::of(schema)))
    }

    fn check_conflicts(
        &self,
        live: Option<&Value>,
        old: &Value,
        new: &dyn Fn() -> Value,
        others: &[Entry],
        changed: &FieldSet,
    ) -> Result<(), Status> {
        let mut versions = Comparisons::new();
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
        // kubectl takes ownership of the fields of its earlier client-side apply.
        if self.manager == "kubectl"
            && let Some(allowed) = self.allowed_by_last_applied(old)
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

    /// The fields that the client-side apply set and whose values the object still has.
    fn allowed_by_last_applied(&self, object: &Value) -> Option<FieldSet> {
        let shape = Shape::of(self.schema);
        let text = object.annotation(LAST_APPLIED).filter(|text| !text.is_empty())?;
        let last: Value = serde_json::from_str(text).ok()?;
        if last.str_at("apiVersion") != self.api_version
            || last.str_at("kind") != self.kind
            || !validate(object, shape).is_empty()
            || !validate(&last, shape).is_empty()
        {
            return None;
        }
        let mut set = field_set(&last, shape, Trees::Written);
        let comparison = compare_trees(&last, object, self.schema, Trees::Written, |_| false);
        set.difference(&comparison.modified);
        set.difference(&comparison.added);
        set.difference(&comparison.removed);
        Some(set)
    }
}

fn with_fields(mut set: FieldSet, shape: Shape<'_>) -> FieldSet {
    ensure_fields_are_members(set.map_mut(), shape);
    set
}

fn all_fields(tree: &Value, shape: Shape<'_>) -> FieldSet {
    with_fields(field_set(tree, shape, Trees::Written), shape)
}

fn without(tree: &Value, fields: &FieldSet, shape: Shape<'_>) -> Value {
    let mut tree = tree.clone();
    remove(&mut tree, fields.map(), shape);
    tree
}

/// Removes the fields without an owner from a set.
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

/// Updates the annotation of client-side apply, if present, so that a return to client-side apply finds this
/// configuration.
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
    annotations.insert(LAST_APPLIED, Value::from(format!("{config}\n")));
    let size: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(LAST_APPLIED);
    }
}
