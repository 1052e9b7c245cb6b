//! Warnings about accepted pods and templates.

use super::annotations::{SECCOMP_CONTAINER_PREFIX, SECCOMP_POD};
use super::containers_of::{containers_with_path, has_annotations};
use super::resources::is_whole;
use super::{app_armor, overlapping_paths};
use crate::field_checks::texts;
use crate::resource_list::quantity;
use pintle_go_forms::quote;
use pintle_machinery::validation::{is_valid_label_value, semantically_equal, warnings_for_ip};
use pintle_machinery::{FieldPath, Value, ValueExt, meta::ObjectMeta};
use std::collections::{HashMap, HashSet};

/// The warnings about a pod, for which `path` is empty, or a template. They do not depend on the stored object.
pub fn warnings(object: &Value, _old: Option<&Value>, path: &FieldPath) -> Vec<String> {
    let null = Value::Null;
    let spec = object.at("spec").unwrap_or(&null);
    let spec_path = path.child("spec");
    let annotations_path = path.child("metadata").child("annotations");
    let mut warnings = node_label_warnings(spec, &spec_path);
    warnings.extend(spread_warnings(spec, &spec_path));
    for (annotation, message) in DEPRECATED_ANNOTATIONS {
        if object.annotation(annotation).is_some() {
            warnings.push(format!("{}: {message}", annotations_path.key(annotation)));
        }
    }
    warnings.extend(volume_warnings(spec, &spec_path.child("volumes")));
    warnings.extend(overlapping_paths::warnings(spec.items_at("volumes")));
    warnings.extend(duplicate_warnings(spec, &spec_path));
    warnings.extend(fraction_warnings(spec, "overhead", &spec_path.child("overhead")));
    if spec.at("securityContext.seccompProfile").is_none() && object.annotation(SECCOMP_POD).is_some() {
        warnings.push(seccomp_warning(&annotations_path.key(SECCOMP_POD)));
    }
    let annotations = object.map_at("metadata.annotations");
    let has_profiles = [SECCOMP_CONTAINER_PREFIX, app_armor::ANNOTATION_PREFIX]
        .iter()
        .any(|prefix| has_annotations(annotations, prefix));
    for (_, container_path, container) in containers_with_path(spec, &spec_path) {
        if has_profiles {
            warnings.extend(profile_warnings(object, container, path));
        }
        let resources_path = container_path.child("resources");
        for resource in BYTE_RESOURCES {
            for (field, list) in [("limits", "resources.limits"), ("requests", "resources.requests")] {
                warnings.extend(fraction_warning(container, list, resource, &resources_path.child(field)));
            }
        }
        warnings.extend(env_warnings(container.items_at("env"), &container_path.child("env")));
    }
    warnings.extend(port_warnings(spec, &spec_path));
    warnings.extend(port_name_warnings(spec, &spec_path));
    if spec.i64_at("terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let field = spec_path.child("terminationGracePeriodSeconds");
        warnings.push(format!("{field}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    warnings.extend(affinity_warnings(spec, &spec_path.child("affinity")));
    let nameservers = spec_path.child("dnsConfig").child("nameservers");
    for (index, nameserver) in texts(spec.items_at("dnsConfig.nameservers")).enumerate() {
        warnings.extend(warnings_for_ip(&nameservers.index(index), nameserver));
    }
    for (index, alias) in spec.items_at("hostAliases").iter().enumerate() {
        let field = spec_path.child("hostAliases").index(index).child("ip");
        warnings.extend(warnings_for_ip(&field, alias.str_at("ip")));
    }
    warnings
}

const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// The deprecation warning for a node label, if a newer one has replaced it.
pub(crate) fn deprecated_node_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn node_label_warnings(spec: &Value, path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    for key in spec.map_at("nodeSelector").keys() {
        if let Some(message) = deprecated_node_label(key) {
            warnings.push(format!("{}: {message}", path.child("nodeSelector").key(key)));
        }
    }
    let Some(affinity) = spec.at("affinity.nodeAffinity") else { return warnings };
    let path = path.child("affinity").child("nodeAffinity");
    let terms = affinity.items_at(&format!("{REQUIRED}.nodeSelectorTerms"));
    for (index, term) in terms.iter().enumerate() {
        let path = path.child(REQUIRED).child("nodeSelectorTerms").index(index);
        warnings.extend(node_term_warnings(term, false, &path));
    }
    for (index, term) in affinity.items_at(PREFERRED).iter().enumerate() {
        if let Some(preference) = term.at("preference") {
            let path = path.child(PREFERRED).index(index).child("preference");
            warnings.extend(node_term_warnings(preference, true, &path));
        }
    }
    warnings
}

/// The warnings about one term of a node selector.
pub(crate) fn node_term_warnings(term: &Value, checks_values: bool, path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, expression) in term.items_at("matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let key = expression.str_at("key");
        if let Some(message) = deprecated_node_label(key) {
            warnings.push(format!("{}: {key} is {message}", path.child("key")));
        }
        if !checks_values {
            continue;
        }
        for (index, value) in texts(expression.items_at("values")).enumerate() {
            for message in is_valid_label_value(value) {
                let field = path.child("values").index(index);
                warnings.push(format!("{field}: {value} is invalid, {message}"));
            }
        }
    }
    warnings
}

const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";

fn spread_warnings(spec: &Value, path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, constraint) in spec.items_at("topologySpreadConstraints").iter().enumerate() {
        let path = path.child("topologySpreadConstraints").index(index);
        let key = constraint.str_at("topologyKey");
        if let Some(message) = deprecated_node_label(key) {
            warnings.push(format!("{}: {key} is {message}", path.child("topologyKey")));
        }
        if constraint.at("labelSelector").is_none() {
            warnings.push(format!("{}: {NULL_SELECTOR}", path.child("labelSelector")));
        }
    }
    warnings
}

fn affinity_warnings(spec: &Value, path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(affinity) = spec.at("affinity") else { return warnings };
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = affinity.at(field) else { continue };
        for (list, term) in [(REQUIRED, ""), (PREFERRED, "podAffinityTerm")] {
            for (index, item) in terms.items_at(list).iter().enumerate() {
                let mut path = path.child(field).child(list).index(index);
                let selector = match term {
                    "" => item.at("labelSelector"),
                    term => {
                        path = path.child(term);
                        item.at(term).and_then(|term| term.at("labelSelector"))
                    }
                };
                if selector.is_none() {
                    warnings.push(format!("{}: {NULL_SELECTOR}", path.child("labelSelector")));
                }
            }
        }
    }
    warnings
}

const DEPRECATED_VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

fn volume_warnings(spec: &Value, path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, volume) in spec.items_at("volumes").iter().enumerate() {
        let path = path.index(index);
        for (source, message) in DEPRECATED_VOLUMES {
            if volume.at(source).is_some() {
                // As in the reference, messages spell this field differently.
                let shown = if source == "storageos" { "storageOS" } else { source };
                warnings.push(format!("{}: {message}", path.child(shown)));
            }
        }
        if let Some(claim) = volume.at("ephemeral.volumeClaimTemplate.spec") {
            let path = path.child("ephemeral").child("volumeClaimTemplate").child("spec").child("resources");
            for field in ["requests", "limits"] {
                let list = format!("resources.{field}");
                warnings.extend(fraction_warning(claim, &list, "storage", &path.child(field)));
            }
        }
    }
    warnings
}

fn duplicate_warnings(spec: &Value, path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    for (list, field, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        let mut seen = HashSet::new();
        for (index, item) in spec.items_at(list).iter().enumerate() {
            let value = item.str_at(field);
            if !seen.insert(value) {
                let field = path.child(list).index(index).child(field);
                warnings.push(format!("{field}: duplicate {what} {}", quote(value)));
            }
        }
    }
    for (index, secret) in spec.items_at("imagePullSecrets").iter().enumerate() {
        if secret.str_at("name").is_empty() {
            let field = path.child("imagePullSecrets").index(index).child("name");
            warnings.push(format!("{field}: invalid empty name \"\""));
        }
    }
    warnings
}

/// Resources with quantities in bytes.
const BYTE_RESOURCES: [&str; 2] = ["memory", "ephemeral-storage"];

fn fraction_warnings(object: &Value, list: &str, path: &FieldPath) -> Vec<String> {
    BYTE_RESOURCES.iter().filter_map(|resource| fraction_warning(object, list, resource, path)).collect()
}

/// A warning about a quantity in bytes that is not a whole number.
pub(crate) fn fraction_warning(
    object: &Value,
    list: &str,
    resource: &str,
    path: &FieldPath,
) -> Option<String> {
    let quantity = quantity(object.map_at(list).get(resource)?);
    (!is_whole(&quantity)).then(|| {
        let (field, value) = (path.key(resource), quote(&quantity.to_string()));
        format!("{field}: fractional byte value {value} is invalid, must be an integer")
    })
}

fn seccomp_warning(field: &FieldPath) -> String {
    format!("{field}: non-functional in v1.27+; use the \"seccompProfile\" field instead")
}

/// Deprecation warnings for the profile annotations of a container whose profile field is absent.
fn profile_warnings(object: &Value, container: &Value, path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    let annotations_path = path.child("metadata").child("annotations");
    let name = container.str_at("name");
    let key = format!("{SECCOMP_CONTAINER_PREFIX}{name}");
    if container.at("securityContext.seccompProfile").is_none() && object.annotation(&key).is_some() {
        warnings.push(seccomp_warning(&annotations_path.key(&key)));
    }
    let is_template = !path.as_str().is_empty();
    let key = format!("{}{name}", app_armor::ANNOTATION_PREFIX);
    if let Some(annotation) = object.annotation(&key)
        && is_template
        && container.at("securityContext.appArmorProfile").is_none()
    {
        let from_annotation = app_armor::field_for_annotation(annotation).unwrap_or_default();
        let of_pod = object.at("spec.securityContext.appArmorProfile");
        if !of_pod.is_some_and(|profile| semantically_equal(profile, &from_annotation)) {
            let field = annotations_path.key(&key);
            warnings
                .push(format!("{field}: deprecated since v1.30; use the \"appArmorProfile\" field instead"));
        }
    }
    warnings
}

/// Warnings about duplicate variables. A later value that includes the earlier one gives no warning.
fn env_warnings(variables: &[Value], path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut seen = HashSet::with_capacity(variables.len());
    for (index, variable) in variables.iter().enumerate() {
        let name = variable.str_at("name");
        if seen.insert(name) {
            continue;
        }
        let (value, reference) = (variable.str_at("value"), format!("$({name})"));
        if variable.at("valueFrom").is_some() || value == reference || !value.contains(&reference) {
            let field = path.index(index);
            let name = quote(name);
            warnings.push(format!(
                "{field}: hides previous definition of {name}, which may be dropped when using apply"
            ));
        }
    }
    warnings
}

fn port_warnings(spec: &Value, path: &FieldPath) -> Vec<String> {
    struct Port<'a> {
        field: FieldPath,
        host_ip: &'a str,
        host_port: i64,
    }
    let mut known: HashMap<(i64, &str), Vec<Port<'_>>> = HashMap::new();
    let mut warnings = Vec::new();
    for (_, path, container) in containers_with_path(spec, path) {
        for (index, port) in container.items_at("ports").iter().enumerate() {
            let field = path.child("ports").index(index);
            let (host_ip, host_port) = (port.str_at("hostIP"), port.i64_at("hostPort").unwrap_or_default());
            let number = port.i64_at("containerPort").unwrap_or_default();
            let protocol = port.str_at("protocol");
            if !host_ip.is_empty() && host_port == 0 {
                warnings.push(format!(
                    "{field}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{number} \
                     Protocol:{protocol} HostIP:{host_ip}}}",
                    port.str_at("name")
                ));
            }
            let others = known.entry((number, protocol)).or_default();
            for other in others.iter() {
                let what = if host_ip == other.host_ip && host_port == other.host_port {
                    "duplicate"
                } else if host_port == 0 || other.host_port == 0 {
                    "overlapping"
                } else if host_port == other.host_port && host_ip.is_empty() != other.host_ip.is_empty() {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                warnings.push(format!("{field}: {what} port definition with {}", other.field));
            }
            others.push(Port { field, host_ip, host_port });
        }
    }
    warnings
}

fn port_name_warnings(spec: &Value, path: &FieldPath) -> Vec<String> {
    let mut known: HashMap<&str, FieldPath> = HashMap::new();
    let mut warnings = Vec::new();
    for (_, path, container) in containers_with_path(spec, path) {
        for (index, port) in container.items_at("ports").iter().enumerate() {
            let name = port.str_at("name");
            if name.is_empty() {
                continue;
            }
            let field = path.child("ports").index(index);
            match known.get(name) {
                Some(other) => warnings.push(format!(
                    "{field}: duplicate port name {} with {other}, services and probes that select ports by name \
                     will use {other}",
                    quote(name)
                )),
                None => drop(known.insert(name, field)),
            }
        }
    }
    warnings
}
