//! Validates templates of claims.

use crate::{core::pod_spec::validate_template_metadata, resource::claim_spec, rules};
use pintle_machinery::{ErrorList, FieldPath, Value};

/// Validates a new template.
pub(super) fn validate(template: &Value) -> ErrorList {
    let mut errors = rules::metadata(template, true);
    let path = FieldPath::new("spec");
    let spec = rules::value_at(template, "spec");
    errors.extend(validate_template_metadata(spec, &path));
    errors.extend(claim_spec::validate(rules::value_at(spec, "spec"), &path.child("spec")));
    errors
}

/// Validates an update of a template: its spec is immutable.
pub(super) fn validate_update(template: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(template);
    errors.extend(rules::metadata_update(template, old));
    let (new, old) = (rules::value_at(template, "spec"), rules::value_at(old, "spec"));
    let path = FieldPath::new("spec");
    errors.extend(pintle_internal_form::validate_immutable(
        new,
        old,
        &path,
        "resource.ResourceClaimTemplateSpec",
    ));
    errors
}
