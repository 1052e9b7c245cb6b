//! The strategies of custom resources and of their status
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#status-subresource>).

use super::{scale, schema::LazyStructural};
use crate::{
    definition_view::Scale,
    structural::{
        InvalidMetadata,
        rules::{RuleFindings, ratcheting},
    },
};
use pintle_go_forms::quote;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupResource, GroupVersionKind, Status, Text, Value, ValueExt,
    meta::ObjectMeta,
    validation::{is_qualified_name, validate_object_meta_accessor, validate_object_meta_accessor_update},
};
use pintle_registry::{BoxFuture, FinishFn, RequestContext, Strategy};
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The rules that the strategies of one version share.
pub(super) struct Rules {
    pub(super) kind: GroupVersionKind,
    pub(super) resource: GroupResource,
    pub(super) namespaced: bool,
    /// Whether the status subresource is enabled.
    pub(super) has_status: bool,
    pub(super) scale: Option<Scale>,
    pub(super) schema: Arc<LazyStructural>,
    /// Whether the definition is being deleted.
    pub(super) terminating: Arc<AtomicBool>,
}

impl Rules {
    /// Checks kind and apiVersion of the object.
    fn validate_type_meta(&self, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let version = self.kind.group_version().to_string();
        for (name, wanted) in [("kind", &self.kind.kind), ("apiVersion", &version)] {
            let own = object.str_at(name);
            if own != wanted {
                errors.push(FieldError::invalid(&FieldPath::new(name), own, format!("must be {wanted}")));
            }
        }
        errors
    }

    /// Checks kind, apiVersion and, if these are right, what `metadata` finds wrong, and the values by the schema, with
    /// ratcheting against `old`.
    fn validate_object(
        &self,
        object: &Value,
        old: Option<&Value>,
        metadata: impl FnOnce() -> ErrorList,
    ) -> ErrorList {
        let mut errors = self.validate_type_meta(object);
        if !errors.is_empty() {
            return errors;
        }
        errors = metadata();
        errors.extend(self.schema.validate_values(object, old));
        if let Some(scale) = &self.scale {
            scale::validate_spec(scale, object, &mut errors);
            scale::validate_status(scale, object, &mut errors);
        }
        errors
    }

    /// Validates what the values' own checks leave open, also of an object of another kind. Returns the ratcheted errors
    /// as warnings.
    fn validate_content(&self, object: &Value, old: Option<&Value>, errors: &mut ErrorList) -> Vec<String> {
        errors.extend(self.schema.validate_embedded_resources(object));
        errors.extend(self.schema.validate_list_types(object, old));
        self.validate_rules(object, old, errors)
    }

    /// Runs the validation rules of the schema, unless the errors so far are about the object's shape.
    fn validate_rules(&self, object: &Value, old: Option<&Value>, errors: &mut ErrorList) -> Vec<String> {
        let RuleFindings { errors: broken, warnings } = self.schema.validate_rules(object, old, errors);
        errors.extend(broken);
        warnings
    }
}

/// The strategy of whole objects.
pub(super) struct CustomResourceStrategy(pub(super) Arc<Rules>);

impl Strategy for CustomResourceStrategy {
    fn set_defaults(&self, object: &mut Value) {
        // An object of another kind, which validation refuses, has no defaults.
        let kind = object.str_at("kind");
        if kind.is_empty() || kind == self.0.kind.kind {
            self.0.schema.set_defaults(object);
        }
    }

    fn coerce(&self, object: &mut Value, is_request: bool) -> Result<Vec<String>, Status> {
        let invalid = if is_request { InvalidMetadata::Refuse } else { InvalidMetadata::Drop };
        self.0.schema.coerce(object, invalid).map_err(|error| Status::bad_request(error.to_string()))
    }

    fn prune(&self, object: &mut Value) {
        // Validation has passed, which refuses invalid metadata of embedded resources.
        let _ = self.0.schema.coerce(object, InvalidMetadata::Drop);
    }

    fn default_on_read(&self, object: &mut Value) {
        if object.generation() == 0 {
            object.set_generation(1);
        }
    }

    fn begin_create<'a>(
        &'a self,
        _context: &'a RequestContext<'a>,
        object: &'a mut Value,
    ) -> BoxFuture<'a, Result<Option<FinishFn>, Status>> {
        let why = "create not allowed while custom resource definition is terminating";
        Box::pin(std::future::ready(match self.0.terminating.load(Ordering::Acquire) {
            false => Ok(None),
            true => Err(Status::forbidden(&self.0.resource, object.name(), why)),
        }))
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        if self.0.has_status {
            object.remove_at("status");
        }
        object.set_generation(1);
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        if self.0.has_status { &["status"] } else { &[] }
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let name = |name: &str, prefix| self.validate_name(name, prefix);
        let metadata =
            || validate_object_meta_accessor(object, self.0.namespaced, name, &FieldPath::new("metadata"));
        let mut errors = self.0.validate_object(object, None, metadata);
        // The old object counts as valid.
        self.0.validate_content(object, None, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        finalizer_warnings(object, None)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        if self.0.has_status {
            match old.at("status") {
                Some(status) => object.set("status", status.clone()),
                None => drop(object.remove_at("status")),
            }
        }
        if differs_beside_metadata(object, old) {
            object.set_generation(old.generation().saturating_add(1));
        }
    }

    fn check_update(
        &self,
        _context: &RequestContext<'_>,
        object: &Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> ErrorList {
        let metadata = || validate_object_meta_accessor_update(object, old, &FieldPath::new("metadata"));
        let mut errors = ErrorList::new();
        warnings.extend(ratcheting(|| {
            errors = self.0.validate_object(object, Some(old), metadata);
            self.0.validate_content(object, Some(old), &mut errors)
        }));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> Vec<String> {
        finalizer_warnings(object, Some(old))
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

/// Whether a member other than the metadata differs.
fn differs_beside_metadata(object: &Value, old: &Value) -> bool {
    let (Some(object), Some(old)) = (object.as_object(), old.as_object()) else { return true };
    let without = |(key, _): &(&Text, &Value)| key.as_str() != "metadata";
    !object.iter().filter(without).eq(old.iter().filter(without))
}

/// The finalizers of the garbage collector and of namespaces.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// Warnings about the finalizers that an update adds.
fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let had: HashSet<&str> = old.map(|old| old.finalizers()).into_iter().flatten().collect();
    let mut added: Vec<&str> = object.finalizers().into_iter().filter(|name| !had.contains(name)).collect();
    added.sort_unstable();
    added.dedup();
    let mut warnings = Vec::new();
    for name in added {
        let mut warn = |why: &str| warnings.push(format!("metadata.finalizers: {}: {why}", quote(name)));
        is_qualified_name(name).iter().for_each(|problem| warn(problem));
        if name.contains('/') || STANDARD_FINALIZERS.contains(&name) {
            continue;
        }
        warn(match name.contains('.') {
            true => {
                "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with \
                 other finalizer writers"
            }
            false => {
                "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
            }
        });
    }
    warnings
}

/// The strategy of the status subresource.
pub(super) struct StatusStrategy(pub(super) Arc<Rules>);

impl Strategy for StatusStrategy {
    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        let mut kept = old.clone();
        for path in ["status", "metadata.managedFields", "metadata.resourceVersion"] {
            match object.remove_at(path) {
                Some(value) => kept.set(path, value),
                None => drop(kept.remove_at(path)),
            }
        }
        *object = kept;
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata", "spec"]
    }

    fn check_update(
        &self,
        _context: &RequestContext<'_>,
        object: &Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> ErrorList {
        let rules = &self.0;
        let mut errors = rules.validate_type_meta(object);
        let is_own_kind = errors.is_empty();
        warnings.extend(ratcheting(|| {
            if is_own_kind {
                errors = validate_object_meta_accessor_update(object, old, &FieldPath::new("metadata"));
                errors.extend(rules.schema.validate_status_values(object, old));
                if let Some(scale) = &rules.scale {
                    scale::validate_status(scale, object, &mut errors);
                }
            }
            errors.extend(rules.schema.validate_list_types(object, Some(old)));
            rules.validate_rules(object, Some(old), &mut errors)
        }));
        errors
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}
