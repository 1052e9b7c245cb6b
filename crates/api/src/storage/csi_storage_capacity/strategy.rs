//! The strategy of storage capacities: class and topology are immutable, the capacity changes.

use crate::core::pod_spec::deprecated_node_label;
use crate::field_checks::invalid_each;
use crate::resource_list::quantity;
use crate::rules;
use pintle_internal_form::show;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{
        LabelSelectorOptions, is_dns1123_subdomain, label_selector_has_invalid_label_value,
        validate_label_selector,
    },
};
use pintle_registry::{RequestContext, Strategy};

pub(super) struct CapacityStrategy;

impl Strategy for CapacityStrategy {
    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object, LabelSelectorOptions::default())
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let had_invalid = label_selector_has_invalid_label_value(rules::value_at(old, "nodeTopology"));
        let options = LabelSelectorOptions { allow_invalid_label_value: had_invalid, ..Default::default() };
        let mut errors = validate(object, options);
        errors.extend(rules::metadata_update(object, old));
        for field in ["nodeTopology", "storageClassName"] {
            if rules::differs(object, old, field) {
                let invalid =
                    |value| FieldError::invalid(&FieldPath::new(field), value, "field is immutable");
                errors.push(match field {
                    // An empty name is a name.
                    "storageClassName" => invalid(object.str_at(field).into()),
                    _ => show(invalid(rules::value_at(object, field).clone()), "*@LabelSelector"),
                });
            }
        }
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings(object)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

fn warnings(capacity: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let path = FieldPath::new("nodeTopology");
    for (index, expression) in capacity.items_at("nodeTopology.matchExpressions").iter().enumerate() {
        let key = expression.str_at("key");
        if let Some(message) = deprecated_node_label(key) {
            let field = path.child("matchExpressions").index(index).child("key");
            warnings.push(format!("{field}: {key} is {message}"));
        }
    }
    for label in capacity.map_at("nodeTopology.matchLabels").keys() {
        if let Some(message) = deprecated_node_label(label) {
            warnings.push(format!("{}: {message}", path.child("matchLabels").child(label)));
        }
    }
    warnings
}

fn validate(capacity: &Value, options: LabelSelectorOptions) -> ErrorList {
    let mut errors = rules::metadata(capacity, true);
    if let Some(topology) = capacity.at("nodeTopology") {
        errors.extend(validate_label_selector(topology, options, &FieldPath::new("nodeTopology")));
    }
    let class = capacity.str_at("storageClassName");
    errors.extend(invalid_each(&FieldPath::new("storageClassName"), class, is_dns1123_subdomain(class)));
    if let Some(amount) = capacity.at("capacity").map(quantity)
        && amount.sign() < 0
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&FieldPath::new("capacity"), amount.to_string(), detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_registry::testing::{MemoryRegistry, with_context};

    #[test]
    fn a_changed_topology_is_shown_in_the_order_of_its_type() {
        let capacity = |topology: Value| json!({"metadata": {"name": "c", "namespace": "n", "resourceVersion": "1"}, "storageClassName": "s", "nodeTopology": topology});
        let old = capacity(json!({"matchLabels": {"a": "b"}}));
        let new = capacity(
            json!({"matchExpressions": [{"key": "k", "operator": "Exists"}], "matchLabels": {"a": "b"}}),
        );
        let errors = with_context(&MemoryRegistry::default(), "n", false, |context| {
            CapacityStrategy.validate_update(context, &new, &old)
        });
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                r#"nodeTopology: Invalid value: {"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"Exists"}]}: field is immutable"#
            ]
        );
    }
}
