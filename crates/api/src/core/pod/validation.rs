//! Validates a pod.

use crate::core::pod_spec::{self, PodValidationOptions, validate_image_of_pod};
use pintle_machinery::validation::{name_is_dns_subdomain, validate_object_meta};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// Validates a new pod.
pub(super) fn validate_create(pod: &Value) -> ErrorList {
    let options = PodValidationOptions::for_pod(None);
    let mut errors = validate_metadata_and_spec(pod, &options);
    let path = FieldPath::new("spec");
    let spec = pod.at("spec").unwrap_or(&Value::Null);
    if !spec.items_at("ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(&path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !spec.str_at("nodeName").is_empty() && !spec.items_at("schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), detail));
    }
    let annotations = pod.map_at("metadata.annotations");
    errors.extend(pod_spec::validate_annotations_match_fields(annotations, spec, &path));
    errors
}

/// Validates a pod, be it new or changed.
pub(super) fn validate_metadata_and_spec(pod: &Value, options: &PodValidationOptions) -> ErrorList {
    let metadata_path = FieldPath::new("metadata");
    let path = FieldPath::new("spec");
    let spec = pod.at("spec").unwrap_or(&Value::Null);
    let annotations = pod.map_at("metadata.annotations");
    let mut errors = validate_object_meta(pod, true, name_is_dns_subdomain, &metadata_path);
    let annotations_path = metadata_path.child("annotations");
    errors.extend(pod_spec::validate_annotations(annotations, spec, &annotations_path, options));
    errors.extend(pod_spec::validate(spec, pod.at("metadata"), &path, options));
    if spec.str_at("serviceAccountName").is_empty() {
        errors.extend(validate_no_tokens(spec, &path));
    }
    for list in ["containers", "initContainers"] {
        for (index, container) in spec.items_at(list).iter().enumerate() {
            errors.extend(validate_image_of_pod(container, &path.child(list).index(index)));
        }
    }
    errors
}

/// Rejects projected service account tokens in a pod without a service account.
fn validate_no_tokens(spec: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, volume) in spec.items_at("volumes").iter().enumerate() {
        let sources_path = path.child("volumes").index(index).child("projected").child("sources");
        for (index, source) in volume.items_at("projected.sources").iter().enumerate() {
            if source.at("serviceAccountToken").is_some() {
                let path = sources_path.index(index).child("serviceAccountToken");
                let detail = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&path, detail));
            }
        }
    }
    errors
}
