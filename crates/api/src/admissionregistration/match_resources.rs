//! Validates the match constraints of policies and the match resources of bindings.

use super::rule_validation::validate_rule_with_operations;
use crate::field_checks::{supported, texts};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    error_list::is_enough,
    validation::{LabelSelectorOptions, validate_label_selector, validate_path_segment_name},
};
use std::collections::HashSet;

const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];

/// Validates a `MatchResources`, if there is one; its rules may have these operations.
pub(super) fn validate_match_resources(
    resources: Option<&Value>,
    operations: &[&str],
    path: &FieldPath,
) -> ErrorList {
    let Some(resources) = resources else { return ErrorList::new() };
    let mut errors = supported(resources.str_at("matchPolicy"), &MATCH_POLICIES, &path.child("matchPolicy"));
    for field in ["namespaceSelector", "objectSelector"] {
        let path = path.child(field);
        match resources.field(field) {
            Some(selector) if !selector.is_null() => {
                errors.extend(validate_label_selector(selector, LabelSelectorOptions::default(), &path));
            }
            _ => errors.push(FieldError::required(&path, "")),
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        let path = path.child(field);
        for (index, rule) in resources.items_at(field).iter().enumerate() {
            if is_enough(&errors) {
                return errors;
            }
            errors.extend(validate_named_rule(rule, operations, &path.index(index)));
        }
    }
    errors
}

fn validate_named_rule(rule: &Value, operations: &[&str], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut names = HashSet::new();
    let names_path = path.child("resourceNames");
    for (index, name) in texts(rule.items_at("resourceNames")).enumerate() {
        if is_enough(&errors) {
            return errors;
        }
        let path = names_path.index(index);
        let messages = validate_path_segment_name(name, false);
        errors.extend(messages.into_iter().map(|message| FieldError::invalid(&path, name, message)));
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
    errors.extend(validate_rule_with_operations(rule, operations, path));
    errors
}
