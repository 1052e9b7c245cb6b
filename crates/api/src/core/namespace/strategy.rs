//! The strategy of namespaces.
//!
//! A namespace has finalizers in its spec besides those in its metadata. It ends in two steps: a delete makes it
//! `Terminating`; when its content is deleted, the namespace controller removes the finalizers through `finalize`, and
//! the namespace is removed with the last one
//! (<https://kubernetes.io/docs/tasks/administer-cluster/namespaces/#understanding-the-motivation-for-using-namespaces>).

use crate::rules;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, json,
    meta::ObjectMeta,
    validation::{
        name_is_dns_label, validate_finalizer_name, validate_kube_finalizer_name, validate_object_meta,
    },
};
use pintle_registry::{RequestContext, Strategy};

/// The finalizer of every new namespace.
const KUBERNETES: &str = "kubernetes";
/// The label by which selectors find a namespace by name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) struct NamespaceStrategy;

impl Strategy for NamespaceStrategy {
    fn begins_deletion_with_status(&self) -> bool {
        true
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        object.set_default("status.phase", "Active");
        label_with_name(object);
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({"phase": "Active"}));
        let mut finalizers = object.items_at("spec.finalizers").to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == KUBERNETES) {
            finalizers.push(KUBERNETES.into());
        }
        object.set("spec.finalizers", finalizers);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec.finalizers");
        rules::keep(object, old, "status");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object);
        errors.extend(rules::metadata_update(object, old));
        errors
    }

    fn canonicalize(&self, object: &mut Value) {
        label_with_name(object);
    }

    fn prepare_for_deletion(&self, object: &mut Value) {
        object.set("status.phase", "Terminating");
    }

    fn may_be_removed(&self, object: &Value) -> bool {
        object.items_at("spec.finalizers").is_empty()
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        name_is_dns_label(name, prefix)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    /// The documents of kube-apiserver tell of a `Status`.
    fn documents_deleted_object(&self) -> bool {
        false
    }
}

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        NamespaceStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        let (phase, detail) = match object.is_terminating() {
            true => ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
            false => ("Active", "may only be 'Active' if `deletionTimestamp` is empty"),
        };
        let found = object.str_at("status.phase");
        if found != phase {
            errors.push(FieldError::invalid(&FieldPath::new("status.Phase"), found, detail).of_named_type());
        }
        errors
    }

    fn canonicalize(&self, object: &mut Value) {
        label_with_name(object);
    }

    fn may_be_removed(&self, object: &Value) -> bool {
        NamespaceStrategy.may_be_removed(object)
    }
}

/// The strategy of the `finalize` subresource.
pub(super) struct FinalizeStrategy;

impl Strategy for FinalizeStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        NamespaceStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        let path = FieldPath::new("spec.finalizers");
        for (index, finalizer) in object.items_at("spec.finalizers").iter().enumerate() {
            errors.extend(validate_finalizer(finalizer, &path.index(index)));
        }
        errors
    }

    fn canonicalize(&self, object: &mut Value) {
        label_with_name(object);
    }

    fn may_be_removed(&self, object: &Value) -> bool {
        NamespaceStrategy.may_be_removed(object)
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = validate_object_meta(object, false, name_is_dns_label, &FieldPath::new("metadata"));
    let path = FieldPath::new("spec.finalizers");
    for finalizer in object.items_at("spec.finalizers") {
        errors.extend(validate_finalizer(finalizer, &path));
    }
    errors
}

fn validate_finalizer(finalizer: &Value, path: &FieldPath) -> ErrorList {
    let finalizer = finalizer.as_str().unwrap_or_default();
    let mut errors = validate_finalizer_name(finalizer, path);
    errors.extend(validate_kube_finalizer_name(finalizer, path));
    errors
}

/// Sets the label with the name. On create it is set last, after name generation.
fn label_with_name(object: &mut Value) {
    let name = object.name().to_owned();
    if !name.is_empty() {
        object.object_at_mut("metadata.labels").insert(NAME_LABEL, name.into());
    }
}
