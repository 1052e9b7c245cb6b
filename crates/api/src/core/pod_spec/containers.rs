//! Validates the containers of a spec, in all three lists.

use super::containers_of::{ContainerKind, is_restartable_init};
use super::mounts::{self, Volumes};
use super::resources::{self, ClaimNames};
use super::{PodValidationOptions, env, probes, security_context};
use crate::field_checks::{invalid_each, required, required_supported, supported};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::validation::{is_dns1123_label, is_valid_port_name, is_valid_port_num};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::HashSet;

/// The context that the validation of a container needs: the spec, and the valid volumes and claims in it.
pub(super) struct Surroundings<'a> {
    pub(super) spec: &'a Value,
    pub(super) volumes: Volumes<'a>,
    pub(super) claim_names: ClaimNames<'a>,
    pub(super) options: &'a PodValidationOptions,
}

impl Surroundings<'_> {
    fn grace_period(&self) -> Option<i64> {
        self.spec.i64_at("terminationGracePeriodSeconds")
    }

    fn os(&self) -> Option<&str> {
        self.spec.at("os").map(|os| os.str_at("name"))
    }
}

/// Validates the containers of a spec.
pub(super) fn validate(around: &Surroundings<'_>, path: &FieldPath) -> ErrorList {
    let mut errors = validate_regular(around, &path.child("containers"));
    errors.extend(validate_init(around, &path.child("initContainers")));
    errors.extend(validate_ephemeral(around, &path.child("ephemeralContainers")));
    errors
}

fn validate_regular(around: &Surroundings<'_>, path: &FieldPath) -> ErrorList {
    let containers = around.spec.items_at("containers");
    if containers.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    let mut names = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        errors.extend(validate_common(container, around, &path));
        if !names.insert(container.str_at("name")) {
            errors.push(FieldError::duplicate(&path.child("name"), container.str_at("name")));
        }
        errors.extend(validate_lifecycle_and_probes(container, around, &path));
        errors.extend(validate_restart_policy(container, ContainerKind::Regular, around.options, &path));
    }
    errors.extend(validate_host_ports(containers, path));
    errors
}

fn validate_init(around: &Surroundings<'_>, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut names: HashSet<&str> = names_in(around.spec, &[ContainerKind::Regular]);
    for (index, container) in around.spec.items_at("initContainers").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let item_path = path.index(index);
        errors.extend(validate_common(container, around, &item_path));
        errors.extend(validate_restart_policy(container, ContainerKind::Init, around.options, &item_path));
        let name = container.str_at("name");
        if names.contains(name) {
            errors.push(FieldError::duplicate(&item_path.child("name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        // Init containers run one after another, so their host ports conflict only within one container.
        errors.extend(validate_host_ports(std::slice::from_ref(container), path));
        if is_restartable_init(container) {
            errors.extend(validate_lifecycle_and_probes(container, around, &item_path));
        } else {
            errors.extend(validate_plain_init(container, around, &item_path));
        }
    }
    errors
}

/// Validates an init container that is not a sidecar. It runs to completion, so it has no probes or lifecycle hooks.
fn validate_plain_init(container: &Value, around: &Surroundings<'_>, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.at(field).is_some() {
            let detail = "may not be set for init containers without restartPolicy=Always";
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
    if !around.options.allow_restart_container_for_init {
        for (index, policy) in container.items_at("resizePolicy").iter().enumerate() {
            if is_enough(&errors) {
                break;
            }
            if policy.str_at("restartPolicy") == "RestartContainer" {
                let path = path.child("resizePolicy").index(index).child("restartPolicy");
                let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                errors.push(FieldError::invalid(&path, "RestartContainer", detail));
            }
        }
    }
    errors
}

/// Fields that ephemeral containers must not have: they have no guarantees of resources or restarts.
const NOT_FOR_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

fn validate_ephemeral(around: &Surroundings<'_>, path: &FieldPath) -> ErrorList {
    const CANNOT_BE_SET: &str = "cannot be set for an Ephemeral Container";
    let mut errors = ErrorList::new();
    let others = names_in(around.spec, &[ContainerKind::Regular, ContainerKind::Init]);
    let mut names = others.clone();
    for (index, container) in around.spec.items_at("ephemeralContainers").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        errors.extend(validate_common(container, around, &path));
        errors.extend(validate_image_of_pod(container, &path));
        if !names.insert(container.str_at("name")) {
            errors.push(FieldError::duplicate(&path.child("name"), container.str_at("name")));
        }
        let target = container.str_at("targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
        for field in NOT_FOR_EPHEMERAL {
            if container.at(field).is_some() {
                errors.push(FieldError::forbidden(&path.child(field), CANNOT_BE_SET));
            }
        }
        for (index, mount) in container.items_at("volumeMounts").iter().enumerate() {
            if is_enough(&errors) {
                break;
            }
            for field in ["subPath", "subPathExpr"] {
                if !mount.str_at(field).is_empty() {
                    let path = path.child("volumeMounts").index(index).child(field);
                    errors.push(FieldError::forbidden(&path, CANNOT_BE_SET));
                }
            }
        }
    }
    errors
}

fn names_in<'a>(spec: &'a Value, kinds: &[ContainerKind]) -> HashSet<&'a str> {
    let lists = kinds.iter().flat_map(|kind| spec.items_at(kind.field()));
    lists.map(|container| container.str_at("name")).collect()
}

/// Applies the rules that containers of all lists share.
fn validate_common(container: &Value, around: &Surroundings<'_>, path: &FieldPath) -> ErrorList {
    let name = container.str_at("name");
    let mut errors = match name {
        "" => required(container, "name", path),
        name => invalid_each(&path.child("name"), name, is_dns1123_label(name)),
    };
    errors.extend(required(container, "image", path));
    errors.extend(required_supported(
        container.str_at("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
        &path.child("terminationMessagePolicy"),
    ));
    errors.extend(validate_ports(container.items_at("ports"), &path.child("ports")));
    errors.extend(env::validate_env(container.items_at("env"), &path.child("env")));
    errors.extend(env::validate_env_from(container.items_at("envFrom"), &path.child("envFrom")));
    errors.extend(mounts::validate_mounts(container, &around.volumes, &path.child("volumeMounts")));
    errors.extend(mounts::validate_devices(container, &around.volumes, &path.child("volumeDevices")));
    errors.extend(validate_pull_policy(container.str_at("imagePullPolicy"), &path.child("imagePullPolicy")));
    errors.extend(resources::validate_container(
        container.at("resources").unwrap_or(&Value::Null),
        &around.claim_names,
        around.options,
        &path.child("resources"),
    ));
    errors.extend(validate_resize_policy(container, around.spec, &path.child("resizePolicy")));
    errors.extend(security_context::validate_container(container, around.spec, path));
    errors
}

/// Validates an image's pull policy.
pub(super) fn validate_pull_policy(policy: &str, path: &FieldPath) -> ErrorList {
    required_supported(policy, &["Always", "IfNotPresent", "Never"], path)
}

/// Rejects leading and trailing whitespace in a pod's image. Templates are not checked, as in the reference.
pub(crate) fn validate_image_of_pod(container: &Value, path: &FieldPath) -> ErrorList {
    let image = container.str_at("image");
    if image.trim() == image {
        return ErrorList::new();
    }
    vec![FieldError::invalid(&path.child("image"), image, "must not have leading or trailing whitespace")]
}

fn validate_ports(ports: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let name = port.str_at("name");
        if !name.is_empty() {
            let messages = is_valid_port_name(name);
            if !messages.is_empty() {
                errors.extend(invalid_each(&path.child("name"), name, messages));
            } else if !names.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
        match port.i64_at("containerPort").unwrap_or_default() {
            0 => errors.push(FieldError::required(&path.child("containerPort"), "")),
            number => errors.extend(validate_port_number(number, &path.child("containerPort"))),
        }
        if let Some(number) = port.i64_at("hostPort").filter(|number| *number != 0) {
            errors.extend(validate_port_number(number, &path.child("hostPort")));
        }
        let protocol = port.str_at("protocol");
        errors.extend(required_supported(protocol, &["SCTP", "TCP", "UDP"], &path.child("protocol")));
    }
    errors
}

fn validate_port_number(number: i64, path: &FieldPath) -> ErrorList {
    let messages = is_valid_port_num(number).into_iter();
    messages.map(|message| FieldError::invalid(path, number, message)).collect()
}

/// Rejects duplicate host ports, by protocol, host IP and number.
fn validate_host_ports(containers: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let ports_path = path.index(index).child("ports");
        for (index, port) in container.items_at("ports").iter().enumerate() {
            if is_enough(&errors) {
                break;
            }
            let host_port = port.i64_at("hostPort").unwrap_or_default();
            if host_port == 0 {
                continue;
            }
            let key = format!("{}/{}/{host_port}", port.str_at("protocol"), port.str_at("hostIP"));
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&ports_path.index(index).child("hostPort"), key));
            } else {
                seen.insert(key);
            }
        }
    }
    errors
}

fn validate_lifecycle_and_probes(
    container: &Value,
    around: &Surroundings<'_>,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(lifecycle) = container.at("lifecycle") {
        let path = path.child("lifecycle");
        errors.extend(probes::validate_lifecycle(lifecycle, around.grace_period(), around.os(), &path));
    }
    errors.extend(probes::validate_probes(container, path));
    errors
}

/// Validates a container's own restart policy and rules
/// (<https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-level-restart-policy>).
fn validate_restart_policy(
    container: &Value,
    kind: ContainerKind,
    options: &PodValidationOptions,
    path: &FieldPath,
) -> ErrorList {
    let rules = container.items_at("restartPolicyRules");
    let policy_path = path.child("restartPolicy");
    let rules_path = path.child("restartPolicyRules");
    let restarts_all = !options.refuses_restarts_of_all;
    if options.refuses_restart_rules {
        return validate_sidecar_policy(container, kind, path);
    }
    if !restarts_all && kind == ContainerKind::Init && is_restartable_init(container) {
        let detail = "restartPolicyRules are not allowed for init containers with restart policy Always";
        let is_refused = !rules.is_empty();
        return is_refused.then(|| FieldError::forbidden(&rules_path, detail)).into_iter().collect();
    }
    let mut errors = ErrorList::new();
    match container.at("restartPolicy").and_then(Value::as_str) {
        None if rules.is_empty() => return errors,
        None => {
            let detail = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(&policy_path, detail));
            if kind == ContainerKind::Init {
                return errors;
            }
        }
        Some(policy) => {
            errors.extend(supported(policy, &["Always", "Never", "OnFailure"], &policy_path));
        }
    }
    let actions: &[&str] = if restarts_all { &["Restart", "RestartAllContainers"] } else { &["Restart"] };
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&rules_path, rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = rules_path.index(index);
        let action = rule.str_at("action");
        errors.extend(supported(action, actions, &path.child("action")));
        let path = path.child("exitCodes");
        match rule.at("exitCodes") {
            Some(codes) => {
                let operator = codes.str_at("operator");
                errors.extend(supported(operator, &["In", "NotIn"], &path.child("operator")));
                let count = codes.items_at("values").len();
                if count > 255 {
                    errors.push(FieldError::too_many(&path.child("values"), count, 255));
                }
            }
            None => errors.push(FieldError::required(&path, "must be specified")),
        }
    }
    errors
}

/// Validates the restart policy of a container while only init containers may have one: that of sidecars.
fn validate_sidecar_policy(container: &Value, kind: ContainerKind, path: &FieldPath) -> ErrorList {
    let policy_path = path.child("restartPolicy");
    match (container.at("restartPolicy").and_then(Value::as_str), kind) {
        (Some(policy), ContainerKind::Init) => supported(policy, &["Always"], &policy_path),
        (None, ContainerKind::Init) if !container.items_at("restartPolicyRules").is_empty() => {
            let detail = "must specify restartPolicy when restart rules are used";
            vec![FieldError::required(&policy_path, detail)]
        }
        (Some(_), _) => vec![FieldError::forbidden(&policy_path, "may not be set for non-init containers")],
        (None, _) => ErrorList::new(),
    }
}

fn validate_resize_policy(container: &Value, spec: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for (index, policy) in container.items_at("resizePolicy").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let (resource, restart) = (policy.str_at("resourceName"), policy.str_at("restartPolicy"));
        if !seen.insert(resource) {
            errors.push(FieldError::duplicate(&path.index(index), resource).of_named_type());
        }
        errors.extend(required_supported(resource, &["cpu", "memory"], path));
        errors.extend(required_supported(restart, &["NotRequired", "RestartContainer"], path));
        if spec.str_at("restartPolicy") == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail).of_named_type());
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn restart_rules_follow_the_options() {
        let rule = |action: &str| json!([{"action": action, "exitCodes": {"operator": "In", "values": [1]}}]);
        let container =
            |policy: &str, action: &str| json!({"restartPolicy": policy, "restartPolicyRules": rule(action)});
        let all = PodValidationOptions::default();
        let own = PodValidationOptions { refuses_restarts_of_all: true, ..all.clone() };
        let none = PodValidationOptions { refuses_restart_rules: true, ..own.clone() };
        let (init, regular) = (ContainerKind::Init, ContainerKind::Regular);
        let rows = [
            (container("Never", "RestartAllContainers"), regular, &all, ""),
            (
                container("Never", "RestartAllContainers"),
                regular,
                &own,
                "c.restartPolicyRules[0].action: Unsupported value: \"RestartAllContainers\": supported values: \"Restart\"",
            ),
            (container("Never", "Restart"), regular, &own, ""),
            (container("Always", "Restart"), init, &all, ""),
            (
                container("Always", "Restart"),
                init,
                &own,
                "c.restartPolicyRules: Forbidden: restartPolicyRules are not allowed for init containers with restart \
                 policy Always",
            ),
            (
                json!({"restartPolicy": "Never"}),
                regular,
                &none,
                "c.restartPolicy: Forbidden: may not be set for non-init containers",
            ),
            (
                json!({"restartPolicy": "Never"}),
                init,
                &none,
                "c.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
            ),
            (json!({"restartPolicy": "Always"}), init, &none, ""),
            (json!({}), regular, &none, ""),
        ];
        for (container, kind, options, expected) in rows {
            let errors = validate_restart_policy(&container, kind, options, &FieldPath::new("c"));
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors.join(", "), expected, "{container}");
        }
    }
}
