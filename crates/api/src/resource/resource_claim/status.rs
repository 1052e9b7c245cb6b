//! The strategy of a claim's status: allocated devices, their consumers, and the drivers' data about them.

use super::status_permissions;
use crate::{
    core::pod_spec::validate_node_selector,
    field_checks::required,
    gated_fields::{GatedFields, drop_disabled},
    plain::PlainStatusStrategy,
    resource::{
        binding_conditions,
        claim_spec::{REQUESTS_MAX, RequestNames},
        configuration::{CONFIG_MAX, PARAMETERS_MAX_LENGTH, validate_configuration, validate_raw},
        lists::{duplicates, each, each_unique},
        names::{validate_driver_name, validate_label, validate_pool_name, validate_share_id},
    },
    rules,
};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{is_valid_interface_address, validate_conditions},
};
use pintle_registry::{BoxFuture, RequestContext, Strategy};
use std::collections::HashSet;

/// The fields of the status behind gates, with those of the spec that use the same feature.
const GATED: &[GatedFields] = &[
    GatedFields { gates: &[Gate::DRAResourceClaimDeviceStatus], fields: &["status.devices"] },
    GatedFields {
        gates: &[Gate::DRAConsumableCapacity],
        fields: &[
            "spec.devices.constraints[].distinctAttribute",
            "spec.devices.requests[].exactly.capacity",
            "spec.devices.requests[].firstAvailable[].capacity",
            "status.allocation.devices.results[].shareID",
            "status.allocation.devices.results[].consumedCapacity",
            "status.devices[].shareID",
        ],
    },
    GatedFields {
        gates: &[Gate::DRAAdminAccess],
        fields: &[
            "spec.devices.requests[].exactly.adminAccess",
            "status.allocation.devices.results[].adminAccess",
        ],
    },
    GatedFields {
        gates: &[Gate::DRADeviceBindingConditions],
        fields: &[
            "status.allocation.devices.results[].bindingConditions",
            "status.allocation.devices.results[].bindingFailureConditions",
        ],
    },
];

const RESERVED_FOR_MAX: usize = 256;
const CONDITIONS_MAX: usize = 8;
const IPS_MAX: usize = 16;
const INTERFACE_NAME_MAX_LENGTH: usize = 256;
const HARDWARE_ADDRESS_MAX_LENGTH: usize = 128;

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        PlainStatusStrategy { keeps_metadata: true }.reset_fields()
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        PlainStatusStrategy { keeps_metadata: true }.prepare_for_update(context, object, old);
        if enabled(Gate::DRAResourceClaimDeviceStatus) || !old.items_at("status.devices").is_empty() {
            drop_deallocated_devices(object, old);
        }
        drop_disabled(GATED, object, Some(old));
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate(object, old));
        errors
    }

    fn review<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        object: &'a Value,
        old: Option<&'a Value>,
        errors: &'a mut ErrorList,
    ) -> Option<BoxFuture<'a, ()>> {
        status_permissions::review(context, object, old?, errors)
    }
}

/// The identity of a device among all drivers.
#[derive(Hash, Debug, PartialEq, Eq)]
struct DeviceId<'a> {
    driver: &'a str,
    pool: &'a str,
    device: &'a str,
    share: &'a str,
}

impl<'a> DeviceId<'a> {
    fn of(device: &'a Value) -> DeviceId<'a> {
        DeviceId {
            driver: device.str_at("driver"),
            pool: device.str_at("pool"),
            device: device.str_at("device"),
            share: device.str_at("shareID"),
        }
    }

    /// Formats the identity for messages.
    fn shown(&self) -> String {
        let members =
            [("Driver", self.driver), ("Pool", self.pool), ("Device", self.device), ("ShareID", self.share)];
        let members = members.map(|(name, value)| format!("\"{name}\":{}", Value::from(value)));
        format!("{{{}}}", members.join(","))
    }
}

fn allocated(claim: &Value) -> HashSet<DeviceId<'_>> {
    claim.items_at("status.allocation.devices.results").iter().map(DeviceId::of).collect()
}

/// Drops drivers' data about deallocated devices, for clients that do not know it.
fn drop_deallocated_devices(claim: &mut Value, old: &Value) {
    let kept = allocated(claim);
    let deallocated: HashSet<DeviceId<'_>> =
        allocated(old).into_iter().filter(|device| !kept.contains(device)).collect();
    let devices = claim.items_at("status.devices").iter();
    let devices: Vec<Value> =
        devices.filter(|device| !deallocated.contains(&DeviceId::of(device))).cloned().collect();
    if devices.is_empty() {
        claim.remove_at("status.devices");
    } else {
        claim.set("status.devices", devices);
    }
}

fn validate(claim: &Value, old: &Value) -> ErrorList {
    let path = FieldPath::new("status");
    let reserved_path = path.child("reservedFor");
    let reserved = claim.items_at("status.reservedFor");
    let uid = |consumer: &Value| consumer.str_at("uid").into();
    let mut errors = each_unique(reserved, RESERVED_FOR_MAX, &reserved_path, uid, |consumer, path| {
        let missing = ["resource", "name", "uid"].into_iter();
        missing.flat_map(|field| required(consumer, field, path)).collect()
    });
    errors.extend(validate_devices(claim, &path.child("devices")));
    let (allocation, old_allocation) = (claim.at("status.allocation"), old.at("status.allocation"));
    if !reserved.is_empty() && allocation.is_none() {
        let detail = "may not be specified when `allocated` is not set";
        errors.push(FieldError::forbidden(&reserved_path, detail));
    } else if claim.at("metadata.deletionTimestamp").is_some() {
        let old: HashSet<&Value> = old.items_at("status.reservedFor").iter().collect();
        if reserved.iter().any(|consumer| !old.contains(consumer)) {
            let detail =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(FieldError::forbidden(&reserved_path, detail));
        }
    }
    let path = path.child("allocation");
    errors.extend(match (allocation, old_allocation) {
        (Some(allocation), Some(old)) => {
            pintle_internal_form::validate_immutable(allocation, old, &path, "*resource.AllocationResult")
        }
        (Some(allocation), None) => {
            validate_allocation(allocation, &RequestNames::of(rules::value_at(claim, "spec")), &path)
        }
        (None, _) => ErrorList::new(),
    });
    errors
}

fn validate_devices(claim: &Value, path: &FieldPath) -> ErrorList {
    let allocated = allocated(claim);
    let devices = claim.items_at("status.devices");
    let mut errors = each(devices, usize::MAX, path, |device, path| {
        let mut errors = validate_driver_name(device.str_at("driver"), &path.child("driver"));
        errors.extend(validate_pool_name(device.str_at("pool"), &path.child("pool")));
        errors.extend(validate_label(device.str_at("device"), &path.child("device")));
        errors.extend(validate_share_id(device.at("shareID"), &path.child("shareID")));
        let id = DeviceId::of(device);
        if !allocated.contains(&id) {
            let detail = "must be an allocated device in the claim";
            errors.push(FieldError::invalid(path, Value::Null, detail).shown_as(id.shown()));
        }
        let (conditions, conditions_path) = (device.items_at("conditions"), path.child("conditions"));
        if conditions.len() > CONDITIONS_MAX {
            errors.push(FieldError::too_many(&conditions_path, conditions.len(), CONDITIONS_MAX));
        }
        errors.extend(validate_conditions(conditions, &conditions_path));
        if let Some(data) = device.at("data") {
            errors.extend(validate_raw(Some(data), PARAMETERS_MAX_LENGTH, &path.child("data")));
        }
        if let Some(network) = device.at("networkData") {
            errors.extend(validate_network(network, &path.child("networkData")));
        }
        errors
    });
    let shown = |device: &Value| DeviceId::of(device).shown().into();
    errors.extend(duplicates(devices, path, shown).into_iter().map(|error| {
        let shown = error.bad_value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        error.shown_as(shown)
    }));
    errors
}

fn validate_network(network: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, max) in
        [("interfaceName", INTERFACE_NAME_MAX_LENGTH), ("hardwareAddress", HARDWARE_ADDRESS_MAX_LENGTH)]
    {
        if network.str_at(field).len() > max {
            errors.push(FieldError::too_long(&path.child(field), max));
        }
    }
    let addresses = network.items_at("ips");
    errors.extend(each_unique(addresses, IPS_MAX, &path.child("ips"), Value::clone, |address, path| {
        is_valid_interface_address(path, address.as_str().unwrap_or_default())
    }));
    errors
}

fn validate_allocation(allocation: &Value, names: &RequestNames<'_>, path: &FieldPath) -> ErrorList {
    let devices = path.child("devices");
    let results = allocation.items_at("devices.results");
    let mut errors = each(results, REQUESTS_MAX, &devices.child("results"), |result, path| {
        let mut errors = names.validate_reference(result.str_at("request"), &path.child("request"));
        errors.extend(validate_driver_name(result.str_at("driver"), &path.child("driver")));
        errors.extend(validate_pool_name(result.str_at("pool"), &path.child("pool")));
        errors.extend(validate_label(result.str_at("device"), &path.child("device")));
        errors.extend(binding_conditions::validate(result, path));
        errors.extend(validate_share_id(result.at("shareID"), &path.child("shareID")));
        errors
    });
    // Configurations of the class and of the claim.
    let config = allocation.items_at("devices.config");
    errors.extend(each(config, 2 * CONFIG_MAX, &devices.child("config"), |config, path| {
        let sources = ["FromClaim", "FromClass"];
        let source_path = path.child("source");
        let mut errors = match config.str_at("source") {
            "" => vec![FieldError::required(&source_path, "")],
            source if sources.contains(&source) => ErrorList::new(),
            source => vec![FieldError::not_supported(&source_path, source, &sources)],
        };
        errors.extend(names.validate_references(config, path));
        errors.extend(validate_configuration(config, false, path));
        errors
    }));
    if let Some(selector) = allocation.at("nodeSelector") {
        errors.extend(validate_node_selector(selector, false, &path.child("nodeSelector")));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    const DEVICE: &str = r#"{"driver": "d", "pool": "p", "device": "a"}"#;

    fn claim(status: Value) -> Value {
        let requests = json!([{"name": "r", "exactly": {"deviceClassName": "c"}}]);
        json!({"spec": {"devices": {"requests": requests}}, "status": status})
    }

    fn allocation() -> Value {
        json!({"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "a"}]}})
    }

    fn check(status: Value, old: Value, expected: &[&str]) {
        let errors = validate(&claim(status), &claim(old));
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn claims_are_reserved_after_they_are_allocated() {
        let consumer = json!({"resource": "pods", "name": "p", "uid": "u"});
        check(
            json!({"reservedFor": [consumer]}),
            json!({}),
            &["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"],
        );
        check(json!({"reservedFor": [consumer], "allocation": allocation()}), json!({}), &[]);
        check(
            json!({"reservedFor": [consumer, consumer], "allocation": allocation()}),
            json!({"allocation": allocation()}),
            &[r#"status.reservedFor[1]: Duplicate value: "u""#],
        );
    }

    #[test]
    fn devices_are_allocated_ones() {
        let device: Value = serde_json::from_str(DEVICE).expect("a device");
        check(json!({"allocation": allocation(), "devices": [device]}), json!({}), &[]);
        let shown = r#"{"Driver":"d","Pool":"p","Device":"a","ShareID":""}"#;
        check(
            json!({"devices": [device, device]}),
            json!({}),
            &[
                &format!(
                    "status.devices[0]: Invalid value: {shown}: must be an allocated device in the claim"
                ),
                &format!(
                    "status.devices[1]: Invalid value: {shown}: must be an allocated device in the claim"
                ),
                &format!("status.devices[1]: Duplicate value: {shown}"),
            ],
        );
    }

    #[test]
    fn what_is_said_of_devices_goes_with_them() {
        let device: Value = serde_json::from_str(DEVICE).expect("a device");
        let old = claim(json!({"allocation": allocation(), "devices": [device]}));
        let mut new = claim(json!({"devices": [device]}));
        drop_deallocated_devices(&mut new, &old);
        assert_eq!(new.at("status"), Some(&json!({})));
        let mut kept = old.clone();
        drop_deallocated_devices(&mut kept, &old);
        assert_eq!(kept, old);
    }
}
