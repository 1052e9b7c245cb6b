//! The strategy of the pod itself.

use super::{conditions, defaults, disabled_status, label_keys, qos, update, validation};
use crate::core::pod_spec::{self, app_armor};
use crate::gated_fields::drop_disabled;
use crate::{resource_list, rules};
use pintle_machinery::{ErrorList, FieldPath, Value, ValueExt, json, meta::ObjectMeta, validation as names};
use pintle_registry::{RequestContext, Strategy};

/// The strategy of pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodStrategy;

impl Strategy for PodStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        defaults::set_defaults(object);
    }

    fn prepare_for_create(&self, context: &RequestContext<'_>, object: &mut Value) {
        object.set_generation(1);
        let qos_class = qos::qos_class(object);
        object.set("status", json!({"phase": "Pending", "qosClass": qos_class}));
        drop_disabled_fields(object, None);
        pod_spec::keep_empty_claims(object, "spec", context.empty_fields);
        conditions::add_scheduling_gated(object, context.now);
        label_keys::merge_into_selectors(object);
        app_armor::set_fields_from_annotations(object);
    }

    fn preparation_warnings(&self, object: &Value) -> Vec<String> {
        app_armor::annotation_warnings(object)
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validation::validate_create(object)
    }

    /// Admission may have set requests and limits of containers, from which pod-level ones are defaulted.
    fn canonicalize(&self, object: &mut Value) {
        if let Some(spec) = object.at_mut("spec") {
            resource_list::set_pod_level_defaults(spec);
        }
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        let messages = names::is_dns1123_label(object.name());
        if !messages.is_empty() {
            warnings.push(format!(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label \
                 is recommended: [{}]",
                messages.join(" ")
            ));
        }
        warnings.extend(pod_spec::warnings(object, None, &FieldPath::default()));
        warnings
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        drop_disabled_fields(object, Some(old));
        pod_spec::keep_empty_claims(object, "spec", context.empty_fields);
        update_generation(object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        update::validate_update(object, old)
    }

    fn graceful_deletion(
        &self,
        _context: &RequestContext<'_>,
        object: &Value,
        requested: Option<i64>,
    ) -> Option<i64> {
        let own = object.i64_at("spec.terminationGracePeriodSeconds");
        // No process runs that could end gracefully.
        let nothing_runs = object.str_at("spec.nodeName").is_empty()
            || matches!(object.str_at("status.phase"), "Failed" | "Succeeded");
        match if nothing_runs { 0 } else { requested.or(own).unwrap_or_default() } {
            negative if negative < 0 => Some(1),
            seconds => Some(seconds),
        }
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Drops the fields of disabled features from spec and status.
pub(super) fn drop_disabled_fields(object: &mut Value, old: Option<&Value>) {
    drop_disabled(disabled_status::OF_SPECS, object, old);
    if let Some(spec) = object.at_mut("spec") {
        pod_spec::drop_disabled_fields(spec, old.and_then(|old| old.at("spec")));
    }
    if let Some(status) = object.at_mut("status") {
        disabled_status::drop_disabled_fields(status, old.and_then(|old| old.at("status")));
    }
}

/// Increments the generation when the spec changes.
pub(super) fn update_generation(object: &mut Value, old: &Value) {
    let unchanged = match (object.at("spec"), old.at("spec")) {
        (Some(new), Some(old)) => names::semantically_equal(new, old),
        (new, old) => new == old,
    };
    if !unchanged {
        object.set_generation(object.generation().saturating_add(1));
    }
}
