//! The strategy of resource slices.

use super::{counters::PARTITIONABLE, list_attributes::LIST_ATTRIBUTES_OF_DEVICES, validation};
use crate::{
    gated_fields::{GatedFields, drop_disabled},
    rules,
};
use jiff::Timestamp;
use pintle_feature_gates::Gate;
use pintle_go_forms::quote;
use pintle_machinery::{ErrorList, Value, ValueExt, meta};
use pintle_registry::{RequestContext, Strategy};

/// Mappings of node resources to devices.
const NODE_RESOURCES: &str = "nodeAllocatableResourceMappings";

/// The fields behind gates.
const GATED: &[GatedFields] = &[
    GatedFields { gates: &[Gate::DRADeviceTaints], fields: &["spec.devices[].taints"] },
    PARTITIONABLE,
    GatedFields {
        gates: &[Gate::DRADeviceBindingConditions, Gate::DRAResourceClaimDeviceStatus],
        fields: &[
            "spec.devices[].bindingConditions",
            "spec.devices[].bindingFailureConditions",
            "spec.devices[].bindsToNode",
        ],
    },
    GatedFields {
        gates: &[Gate::DRAConsumableCapacity],
        fields: &["spec.devices[].allowMultipleAllocations", "spec.devices[].capacity{}.requestPolicy"],
    },
    GatedFields {
        gates: &[Gate::DRANodeAllocatableResources],
        fields: &["spec.devices[].nodeAllocatableResourceMappings"],
    },
    LIST_ATTRIBUTES_OF_DEVICES,
];

pub(super) struct ResourceSliceStrategy;

impl Strategy for ResourceSliceStrategy {
    fn set_defaults(&self, object: &mut Value) {
        for device in object.items_at_mut("spec.devices") {
            let mappings = device.at_mut(NODE_RESOURCES).and_then(Value::as_object_mut);
            for mapping in mappings.into_iter().flat_map(|mappings| mappings.values_mut()) {
                mapping.set_default("allocationMultiplier", "1");
            }
        }
    }

    fn prepare_for_create(&self, context: &RequestContext<'_>, object: &mut Value) {
        set_taint_times(object, context.now);
        object.set("metadata.generation", 1);
        drop_disabled(GATED, object, None);
    }

    fn validate(&self, context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validation::validate(object, context.empty_fields)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        set_taint_times(object, context.now);
        rules::count_generation(object, old);
        drop_disabled(GATED, object, Some(old));
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validation::validate_update(object, old, context.empty_fields)
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings(object)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Sets missing times of taints to now.
fn set_taint_times(slice: &mut Value, now: Timestamp) {
    for device in slice.items_at_mut("spec.devices") {
        for taint in device.items_at_mut("taints") {
            taint.set_default("timeAdded", meta::format_time(now));
        }
    }
}

fn warnings(slice: &Value) -> Vec<String> {
    let driver = slice.str_at("spec.driver");
    if driver == driver.to_lowercase() {
        return Vec::new();
    }
    vec![format!(
        "spec.driver: driver names should be lowercase; {} contains uppercase characters",
        quote(driver)
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_registry::testing::{MemoryRegistry, with_context};

    #[test]
    fn new_slices_tell_since_when_taints_are_there() {
        let time = "2020-01-01T00:00:00Z";
        let mut slice = json!({"spec": {"devices": [{
            "attributes": {"a": {"int": 1, "ints": [1]}},
            "taints": [{"key": "a"}, {"key": "b", "timeAdded": time}],
            NODE_RESOURCES: {"cpu": {}},
        }]}});
        with_context(&MemoryRegistry::default(), "", false, |context| {
            ResourceSliceStrategy.prepare_for_create(context, &mut slice);
        });
        let device = json!({
            "attributes": {"a": {"int": 1}},
            "taints": [{"key": "a", "timeAdded": "1970-01-01T00:00:00Z"}, {"key": "b", "timeAdded": time}],
        });
        assert_eq!(slice, json!({"metadata": {"generation": 1}, "spec": {"devices": [device]}}));
    }

    #[test]
    fn disabled_fields_stay_where_they_are_in_use() {
        let device = json!({"attributes": {"a": {"ints": [1]}}, NODE_RESOURCES: {"cpu": {}}});
        let old = json!({"spec": {"devices": [device]}});
        let mut slice = old.clone();
        drop_disabled(GATED, &mut slice, Some(&old));
        assert_eq!(slice, old);
    }
}
