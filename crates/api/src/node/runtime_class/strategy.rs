//! The strategy of runtime classes.

use crate::core::pod_spec::{PodValidationOptions, resources::validate_overhead, tolerations};
use crate::{field_checks, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{name_is_dns_label, validate_immutable_text, validate_labels},
};
use pintle_registry::{RequestContext, Strategy};
use std::collections::HashSet;

pub(super) struct RuntimeClassStrategy;

impl Strategy for RuntimeClassStrategy {
    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object);
        errors.extend(rules::accessor_metadata_update(object, old));
        errors.extend(validate_immutable_text(object, old, &FieldPath::new("handler")));
        errors
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = rules::accessor_metadata(object, false);
    let path = FieldPath::new("handler");
    match object.str_at("handler") {
        "" => errors.push(FieldError::required(&path, "")),
        handler => {
            errors.extend(field_checks::invalid_each(&path, handler, name_is_dns_label(handler, false)));
        }
    }
    let options = PodValidationOptions::default();
    if object.at("overhead").is_some() {
        let fixed = rules::value_at(object, "overhead.podFixed");
        errors.extend(validate_overhead(fixed, &options, &FieldPath::new("overhead")));
    }
    if object.at("scheduling").is_some() {
        let path = FieldPath::new("scheduling");
        let selector = object.map_at("scheduling.nodeSelector");
        errors.extend(validate_labels(selector, &path.child("nodeSelector")));
        let tolerations = object.items_at("scheduling.tolerations");
        let path = path.child("tolerations");
        errors.extend(tolerations::validate(tolerations, &options, &path));
        errors.extend(validate_distinct(tolerations, &path));
    }
    errors
}

fn validate_distinct(tolerations: &[Value], path: &FieldPath) -> ErrorList {
    let mut seen = HashSet::new();
    let repeated = tolerations.iter().enumerate().filter(|(_, toleration)| {
        !seen.insert(["key", "operator", "value", "effect"].map(|member| toleration.str_at(member)))
    });
    repeated
        .map(|(index, toleration)| {
            let error = FieldError::duplicate(&path.index(index), toleration.clone());
            pintle_internal_form::show(error, "core.Toleration")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn an_overhead_is_not_rounded() {
        let mut class = json!({"handler": "h", "overhead": {"podFixed": {"memory": "1n"}}});
        let written = class.clone();
        RuntimeClassStrategy.set_defaults(&mut class);
        assert_eq!(class, written);
    }

    #[test]
    fn handlers_are_labels_and_tolerations_distinct() {
        let check = |members: Value, fields: &[&str]| {
            let mut class = json!({"metadata": {"name": "c"}, "handler": "h"});
            class.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let errors: Vec<String> = validate(&class).iter().map(|error| error.field.to_string()).collect();
            assert_eq!(errors, fields);
        };
        check(json!({}), &[]);
        check(json!({"handler": ""}), &["handler"]);
        check(json!({"handler": "Not_Valid"}), &["handler"]);
        let toleration = json!({"key": "x", "operator": "Exists"});
        check(
            json!({"scheduling": {"tolerations": [toleration, toleration]}}),
            &["scheduling.tolerations[1]"],
        );
        check(json!({"scheduling": {"nodeSelector": {"bad key": "v"}}}), &["scheduling.nodeSelector"]);
    }
}
