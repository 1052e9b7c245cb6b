//! Validates `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` together.

use crate::core::service::network::IpFamily;
use crate::core::service::view::{
    NONE, PREFER_DUAL_STACK, REQUIRE_DUAL_STACK, SINGLE_STACK, Service, family_of,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, json};
use std::collections::HashSet;

/// Validates the addresses and families: before allocation, and again with the other fields.
pub(in crate::core::service) fn validate_cluster_ips(service: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    if !service.needs_cluster_ip() {
        return errors;
    }
    let spec = FieldPath::new("spec");
    let path = spec.child("clusterIPs");
    let ips = service.cluster_ips();
    let shown = json!(ips);
    let about_all = |detail: &str| FieldError::invalid(&path, shown.clone(), detail);
    match (service.cluster_ip(), ips.first()) {
        ("", Some(_)) => errors.push(about_all("must be empty when `clusterIP` is not specified")),
        ("", None) => {}
        (_, None) => errors.push(FieldError::required(&path, "")),
        (ip, Some(first)) if ip != *first => {
            errors.push(about_all("first value must match `clusterIP`"));
        }
        _ => {}
    }
    errors.extend(validate_families(service, &spec));

    let old_ips: HashSet<&str> = old.map(|old| old.cluster_ips()).unwrap_or_default().into_iter().collect();
    let mut has_invalid = false;
    for (index, ip) in ips.iter().enumerate() {
        if index == 0 && *ip == NONE {
            if ips.len() > 1 {
                has_invalid = true;
                errors.push(about_all("'None' must be the first and only value"));
            }
            continue;
        }
        let malformed = crate::field_checks::legacy_ip(&path.index(index), ip, &old_ips);
        has_invalid |= !malformed.is_empty();
        errors.extend(malformed);
    }
    if ips.len() > 2 {
        errors.push(about_all("may only hold up to 2 values"));
    }
    if has_invalid {
        return errors;
    }
    let families: Vec<Option<IpFamily>> = ips.iter().map(|ip| family_of(ip)).collect();
    let has_both = [IpFamily::V4, IpFamily::V6].iter().all(|family| families.contains(&Some(*family)));
    if ips.len() > 1 && !has_both {
        errors.push(about_all("may specify no more than one IP for each IP family"));
    }
    if !service.is_headless() {
        errors.extend(validate_families_of_ips(service, &ips, &path));
    }
    errors
}

fn validate_families(service: &Value, spec: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, family) in service.ip_families().into_iter().enumerate() {
        let path = spec.child("ipFamilies").index(index);
        if IpFamily::parse(family).is_none() {
            errors.push(FieldError::not_supported(&path, family, &["IPv4", "IPv6"]));
        }
        if !seen.insert(family) {
            errors.push(FieldError::duplicate(&path, family).of_named_type());
        }
    }
    match service.ip_family_policy() {
        None | Some(SINGLE_STACK | PREFER_DUAL_STACK | REQUIRE_DUAL_STACK) => {}
        Some(policy) => {
            let supported = [PREFER_DUAL_STACK, REQUIRE_DUAL_STACK, SINGLE_STACK];
            let path = spec.child("ipFamilyPolicy");
            errors.push(FieldError::not_supported(&path, policy, &supported));
        }
    }
    errors
}

fn validate_families_of_ips(service: &Value, ips: &[&str], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, (family, ip)) in service.ip_families().into_iter().zip(ips).enumerate() {
        let Some(expected) = IpFamily::parse(family) else { continue };
        if family_of(ip) != Some(expected) {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid(&path.index(index), *ip, detail));
        }
    }
    errors
}
