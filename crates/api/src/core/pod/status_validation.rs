//! Validates the status of a pod.

use crate::core::pod_spec::containers_of::is_restartable_init;
use crate::core::pod_spec::{PodValidationOptions, annotations};
use crate::field_checks::{invalid_each, legacy_ip, supported};
use crate::resource_list::{is_native, quantity};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::parse_ip_sloppy;
use pintle_machinery::validation::{
    FIELD_IMMUTABLE_ERROR, is_dns1123_label, is_dns1123_subdomain, is_qualified_name, is_valid_group_id,
    is_valid_user_id, validate_object_meta_update,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::{HashMap, HashSet};

/// The maximum length of the reference of an image volume, in bytes.
const MAX_IMAGE_REFERENCE: usize = 256;
const NON_NEGATIVE: &str = "must be a non-negative integer";

/// Validates an update of the status.
pub(super) fn validate_status_update(new: &Value, old: &Value) -> ErrorList {
    let options = PodValidationOptions::for_pod(Some(old));
    let metadata_path = FieldPath::new("metadata");
    let mut errors = validate_object_meta_update(new, old, &metadata_path);
    let spec = new.at("spec").unwrap_or(&Value::Null);
    errors.extend(annotations::validate_annotation_updates(
        new.map_at("metadata.annotations"),
        old.map_at("metadata.annotations"),
        spec,
        &metadata_path.child("annotations"),
        &options,
    ));
    let path = FieldPath::new("status");
    errors.extend(validate_conditions(new.items_at("status.conditions"), &path.child("conditions")));
    errors.extend(validate_scalars(new, old, &path));
    let old_spec = old.at("spec").unwrap_or(&Value::Null);
    let has_rules = !options.refuses_restart_rules;
    for (list, containers) in
        [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")]
    {
        let by_name = first_by_name(old_spec.items_at(containers));
        let restarts = |name: &str, exit_code: i64| match by_name.get(name) {
            Some(container) if has_rules => should_restart(container, old_spec, exit_code),
            None if has_rules => false,
            Some(container) if containers == "initContainers" && is_restartable_init(container) => true,
            _ => should_restart(&Value::Null, old_spec, exit_code),
        };
        if !(has_rules && !options.refuses_restarts_of_all && may_restart_all(old_spec)) {
            errors.extend(validate_transitions(new, old, list, &path, restarts));
        }
    }
    errors.extend(validate_transitions(new, old, "ephemeralContainerStatuses", &path, |_, _| false));
    errors.extend(validate_claim_statuses(new, &path.child("resourceClaimStatuses")));
    errors.extend(validate_extended_claim(new, spec, &path.child("extendedResourceClaimStatus")));
    errors.extend(validate_node_resource_claims(new, &path.child("nodeAllocatableResourceClaimStatuses")));
    errors.extend(validate_ips(new, old, "podIPs", &path));
    errors.extend(validate_host_ips(new, old, &path));
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        errors.extend(validate_users(new, spec, list, &path.child(list)));
    }
    for (list, containers) in
        [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")]
    {
        let statuses = new.items_at(&format!("status.{list}"));
        errors.extend(validate_resource_health(statuses, spec.items_at(containers), &path.child(list)));
    }
    for (index, status) in new.items_at("status.ephemeralContainerStatuses").iter().enumerate() {
        if !status.items_at("allocatedResourcesStatus").is_empty() {
            let path =
                path.child("ephemeralContainerStatuses").index(index).child("allocatedResourcesStatus");
            errors.push(FieldError::forbidden(&path, "must not be specified in container status"));
        }
    }
    if enabled(Gate::ImageVolumeWithDigest) {
        for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
            errors
                .extend(validate_volume_statuses(new.items_at(&format!("status.{list}")), &path.child(list)));
        }
    }
    errors
}

/// Validates the images of mounted image volumes.
fn validate_volume_statuses(statuses: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index).child("volumeMounts");
        for (index, mount) in status.items_at("volumeMounts").iter().enumerate() {
            let Some(image) = mount.at("volumeStatus.image").filter(|image| !image.is_null()) else {
                continue;
            };
            let path = path.index(index).child("volumeStatus").child("imageVolumeStatus").child("imageRef");
            let reference = image.str_at("imageRef");
            if reference.is_empty() {
                errors.push(FieldError::required(&path, "imageRef must not be empty"));
            }
            if reference.len() > MAX_IMAGE_REFERENCE {
                errors.push(FieldError::too_long(&path, MAX_IMAGE_REFERENCE));
            }
        }
    }
    errors
}

/// Validates the resources of nodes that claims of the pod have taken.
fn validate_node_resource_claims(pod: &Value, path: &FieldPath) -> ErrorList {
    let statuses = pod.items_at("status.nodeAllocatableResourceClaimStatuses");
    let mut errors = ErrorList::new();
    if statuses.is_empty() {
        return errors;
    }
    let claims =
        pod.items_at("spec.resourceClaims").iter().chain(pod.items_at("status.resourceClaimStatuses"));
    let claims: HashSet<&str> =
        claims.filter_map(|claim| claim.at("resourceClaimName").and_then(Value::as_str)).collect();
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index);
        let (name, name_path) = (status.str_at("resourceClaimName"), path.child("resourceClaimName"));
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, "must not be empty"));
        }
        if !claims.contains(name) {
            errors.push(FieldError::invalid(&name_path, name, "no mapping found in pod reference"));
        }
        if status.items_at("containers").is_empty() {
            errors.push(FieldError::required(&path.child("containers"), "must not be empty"));
        }
        let resources = status.map_at("resources");
        let resources_path = path.child("resources");
        if resources.is_empty() {
            errors.push(FieldError::required(&resources_path, "must not be empty"));
        }
        for (resource, amount) in resources {
            let path = resources_path.key(resource);
            if !is_native(resource) {
                let detail = "must be a node allocatable resource name";
                errors.push(FieldError::invalid(&path, resource.as_str(), detail).of_named_type());
            }
            let amount = quantity(amount);
            if amount.sign() < 0 {
                errors.push(FieldError::invalid(&path, amount.to_string(), "must be non-negative"));
            }
        }
    }
    errors
}

fn validate_conditions(conditions: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let generation = condition.i64_at("observedGeneration").unwrap_or_default();
        if generation < 0 {
            errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, NON_NEGATIVE));
        }
        let condition_type = condition.str_at("type");
        if !matches!(condition_type, "PodScheduled" | "Ready" | "Initialized") {
            let messages = is_qualified_name(condition_type);
            errors.extend(invalid_each(&path.child("Type"), condition_type, messages));
        }
    }
    errors
}

fn validate_scalars(new: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if new.str_at("spec.nodeName") != old.str_at("spec.nodeName") {
        errors.push(FieldError::forbidden(&path.child("nodeName"), "may not be changed directly"));
    }
    let nominated = new.str_at("status.nominatedNodeName");
    if !nominated.is_empty() && nominated != old.str_at("status.nominatedNodeName") {
        let path = path.child("nominatedNodeName");
        errors.extend(invalid_each(&path, nominated, is_dns1123_subdomain(nominated)));
        if enabled(Gate::ClearingNominatedNodeNameAfterBinding) && !old.str_at("spec.nodeName").is_empty() {
            let detail = "may not be set on pods that are already bound to a node";
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    let generation = new.i64_at("status.observedGeneration").unwrap_or_default();
    if generation < 0 {
        errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, NON_NEGATIVE));
    }
    let class = new.str_at("status.qosClass");
    if class != old.str_at("status.qosClass") {
        errors.push(FieldError::invalid(&path.child("qosClass"), class, FIELD_IMMUTABLE_ERROR));
    }
    errors
}

/// Rejects the restart of a terminated container whose restart policy does not allow it.
fn validate_transitions(
    new: &Value,
    old: &Value,
    list: &str,
    path: &FieldPath,
    may_restart: impl Fn(&str, i64) -> bool,
) -> ErrorList {
    let statuses = format!("status.{list}");
    let mut errors = ErrorList::new();
    let running = new.items_at(&statuses).iter().filter(|new| new.at("state.terminated").is_none());
    let running: HashSet<&str> = running.map(|new| new.str_at("name")).collect();
    for (index, old) in old.items_at(&statuses).iter().enumerate() {
        let Some(terminated) = old.at("state.terminated") else { continue };
        let name = old.str_at("name");
        let exit_code = terminated.i64_at("exitCode").unwrap_or_default();
        if running.contains(name) && !may_restart(name, exit_code) {
            let path = path.child(list).index(index).child("state");
            errors.push(FieldError::forbidden(&path, "may not be transitioned to non-terminated state"));
        }
    }
    errors
}

/// Whether the restart rules of any container restart all containers.
fn may_restart_all(spec: &Value) -> bool {
    let containers = spec.items_at("initContainers").iter().chain(spec.items_at("containers"));
    containers
        .flat_map(|container| container.items_at("restartPolicyRules"))
        .any(|rule| rule.str_at("action") == "RestartAllContainers")
}

/// Whether a container with this exit code restarts: by its own rules, then its own policy, then the pod's policy.
fn should_restart(container: &Value, spec: &Value, exit_code: i64) -> bool {
    let by_policy = |policy: &str| match policy {
        "OnFailure" => Some(exit_code != 0),
        "Never" => Some(false),
        "Always" => Some(true),
        _ => None,
    };
    if let Some(policy) = container.at("restartPolicy").and_then(Value::as_str) {
        let matches = |rule: &&Value| {
            let contains = rule.items_at("exitCodes.values").iter().any(|v| v.as_i64() == Some(exit_code));
            match rule.str_at("exitCodes.operator") {
                "In" => contains,
                "NotIn" => !contains,
                _ => false,
            }
        };
        let rule = container.items_at("restartPolicyRules").iter().find(matches);
        let restarts = |rule: &Value| match rule.str_at("action") {
            "Restart" => true,
            "RestartAllContainers" => enabled(Gate::RestartAllContainersOnContainerExits),
            _ => false,
        };
        if rule.is_some_and(restarts) {
            return true;
        }
        if let Some(restarts) = by_policy(policy) {
            return restarts;
        }
    }
    by_policy(spec.str_at("restartPolicy")).unwrap_or(true)
}

fn validate_claim_statuses(pod: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    let claims = first_by_name(pod.items_at("spec.resourceClaims"));
    for (index, status) in pod.items_at("status.resourceClaimStatuses").iter().enumerate() {
        let path = path.index(index);
        let name = status.str_at("name");
        if !claims.contains_key(name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&path.child("name"), name, detail).of_named_type());
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if let Some(claim) = status.at("resourceClaimName").and_then(Value::as_str) {
            errors.extend(invalid_each(&path.child("resourceClaimName"), claim, is_dns1123_subdomain(claim)));
        }
    }
    errors
}

fn validate_extended_claim(pod: &Value, spec: &Value, path: &FieldPath) -> ErrorList {
    let Some(status) = pod.at("status.extendedResourceClaimStatus") else { return ErrorList::new() };
    let containers: HashMap<&str, &Value> = ["initContainers", "containers"]
        .iter()
        .flat_map(|list| spec.items_at(list))
        .map(|container| (container.str_at("name"), container))
        .collect();
    let mappings_path = path.child("requestMappings");
    let mappings = status.items_at("requestMappings");
    let mut errors = ErrorList::new();
    if mappings.is_empty() {
        errors.push(FieldError::required(&mappings_path, "at least one request mapping is required"));
    }
    let mut seen = HashSet::new();
    for (index, mapping) in mappings.iter().enumerate() {
        const FIELDS: [&str; 3] = ["containerName", "resourceName", "requestName"];
        let item_path = mappings_path.index(index);
        let [container, resource, request] = FIELDS.map(|field| mapping.str_at(field));
        match containers.get(container) {
            Some(found) if !found.map_at("resources.requests").contains_key(resource) => {
                let detail = "must match the extended resource name of an entry in \
                              spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.push(FieldError::invalid(&item_path.child("resourceName"), resource, detail));
            }
            Some(_) => {}
            None => {
                let detail =
                    "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.push(FieldError::invalid(&item_path.child("containerName"), container, detail));
            }
        }
        errors.extend(invalid_each(&path.child("requestName"), request, is_dns1123_label(request)));
        if !seen.insert((container, resource, request)) {
            for (field, value) in FIELDS.into_iter().zip([container, resource, request]) {
                errors.push(FieldError::duplicate(&item_path.child(field), value));
            }
        }
    }
    let name_path = path.child("resourceClaimName");
    match status.str_at("resourceClaimName") {
        "" => errors.push(FieldError::required(&name_path, "")),
        name => errors.extend(invalid_each(&name_path, name, is_dns1123_subdomain(name))),
    }
    errors
}

/// Validates the addresses of a pod or its host: at most one of each family.
fn validate_ips(new: &Value, old: &Value, list: &str, path: &FieldPath) -> ErrorList {
    let path = path.child(list);
    let list = format!("status.{list}");
    let ips = |pod: &'_ Value| -> Vec<String> {
        pod.items_at(&list).iter().map(|item| item.str_at("ip").to_owned()).collect()
    };
    let (given, known) = (ips(new), ips(old));
    let known: HashSet<&str> = known.iter().map(String::as_str).collect();
    let mut errors = ErrorList::new();
    for (index, ip) in given.iter().enumerate() {
        errors.extend(legacy_ip(&path.index(index), ip, &known));
    }
    if given.len() < 2 {
        return errors;
    }
    let families: Option<Vec<bool>> =
        given.iter().map(|ip| parse_ip_sloppy(ip).map(|ip| ip.is_ipv6())).collect();
    match families {
        None => {
            let invalid = given.iter().find(|ip| parse_ip_sloppy(ip).is_none());
            let position = given.iter().position(|ip| Some(ip) == invalid).unwrap_or_default();
            let invalid = invalid.map(String::as_str).unwrap_or_default();
            let detail =
                format!("failed to check for dual stack with error:invalid IP[{position}]: {invalid}");
            errors.push(FieldError::internal(&path, detail));
            errors.push(one_per_family(&path, new.items_at(&list)));
        }
        Some(families) if families.len() > 2 || families.iter().all(|v6| Some(v6) == families.first()) => {
            errors.push(one_per_family(&path, new.items_at(&list)));
        }
        Some(_) => {}
    }
    errors
}

/// The error about addresses of one family.
fn one_per_family(path: &FieldPath, ips: &[Value]) -> FieldError {
    let detail = "may specify no more than one IP for each IP family";
    pintle_internal_form::show(FieldError::invalid(path, ips.to_vec(), detail), "[]core.PodIP")
}

fn validate_host_ips(new: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    let Some(first) = new.items_at("status.hostIPs").first() else { return ErrorList::new() };
    let mut errors = ErrorList::new();
    if new.str_at("status.hostIP") != first.str_at("ip") {
        let path = path.child("hostIPs").index(0).child("ip");
        errors.push(FieldError::invalid(&path, first.str_at("ip"), "must be equal to `hostIP`"));
    }
    errors.extend(validate_ips(new, old, "hostIPs", path));
    errors
}

fn validate_users(pod: &Value, spec: &Value, list: &str, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, status) in pod.items_at(&format!("status.{list}")).iter().enumerate() {
        let Some(user) = status.at("user.linux") else { continue };
        let path = path.index(index).child("user").child("linux");
        if spec.str_at("os.name") == "windows" {
            errors.push(FieldError::forbidden(&path, "cannot be set for a windows pod"));
            continue;
        }
        let mut check = |path: &FieldPath, id: i64, messages: Vec<String>| {
            errors.extend(messages.into_iter().map(|message| FieldError::invalid(path, id, message)));
        };
        let uid = user.i64_at("uid").unwrap_or_default();
        check(&path.child("uid"), uid, is_valid_user_id(uid));
        let gid = user.i64_at("gid").unwrap_or_default();
        check(&path.child("gid"), gid, is_valid_group_id(gid));
        for (index, group) in user.items_at("supplementalGroups").iter().enumerate() {
            let gid = group.as_i64().unwrap_or_default();
            check(&path.child("supplementalGroups").index(index), gid, is_valid_group_id(gid));
        }
    }
    errors
}

/// Validates the health of the devices allocated to containers.
fn validate_resource_health(statuses: &[Value], containers: &[Value], path: &FieldPath) -> ErrorList {
    const MAX_MESSAGE_LENGTH: usize = 1024;
    let mut errors = ErrorList::new();
    let containers = first_by_name(containers);
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index).child("allocatedResourcesStatus");
        let container = containers.get(status.str_at("name")).copied();
        let claims = container.map(claimed).unwrap_or_default();
        for (index, allocated) in status.items_at("allocatedResourcesStatus").iter().enumerate() {
            let path = path.index(index);
            let name = allocated.str_at("name");
            if let Some(container) = container
                && let Some(detail) = unknown_resource(container, &claims, name)
            {
                errors.push(FieldError::invalid(&path.child("name"), name, detail).of_named_type());
            }
            let mut seen = HashSet::new();
            for (index, resource) in allocated.items_at("resources").iter().enumerate() {
                let path = path.child("resources").index(index);
                let health = resource.str_at("health");
                errors.extend(supported(health, &["Healthy", "Unhealthy", "Unknown"], &path.child("health")));
                match resource.at("message").and_then(Value::as_str) {
                    Some("") => {
                        let detail = "must be non-empty if specified";
                        errors.push(FieldError::required(&path.child("message"), detail));
                    }
                    Some(message) if message.len() > MAX_MESSAGE_LENGTH => {
                        errors.push(FieldError::too_long(&path.child("message"), MAX_MESSAGE_LENGTH));
                    }
                    _ => {}
                }
                let id = resource.str_at("resourceID");
                if !seen.insert(id) {
                    errors.push(FieldError::duplicate(&path.child("resourceID"), id).of_named_type());
                }
            }
        }
    }
    errors
}

/// Indexes items by name; the first item of a name wins.
fn first_by_name(items: &[Value]) -> HashMap<&str, &Value> {
    items.iter().rev().map(|item| (item.str_at("name"), item)).collect()
}

/// The resource claims of a container, in the format of its status: `claim` or `claim/request`.
fn claimed(container: &Value) -> HashSet<String> {
    let claims = container.items_at("resources.claims").iter();
    claims
        .map(|claim| match claim.str_at("request") {
            "" => claim.str_at("name").to_owned(),
            request => format!("{}/{request}", claim.str_at("name")),
        })
        .collect()
}

fn unknown_resource(container: &Value, claims: &HashSet<String>, name: &str) -> Option<&'static str> {
    match name.strip_prefix("claim:") {
        Some(wanted) => {
            let found = claims.contains(wanted);
            (!found).then_some(
                "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or \
                 'claim:<claimName>' if request is empty",
            )
        }
        None => {
            let found = container.map_at("resources.requests").contains_key(name);
            (!found).then_some("must match one of the container's resource requests")
        }
    }
}
