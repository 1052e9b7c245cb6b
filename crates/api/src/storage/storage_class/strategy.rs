//! The strategy of storage classes: provisioner and parameters are immutable.

use crate::core::pod_spec::deprecated_node_label;
use crate::field_checks::supported;
use crate::rules;
use crate::storage::parameters::{self, validate_kept};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{validate_immutable_text, validate_label_name},
};
use pintle_registry::{RequestContext, Strategy};
use std::collections::HashMap;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct StorageClassStrategy;

impl Strategy for StorageClassStrategy {
    fn set_defaults(&self, object: &mut Value) {
        object.set_default("reclaimPolicy", "Delete");
        object.set_default("volumeBindingMode", "Immediate");
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_update(object, old)
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings(object)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn warnings(class: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, term) in class.items_at("allowedTopologies").iter().enumerate() {
        let path = FieldPath::new("allowedTopologies").index(index).child("matchLabelExpressions");
        for (index, expression) in term.items_at("matchLabelExpressions").iter().enumerate() {
            if let Some(message) = deprecated_node_label(expression.str_at("key")) {
                warnings.push(format!("{}: {message}", path.index(index).child("key")));
            }
        }
    }
    warnings
}

fn validate(class: &Value) -> ErrorList {
    let mut errors = rules::metadata(class, false);
    errors.extend(parameters::validate_driver(class.str_at("provisioner"), &FieldPath::new("provisioner")));
    errors.extend(parameters::validate(class.map_at("parameters"), &FieldPath::new("parameters")));
    let policy = class.str_at("reclaimPolicy");
    if !policy.is_empty() {
        errors.extend(supported(policy, &["Delete", "Retain"], &FieldPath::new("reclaimPolicy")));
    }
    let modes = ["Immediate", "WaitForFirstConsumer"];
    errors.extend(supported(class.str_at("volumeBindingMode"), &modes, &FieldPath::new("volumeBindingMode")));
    errors.extend(validate_topologies(class.items_at("allowedTopologies")));
    errors
}

fn validate_update(object: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(object);
    errors.extend(rules::metadata_update(object, old));
    errors.extend(validate_kept(object, old, "parameters"));
    errors.extend(validate_immutable_text(object, old, &FieldPath::new("provisioner")));
    for field in ["reclaimPolicy", "volumeBindingMode"] {
        errors.extend(validate_kept(object, old, field));
    }
    errors
}

fn validate_topologies(terms: &[Value]) -> ErrorList {
    let mut errors = ErrorList::new();
    /// The maximum number of errors for repeated terms.
    const MAX_REPEATS: usize = 64;
    let mut seen: HashMap<_, usize> = HashMap::new();
    for (index, term) in terms.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = FieldPath::new("allowedTopologies").index(index).child("matchLabelExpressions");
        let mut values_by_key: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (index, expression) in term.items_at("matchLabelExpressions").iter().enumerate() {
            let path = path.index(index);
            let key = expression.str_at("key");
            let (values, wrong) = validate_values(expression.items_at("values"), &path.child("values"));
            errors.extend(wrong);
            errors.extend(validate_label_name(key, &path.child("key")));
            if values_by_key.insert(key, values).is_some() {
                errors.push(FieldError::duplicate(&path.child("key"), key));
            }
        }
        // As in the reference, a term that matches everything repeats each term.
        let everything = if values_by_key.is_empty() { terms.len() } else { 0 };
        let earlier = seen.entry(values_by_key).or_default();
        let repeats = (*earlier + everything).min(MAX_REPEATS);
        *earlier += 1;
        errors.extend((0..repeats).map(|_| FieldError::duplicate(&path, "")));
    }
    errors
}

fn validate_values<'a>(values: &'a [Value], path: &FieldPath) -> (BTreeSet<&'a str>, ErrorList) {
    let mut errors = ErrorList::new();
    if values.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        if !seen.insert(value) {
            errors.push(FieldError::duplicate(&path.index(index), value));
        }
    }
    (seen, errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn class(members: Value) -> Value {
        let mut class = json!({"metadata": {"name": "c"}, "provisioner": "a.example.com/P"});
        class.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        StorageClassStrategy.set_defaults(&mut class);
        class
    }

    #[test]
    fn the_provisioner_stays() {
        let old = class(json!({}));
        let mut new = old.clone();
        new.remove_at("provisioner");
        let errors = validate_update(&new, &old);
        assert_eq!(
            errors.last().unwrap().to_string(),
            r#"provisioner: Invalid value: "": field is immutable"#
        );
    }

    #[test]
    fn members_are_checked() {
        let check = |members: Value, wanted: &[&str]| {
            let errors = validate(&class(members));
            let fields: Vec<String> = errors.iter().map(|error| error.field.to_string()).collect();
            assert_eq!(fields, wanted);
        };
        let zone = json!({"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]});
        let same = json!({"matchLabelExpressions": [{"key": "zone", "values": ["b", "a"]}]});
        let twice =
            json!({"matchLabelExpressions": [{"key": "z", "values": ["b"]}, {"key": "z", "values": []}]});
        check(json!({}), &[]);
        check(json!({"provisioner": ""}), &["provisioner"]);
        check(json!({"provisioner": "a b"}), &["provisioner"]);
        check(json!({"parameters": {"": "a"}}), &["parameters"]);
        check(json!({"reclaimPolicy": "Recycle"}), &["reclaimPolicy"]);
        check(json!({"volumeBindingMode": "Later"}), &["volumeBindingMode"]);
        check(json!({"allowedTopologies": [zone]}), &[]);
        check(json!({"allowedTopologies": [zone, same]}), &["allowedTopologies[1].matchLabelExpressions"]);
        check(
            json!({"allowedTopologies": [twice]}),
            &[
                "allowedTopologies[0].matchLabelExpressions[1].values",
                "allowedTopologies[0].matchLabelExpressions[1].key",
            ],
        );
        check(json!({"allowedTopologies": [{}]}), &["allowedTopologies[0].matchLabelExpressions"]);
    }
}
