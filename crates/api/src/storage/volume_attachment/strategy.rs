//! The strategies of volume attachments. The spec is immutable; progress is in the status.

use crate::core::persistent_volume::spec::{self, Place};
use crate::core::pod_spec::set_source_defaults;
use crate::core::pod_spec::volume_sources::validate_csi_driver_name;
use crate::field_checks::invalid_each;
use crate::gated_fields::{GatedFields, drop_disabled};
use crate::rules;
use crate::storage::parameters;
use pintle_feature_gates::Gate;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, json,
    validation::{inclusive_range_error, name_is_dns_subdomain},
};
use pintle_registry::{RequestContext, Strategy};

const MAX_METADATA_SIZE: usize = 256 * 1024;
const MAX_MESSAGE_LENGTH: usize = 1024;
/// The codes of errors, each behind the gate by itself.
const GATED: &[GatedFields] = &[
    GatedFields { gates: &[Gate::MutableCSINodeAllocatableCount], fields: &["status.attachError.errorCode"] },
    GatedFields { gates: &[Gate::MutableCSINodeAllocatableCount], fields: &["status.detachError.errorCode"] },
];
const INLINE_SPEC: &str = "spec.source.inlineVolumeSpec";

pub(super) struct AttachmentStrategy;

impl Strategy for AttachmentStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        if let Some(spec) = object.at_mut(INLINE_SPEC) {
            set_source_defaults(spec);
        }
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set("status", json!({"attached": false}));
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_update(object, old)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata", "spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        AttachmentStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
        rules::keep_metadata(object, old);
        drop_disabled(GATED, object, Some(old));
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_update(object, old)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

fn validate_update(object: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(object);
    let (new, old) = (rules::value_at(object, "spec"), rules::value_at(old, "spec"));
    let path = FieldPath::new("spec");
    errors.extend(pintle_internal_form::validate_immutable(new, old, &path, "storage.VolumeAttachmentSpec"));
    errors
}

fn validate(attachment: &Value) -> ErrorList {
    let mut errors = rules::metadata(attachment, false);
    let path = FieldPath::new("spec");
    errors.extend(validate_csi_driver_name(attachment.str_at("spec.attacher"), &path.child("attacher")));
    errors.extend(validate_source(attachment, &path.child("source")));
    let node = attachment.str_at("spec.nodeName");
    errors.extend(invalid_each(&path.child("nodeName"), node, name_is_dns_subdomain(node, false)));
    let path = FieldPath::new("status");
    if parameters::size(attachment.map_at("status.attachmentMetadata")) > MAX_METADATA_SIZE {
        errors.push(FieldError::too_long(&path.child("attachmentMetadata"), MAX_METADATA_SIZE));
    }
    for field in ["attachError", "detachError"] {
        if let Some(error) = rules::value_at(attachment, "status").at(field) {
            errors.extend(validate_failure(error, &path.child(field)));
        }
    }
    if let Some(name) = attachment.at("spec.source.persistentVolumeName").and_then(Value::as_str) {
        let path = FieldPath::new("spec.source.persistentVolumeName");
        errors.extend(invalid_each(&path, name, name_is_dns_subdomain(name, false)));
    }
    errors
}

fn validate_source(attachment: &Value, path: &FieldPath) -> ErrorList {
    const ONE_OF: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let name = attachment.at("spec.source.persistentVolumeName").and_then(Value::as_str);
    match (attachment.at(INLINE_SPEC), name) {
        (None, None) => vec![FieldError::required(path, ONE_OF)],
        (Some(_), Some(_)) => vec![FieldError::forbidden(path, ONE_OF)],
        (None, Some("")) => {
            let detail = "must specify non empty persistentVolumeName";
            vec![FieldError::required(&path.child("persistentVolumeName"), detail)]
        }
        (None, Some(_)) => ErrorList::new(),
        (Some(spec), None) => spec::validate(spec, "", Place::Inline, &path.child("inlineVolumeSpec")),
    }
}

fn validate_failure(failure: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if failure.str_at("message").len() > MAX_MESSAGE_LENGTH {
        // As in the reference, the limit in the message is that of the metadata.
        errors.push(FieldError::too_long(&path.child("message"), MAX_METADATA_SIZE));
    }
    if let Some(code) = failure.i64_at("errorCode")
        && code < 0
    {
        let detail = inclusive_range_error(0, i64::from(i32::MAX));
        errors.push(FieldError::invalid(&path.child("errorCode"), code, detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};

    #[test]
    fn an_emulated_version_has_no_error_codes() {
        let _gates =
            override_gates(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33))));
        let status =
            json!({"attachError": {"errorCode": 1, "message": "m"}, "detachError": {"errorCode": 2}});
        let mut attachment = json!({"status": status});
        let old = json!({"status": {"detachError": {"errorCode": 3}}});
        drop_disabled(GATED, &mut attachment, Some(&old));
        assert_eq!(
            attachment["status"],
            json!({"attachError": {"message": "m"}, "detachError": {"errorCode": 2}})
        );
    }

    #[test]
    fn attachments_are_checked() {
        let check = |source: Value, status: Value, wanted: &[&str]| {
            let spec = json!({"attacher": "d", "nodeName": "n", "source": source});
            let errors = validate(&json!({"metadata": {"name": "a"}, "spec": spec, "status": status}));
            let fields: Vec<String> = errors.iter().map(|error| error.field.to_string()).collect();
            assert_eq!(fields, wanted);
        };
        let inline = json!({"accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "h"}});
        let mut sized = inline.clone();
        sized.set("capacity", json!({"storage": "1Gi"}));
        check(json!({"persistentVolumeName": "v"}), json!({}), &[]);
        check(json!({}), json!({}), &["spec.source"]);
        check(json!({"inlineVolumeSpec": inline}), json!({}), &[]);
        check(json!({"inlineVolumeSpec": sized}), json!({}), &["spec.source.inlineVolumeSpec.capacity"]);
        check(json!({"inlineVolumeSpec": inline, "persistentVolumeName": "v"}), json!({}), &["spec.source"]);
        check(
            json!({"persistentVolumeName": "v"}),
            json!({"attachError": {"errorCode": -1}}),
            &["status.attachError.errorCode"],
        );
    }
}
