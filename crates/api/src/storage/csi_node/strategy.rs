//! The strategy of CSI nodes: a driver's entry is immutable, except for its attach limit.

use crate::core::pod_spec::volume_sources::validate_csi_driver_name;
use crate::field_checks::{invalid_each, texts};
use crate::rules;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{is_qualified_name, semantically_equal},
};
use pintle_registry::{RequestContext, Strategy};
use std::collections::{HashMap, HashSet};

const MAX_NODE_ID_LENGTH: usize = 256;

pub(super) struct CsiNodeStrategy;

impl Strategy for CsiNodeStrategy {
    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object);
        let mut by_name: HashMap<&str, Vec<&Value>> = HashMap::new();
        for driver in object.items_at("spec.drivers") {
            by_name.entry(driver.str_at("name")).or_default().push(driver);
        }
        for old_driver in old.items_at("spec.drivers") {
            for driver in by_name.get(old_driver.str_at("name")).into_iter().flatten() {
                errors.extend(validate_entry_is_kept(driver, old_driver));
            }
        }
        errors
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn validate_entry_is_kept(driver: &Value, old: &Value) -> Option<FieldError> {
    let settled = |driver: &Value| {
        let mut driver = driver.clone();
        if enabled(Gate::MutableCSINodeAllocatableCount) {
            driver.remove_at("allocatable");
        }
        driver
    };
    let (driver, old) = (settled(driver), settled(old));
    let path = FieldPath::new("spec.drivers");
    (!semantically_equal(&driver, &old)).then(|| {
        let error = FieldError::invalid(&path, driver, "field is immutable");
        pintle_internal_form::show(error, "storage.CSINodeDriver")
    })
}

fn validate(node: &Value) -> ErrorList {
    let mut errors = rules::metadata(node, false);
    let mut names = HashSet::new();
    for (index, driver) in node.items_at("spec.drivers").iter().enumerate() {
        let path = FieldPath::new("spec.drivers").index(index);
        errors.extend(validate_driver(driver, &path));
        let name = driver.str_at("name");
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        errors.extend(validate_topology_keys(driver.items_at("topologyKeys"), &path));
    }
    errors
}

fn validate_driver(driver: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_csi_driver_name(driver.str_at("name"), &path.child("name"));
    let (id, id_path) = (driver.str_at("nodeID"), path.child("nodeID"));
    if id.is_empty() {
        errors.push(FieldError::required(&id_path, ""));
    }
    if id.len() > MAX_NODE_ID_LENGTH {
        errors.push(FieldError::invalid(&id_path, id, "must be 256 characters or less"));
    }
    if let Some(count) = driver.i64_at("allocatable.count") {
        errors.extend(rules::nonnegative_number(count, &path.child("allocatable").child("count")));
    }
    errors
}

/// Validates topology keys; errors name the driver, not the key.
fn validate_topology_keys(keys: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for key in texts(keys) {
        if key.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(path, key));
        }
        errors.extend(invalid_each(path, key, is_qualified_name(key)));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};
    use pintle_machinery::json;

    #[test]
    fn drivers_are_checked() {
        let check = |drivers: Value, wanted: &[&str]| {
            let errors = validate(&json!({"metadata": {"name": "n"}, "spec": {"drivers": drivers}}));
            let fields: Vec<String> = errors.iter().map(|error| error.field.to_string()).collect();
            assert_eq!(fields, wanted);
        };
        let driver = json!({"name": "d", "nodeID": "n", "topologyKeys": ["zone"]});
        check(json!([driver]), &[]);
        check(json!([driver, driver]), &["spec.drivers[1].name"]);
        check(json!([{"name": "d"}]), &["spec.drivers[0].nodeID"]);
        check(json!([{"name": "d", "nodeID": "n", "topologyKeys": ["a", "a"]}]), &["spec.drivers[0]"]);
        check(
            json!([{"name": "d", "nodeID": "n", "allocatable": {"count": -1}}]),
            &["spec.drivers[0].allocatable.count"],
        );
    }

    #[test]
    fn only_what_can_be_attached_changes() {
        let node = |driver: Value| json!({"metadata": {"name": "n"}, "spec": {"drivers": [driver]}});
        let check = |driver: Value, is_allowed: bool| {
            let old = json!({"name": "d", "nodeID": "n", "allocatable": {"count": 1}});
            assert_eq!(validate_entry_is_kept(&driver, &old).is_none(), is_allowed);
            assert!(validate(&node(driver)).is_empty());
        };
        check(json!({"name": "d", "nodeID": "n", "allocatable": {"count": 2}}), true);
        check(json!({"name": "d", "nodeID": "m", "allocatable": {"count": 1}}), false);
        let _gates =
            override_gates(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33))));
        check(json!({"name": "d", "nodeID": "n", "allocatable": {"count": 2}}), false);
    }
}
