//! The strategy of nodes.

use crate::embedded_json::{GoStruct, GoType, decode_list};
use crate::gated_fields::{GatedFields, drop_disabled};
use crate::{field_checks, resource_list, rules};
use pintle_feature_gates::Gate;
use pintle_go_forms::{Cidr, quote};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Quantity, Value, ValueExt,
    codec::json,
    meta::ObjectMeta,
    validation::{is_valid_label_value, validate_label_name, warnings_for_cidr},
};
use pintle_registry::{RequestContext, Strategy};
use pintle_schema::Schema;
use std::collections::HashSet;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// The annotation that the field of the taints has replaced.
const TAINTS_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/taints";
/// The Go type of a taint in the annotation.
const TAINT: GoStruct = GoStruct {
    name: "Taint",
    fields: &[
        ("Key", GoType::String("string")),
        ("Value", GoType::String("string")),
        ("Effect", GoType::String("core.TaintEffect")),
        ("TimeAdded", GoType::Time),
    ],
};
const AVOIDED_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
/// The field of dynamic kubelet configuration, a removed feature.
const CONFIG_SOURCE: &str = "spec.configSource";
const CONFIG_STATUS: &str = "status.config";

const GATED: &[GatedFields] = &[
    GatedFields { gates: &[Gate::NodeDeclaredFeatures], fields: &["status.declaredFeatures"] },
    GatedFields { gates: &[Gate::SupplementalGroupsPolicy], fields: &["status.features"] },
];

pub(super) struct NodeStrategy;

impl Strategy for NodeStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        sync_pod_cidrs(object);
        resource_list::round_up_at(object, &["status.capacity", "status.allocatable"]);
        if let Some(capacity) = object.at("status.capacity").cloned() {
            object.set_default("status.allocatable", capacity);
        }
    }

    fn defaults_of_absent(&self) -> &'static [&'static str] {
        &["status.allocatable"]
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.remove_at(CONFIG_SOURCE);
        object.remove_at(CONFIG_STATUS);
        drop_disabled(GATED, object, None);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        if old.at(CONFIG_SOURCE).is_none() {
            object.remove_at(CONFIG_SOURCE);
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object);
        errors.extend(validate_update(object, old));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings(object)
    }
}

/// The strategy of the `status` subresource. Kubelets also change metadata through it.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        NodeStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
        if old.at(CONFIG_STATUS).is_none() {
            object.remove_at(CONFIG_STATUS);
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_update(object, old)
    }
}

/// Synchronizes `podCIDR`, the older name of the first of `podCIDRs`, which takes precedence.
fn sync_pod_cidrs(object: &mut Value) {
    let single = object.str_at("spec.podCIDR").to_owned();
    let first = object.items_at("spec.podCIDRs").first().and_then(Value::as_str).map(str::to_owned);
    match first {
        _ if single.is_empty() => {
            if let Some(first) = first {
                object.set("spec.podCIDR", first);
            }
        }
        Some(first) if first == single => {}
        _ => object.set("spec.podCIDRs", vec![Value::from(single)]),
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = rules::metadata(object, false);
    errors.extend(validate_taints_annotation(object));
    errors.extend(validate_avoided_pods(object));
    errors.extend(validate_taints(object));
    errors.extend(validate_resources(object));
    errors.extend(validate_swap(object));
    errors.extend(validate_declared_features(object));
    errors.extend(validate_pod_cidrs(object));
    errors
}

fn validate_update(object: &Value, old: &Value) -> ErrorList {
    const POD_CIDRS: &str = "spec.podCIDRs";
    let mut errors = rules::metadata_update(object, old);
    errors.extend(validate_taints_annotation(object));
    errors.extend(validate_avoided_pods(object));
    errors.extend(validate_resources(object));
    errors.extend(validate_declared_features(object));
    errors.extend(validate_addresses(object));
    let path = FieldPath::new(POD_CIDRS);
    let (new, stored) = (object.items_at(POD_CIDRS), old.items_at(POD_CIDRS));
    let changes = match stored.len() {
        0 => 0,
        length if length != new.len() => 1,
        _ => new.iter().zip(stored).filter(|(new, old)| new != old).count(),
    };
    for _ in 0..changes {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&path, detail));
    }
    let provider = old.str_at("spec.providerID");
    if !provider.is_empty() && provider != object.str_at("spec.providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&FieldPath::new("spec.providerID"), detail));
    }
    errors.extend(validate_taints(object));
    if object.str_at("spec.externalID") != old.str_at("spec.externalID") {
        errors.push(FieldError::forbidden(&FieldPath::new("spec.externalID"), "may not be updated"));
    }
    errors
}

/// Validates taints; errors have the path of a former field.
fn validate_taints(object: &Value) -> ErrorList {
    validate_taint_list(object.items_at("spec.taints"), &FieldPath::new("metadata.taints"))
}

/// Validates the annotation that the field of the taints has replaced.
fn validate_taints_annotation(object: &Value) -> ErrorList {
    let Some(text) = object.annotation(TAINTS_ANNOTATION).filter(|text| !text.is_empty()) else {
        return ErrorList::new();
    };
    let path = FieldPath::new("metadata.annotations");
    match decode_list(text, &TAINT) {
        Ok(taints) => validate_taint_list(&taints, &path.child(TAINTS_ANNOTATION)),
        Err(error) => vec![FieldError::invalid(&path, TAINTS_ANNOTATION, error)],
    }
}

/// Validates the annotation that names pods to keep off a node.
fn validate_avoided_pods(object: &Value) -> ErrorList {
    let Some(text) = object.annotation(AVOIDED_PODS).filter(|text| !text.is_empty()) else {
        return ErrorList::new();
    };
    let path = FieldPath::new("metadata.annotations");
    let Some(schema) = Schema::builtin().by_type_name("k8s.io/api/core/v1.AvoidPods") else {
        return ErrorList::new();
    };
    let decoded = match json::decode_body(text.as_bytes(), schema) {
        Ok(decoded) => decoded.value,
        Err(error) => {
            return vec![FieldError::invalid(&path.child("AvoidPods"), AVOIDED_PODS, error.to_string())];
        }
    };
    let mut errors = ErrorList::new();
    for (index, entry) in decoded.items_at("preferAvoidPods").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.child(AVOIDED_PODS).index(index).child("PodSignature");
        match entry.at("podSignature.podController") {
            None => errors.push(FieldError::required(&path, "")),
            Some(controller) if !controller.bool_at("controller") => {
                let path = path.child("PodController").child("Controller");
                errors.push(FieldError::invalid(&path, false, "must point to a controller"));
            }
            Some(_) => {}
        }
    }
    errors
}

fn validate_taint_list(taints: &[Value], list: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for (index, taint) in taints.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = list.index(index);
        let (key, value, effect) = (taint.str_at("key"), taint.str_at("value"), taint.str_at("effect"));
        errors.extend(validate_label_name(key, &path.child("key")));
        let messages = is_valid_label_value(value);
        if !messages.is_empty() {
            errors.push(FieldError::invalid(&path.child("value"), value, messages.join(";")));
        }
        errors.extend(field_checks::required_supported(effect, &EFFECTS, &path.child("effect")));
        if !seen.insert((key, effect)) {
            let mut error = FieldError::duplicate(&path, taint.clone());
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(pintle_internal_form::show(error, "core.Taint"));
        }
    }
    errors
}

fn validate_resources(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for list in ["capacity", "allocatable"] {
        let path = FieldPath::new("status").child(list);
        for (name, value) in object.map_at(path.as_str()) {
            let path = path.child(name);
            let quantity = resource_list::quantity(value);
            let shown = quantity.to_string();
            if quantity.sign() < 0 {
                let detail = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(&path, shown.as_str(), detail));
            }
            if is_counted(name) && !is_whole(&quantity) {
                errors.push(FieldError::invalid(&path, shown, "must be an integer"));
            }
        }
    }
    errors
}

/// Validates the capacity of swap; errors have a path of their own.
fn validate_swap(object: &Value) -> ErrorList {
    let capacity = object.i64_at("status.nodeInfo.swap.capacity").filter(|capacity| *capacity <= 0);
    let path = FieldPath::new("metadata.nodeSwapStatus.capacity");
    let error = |capacity| FieldError::invalid(&path, capacity, "must be greater than zero");
    capacity.map(error).into_iter().collect()
}

/// Validates the features that a node declares: each once, sorted.
fn validate_declared_features(object: &Value) -> ErrorList {
    let path = FieldPath::new("status.declaredFeatures");
    let features = object.items_at("status.declaredFeatures").iter();
    let features: Vec<&str> = features.map(|feature| feature.as_str().unwrap_or_default()).collect();
    let mut errors = ErrorList::new();
    let nexts = features.iter().skip(1).map(Some).chain([None]);
    for (index, (feature, next)) in features.iter().zip(nexts).enumerate() {
        if is_enough(&errors) {
            break;
        }
        if let Some(why) = invalid_feature_name(feature) {
            errors.push(FieldError::invalid(&path.index(index), *feature, why));
        }
        let next_path = path.index(index + 1);
        match next {
            Some(next) if next == feature => errors.push(FieldError::duplicate(&next_path, *next)),
            Some(next) if next < feature => {
                errors.push(FieldError::invalid(&next_path, *next, "list must be sorted alphabetically"));
            }
            _ => {}
        }
    }
    errors
}

/// The error of a feature's name: `MyFeature` or `MyFeature/mySubFeature`.
fn invalid_feature_name(name: &str) -> Option<String> {
    const MAX_LENGTH: usize = 253;
    if name.len() > MAX_LENGTH {
        return Some(format!(
            "invalid feature name {}: must be no more than {MAX_LENGTH} characters",
            quote(name)
        ));
    }
    let is_valid = |(index, part): (usize, &str)| {
        let begins = |first: u8| first.is_ascii_uppercase() || index > 0 && first.is_ascii_lowercase();
        part.bytes().next().is_some_and(begins) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    if name.split('/').enumerate().all(is_valid) {
        return None;
    }
    Some(format!(
        "invalid feature name {}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., \
         MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
        quote(name)
    ))
}

/// Whether a resource has only whole units: pods, and extended resources.
fn is_counted(name: &str) -> bool {
    name == "pods" || !resource_list::is_native(name)
}

fn is_whole(quantity: &Quantity) -> bool {
    quantity.milli_value() % 1000 == 0
}

fn validate_addresses(object: &Value) -> ErrorList {
    let addresses = object.items_at("status.addresses");
    let path = FieldPath::new("status.addresses");
    let mut seen = HashSet::new();
    let repeated = addresses.iter().enumerate().filter(|(_, address)| !seen.insert(*address));
    let duplicate =
        |(index, address): (usize, &Value)| FieldError::duplicate(&path.index(index), address.clone());
    repeated.map(duplicate).map(|error| pintle_internal_form::show(error, "core.NodeAddress")).collect()
}

fn validate_pod_cidrs(object: &Value) -> ErrorList {
    let path = FieldPath::new("spec.podCIDRs");
    let cidrs = object.items_at(path.as_str());
    let mut errors = ErrorList::new();
    for (index, cidr) in field_checks::texts(cidrs).enumerate() {
        if is_enough(&errors) {
            break;
        }
        errors.extend(field_checks::legacy_cidr(&path.index(index), cidr, &HashSet::new()));
    }
    if cidrs.len() < 2 {
        return errors;
    }
    let parse = |(index, cidr)| Cidr::parse_sloppy(cidr).ok_or((index, cidr));
    match field_checks::texts(cidrs).enumerate().map(parse).collect::<Result<Vec<Cidr>, _>>() {
        Err((index, cidr)) => errors.push(FieldError::internal(
            &path,
            format!(
                "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> \
                 (invalid CIDR address: {cidr})"
            ),
        )),
        Ok(parsed) => {
            let of_ipv6 = parsed.iter().filter(|cidr| cidr.network().is_ipv6()).count();
            if (parsed.len(), of_ipv6) == (2, 1) {
                return errors;
            }
        }
    }
    let detail = "may specify no more than one CIDR for each IP family";
    errors.push(FieldError::invalid(&path, cidrs.to_vec(), detail));
    errors
}

fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if object.at(CONFIG_SOURCE).is_some() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !object.str_at("spec.externalID").is_empty() {
        let warning = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        warnings.push(warning.to_owned());
    }
    let path = FieldPath::new("spec.podCIDRs");
    for (index, cidr) in field_checks::texts(object.items_at(path.as_str())).enumerate() {
        warnings.extend(warnings_for_cidr(&path.index(index), cidr));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(errors: &ErrorList, messages: &[&str]) {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, messages);
    }

    #[test]
    fn the_older_field_of_the_two_wins() {
        let rows = [
            (json!({"podCIDR": "10.1.0.0/24"}), json!(["10.1.0.0/24"])),
            (json!({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24"]}), json!(["10.1.0.0/24"])),
            (json!({"podCIDRs": ["10.1.0.0/24", "fd00::/64"]}), json!(["10.1.0.0/24", "fd00::/64"])),
        ];
        for (spec, expected) in rows {
            let mut node = json!({"spec": spec});
            NodeStrategy.set_defaults(&mut node);
            assert_eq!(node["spec"]["podCIDRs"], expected);
            assert_eq!(node["spec"]["podCIDR"], json!("10.1.0.0/24"));
        }
    }

    #[test]
    fn addresses_come_once() {
        let address = json!({"type": "InternalIP", "address": "x"});
        check(
            &validate_addresses(&json!({"status": {"addresses": [address, address]}})),
            &["status.addresses[1]: Duplicate value: {\"Type\":\"InternalIP\",\"Address\":\"x\"}"],
        );
    }

    #[test]
    fn declared_features_are_sorted_and_come_once() {
        let features = |features: &[&str]| {
            validate_declared_features(&json!({"status": {"declaredFeatures": features}}))
        };
        check(&features(&["A", "B/c1/D", "C"]), &[]);
        check(&features(&["A", "A"]), &["status.declaredFeatures[1]: Duplicate value: \"A\""]);
        check(
            &features(&["B", "A"]),
            &["status.declaredFeatures[1]: Invalid value: \"A\": list must be sorted alphabetically"],
        );
        for name in ["", "a", "A/", "A/1", "A-b", "1A"] {
            let message = format!(
                "status.declaredFeatures[0]: Invalid value: \"{name}\": invalid feature name \"{name}\": must start with an \
                 UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and \
                 contain only alphanumeric characters and slashes"
            );
            check(&features(&[name]), &[&message]);
        }
        let long = "A".repeat(254);
        let message = format!(
            "status.declaredFeatures[0]: Invalid value: \"{long}\": invalid feature name \"{long}\": must be no more than 253 \
             characters"
        );
        check(&features(&[&long]), &[&message]);
    }

    #[test]
    fn the_capacity_of_swap_is_positive() {
        let swap =
            |capacity: i64| validate_swap(&json!({"status": {"nodeInfo": {"swap": {"capacity": capacity}}}}));
        check(&swap(1), &[]);
        check(&swap(0), &["metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero"]);
    }

    #[test]
    fn the_annotation_of_avoided_pods_names_controllers() {
        let errors =
            |text: &str| validate_avoided_pods(&json!({"metadata": {"annotations": {AVOIDED_PODS: text}}}));
        let entry = "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature";
        let controller =
            format!("{entry}.PodController.Controller: Invalid value: false: must point to a controller");
        check(
            &errors("x"),
            &[
                "metadata.annotations.AvoidPods: Invalid value: \"scheduler.alpha.kubernetes.io/preferAvoidPods\": invalid character 'x' looking for beginning of value",
            ],
        );
        check(&errors(r#"{"preferAvoidPods":[{}]}"#), &[&format!("{entry}: Required value")]);
        let signed = |controller: &str| {
            format!(
                r#"{{"preferAvoidPods":[{{"podSignature":{{"podController":{{"controller":{controller}}}}}}}]}}"#
            )
        };
        check(&errors(&signed("false")), &[&controller]);
        check(&errors(&signed("true")), &[]);
        let many = format!(r#"{{"preferAvoidPods":[{}{{}}]}}"#, "{},".repeat(50_000));
        assert!(errors(&many).len() < 50_000, "not more errors than are shown");
    }

    #[test]
    fn the_annotation_of_taints_is_validated_like_the_field() {
        let errors = |text: &str| {
            validate_taints_annotation(&json!({"metadata": {"annotations": {TAINTS_ANNOTATION: text}}}))
        };
        check(
            &errors("a/b"),
            &[
                "metadata.annotations: Invalid value: \"scheduler.alpha.kubernetes.io/taints\": invalid character 'a' looking for beginning of value",
            ],
        );
        check(
            &errors(r#"[{"Key":"a"}]"#),
            &["metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect: Required value"],
        );
        check(&errors(""), &[]);
    }

    #[test]
    fn taints_have_an_effect_and_come_once() {
        let rows: [(Value, &[&str]); 3] = [
            (json!([{"key": "a"}]), &["metadata.taints[0].effect: Required value"]),
            (
                json!([{"key": "a", "effect": "Never"}]),
                &[
                    "metadata.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                ],
            ),
            (json!([{"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "NoSchedule"}]), &[]),
        ];
        for (taints, messages) in rows {
            check(&validate_taints(&json!({"spec": {"taints": taints}})), messages);
        }
        let twice = json!({"spec": {"taints": [
            {"key": "a", "value": "x", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"},
        ]}});
        let errors = validate_taints(&twice);
        assert_eq!((errors.len(), errors[0].field.as_str()), (1, "metadata.taints[1]"));
    }

    #[test]
    fn amounts_are_not_negative_and_devices_whole() {
        let node = json!({"status": {
            "capacity": {"cpu": "-1", "example.com/gpu": "1.5"}, "allocatable": {"cpu": "1.5", "example.com/gpu": "2"},
        }});
        check(
            &validate_resources(&node),
            &[
                "status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
                "status.capacity.example.com/gpu: Invalid value: \"1500m\": must be an integer",
            ],
        );
    }

    #[test]
    fn addresses_of_pods_are_given_once() {
        let node = |spec: Value| json!({"metadata": {"name": "n", "resourceVersion": "1"}, "spec": spec});
        let old = node(json!({"podCIDRs": ["10.1.0.0/24"], "providerID": "cloud://x"}));
        let same =
            node(json!({"podCIDRs": ["10.1.0.0/24"], "providerID": "cloud://x", "unschedulable": true}));
        check(&validate_update(&same, &old), &[]);
        check(&validate_update(&old, &node(json!({}))), &[]);
        check(
            &validate_update(&node(json!({"podCIDRs": ["10.2.0.0/24"]})), &old),
            &[
                "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
                "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid",
            ],
        );
    }

    #[test]
    fn a_malformed_pod_cidr_is_named_by_its_index() {
        let object = json!({"spec": {"podCIDRs": ["10.1.0.0/24", "a/b"]}});
        let errors = validate_pod_cidrs(&object);
        let error = errors.iter().find(|error| error.field.as_str() == "spec.podCIDRs").unwrap();
        assert_eq!(
            error.to_string(),
            "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with \
             error:invalid CIDR[1]: <nil> (invalid CIDR address: a/b)"
        );
    }
}
