//! Validates pod groups. The spec is immutable; fields behind closed gates may not change to another value.

use crate::{
    declarative::{
        KeyedList, LONG_NAME, SHORT_NAME, changed, closed, is_unchanged, keyed_list, pointed_text,
        required_text, union,
    },
    rules,
    scheduling::pod_group_fields::{has, is_closed, validate_field, validate_policy},
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, validation::validate_conditions};

const CLAIMS_MAX: usize = 4;
const CLAIM_STATUS_TYPE: &str = "k8s.io/api/scheduling/v1alpha2.PodGroupResourceClaimStatus";
const FIELDS: [&str; 7] = [
    "podGroupTemplateRef",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
];

/// Validates a new group.
pub(super) fn validate(group: &Value) -> ErrorList {
    let mut errors = rules::metadata(group, true);
    errors.extend(validate_spec(rules::value_at(group, "spec")));
    errors
}

/// Validates an update of a group.
pub(super) fn validate_update(group: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(group, old);
    errors.extend(validate_change(rules::value_at(group, "spec"), rules::value_at(old, "spec")));
    errors
}

/// Validates an update of a group's status.
pub(super) fn validate_status_update(group: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(group, old);
    let path = FieldPath::new("status");
    errors.extend(validate_conditions(group.items_at("status.conditions"), &path.child("conditions")));
    let (statuses, path) =
        (group.items_at("status.resourceClaimStatuses"), path.child("resourceClaimStatuses"));
    let claims = group.items_at("spec.resourceClaims");
    for (index, status) in statuses.iter().enumerate() {
        let name = status.str_at("name");
        if claims.iter().all(|claim| claim.str_at("name") != name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&path.index(index).child("name"), name, detail));
        }
    }
    let old = old.items_at("status.resourceClaimStatuses");
    if statuses != old {
        let list =
            KeyedList { items: statuses, old, max: CLAIMS_MAX, key: "name", type_name: CLAIM_STATUS_TYPE };
        errors.extend(keyed_list(&list, &path, |status, _, path| {
            pointed_text(status, "resourceClaimName", path, LONG_NAME)
        }));
    }
    errors
}

fn validate_spec(spec: &Value) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = ErrorList::new();
    if let Some(reference) = spec.at("podGroupTemplateRef") {
        errors.extend(validate_reference(reference, &path.child("podGroupTemplateRef")));
    }
    let policy = rules::value_at(spec, "schedulingPolicy");
    errors.extend(validate_policy(policy, None, &path.child("schedulingPolicy")));
    for field in FIELDS.into_iter().skip(2) {
        if field == "disruptionMode" && spec.at(field).is_none() && !is_closed(field) {
            errors.push(FieldError::required(&path.child(field), ""));
        } else {
            errors.extend(validate_field(spec, None, field, &path));
        }
    }
    errors
}

fn validate_reference(reference: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = union(reference, None, &["workload"], path);
    if let Some(workload) = reference.at("workload") {
        let path = path.child("workload");
        errors.extend(required_text(workload, "workloadName", &path, LONG_NAME));
        errors.extend(required_text(workload, "podGroupTemplateName", &path, SHORT_NAME));
    }
    errors
}

fn validate_change(spec: &Value, old: &Value) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = ErrorList::new();
    for field in FIELDS.into_iter().filter(|field| !is_unchanged(spec, Some(old), field)) {
        let path = path.child(field);
        match (is_closed(field), has(spec, field)) {
            // The value was removed.
            (true, false) => {}
            (true, true) => errors.push(closed(&path)),
            (false, _) => {
                let claims = spec.items_at(field).len();
                if field == "disruptionMode" && spec.at(field).is_none() {
                    errors.push(FieldError::required(&path, ""));
                }
                errors.push(changed(&path));
                if claims > CLAIMS_MAX {
                    errors.push(FieldError::too_many(&path, claims, CLAIMS_MAX));
                }
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn messages(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn specs_are_checked() {
        let check = |spec: Value, expected: &[&str]| assert_eq!(messages(&validate_spec(&spec)), expected);
        let policy = json!({"basic": {}});
        check(json!({"schedulingPolicy": policy}), &[]);
        check(
            json!({"schedulingPolicy": policy, "podGroupTemplateRef": {}}),
            &["spec.podGroupTemplateRef: Invalid value: \"\": must specify one of: `workload`"],
        );
        check(
            json!({"schedulingPolicy": policy, "podGroupTemplateRef": {"workload": {"workloadName": "w"}}}),
            &["spec.podGroupTemplateRef.workload.podGroupTemplateName: Required value"],
        );
        check(json!({"schedulingPolicy": policy, "priority": 1}), &["spec.priority: Forbidden"]);
    }

    #[test]
    fn specs_are_immutable() {
        let old = json!({"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 5});
        let check = |change: &str, value: Value, expected: &[&str]| {
            let mut spec = old.clone();
            spec[change] = value;
            assert_eq!(messages(&validate_change(&spec, &old)), expected);
        };
        check("priority", json!(5), &[]);
        check("priority", json!(6), &["spec.priority: Forbidden"]);
        check("priority", Value::Null, &[]);
        // Both members of the union are pointers.
        check(
            "schedulingPolicy",
            json!({"gang": {"minCount": 2}, "basic": {}}),
            &["spec.schedulingPolicy: Invalid value: null: field is immutable"],
        );
        check(
            "schedulingPolicy",
            json!({"gang": {"minCount": 3}}),
            &["spec.schedulingPolicy: Invalid value: null: field is immutable"],
        );
    }

    #[test]
    fn statuses_of_claims_name_claims() {
        let group = |statuses: Value| {
            json!({
                "metadata": {"name": "g", "namespace": "n", "resourceVersion": "1"},
                "spec": {"resourceClaims": [{"name": "c"}]}, "status": {"resourceClaimStatuses": statuses},
            })
        };
        let check = |statuses: Value, expected: &[&str]| {
            let errors = validate_status_update(&group(statuses), &group(json!([])));
            assert_eq!(messages(&errors), expected);
        };
        check(json!([{"name": "c", "resourceClaimName": "made"}]), &[]);
        check(
            json!([{"name": "z"}]),
            &[
                "status.resourceClaimStatuses[0].name: Invalid value: \"z\": must match the name of an entry in `spec.resourceClaims`",
            ],
        );
    }
}
