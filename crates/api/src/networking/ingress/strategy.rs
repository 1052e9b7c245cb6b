//! The strategy of ingresses.

use super::rules_validation::{validate_spec, validate_tls_secret_name};
use crate::core::service::{load_balancer_warnings, validate_ingress_hostname};
use crate::{field_checks, rules};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::{RequestContext, Strategy};
use std::collections::HashSet;

/// The predecessor of `ingressClassName`.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const STATUS_ADDRESSES: &str = "status.loadBalancer.ingress";

pub(super) struct IngressStrategy;

impl Strategy for IngressStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.remove_at("status");
        object.set_generation(1);
    }

    fn validate(&self, context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = validate(context, object, None);
        let class = object.at("spec.ingressClassName").and_then(Value::as_str);
        if let (Some(annotation), Some(class)) = (object.annotation(CLASS_ANNOTATION), class)
            && annotation != class
        {
            let path = FieldPath::new("annotations").child(CLASS_ANNOTATION);
            let detail = "must match `ingressClassName` when both are specified";
            errors.push(FieldError::invalid(&path, annotation, detail));
        }
        errors
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        let is_annotated = object.annotation(CLASS_ANNOTATION).is_some();
        if !is_annotated || object.at("spec.ingressClassName").is_some() {
            return Vec::new();
        }
        vec![format!(
            "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
        )]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        rules::count_generation(object, old);
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate(context, object, Some(old)));
        errors
    }
}

/// The strategy of the `status` subresource: keeps the spec.
pub(super) struct IngressStatusStrategy;

impl Strategy for IngressStatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        let old_ips: HashSet<&str> =
            old.items_at(STATUS_ADDRESSES).iter().map(|address| address.str_at("ip")).collect();
        for (index, address) in object.items_at(STATUS_ADDRESSES).iter().enumerate() {
            let path = FieldPath::new(STATUS_ADDRESSES).index(index);
            let ip = address.str_at("ip");
            if !ip.is_empty() {
                errors.extend(field_checks::legacy_ip(&path.child("ip"), ip, &old_ips));
            }
            errors.extend(validate_ingress_hostname(address, &path));
        }
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        load_balancer_warnings(object, STATUS_ADDRESSES)
    }
}

fn validate(context: &RequestContext<'_>, ingress: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = rules::metadata(ingress, true);
    // Ratcheting: values that older servers accepted are kept.
    let allows_secret_name = old.is_some_and(|old| {
        let mut names = old.items_at("spec.tls").iter().map(|tls| tls.str_at("secretName"));
        names.any(|name| !validate_tls_secret_name(name).is_empty())
    });
    errors.extend(validate_spec(ingress, allows_secret_name, old, context.empty_fields));
    let class = ingress.at("spec.ingressClassName").and_then(Value::as_str);
    if let Some(class) = class {
        let path = FieldPath::new("spec").child("ingressClassName");
        let messages = pintle_machinery::validation::name_is_dns_subdomain(class, false);
        errors.extend(field_checks::invalid_each(&path, class, messages));
    }
    errors
}
