//! The rules of stateful sets.

use crate::core::pod_spec::claim_template::{ClaimSpecOptions, validate_claim_spec};
use crate::core::pod_spec::fraction_warning;
use crate::core::pod_template::PodValidationOptions;
use crate::gated_fields::GatedFields;
use crate::workload::{self, Workload};
use crate::{resource_list, rules};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    error_list::is_enough,
    json,
    validation::{LabelSelectorOptions, is_dns1123_label, name_is_dns_label, validate_object_meta},
};
use std::collections::HashSet;

/// The fields that an update may change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
const IMMUTABLE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                         'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                         'minReadySeconds' are forbidden";
/// The field behind a gate.
const MAX_UNAVAILABLE: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";

/// The rules of stateful sets.
pub(super) struct StatefulSet;

impl Workload for StatefulSet {
    const NAMES_PODS: bool = false;
    const GATED: &'static [GatedFields] =
        &[GatedFields { gates: &[Gate::MaxUnavailableStatefulSet], fields: &[MAX_UNAVAILABLE] }];

    fn set_defaults(&self, object: &mut Value) {
        workload::set_template_defaults(object);
        set_text_default(object, "spec.podManagementPolicy", "OrderedReady");
        if object.str_at("spec.updateStrategy.type").is_empty() {
            object.set("spec.updateStrategy.type", "RollingUpdate");
            object.object_at_mut("spec.updateStrategy.rollingUpdate");
        }
        if object.str_at("spec.updateStrategy.type") == "RollingUpdate"
            && object.at("spec.updateStrategy.rollingUpdate").is_some()
        {
            object.set_default("spec.updateStrategy.rollingUpdate.partition", 0);
            if enabled(Gate::MaxUnavailableStatefulSet) {
                object.set_default(MAX_UNAVAILABLE, 1);
            }
        }
        set_text_default(object, "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "Retain");
        set_text_default(object, "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain");
        object.set_default("spec.replicas", 1);
        object.set_default("spec.revisionHistoryLimit", 10);
        for claim in object.items_at_mut("spec.volumeClaimTemplates") {
            claim.set("apiVersion", "v1");
            claim.set("kind", "PersistentVolumeClaim");
            set_text_default(claim, "status.phase", "Pending");
            claim.set_default("spec.volumeMode", "Filesystem");
            resource_list::round_up_at(claim, &["spec.resources.limits", "spec.resources.requests"]);
        }
    }

    fn validate_metadata(&self, object: &Value) -> ErrorList {
        validate_object_meta(object, true, name_is_dns_label, &FieldPath::new("metadata"))
    }

    fn validate_spec(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        match old {
            Some(old) => validate_spec_update(object, old),
            None => validate_spec(object, &workload::template_options(None), Checks::ALL),
        }
    }

    /// The errors of metadata stand between those of the status, as in the reference.
    fn validate_status_update(&self, object: &Value, old: &Value) -> ErrorList {
        const OVER_REPLICAS: &str = "cannot be greater than status.replicas";
        let mut errors = workload::validate_status_counts(
            object,
            &[
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
                "collisionCount",
            ],
        );
        errors.extend(workload::validate_status_bounds(
            object,
            &[
                ("readyReplicas", "replicas", OVER_REPLICAS),
                ("currentReplicas", "replicas", OVER_REPLICAS),
                ("updatedReplicas", "replicas", OVER_REPLICAS),
                ("availableReplicas", "replicas", OVER_REPLICAS),
                ("availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"),
            ],
        ));
        errors.extend(rules::metadata_update(object, old));
        errors.extend(workload::validate_collision_count(object, old));
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = claim_warnings(object, old.is_some());
        warnings.extend(history_warning(object));
        warnings
    }
}

/// Warnings about sizes of claim templates that are no whole numbers. As in the reference, those of updates have another
/// path.
fn claim_warnings(object: &Value, is_update: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, claim) in object.items_at("spec.volumeClaimTemplates").iter().enumerate() {
        let path = FieldPath::new("spec").child("volumeClaimTemplates").index(index);
        let path = if is_update { path.child("Spec") } else { path };
        for list in ["requests", "limits"] {
            let path = path.child("resources").child(list);
            warnings.extend(fraction_warning(claim, &format!("spec.resources.{list}"), "storage", &path));
        }
    }
    warnings
}

/// The optional checks.
#[derive(Clone, Copy)]
struct Checks {
    service_name: bool,
    claims: bool,
    template: bool,
}

impl Checks {
    const ALL: Checks = Checks { service_name: true, claims: true, template: true };
}

fn set_text_default(object: &mut Value, path: &str, default: &str) {
    if object.str_at(path).is_empty() {
        object.set(path, default);
    }
}

fn history_warning(object: &Value) -> Option<String> {
    object.i64_at("spec.revisionHistoryLimit").filter(|limit| *limit < 0).map(|_| {
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
            .to_owned()
    })
}

fn validate_spec_update(object: &Value, old: &Value) -> ErrorList {
    let options = workload::template_options(Some(old));
    // Ratcheting: immutable fields may stay as invalid as they were stored.
    let mut checks = Checks { service_name: false, claims: false, template: true };
    checks.template = validate_spec(old, &options, checks).is_empty();
    let mut errors = validate_spec(object, &options, checks);
    let mut kept = object.clone();
    for name in MUTABLE {
        rules::keep(&mut kept, old, &format!("spec.{name}"));
    }
    if rules::differs(&kept, old, "spec") {
        errors.push(FieldError::forbidden(&FieldPath::new("spec"), IMMUTABLE));
    }
    errors
}

fn validate_spec(object: &Value, options: &PodValidationOptions, checks: Checks) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = ErrorList::new();
    let policy = object.str_at("spec.podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&policy) {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(&path.child("podManagementPolicy"), policy, detail));
    }
    errors.extend(validate_rollout(rules::value_at(object, "spec.updateStrategy")));
    for name in ["whenDeleted", "whenScaled"] {
        let path = path.child("persistentVolumeClaimRetentionPolicy").child(name);
        let policy = object.str_at(path.as_str());
        if !["Retain", "Delete"].contains(&policy) {
            errors.push(FieldError::not_supported(&path, policy, &["Retain", "Delete"]));
        }
    }
    if checks.claims {
        let claims_path = path.child("volumeClaimTemplates");
        for (index, claim) in object.items_at("spec.volumeClaimTemplates").iter().enumerate() {
            if is_enough(&errors) {
                break;
            }
            let (spec, path) = (rules::value_at(claim, "spec"), claims_path.index(index).child("spec"));
            errors.extend(validate_claim_spec(spec, ClaimSpecOptions::default(), &path));
        }
    }
    errors.extend(rules::nonnegative(object, "spec.replicas"));
    errors.extend(rules::nonnegative(object, "spec.minReadySeconds"));
    errors.extend(rules::nonnegative(object, "spec.ordinals.start"));
    let service_name = object.str_at("spec.serviceName");
    if checks.service_name && !service_name.is_empty() {
        let messages = is_dns1123_label(service_name);
        let path = path.child("serviceName");
        errors.extend(crate::field_checks::invalid_each(&path, service_name, messages));
    }
    if object.at("spec.selector").is_none() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    errors.extend(workload::validate_selector(object, LabelSelectorOptions::default(), "statefulset"));
    match workload::selector(object, "") {
        Err(error) => errors.push(error),
        Ok(selector) => {
            if !selector.is_empty() {
                errors.extend(workload::validate_template_is_selected(object, &selector));
            }
            if checks.template {
                errors.extend(workload::validate_template(&with_claimed_volumes(object), options));
            }
            // The reference validates the metadata a second time.
            errors.extend(workload::validate_template_metadata(object, options));
        }
    }
    errors.extend(workload::validate_runs_always(object, "StatefulSet"));
    errors
}

/// Returns the set with the template in the controller's form: with a volume for each claim, and with the host name and
/// subdomain that the controller sets.
fn with_claimed_volumes(object: &Value) -> Value {
    let mut template = rules::value_at(object, "spec.template").clone();
    template.remove_at("spec.subdomain");
    template.remove_at("spec.hostname");
    // Of several claims with one name, the last counts.
    let mut claimed: HashSet<&str> = HashSet::new();
    let names = object.items_at("spec.volumeClaimTemplates").iter().rev();
    let names = names.map(|claim| claim.str_at("metadata.name")).filter(|name| claimed.insert(*name));
    let mut volumes: Vec<Value> =
        names.map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}})).collect();
    volumes.reverse();
    if !volumes.is_empty() {
        let own = template.items_at("spec.volumes").iter();
        let own = own.filter(|volume| !claimed.contains(volume.str_at("name")));
        volumes.extend(own.cloned());
        template.set("spec.volumes", volumes);
    }
    json!({"spec": {"template": template}})
}

fn validate_rollout(strategy: &Value) -> ErrorList {
    let path = FieldPath::new("spec.updateStrategy");
    let rolling_path = path.child("rollingUpdate");
    match (strategy.str_at("type"), strategy.at("rollingUpdate")) {
        ("OnDelete", None) | ("RollingUpdate", None) => ErrorList::new(),
        ("OnDelete", Some(rolling)) => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            let error = FieldError::invalid(&rolling_path, rolling.clone(), detail);
            vec![pintle_internal_form::show(error, "apps.RollingUpdateStatefulSetStrategy")]
        }
        ("RollingUpdate", Some(rolling)) => {
            let partition = rolling.i64_at("partition").unwrap_or_default();
            let mut errors = rules::nonnegative_number(partition, &rolling_path.child("partition"));
            if let Some(value) = rolling.at("maxUnavailable") {
                let path = rolling_path.child("maxUnavailable");
                errors.extend(workload::validate_int_or_percent(value, &path));
                if workload::int_or_percent(value) == 0 {
                    errors.push(FieldError::invalid(&path, value.clone(), "cannot be 0"));
                }
                errors.extend(workload::validate_at_most_100_percent(value, &path));
            }
            errors
        }
        (_, _) => {
            let error = FieldError::invalid(&path, strategy.clone(), "must be 'RollingUpdate' or 'OnDelete'");
            vec![pintle_internal_form::show(error, "apps.StatefulSetUpdateStrategy")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stateful_set(spec: Value) -> Value {
        let mut object = json!({
            "metadata": {"name": "s", "namespace": "n", "resourceVersion": "1"},
            "spec": {
                "selector": {"matchLabels": {"app": "x"}},
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        });
        for (name, value) in spec.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        StatefulSet.set_defaults(&mut object);
        object
    }

    #[test]
    fn claim_templates_are_checked_in_new_sets_only() {
        let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["Nowhere"]}});
        let object = stateful_set(json!({"volumeClaimTemplates": [claim]}));
        let fields =
            |errors: ErrorList| errors.iter().map(|error| error.field.to_string()).collect::<Vec<_>>();
        let expected = [
            "spec.volumeClaimTemplates[0].spec.accessModes",
            "spec.volumeClaimTemplates[0].spec.resources[storage]",
        ];
        assert_eq!(fields(StatefulSet.validate_spec(&object, None)), expected);
        assert_eq!(fields(StatefulSet.validate_spec(&object, Some(&object))), [""; 0]);
    }

    #[test]
    fn claims_of_part_of_a_byte_are_warned_about() {
        let claim =
            json!({"spec": {"resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "1500m"}}}});
        let object = stateful_set(json!({"volumeClaimTemplates": [claim]}));
        let check = |is_update: bool, path: &str| {
            let detail = "fractional byte value \"1500m\" is invalid, must be an integer";
            assert_eq!(
                claim_warnings(&object, is_update),
                [format!("{path}.resources.limits[storage]: {detail}")]
            );
        };
        check(false, "spec.volumeClaimTemplates[0]");
        check(true, "spec.volumeClaimTemplates[0].Spec");
    }

    #[test]
    fn only_some_fields_change() {
        let old = stateful_set(json!({"serviceName": "Odd_name"}));
        let check = |spec: Value, forbidden: bool| {
            let mut new = old.clone();
            for (name, value) in spec.as_object().unwrap() {
                new["spec"][name] = value.clone();
            }
            let errors = validate_spec_update(&new, &old);
            assert_eq!(!errors.is_empty(), forbidden, "{errors:?}");
        };
        check(json!({}), false);
        check(json!({"replicas": 3, "ordinals": {"start": 1}, "minReadySeconds": 4}), false);
        check(json!({"serviceName": "other"}), true);
        check(json!({"podManagementPolicy": "Parallel"}), true);
    }

    #[test]
    fn claims_become_volumes_of_the_template() {
        let object =
            stateful_set(json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}));
        let volumes = with_claimed_volumes(&object)["spec"]["template"]["spec"]["volumes"].clone();
        assert_eq!(volumes, json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]));
        assert_eq!(object["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"], json!("Filesystem"));
    }
}
