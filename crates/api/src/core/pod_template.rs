//! `PodTemplate`, and what all workloads share: the defaults, validation and warnings of the pod template within them.
//!
//! A template is a `PodTemplateSpec`: `metadata` and `spec` of the pods to come.

use super::{GROUP, pod_spec};
use crate::declare::Declare;
use crate::printing::{column, container_cells, labels, name};
use jiff::Timestamp;
use pintle_machinery::{ErrorList, FieldPath, Value, ValueExt};
use pintle_registry::{Cell, Column, Resource};

pub use super::pod_spec::PodValidationOptions;

/// The declaration.
pub fn resource() -> Resource {
    GROUP.namespaced("PodTemplate", "podtemplates").prints(columns, cells)
}

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Containers", "The names of the containers."),
        column("Images", "The images of the containers."),
        column("Pod Labels", "The labels that its pods get."),
    ]
}

fn cells(template: &Value, _now: Timestamp) -> Vec<Cell> {
    let [containers, images] = container_cells(template, "template.spec.containers");
    vec![name(template), containers, images, labels(template.map_at("template.metadata.labels")).into()]
}

/// Fills in what the author of a template left out. Less than for a pod: what would make a new release change stored
/// templates is filled in on pods only.
pub fn set_defaults(template: &mut Value) {
    if let Some(spec) = template.at_mut("spec") {
        pod_spec::set_defaults(spec);
    }
}

/// What is wrong with a template. `options` come from [`PodValidationOptions::for_template`].
pub fn validate(template: &Value, path: &FieldPath, options: &PodValidationOptions) -> ErrorList {
    let spec = template.at("spec").unwrap_or(&Value::Null);
    pod_spec::validate(spec, template.at("metadata"), &path.child("spec"), options)
}

/// What the author should know of a template that is accepted all the same; `old` is the stored one on update.
pub fn warnings(template: &Value, old: Option<&Value>, path: &FieldPath) -> Vec<String> {
    pod_spec::warnings(template, old, path)
}

/// Takes out the fields of features that are off, unless the stored template uses them already.
pub fn drop_disabled_fields(template: &mut Value, old: Option<&Value>) {
    if let Some(spec) = template.at_mut("spec") {
        pod_spec::drop_disabled_fields(spec, old.and_then(|old| old.at("spec")));
    }
}
