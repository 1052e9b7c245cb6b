//! `PodTemplate`, and the defaults, validation and warnings of the pod templates in all workloads.
//!
//! A template is a `PodTemplateSpec`: the `metadata` and `spec` of the pods to create.

mod table;

use super::pod::drop_init_container_annotations;
use super::{group::GROUP, pod_spec};
use crate::declare::Declare;
use pintle_machinery::validation::{
    name_is_dns_subdomain, semantically_equal, validate_annotations, validate_labels, validate_object_meta,
    validate_object_meta_update,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::{EmptyFields, RequestContext, Resource, Strategy};
use std::sync::Arc;

pub use super::pod_spec::PodValidationOptions;

/// The declaration of the resource.
pub fn resource() -> Resource {
    let mut resource = GROUP.namespaced("PodTemplate", "podtemplates").prints(table::columns, table::cells);
    resource.strategy = Arc::new(PodTemplateStrategy);
    resource
}

/// Sets the defaults of a template. They are fewer than those of a pod: defaults that would change stored templates
/// after an upgrade are set on pods only.
pub fn set_defaults(template: &mut Value) {
    template.object_at_mut("spec");
    if let Some(spec) = template.at_mut("spec") {
        pod_spec::set_defaults(spec);
    }
    drop_init_container_annotations(template);
}

/// Validates a template. `options` come from [`PodValidationOptions::for_template`].
pub fn validate(template: &Value, path: &FieldPath, options: &PodValidationOptions) -> ErrorList {
    let spec = template.at("spec").unwrap_or(&Value::Null);
    let spec_path = path.child("spec");
    let annotations = template.map_at("metadata.annotations");
    let mut errors = validate_metadata(template, path, options);
    errors.extend(pod_spec::validate(spec, None, &spec_path, options));
    errors.extend(pod_spec::validate_annotations_match_fields(annotations, spec, &spec_path));
    if !spec.items_at("ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&spec_path.child("ephemeralContainers"), detail));
    }
    errors
}

/// Validates the labels and annotations of a template.
pub(crate) fn validate_metadata(
    template: &Value,
    path: &FieldPath,
    options: &PodValidationOptions,
) -> ErrorList {
    let spec = template.at("spec").unwrap_or(&Value::Null);
    let annotations = template.map_at("metadata.annotations");
    let annotations_path = path.child("annotations");
    let mut errors = validate_labels(template.map_at("metadata.labels"), &path.child("labels"));
    errors.extend(validate_annotations(annotations, &annotations_path));
    errors.extend(pod_spec::validate_annotations(annotations, spec, &annotations_path, options));
    errors
}

/// The warnings about an accepted template; `old` is the stored one on update.
pub fn warnings(template: &Value, old: Option<&Value>, path: &FieldPath) -> Vec<String> {
    pod_spec::warnings(template, old, path)
}

/// Drops the fields of disabled features, unless the stored template uses them already.
pub fn drop_disabled_fields(template: &mut Value, old: Option<&Value>) {
    if let Some(spec) = template.at_mut("spec") {
        pod_spec::drop_disabled_fields(spec, old.and_then(|old| old.at("spec")));
    }
}

/// As [`pod_spec::keep_empty_claims`], for the template at a path.
pub(crate) fn keep_empty_claims(object: &mut Value, path: &str, empty_fields: &EmptyFields) {
    pod_spec::keep_empty_claims(object, &format!("{path}.spec"), empty_fields);
}

/// The strategy of pod templates.
#[derive(Debug, Clone, Copy)]
struct PodTemplateStrategy;

impl Strategy for PodTemplateStrategy {
    fn set_defaults(&self, object: &mut Value) {
        object.object_at_mut("template");
        if let Some(template) = object.at_mut("template") {
            set_defaults(template);
        }
    }

    fn prepare_for_create(&self, context: &RequestContext<'_>, object: &mut Value) {
        object.set_generation(1);
        if let Some(template) = object.at_mut("template") {
            drop_disabled_fields(template, None);
        }
        keep_empty_claims(object, "template", context.empty_fields);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let template = object.at("template").unwrap_or(&Value::Null);
        let options = PodValidationOptions::for_template(None);
        let mut errors =
            validate_object_meta(object, true, name_is_dns_subdomain, &FieldPath::new("metadata"));
        errors.extend(validate(template, &FieldPath::new("template"), &options));
        errors
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object.at("template").unwrap_or(&Value::Null), None, &FieldPath::new("template"))
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        if let Some(template) = object.at_mut("template") {
            drop_disabled_fields(template, old.at("template"));
        }
        keep_empty_claims(object, "template", context.empty_fields);
        let (new, stored) = (object.at("template"), old.at("template"));
        if !semantically_equal(new.unwrap_or(&Value::Null), stored.unwrap_or(&Value::Null)) {
            object.set_generation(old.generation().saturating_add(1));
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let template = object.at("template").unwrap_or(&Value::Null);
        let options = PodValidationOptions::for_template(old.at("template"));
        let mut errors = validate_object_meta_update(object, old, &FieldPath::new("metadata"));
        errors.extend(validate(template, &FieldPath::new("template"), &options));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> Vec<String> {
        if object.generation() == old.generation() {
            return Vec::new();
        }
        let template = object.at("template").unwrap_or(&Value::Null);
        warnings(template, old.at("template"), &FieldPath::new("template"))
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
