//! The strategy of CSI drivers. The fields for mounting a volume are immutable.

use crate::field_checks::{supported, texts};
use crate::gated_fields::{GatedFields, drop_disabled};
use crate::rules;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, json, validation::validate_immutable_field,
};
use pintle_registry::{RequestContext, Strategy};
use std::collections::HashSet;

/// The minimum lifetime of tokens, in seconds; shorter ones would need constant renewal.
const MIN_TOKEN_SECONDS: i64 = 600;
const MAX_TOKEN_SECONDS: i64 = 1 << 32;
const MIN_PERIOD_SECONDS: i64 = 10;
/// Whether pods are held back from nodes without the driver.
const MISSING: &str = "spec.preventPodSchedulingIfMissing";
/// Whether the driver mounts volumes with a label of SELinux.
const SELINUX: &str = "spec.seLinuxMount";
const GATED: &[GatedFields] = &[
    GatedFields { gates: &[Gate::SELinuxMountReadWriteOncePod], fields: &[SELINUX] },
    GatedFields {
        gates: &[Gate::MutableCSINodeAllocatableCount],
        fields: &["spec.nodeAllocatableUpdatePeriodSeconds"],
    },
    GatedFields {
        gates: &[Gate::CSIServiceAccountTokenSecrets],
        fields: &["spec.serviceAccountTokenInSecrets"],
    },
    GatedFields { gates: &[Gate::VolumeLimitScaling], fields: &[MISSING] },
];

pub(super) struct CsiDriverStrategy;

impl Strategy for CsiDriverStrategy {
    fn set_defaults(&self, object: &mut Value) {
        object.set_default("spec.attachRequired", true);
        for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish"] {
            object.set_default(&format!("spec.{field}"), false);
        }
        if enabled(Gate::SELinuxMountReadWriteOncePod) {
            object.set_default(SELINUX, false);
        }
        if enabled(Gate::VolumeLimitScaling) {
            object.set_default(MISSING, false);
        }
        object.set_default("spec.fsGroupPolicy", "ReadWriteOnceWithFSType");
        if object.items_at("spec.volumeLifecycleModes").is_empty() {
            object.set("spec.volumeLifecycleModes", json!(["Persistent"]));
        }
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        drop_disabled(GATED, object, None);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, false);
        errors.extend(validate_spec(object));
        errors
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        drop_disabled(GATED, object, Some(old));
        rules::count_generation(object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_spec(object));
        // As in the reference, errors use another name for the field.
        for (field, shown) in
            [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
        {
            let at = |object| rules::value_at(object, "spec").at(field).unwrap_or(&Value::Null);
            let path = FieldPath::new("spec").child(shown);
            errors.extend(validate_immutable_field(at(object), at(old), &path));
        }
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> Vec<String> {
        if rules::differs(object, old, "spec.tokenRequests") { warnings(object) } else { Vec::new() }
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn warnings(driver: &Value) -> Vec<String> {
    let is_unset = driver.at("spec.serviceAccountTokenInSecrets").is_none();
    let is_known = enabled(Gate::CSIServiceAccountTokenSecrets);
    if !is_known || driver.items_at("spec.tokenRequests").is_empty() || !is_unset {
        return Vec::new();
    }
    vec![
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
         possible logging of tokens in volume attributes"
            .to_owned(),
    ]
}

fn validate_spec(driver: &Value) -> ErrorList {
    let path = FieldPath::new("spec");
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    let policy = driver.str_at("spec.fsGroupPolicy");
    let mut errors = supported(policy, &policies, &path.child("fsGroupPolicy"));
    let requests = driver.items_at("spec.tokenRequests");
    errors.extend(validate_token_requests(requests, &path.child("tokenRequests")));
    for mode in texts(driver.items_at("spec.volumeLifecycleModes")) {
        errors.extend(supported(mode, &["Persistent", "Ephemeral"], &path.child("volumeLifecycleModes")));
    }
    if let Some(period) = driver.i64_at("spec.nodeAllocatableUpdatePeriodSeconds")
        && period < MIN_PERIOD_SECONDS
    {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        errors.push(FieldError::invalid(&path, period, "must be greater than or equal to 10 seconds"));
    }
    if let Some(value) = driver.at("spec.serviceAccountTokenInSecrets")
        && requests.is_empty()
    {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(FieldError::invalid(&path.child("serviceAccountTokenInSecrets"), value.clone(), detail));
    }
    errors
}

fn validate_token_requests(requests: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut audiences = HashSet::new();
    for (index, request) in requests.iter().enumerate() {
        let path = path.index(index);
        let audience = request.str_at("audience");
        if !audiences.insert(audience) {
            errors.push(FieldError::duplicate(&path.child("audience"), audience));
            continue;
        }
        let Some(seconds) = request.i64_at("expirationSeconds") else { continue };
        let detail = match seconds {
            ..MIN_TOKEN_SECONDS => "may not specify a duration less than 10 minutes",
            MIN_TOKEN_SECONDS..=MAX_TOKEN_SECONDS => continue,
            _ => "may not specify a duration larger than 2^32 seconds",
        };
        errors.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};

    #[test]
    fn an_emulated_version_has_no_newer_fields() {
        let requests = json!([{"audience": "a"}]);
        let new = json!({"spec": {"tokenRequests": requests}});
        assert_eq!(warnings(&new).len(), 1);
        let gates = FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33)));
        let _gates = override_gates(&gates.with(Gate::SELinuxMountReadWriteOncePod, false));
        assert_eq!(warnings(&new), [""; 0]);
        let mut defaulted = json!({"spec": {}});
        CsiDriverStrategy.set_defaults(&mut defaulted);
        assert_eq!(defaulted.at(SELINUX), None);
        let given = json!({"spec": {
            "seLinuxMount": true,
            "nodeAllocatableUpdatePeriodSeconds": 1, "serviceAccountTokenInSecrets": true, "podInfoOnMount": true,
        }});
        let mut driver = given.clone();
        drop_disabled(GATED, &mut driver, None);
        assert_eq!(driver, json!({"spec": {"podInfoOnMount": true}}));
        let mut driver = given.clone();
        let old = json!({"spec": {"serviceAccountTokenInSecrets": false}});
        drop_disabled(GATED, &mut driver, Some(&old));
        assert_eq!(driver, json!({"spec": {"podInfoOnMount": true, "serviceAccountTokenInSecrets": true}}));
    }

    #[test]
    fn members_are_checked() {
        let check = |spec: Value, wanted: &[&str]| {
            let mut driver = json!({"metadata": {"name": "d"}, "spec": spec});
            CsiDriverStrategy.set_defaults(&mut driver);
            let errors = validate_spec(&driver);
            let fields: Vec<String> = errors.iter().map(|error| error.field.to_string()).collect();
            assert_eq!(fields, wanted);
        };
        check(json!({}), &[]);
        check(json!({"fsGroupPolicy": "Some"}), &["spec.fsGroupPolicy"]);
        check(json!({"volumeLifecycleModes": ["Brief"]}), &["spec.volumeLifecycleModes"]);
        check(json!({"tokenRequests": [{"audience": "a"}, {"audience": ""}]}), &[]);
        check(
            json!({"tokenRequests": [{"audience": "a"}, {"audience": "a"}]}),
            &["spec.tokenRequests[1].audience"],
        );
        check(
            json!({"tokenRequests": [{"audience": "a", "expirationSeconds": 599}]}),
            &["spec.tokenRequests[0].expirationSeconds"],
        );
        check(json!({"nodeAllocatableUpdatePeriodSeconds": 9}), &["spec.nodeAllocatableUpdatePeriodSeconds"]);
        check(json!({"serviceAccountTokenInSecrets": true}), &["spec.serviceAccountTokenInSecrets"]);
    }
}
