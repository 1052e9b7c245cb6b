//! Determines the IP families of a service: `ipFamilies` and `ipFamilyPolicy`, from the request, the stored object and
//! the ranges of the cluster
//! (<https://kubernetes.io/docs/concepts/services-networking/dual-stack/#services>).

use super::change::normalize_cluster_ips;
use super::network::{IpFamily, ServiceNetwork};
use super::validation::validate_cluster_ips;
use super::view::{
    CLUSTER_IP, LOAD_BALANCER, NODE_PORT, NONE, PREFER_DUAL_STACK, REQUIRE_DUAL_STACK, SINGLE_STACK, Service,
    family_of,
};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupKind, Status, Value, ValueExt, json, meta::ObjectMeta,
};

/// A 422 status for a service.
pub(super) fn invalid(service: &Value, errors: ErrorList) -> Status {
    Status::invalid(&GroupKind::new("", "Service"), service.name(), &errors)
}

/// Sets `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` on a stored service from before these fields existed.
pub(super) fn complete_stored(network: &ServiceNetwork, service: &mut Value) {
    normalize_cluster_ips(service, None);
    if !service.needs_cluster_ip() || !service.ip_families().is_empty() {
        return;
    }
    let primary = network.primary_family();
    let families: Vec<IpFamily> = match (service.cluster_ip() == NONE, service.has_selector()) {
        (true, false) => vec![primary, primary.other()],
        (true, true) => vec![primary],
        (false, _) => service.cluster_ips().into_iter().filter_map(family_of).collect(),
    };
    let policy = match families.len() {
        0 => return,
        1 => SINGLE_STACK,
        _ => REQUIRE_DUAL_STACK,
    };
    set_families(service, &families);
    service.set("spec.ipFamilyPolicy", policy);
}

/// Sets the families and the policy of a service in a write, or returns a 422 status if they are invalid.
pub(super) fn init(network: &ServiceNetwork, service: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    if !service.needs_cluster_ip() || is_unchanged_prefer_dual_stack(service, old) {
        return Ok(());
    }
    if service.ip_family_policy().is_none() {
        let policy = match old.and_then(|old| old.ip_family_policy()) {
            Some(policy) => policy,
            // Without a selector, the families of the endpoints are not known.
            None if service.cluster_ip() == NONE && !service.has_selector() => REQUIRE_DUAL_STACK,
            None => SINGLE_STACK,
        };
        service.set("spec.ipFamilyPolicy", policy);
    }
    let errors = validate_cluster_ips(service, old);
    if !errors.is_empty() {
        return Err(invalid(service, errors));
    }
    let mut errors = match old {
        Some(old) => follow_downgrade(service, old),
        None => ErrorList::new(),
    };
    errors.extend(validate_single_stack(service));
    errors.extend(infer_from_addresses(network, service));
    if !errors.is_empty() {
        return Err(invalid(service, errors));
    }
    if service.cluster_ip() == NONE && !service.has_selector() {
        // A headless service without selector may have families without a range in the cluster.
        let first = first_family(service).unwrap_or(network.primary_family());
        let wants_more = service.ip_family_policy() != Some(SINGLE_STACK);
        match (service.ip_families().len(), wants_more) {
            (0 | 1, true) => set_families(service, &[first, first.other()]),
            (0, false) => set_families(service, &[first]),
            _ => {}
        }
        return Ok(());
    }
    let errors = validate_configured(network, service);
    if !errors.is_empty() {
        return Err(invalid(service, errors));
    }
    let first = first_family(service).unwrap_or(network.primary_family());
    if service.ip_families().is_empty() {
        set_families(service, &[first]);
    }
    let wants_more = service.ip_family_policy() != Some(SINGLE_STACK);
    if wants_more && service.ip_families().len() == 1 && network.is_dual_stack() {
        set_families(service, &[first, first.other()]);
    }
    Ok(())
}

/// Whether a `PreferDualStack` service keeps its families: addresses, families and policy are unchanged. A change of
/// the cluster's ranges alone does not change the service.
pub(super) fn is_unchanged_prefer_dual_stack(service: &Value, old: Option<&Value>) -> bool {
    let Some(old) = old else { return false };
    old.service_type() == service.service_type()
        && matches!(service.service_type(), CLUSTER_IP | NODE_PORT | LOAD_BALANCER)
        && service.ip_family_policy() == Some(PREFER_DUAL_STACK)
        && old.ip_family_policy().is_none_or(|policy| policy == PREFER_DUAL_STACK)
        && old.cluster_ips() == service.cluster_ips()
        && old.ip_families() == service.ip_families()
}

/// Drops the second address and family for `SingleStack`; rejects their removal with another policy.
fn follow_downgrade(service: &mut Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_reduced = |now: usize, before: usize| now != 0 && now < before;
    if service.ip_family_policy() == Some(SINGLE_STACK) {
        if old.cluster_ips() == service.cluster_ips() {
            truncate_to_one(service, "spec.clusterIPs");
        }
        if old.ip_families() == service.ip_families() {
            truncate_to_one(service, "spec.ipFamilies");
        }
        return errors;
    }
    let policy = policy_value(service);
    let path = FieldPath::new("spec").child("ipFamilyPolicy");
    if is_reduced(service.cluster_ips().len(), old.cluster_ips().len()) {
        let detail = "must be 'SingleStack' to release the secondary cluster IP";
        errors.push(FieldError::invalid(&path, policy.clone(), detail).of_named_type());
    }
    if is_reduced(service.ip_families().len(), old.ip_families().len()) {
        let detail = "must be 'SingleStack' to release the secondary IP family";
        errors.push(FieldError::invalid(&path, policy, detail).of_named_type());
    }
    errors
}

fn validate_single_stack(service: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if service.ip_family_policy() != Some(SINGLE_STACK) {
        return errors;
    }
    let path = FieldPath::new("spec").child("ipFamilyPolicy");
    let pairs = [(service.cluster_ips().len(), "cluster IPs"), (service.ip_families().len(), "IP families")];
    for (_, what) in pairs.into_iter().filter(|(length, _)| *length == 2) {
        let detail =
            format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
        errors.push(FieldError::invalid(&path, SINGLE_STACK, detail));
    }
    errors
}

/// Adds the families of the addresses beyond those in `ipFamilies`.
fn infer_from_addresses(network: &ServiceNetwork, service: &mut Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let ips = json!(service.cluster_ips());
    let mut families: Vec<Value> = service.items_at("spec.ipFamilies").to_vec();
    let known = families.len();
    for (index, ip) in service.cluster_ips().into_iter().enumerate() {
        let Some(family) = family_of(ip) else { break };
        if index < families.len() {
            continue;
        }
        if network.has_family(family) {
            families.push(family.as_str().into());
        } else {
            let path = FieldPath::new("spec").child("clusterIPs").index(index);
            let detail = format!("{} is not configured on this cluster", family.as_str());
            errors.push(FieldError::invalid(&path, ips.clone(), detail));
        }
    }
    if families.len() > known {
        service.set("spec.ipFamilies", families);
    }
    errors
}

fn validate_configured(network: &ServiceNetwork, service: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = FieldPath::new("spec");
    if service.ip_family_policy() == Some(REQUIRE_DUAL_STACK) && !network.is_dual_stack() {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(&spec.child("ipFamilyPolicy"), REQUIRE_DUAL_STACK, detail));
    }
    for (index, family) in service.ip_families().into_iter().enumerate() {
        if !IpFamily::parse(family).is_some_and(|family| network.has_family(family)) {
            let path = spec.child("ipFamilies").index(index);
            errors.push(FieldError::invalid(&path, family, "not configured on this cluster").of_named_type());
        }
    }
    errors
}

fn first_family(service: &Value) -> Option<IpFamily> {
    service.ip_families().first().and_then(|family| IpFamily::parse(family))
}

fn set_families(service: &mut Value, families: &[IpFamily]) {
    let names: Vec<&str> = families.iter().map(|family| family.as_str()).collect();
    service.set("spec.ipFamilies", json!(names));
}

fn policy_value(service: &Value) -> Value {
    service.at("spec.ipFamilyPolicy").cloned().unwrap_or_default()
}

fn truncate_to_one(service: &mut Value, path: &str) {
    if let Some(Value::Array(items)) = service.at_mut(path) {
        items.truncate(1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::PortRange;
    use super::*;
    use pintle_go_forms::Cidr;

    fn network(cidrs: &[&str]) -> ServiceNetwork {
        let cidrs = cidrs.iter().map(|text| Cidr::parse_sloppy(text).unwrap()).collect();
        ServiceNetwork::new(cidrs, PortRange::default()).unwrap()
    }

    fn check(cidrs: &[&str], spec: Value, old: Option<Value>, expected: Result<Value, &str>) {
        let with_type = |spec: Value| {
            let mut service = json!({"metadata": {"name": "a"}, "spec": spec});
            service.set_default("spec.type", "ClusterIP");
            service
        };
        let mut service = with_type(spec);
        let old = old.map(with_type);
        let result = init(&network(cidrs), &mut service, old.as_ref());
        match (result, expected) {
            (Ok(()), Ok(expected)) => {
                let families = json!([service["spec"]["ipFamilyPolicy"], service["spec"]["ipFamilies"]]);
                assert_eq!(families, expected);
            }
            (Err(status), Err(message)) => {
                let prefix = r#"Service "a" is invalid: "#;
                assert_eq!(status.message.strip_prefix(prefix), Some(message));
            }
            (result, expected) => panic!("{result:?} instead of {expected:?}: {service}"),
        }
    }

    #[test]
    fn new_services_get_families_that_the_cluster_has() {
        let v4 = &["10.0.0.0/24"];
        let dual = &["10.0.0.0/24", "fd00::/112"];
        check(v4, json!({}), None, Ok(json!(["SingleStack", ["IPv4"]])));
        check(
            v4,
            json!({"ipFamilyPolicy": "PreferDualStack"}),
            None,
            Ok(json!(["PreferDualStack", ["IPv4"]])),
        );
        check(
            v4,
            json!({"ipFamilyPolicy": "RequireDualStack"}),
            None,
            Err(
                r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services"#,
            ),
        );
        check(
            v4,
            json!({"ipFamilies": ["IPv6"]}),
            None,
            Err(r#"spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster"#),
        );
        check(
            v4,
            json!({"clusterIP": "fd00::5", "clusterIPs": ["fd00::5"]}),
            None,
            Err(r#"spec.clusterIPs[0]: Invalid value: ["fd00::5"]: IPv6 is not configured on this cluster"#),
        );
        check(dual, json!({}), None, Ok(json!(["SingleStack", ["IPv4"]])));
        check(
            dual,
            json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6"]}),
            None,
            Ok(json!(["PreferDualStack", ["IPv6", "IPv4"]])),
        );
        check(
            dual,
            json!({"ipFamilies": ["IPv4", "IPv6"]}),
            None,
            Err(
                r#"spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"#,
            ),
        );
    }

    #[test]
    fn headless_services_without_a_selector_have_both_families() {
        let v4 = &["10.0.0.0/24"];
        let headless = json!({"clusterIP": "None", "clusterIPs": ["None"]});
        check(v4, headless.clone(), None, Ok(json!(["RequireDualStack", ["IPv4", "IPv6"]])));
        let mut selecting = headless;
        selecting["selector"] = json!({"a": "b"});
        check(v4, selecting, None, Ok(json!(["SingleStack", ["IPv4"]])));
    }

    #[test]
    fn updates_keep_or_give_up_the_second_family() {
        let dual = &["10.0.0.0/24", "fd00::/112"];
        let both = json!({
            "clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2", "fd00::2"],
            "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"
        });
        let mut single = both.clone();
        single["ipFamilyPolicy"] = json!("SingleStack");
        check(dual, single, Some(both.clone()), Ok(json!(["SingleStack", ["IPv4"]])));
        let mut reduced = both.clone();
        reduced["clusterIPs"] = json!(["10.0.0.2"]);
        check(
            dual,
            reduced,
            Some(both.clone()),
            Err(
                r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be 'SingleStack' to release the secondary cluster IP"#,
            ),
        );
        let mut prefers = both.clone();
        prefers["ipFamilyPolicy"] = json!("PreferDualStack");
        check(
            &["10.0.0.0/24"],
            prefers.clone(),
            Some(prefers),
            Ok(json!(["PreferDualStack", ["IPv4", "IPv6"]])),
        );
    }
}
