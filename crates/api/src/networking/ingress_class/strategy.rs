//! The strategy of ingress classes.

use crate::networking::ingress::validate_reference;
use crate::{field_checks, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    meta::ObjectMeta,
    validation::{is_domain_prefixed_path, name_is_dns_label, validate_immutable_text},
};
use pintle_registry::{RequestContext, Strategy};

const MAX_CONTROLLER_LENGTH: usize = 250;

pub(super) struct IngressClassStrategy;

impl Strategy for IngressClassStrategy {
    fn set_defaults(&self, object: &mut Value) {
        if object.at("spec.parameters").is_some() {
            object.set_default("spec.parameters.scope", "Cluster");
        }
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.set_generation(1);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::count_generation(object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_immutable_text(object, old, &FieldPath::new("spec.controller")));
        errors.extend(validate(object));
        errors
    }
}

fn validate(class: &Value) -> ErrorList {
    let mut errors = rules::metadata(class, false);
    let path = FieldPath::new("spec").child("controller");
    let controller = class.str_at("spec.controller");
    if controller.len() > MAX_CONTROLLER_LENGTH {
        errors.push(FieldError::too_long(&path, MAX_CONTROLLER_LENGTH));
    }
    errors.extend(is_domain_prefixed_path(&path, controller));
    if let Some(parameters) = class.at("spec.parameters") {
        errors.extend(validate_parameters(parameters, &FieldPath::new("spec").child("parameters")));
    }
    errors
}

fn validate_parameters(parameters: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_reference(parameters, path);
    let namespace = parameters.at("namespace").and_then(Value::as_str);
    let namespace_path = path.child("namespace");
    let scope_path = path.child("scope");
    match (parameters.at("scope").and_then(Value::as_str), namespace) {
        (None, _) => errors.push(FieldError::required(&scope_path, "")),
        (Some("Namespace"), None) => {
            let detail = "`parameters.scope` is set to 'Namespace'";
            errors.push(FieldError::required(&namespace_path, detail));
        }
        (Some("Namespace"), Some(namespace)) => {
            let messages = name_is_dns_label(namespace, false);
            errors.extend(field_checks::invalid_each(&namespace_path, namespace, messages));
        }
        (Some("Cluster"), Some(_)) => {
            errors.push(FieldError::forbidden(&namespace_path, "`parameters.scope` is set to 'Cluster'"));
        }
        (Some("Cluster"), None) => {}
        (Some(other), _) => {
            errors.push(
                FieldError::not_supported(&scope_path, other, &["Cluster", "Namespace"]).of_plain_text(),
            );
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn classes_are_checked() {
        let check = |spec: Value, expected: &[&str]| {
            let mut class = json!({"metadata": {"name": "a"}, "spec": spec});
            IngressClassStrategy.set_defaults(&mut class);
            let errors = validate(&class);
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({"controller": "example.com/a", "parameters": {"kind": "K", "name": "n"}}), &[]);
        check(
            json!({"controller": "example.com/a", "parameters": {"scope": "Namespace"}}),
            &[
                "spec.parameters.kind: Required value",
                "spec.parameters.name: Required value",
                "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
            ],
        );
        check(
            json!({
                "controller": "example.com/a",
                "parameters": {"kind": "K", "name": "n", "namespace": "x", "scope": "Cluster"}
            }),
            &["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
        );
    }
}
