//! Validates counters: those of a slice's counter sets, and their consumption by a device.

use crate::{field_checks::required, gated_fields::GatedFields, resource::names::validate_label};
use pintle_feature_gates::Gate;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

const COUNTERS_MAX: usize = 32;

/// The fields of devices that share counters.
pub(super) const PARTITIONABLE: GatedFields = GatedFields {
    gates: &[Gate::DRAPartitionableDevices],
    fields: &[
        "spec.sharedCounters",
        "spec.perDeviceNodeSelection",
        "spec.devices[].consumesCounters",
        "spec.devices[].nodeName",
        "spec.devices[].nodeSelector",
        "spec.devices[].allNodes",
    ],
};

/// Validates a counter set, or a device's consumption of one; `name` is the field with the set's name.
pub(super) fn validate_counters(holder: &Value, name: &str, path: &FieldPath) -> ErrorList {
    let mut errors = required(holder, name, path);
    if errors.is_empty() {
        errors.extend(validate_label(holder.str_at(name), &path.child(name)));
    }
    let counters = holder.map_at("counters");
    let path = path.child("counters");
    match counters.len() {
        0 => errors.push(FieldError::required(&path, "")),
        length if length > COUNTERS_MAX => errors.push(FieldError::too_many(&path, length, COUNTERS_MAX)),
        _ => errors.extend(counters.keys().flat_map(|key| validate_label(key, &path))),
    }
    errors
}
