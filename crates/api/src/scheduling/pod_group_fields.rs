//! The fields that pod groups share with the templates in workloads, and the feature gates of these fields.

use crate::declarative::{
    KeyedList, LABEL_KEY, LONG_NAME, SHORT_NAME, bounded, closed, is_unchanged, keyed_list, optional_text,
    pointed_text, required_text, union,
};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// The fields behind feature gates.
const GATED: [(&str, Gate); 5] = [
    ("schedulingConstraints", Gate::TopologyAwareWorkloadScheduling),
    ("resourceClaims", Gate::DRAWorkloadResourceClaims),
    ("disruptionMode", Gate::WorkloadAwarePreemption),
    ("priorityClassName", Gate::WorkloadAwarePreemption),
    ("priority", Gate::WorkloadAwarePreemption),
];

const CLAIMS_MAX: usize = 4;
const TOPOLOGY_MAX: usize = 1;
/// The highest priority that a user may define.
const PRIORITY_MAX: i64 = 1_000_000_000;
const DISRUPTION_MODES: [&str; 2] = ["Pod", "PodGroup"];
const CLAIM_TYPE: &str = "k8s.io/api/scheduling/v1alpha2.PodGroupResourceClaim";

/// Drops the fields whose gates are closed, unless the stored fields have them.
pub(super) fn drop_disabled(fields: &mut Value, old: Option<&Value>) {
    for (field, gate) in GATED {
        if !enabled(gate) && !old.is_some_and(|old| has(old, field)) {
            fields.remove_at(field);
        }
    }
}

/// Whether a field is set: an empty list and an empty text are not.
pub(super) fn has(fields: &Value, field: &str) -> bool {
    match fields.at(field) {
        None => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

/// Whether the gate of a field is closed; `resourceClaims` are validated in either case.
pub(super) fn is_closed(field: &str) -> bool {
    field != "resourceClaims" && GATED.iter().any(|(name, gate)| *name == field && !enabled(*gate))
}

/// Validates the gated fields that an update changes.
pub(super) fn validate_gated(fields: &Value, old: Option<&Value>, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, _) in GATED {
        if !is_unchanged(fields, old, field) {
            errors.extend(validate_field(fields, old, field, path));
        }
    }
    errors
}

/// Validates one of the gated fields.
pub(super) fn validate_field(
    fields: &Value,
    old: Option<&Value>,
    field: &str,
    path: &FieldPath,
) -> ErrorList {
    let at = path.child(field);
    if is_closed(field) {
        return if has(fields, field) { vec![closed(&at)] } else { ErrorList::new() };
    }
    match field {
        "schedulingConstraints" => validate_constraints(fields, &at),
        "resourceClaims" => {
            let old = old.map(|old| old.items_at(field)).unwrap_or_default();
            let items = fields.items_at(field);
            let list = KeyedList { items, old, max: CLAIMS_MAX, key: "name", type_name: CLAIM_TYPE };
            keyed_list(&list, &at, validate_claim)
        }
        "disruptionMode" => match fields.at(field).and_then(Value::as_str) {
            Some(mode) if !DISRUPTION_MODES.contains(&mode) => {
                vec![FieldError::not_supported(&at, mode, &DISRUPTION_MODES)]
            }
            _ => ErrorList::new(),
        },
        "priorityClassName" => optional_text(fields, field, path, LONG_NAME),
        _ => bounded(fields.i64_at(field), &at, i64::from(i32::MIN), PRIORITY_MAX),
    }
}

/// Validates the policy: either basic, or a gang of at least one pod.
pub(super) fn validate_policy(policy: &Value, old: Option<&Value>, path: &FieldPath) -> ErrorList {
    let mut errors = union(policy, old, &["basic", "gang"], path);
    if let Some(gang) = policy.at("gang")
        && !is_unchanged(policy, old, "gang")
    {
        let path = path.child("gang").child("minCount");
        match gang.i64_at("minCount").unwrap_or_default() {
            0 => errors.push(FieldError::required(&path, "")),
            count => errors.extend(bounded(Some(count), &path, 1, i64::from(i32::MAX))),
        }
    }
    errors
}

fn validate_constraints(fields: &Value, path: &FieldPath) -> ErrorList {
    let (topology, path) = (fields.items_at("schedulingConstraints.topology"), path.child("topology"));
    if topology.len() > TOPOLOGY_MAX {
        return vec![FieldError::too_many(&path, topology.len(), TOPOLOGY_MAX)];
    }
    let each = topology.iter().enumerate();
    each.flat_map(|(index, constraint)| required_text(constraint, "key", &path.index(index), LABEL_KEY))
        .collect()
}

fn validate_claim(claim: &Value, old: Option<&Value>, path: &FieldPath) -> ErrorList {
    const SOURCES: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
    let mut errors = union(claim, old, &SOURCES, path);
    errors.extend(required_text(claim, "name", path, SHORT_NAME));
    for source in SOURCES {
        if !is_unchanged(claim, old, source) {
            errors.extend(pointed_text(claim, source, path, LONG_NAME));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn policies_are_checked() {
        let check = |policy: Value, expected: &[&str]| {
            let errors = validate_policy(&policy, None, &FieldPath::new("p"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({"basic": {}}), &[]);
        check(json!({"gang": {"minCount": 1}}), &[]);
        check(json!({"gang": {}}), &["p.gang.minCount: Required value"]);
        check(
            json!({"gang": {"minCount": -1}}),
            &["p.gang.minCount: Invalid value: -1: must be greater than or equal to 1"],
        );
    }

    #[test]
    fn fields_behind_closed_gates_stay_where_they_are_in_use() {
        let fields = json!({"priority": 5, "resourceClaims": [{"name": "c"}], "name": "t"});
        let mut dropped = fields.clone();
        drop_disabled(&mut dropped, None);
        assert_eq!(dropped, json!({"name": "t"}));
        let mut kept = fields.clone();
        drop_disabled(&mut kept, Some(&fields));
        assert_eq!(kept, fields);
        let changed = json!({"priority": 6});
        let errors = validate_gated(&changed, Some(&fields), &FieldPath::new("p"));
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), ["p.priority: Forbidden"]);
    }
}
