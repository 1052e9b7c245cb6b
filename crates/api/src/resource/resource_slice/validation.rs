//! Validates resource slices.

use super::{
    counters::{PARTITIONABLE, validate_counters},
    device,
    list_attributes::{EmptyLists, has_list_attributes},
    node_selection::NodeSelection,
};
use crate::{
    resource::{
        claim_spec::name_of,
        lists::each_unique,
        names::{validate_driver_name, validate_pool_name},
    },
    rules,
};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{validate_immutable_field, validate_immutable_text},
};
use pintle_registry::EmptyFields;
use std::collections::HashMap;

const DEVICES_MAX: usize = 128;
const ADVANCED_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;

/// Validates a new slice.
pub(super) fn validate(slice: &Value, empty_fields: &EmptyFields) -> ErrorList {
    let mut errors = rules::metadata(slice, false);
    errors.extend(validate_spec(slice, None, empty_fields));
    errors
}

/// Validates an update of a slice.
pub(super) fn validate_update(slice: &Value, old: &Value, empty_fields: &EmptyFields) -> ErrorList {
    let mut errors = rules::metadata_update(slice, old);
    errors.extend(validate_spec(slice, Some(old), empty_fields));
    errors
}

fn validate_spec(slice: &Value, old: Option<&Value>, empty_fields: &EmptyFields) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = validate_driver_name(slice.str_at("spec.driver"), &path.child("driver"));
    errors.extend(validate_pool(slice, &path.child("pool")));
    if let Some(old) = old {
        for kept in ["spec.pool.name", "spec.driver"] {
            errors.extend(validate_immutable_text(slice, old, &FieldPath::new(kept)));
        }
        let node = |slice| rules::value_at(slice, "spec.nodeName");
        errors.extend(validate_immutable_field(node(slice), node(old), &path.child("nodeName")));
    }
    errors.extend(validate_node_selection(slice, &path));
    let is_given = |list: &str| slice.at(list).is_some() || empty_fields.contains(list);
    // An empty list counts, unless it is dropped with the disabled feature.
    let has_counters = PARTITIONABLE.are_kept(old) && is_given("spec.sharedCounters");
    if is_given("spec.devices") && has_counters {
        errors.push(FieldError::invalid(&path, "", "only one of `sharedCounters` or `devices` is allowed"));
    }
    let max = if is_advanced(slice) { ADVANCED_DEVICES_MAX } else { DEVICES_MAX };
    let devices = slice.items_at("spec.devices");
    let empty_lists = EmptyLists::of(empty_fields, old);
    let selects_per_device = slice.bool_at("spec.perDeviceNodeSelection");
    let old_devices = old.map(|old| old.items_at("spec.devices")).unwrap_or_default().iter().rev();
    // Of several devices with the same name the first counts.
    let old_devices: HashMap<&str, &Value> = old_devices.map(|old| (old.str_at("name"), old)).collect();
    errors.extend(each_unique(devices, max, &path.child("devices"), name_of, |device, path| {
        let old = old_devices.get(device.str_at("name")).copied();
        device::validate(device, old, selects_per_device, &empty_lists, path)
    }));
    let sets = slice.items_at("spec.sharedCounters");
    errors.extend(each_unique(
        sets,
        COUNTER_SETS_MAX,
        &path.child("sharedCounters"),
        name_of,
        |set, path| validate_counters(set, "name", path),
    ));
    errors
}

/// Whether the devices use advanced features, for which the maximum number is lower.
fn is_advanced(slice: &Value) -> bool {
    let mut devices = slice.items_at("spec.devices").iter();
    let is_tainted = |device: &Value| {
        !device.items_at("taints").is_empty() || !device.items_at("consumesCounters").is_empty()
    };
    devices.any(is_tainted) || has_list_attributes(slice)
}

fn validate_pool(slice: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_pool_name(slice.str_at("spec.pool.name"), &path.child("name"));
    let count = slice.i64_at("spec.pool.resourceSliceCount").unwrap_or_default();
    if count <= 0 {
        let path = path.child("resourceSliceCount");
        errors.push(FieldError::invalid(&path, count, "must be greater than zero"));
    }
    let generation = slice.i64_at("spec.pool.generation").unwrap_or_default();
    if generation < 0 {
        let path = path.child("generation");
        errors.push(FieldError::invalid(&path, generation, "must be greater than or equal to zero"));
    }
    errors
}

/// Validates the node selection: one node, selected nodes, all nodes, or a selection per device.
fn validate_node_selection(slice: &Value, path: &FieldPath) -> ErrorList {
    const ONE_OF: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let spec = rules::value_at(slice, "spec");
    let mut selection = NodeSelection::of(spec, "must be either unset or set to a non-empty string", path);
    if let Some(selector) = spec.at("nodeSelector") {
        let terms = selector.items_at("nodeSelectorTerms");
        if terms.len() != 1 {
            let path = path.child("nodeSelector").child("nodeSelectorTerms");
            let detail = "must have exactly one node selector term";
            // The error is inserted after the other errors of the selector, before those of later fields.
            let at = selection.errors_of_selector;
            let shown = rules::value_at(selector, "nodeSelectorTerms").clone();
            let error = FieldError::invalid(&path, shown, detail);
            selection.errors.insert(at, pintle_internal_form::show(error, "[]core.NodeSelectorTerm"));
        }
    }
    selection.add_flag(spec, "perDeviceNodeSelection", path);
    let mut errors = selection.errors;
    match selection.fields.as_slice() {
        [] => errors.push(FieldError::required(path, ONE_OF)),
        [_] => {}
        fields => errors.push(FieldError::invalid(
            path,
            format!("{{{}}}", fields.join(", ")),
            format!("{ONE_OF}, but multiple fields are set"),
        )),
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{FeatureGates, Gate, testing::override_gates};
    use pintle_machinery::codec::EmptyField;
    use pintle_machinery::json;

    fn slice(spec: Value) -> Value {
        let mut slice = json!({"metadata": {"name": "s", "uid": "u", "resourceVersion": "1"}, "spec": {
            "driver": "d", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}}});
        for (name, value) in spec.as_object().into_iter().flatten() {
            slice.set(&format!("spec.{name}"), value.clone());
        }
        slice
    }

    #[test]
    fn texts_that_may_not_change_are_shown_as_texts() {
        let old = slice(json!({}));
        let new = slice(json!({"driver": null, "nodeName": null, "allNodes": true}));
        let errors = validate_update(&new, &old, &EmptyFields::default());
        let expected = [
            "spec.driver: Required value",
            "spec.driver: Invalid value: \"\": field is immutable",
            "spec.nodeName: Invalid value: null: field is immutable",
        ];
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_empty_list_of_a_disabled_feature_is_not_given() {
        let new = slice(json!({"devices": [{"name": "d"}]}));
        let empty_fields = EmptyFields::default();
        empty_fields.set(vec![EmptyField { path: "spec.sharedCounters".to_owned(), value: json!([]) }]);
        assert_eq!(validate(&new, &empty_fields).len(), 1);
        let _gates = override_gates(&FeatureGates::default().with(Gate::DRAPartitionableDevices, false));
        assert_eq!(validate(&new, &empty_fields), []);
    }

    #[test]
    fn slices_are_checked() {
        let check = |spec: Value, expected: &[&str]| {
            let errors = validate(&slice(spec), &EmptyFields::default());
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        const ONE_OF: &str =
            "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
        check(json!({}), &[]);
        check(
            json!({"nodeName": null, "allNodes": false}),
            &[
                "spec.allNodes: Invalid value: false: must be either unset or set to true",
                &format!("spec: Required value: {ONE_OF}"),
            ],
        );
        // An absent list of terms.
        check(
            json!({"nodeName": null, "nodeSelector": {}}),
            &[
                "spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term",
                "spec.nodeSelector.nodeSelectorTerms: Invalid value: null: must have exactly one node selector term",
            ],
        );
        check(
            json!({"allNodes": true}),
            &[&format!(
                "spec: Invalid value: \"{{`nodeName`, `allNodes`}}\": {ONE_OF}, but multiple fields are set"
            )],
        );
        let term = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
        check(
            json!({"nodeName": null, "nodeSelector": {"nodeSelectorTerms": [term, term]}, "allNodes": false}),
            &[
                r#"spec.nodeSelector.nodeSelectorTerms: Invalid value: [{"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null}],"MatchFields":null},{"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null}],"MatchFields":null}]: must have exactly one node selector term"#,
                "spec.allNodes: Invalid value: false: must be either unset or set to true",
            ],
        );
        check(
            json!({"pool": {}}),
            &[
                "spec.pool.name: Required value",
                "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
            ],
        );
        check(
            json!({"devices": [{"name": "a"}, {"name": "a"}]}),
            &[r#"spec.devices[1]: Duplicate value: "a""#],
        );
        check(
            json!({"sharedCounters": [{"name": "a", "counters": {"m": {"value": "1"}}}, {}]}),
            &[
                "spec.sharedCounters[1].name: Required value",
                "spec.sharedCounters[1].counters: Required value",
            ],
        );
    }

    #[test]
    fn slices_stay_with_their_driver_pool_and_node() {
        let check = |field: &str, value: Value, errors: usize| {
            let mut new = slice(json!({}));
            new.set(field, value);
            assert_eq!(
                validate_update(&new, &slice(json!({})), &EmptyFields::default()).len(),
                errors,
                "{field}"
            );
        };
        check("spec.driver", json!("e"), 1);
        check("spec.nodeName", json!("e"), 1);
        check("spec.pool.name", json!("e"), 1);
        check("spec.pool.generation", json!(2), 0);
    }
}
