//! Validates the immutable fields of services on update.

use super::traffic::validate_class;
use crate::core::service::view::{EXTERNAL_NAME, LOAD_BALANCER, SINGLE_STACK, Service};
use crate::rules;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, json};

pub(super) fn validate_transition(service: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if service.service_type() != EXTERNAL_NAME && old.service_type() != EXTERNAL_NAME {
        if !(service.is_headless() && old.is_headless()) {
            errors.extend(validate_addresses(service, old));
        }
        if !service.is_headless() && !old.is_headless() {
            errors.extend(validate_families(service, old));
        }
    }
    let is_load_balancer = old.service_type() == LOAD_BALANCER && service.service_type() == LOAD_BALANCER;
    let (class, old_class) =
        (rules::value_at(service, "spec.loadBalancerClass"), rules::value_at(old, "spec.loadBalancerClass"));
    if is_load_balancer && class != old_class {
        let path = FieldPath::new("spec").child("loadBalancerClass");
        errors.push(FieldError::invalid(&path, class.clone(), "may not change once set").of_named_type());
    }
    errors.extend(validate_class(service));
    if old.needs_health_check_node_port()
        && service.needs_health_check_node_port()
        && old.health_check_node_port() != service.health_check_node_port()
    {
        let path = FieldPath::new("spec").child("healthCheckNodePort");
        errors.push(FieldError::forbidden(&path, "field is immutable"));
    }
    errors
}

/// The first address is immutable. A second one may be added, and removed with `SingleStack`.
fn validate_addresses(service: &Value, old: &Value) -> ErrorList {
    let (now, before) = (service.cluster_ips(), old.cluster_ips());
    let path = FieldPath::new("spec").child("clusterIPs");
    let error = |index: usize, detail: &str| FieldError::invalid(&path.index(index), json!(now), detail);
    if now.len() == before.len() {
        let pairs = before.iter().zip(&now).enumerate();
        let changed = pairs.filter(|(_, (before, now))| before != now);
        return changed.map(|(index, _)| error(index, "may not change once set")).collect();
    }
    let mut errors = ErrorList::new();
    match (before.first(), now.first()) {
        (Some(_), None) => errors.push(error(0, "primary clusterIP can not be unset")),
        (Some(before), Some(now)) if before != now => errors.push(error(0, "may not change once set")),
        _ => {}
    }
    if now.len() < before.len() && now.len() == 1 {
        errors.extend(validate_downgrade(service, "clusterIP"));
    }
    errors
}

fn validate_families(service: &Value, old: &Value) -> ErrorList {
    let (now, before) = (service.ip_families(), old.ip_families());
    let path = FieldPath::new("spec").child("ipFamilies").index(0);
    let mut errors = ErrorList::new();
    if now.len() == before.len() {
        let changed = before.iter().zip(&now).filter(|(before, now)| before != now);
        errors.extend(changed.map(|_| FieldError::invalid(&path, json!(now), "may not change once set")));
        return errors;
    }
    if now.len() < before.len() && service.cluster_ips().is_empty() {
        errors.push(FieldError::invalid(&path, json!(now), "primary ipFamily can not be unset"));
    }
    if let (Some(first_before), Some(first_now)) = (before.first(), now.first())
        && first_before != first_now
    {
        let shown = json!(service.cluster_ips());
        errors.push(FieldError::invalid(&path, shown, "may not change once set"));
    }
    if now.len() < before.len() && now.len() == 1 {
        errors.extend(validate_downgrade(service, "ipFamily"));
    }
    errors
}

fn validate_downgrade(service: &Value, what: &str) -> Option<FieldError> {
    let is_single = service.ip_family_policy() == Some(SINGLE_STACK);
    let path = FieldPath::new("spec").child("ipFamilyPolicy");
    let policy = service.at("spec.ipFamilyPolicy").cloned().unwrap_or_default();
    let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
    (!is_single).then(|| FieldError::invalid(&path, policy, detail))
}
