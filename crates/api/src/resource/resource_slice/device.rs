//! Validates the devices of a slice.

use super::{
    capacity,
    counters::validate_counters,
    list_attributes::{EmptyLists, LIST_ATTRIBUTES},
    node_selection::NodeSelection,
};
use crate::{
    field_checks::{invalid_each, supported, texts},
    resource::{
        binding_conditions,
        claim_spec::TAINT_EFFECTS,
        lists::{each, each_entry, each_unique},
        names::{QUALIFIED_NAME_MAX_LENGTH, validate_label, validate_qualified_name},
    },
    resource_list::{is_native, quantity},
    rules,
};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{is_valid_label_value, validate_label_name},
};

const ENTRIES_MAX: usize = 32;
const ATTRIBUTE_VALUES_MAX: usize = 48;
const ATTRIBUTE_VALUE_MAX_LENGTH: usize = 64;
const TAINTS_MAX: usize = 16;
const COUNTER_CONSUMPTIONS_MAX: usize = 2;

/// Validates a device; `old` is the device of the same name in the old slice.
pub(super) fn validate(
    device: &Value,
    old: Option<&Value>,
    selects_nodes: bool,
    empty_lists: &EmptyLists,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = validate_label(device.str_at("name"), &path.child("name"));
    errors.extend(validate_sizes(device, path));
    let attributes = device.map_at("attributes");
    errors.extend(each_entry(
        attributes,
        &path.child("attributes"),
        QUALIFIED_NAME_MAX_LENGTH,
        validate_qualified_name,
        |attribute, path| validate_attribute(&empty_lists.put_into(attribute, path), path),
    ));
    let is_shared = device.bool_at("allowMultipleAllocations");
    errors.extend(each_entry(
        device.map_at("capacity"),
        &path.child("capacity"),
        QUALIFIED_NAME_MAX_LENGTH,
        validate_qualified_name,
        |capacity, path| capacity::validate(capacity, is_shared, path),
    ));
    if old.is_none_or(|old| rules::differs(device, old, "taints")) {
        errors.extend(each(device.items_at("taints"), TAINTS_MAX, &path.child("taints"), validate_taint));
    }
    let consumed = device.items_at("consumesCounters");
    let set_of = |consumption: &Value| consumption.str_at("counterSet").into();
    let consumed_path = path.child("consumesCounters");
    errors.extend(each_unique(
        consumed,
        COUNTER_CONSUMPTIONS_MAX,
        &consumed_path,
        set_of,
        |consumption, path| validate_counters(consumption, "counterSet", path),
    ));
    errors.extend(validate_node_selection(device, selects_nodes, path));
    errors.extend(binding_conditions::validate(device, path));
    errors.extend(validate_node_resources(device, &path.child("nodeAllocatableResourceMappings")));
    errors
}

fn validate_sizes(device: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut limit = |count: usize, max: usize, what: &str| {
        if count > max {
            let detail = format!("the total number of {what} must not exceed {max}");
            errors.push(FieldError::invalid(path, count, detail));
        }
    };
    let attributes = device.map_at("attributes");
    let entries = attributes.len() + device.map_at("capacity").len();
    limit(entries, ENTRIES_MAX, "attributes and capacities");
    let values = attributes.values().map(|attribute| {
        let listed: usize = LIST_ATTRIBUTES.into_iter().map(|list| attribute.items_at(list).len()).sum();
        listed.max(1)
    });
    limit(values.sum(), ATTRIBUTE_VALUES_MAX, "attribute values");
    errors
}

fn validate_attribute(attribute: &Value, path: &FieldPath) -> ErrorList {
    const EXACTLY_ONE: &str = "exactly one value must be specified";
    let mut errors = ErrorList::new();
    if let Some(text) = attribute.at("string").and_then(Value::as_str) {
        errors.extend(validate_text(text, &path.child("string")));
    }
    if let Some(version) = attribute.at("version").and_then(Value::as_str) {
        errors.extend(validate_version(version, &path.child("version")));
    }
    for list in LIST_ATTRIBUTES {
        let path = path.child(list);
        let items = attribute.items_at(list);
        if attribute.at(list).is_some() && items.is_empty() {
            let empty: Vec<Value> = Vec::new();
            errors.push(FieldError::invalid(&path, empty, "must not be empty if specified"));
        }
        for (index, text) in texts(items).enumerate() {
            errors.extend(match list {
                "strings" => validate_text(text, &path.index(index)),
                "versions" => validate_version(text, &path.index(index)),
                _ => ErrorList::new(),
            });
        }
    }
    let values = ["int", "bool", "string", "version"].into_iter().chain(LIST_ATTRIBUTES);
    match values.filter(|value| attribute.at(value).is_some()).count() {
        0 => errors.push(FieldError::invalid(path, "", EXACTLY_ONE)),
        1 => {}
        _ => {
            let error = FieldError::invalid(path, attribute.clone(), EXACTLY_ONE);
            errors.push(pintle_internal_form::show(error, "resource.DeviceAttribute"));
        }
    }
    errors
}

fn validate_text(text: &str, path: &FieldPath) -> ErrorList {
    if text.len() > ATTRIBUTE_VALUE_MAX_LENGTH {
        return vec![FieldError::too_long(path, ATTRIBUTE_VALUE_MAX_LENGTH)];
    }
    ErrorList::new()
}

fn validate_version(version: &str, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if !is_semantic_version(version) {
        let detail = "must be a string compatible with semver.org spec 2.0.0";
        errors.push(FieldError::invalid(path, version, detail));
    }
    errors.extend(validate_text(version, path));
    errors
}

/// Whether this is `1.2.3-pre.1+build.2`, the later parts optional (<https://semver.org>).
fn is_semantic_version(version: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |part: &str| is_digits(part) && (part == "0" || !part.starts_with('0'));
    let is_identifier = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let (rest, build) = match version.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (version, None),
    };
    let (core, pre_release) = match rest.split_once('-') {
        Some((core, pre_release)) => (core, Some(pre_release)),
        None => (rest, None),
    };
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre_release.is_none_or(|parts| {
            parts.split('.').all(|part| is_number(part) || (is_identifier(part) && !is_digits(part)))
        })
        && build.is_none_or(|parts| parts.split('.').all(is_identifier))
}

fn validate_taint(taint: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_taint_names(taint, path);
    errors.extend(validate_taint_effect(taint, path));
    errors
}

/// Validates the key and the value of a taint.
pub(in crate::resource) fn validate_taint_names(taint: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_label_name(taint.str_at("key"), &path.child("key"));
    let value = taint.str_at("value");
    errors.extend(invalid_each(&path.child("value"), value, is_valid_label_value(value)));
    errors
}

/// Validates the effect of a taint.
pub(in crate::resource) fn validate_taint_effect(taint: &Value, path: &FieldPath) -> ErrorList {
    match taint.str_at("effect") {
        "" => vec![FieldError::required(&path.child("effect"), "")],
        effect => supported(effect, TAINT_EFFECTS, &path.child("effect")),
    }
}

fn validate_node_selection(device: &Value, selects_nodes: bool, path: &FieldPath) -> ErrorList {
    const ONE_OF: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                          `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if !selects_nodes {
        let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to \
                      true in the ResourceSlice spec";
        let is_set = |field: &str| device.at(field).is_some();
        return match ["nodeName", "nodeSelector", "allNodes"].into_iter().any(is_set) {
            true => vec![FieldError::invalid(path, Value::Null, detail)],
            false => ErrorList::new(),
        };
    }
    let NodeSelection { fields, mut errors, .. } = NodeSelection::of(device, "must not be empty", path);
    match fields.as_slice() {
        [] => errors.push(FieldError::required(path, ONE_OF)),
        [_] => {}
        fields => errors.push(FieldError::invalid(path, format!("{{{}}}", fields.join(", ")), ONE_OF)),
    }
    errors
}

fn validate_node_resources(device: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, mapping) in device.map_at("nodeAllocatableResourceMappings") {
        let path = path.key(name);
        if !is_native(name) {
            let detail = "must be a node allocatable resource name";
            errors.push(FieldError::invalid(&path, name.as_str(), detail).of_named_type());
        }
        let (multiplier, key) = (mapping.at("allocationMultiplier"), mapping.at("capacityKey"));
        if multiplier.is_none() && key.is_none() {
            let detail = "at least one of allocationMultiplier or capacityKey must be set";
            errors.push(FieldError::invalid(&path, "", detail));
        }
        if let Some(multiplier) = multiplier.map(quantity).filter(|multiplier| multiplier.sign() <= 0) {
            let path = path.child("allocationMultiplier");
            errors.push(FieldError::invalid(&path, multiplier.to_string(), "must be positive"));
        }
        let path = path.child("capacityKey");
        match key.map(|key| key.as_str().unwrap_or_default()) {
            Some("") => {
                errors.push(FieldError::invalid(&path, "", "capacityKey must not be an empty string"))
            }
            Some(key) if !device.map_at("capacity").contains_key(key) => {
                errors.push(FieldError::not_found(&path, key).of_named_type());
            }
            Some(_) | None => {}
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn devices_are_checked() {
        let check = |device: Value, selects_nodes: bool, expected: &[&str]| {
            let mut device = device;
            device.set_default("name", "a");
            let empty_lists = EmptyLists::default();
            let errors = validate(&device, None, selects_nodes, &empty_lists, &FieldPath::new("d"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({"attributes": {"a": {"int": 0}}, "capacity": {"m": {"value": "1"}}}), false, &[]);
        check(
            json!({"attributes": {"a": {}, "b": {"int": 1, "bool": true}}}),
            false,
            &[
                r#"d.attributes[a]: Invalid value: "": exactly one value must be specified"#,
                r#"d.attributes[b]: Invalid value: {"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: exactly one value must be specified"#,
            ],
        );
        check(
            json!({"attributes": {"a": {"ints": []}}}),
            false,
            &["d.attributes[a].ints: Invalid value: []: must not be empty if specified"],
        );
        check(
            json!({"taints": [{"key": "k"}, {"key": "k", "effect": "Odd"}]}),
            false,
            &[
                "d.taints[0].effect: Required value",
                r#"d.taints[1].effect: Unsupported value: "Odd": supported values: "NoExecute", "NoSchedule", "None""#,
            ],
        );
        check(json!({"nodeName": "n"}), true, &[]);
        check(
            json!({"nodeName": "n"}),
            false,
            &[
                "d: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
            ],
        );
        check(
            json!({"nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "m", "allocationMultiplier": "0"}}}),
            false,
            &[
                r#"d.nodeAllocatableResourceMappings[cpu].allocationMultiplier: Invalid value: "0": must be positive"#,
                r#"d.nodeAllocatableResourceMappings[cpu].capacityKey: Not found: "m""#,
            ],
        );
    }

    #[test]
    fn versions_are_semantic() {
        for version in ["1.2.3", "0.0.0-a.1+b.01", "1.0.0--", "1.0.0+a-b", "1.0.0-0a"] {
            assert!(is_semantic_version(version), "{version}");
        }
        for version in
            ["", "one", "1.2", "1.2.3.4", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "1.2.3+a+b", "1.2.-3"]
        {
            assert!(!is_semantic_version(version), "{version}");
        }
    }
}
