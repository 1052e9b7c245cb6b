//! Tests updates of pods.

use super::super::update::validate_ephemeral_containers_update;
use super::{merge, stored, texts, update};
use pintle_feature_gates::{FeatureGates, Gate, testing::override_gates};
use pintle_machinery::{Value, ValueExt, codec::EmptyField, json};
use pintle_registry::EmptyFields;

const CONTAINER: &str = "i";

/// Compares the first lines of the errors, which precede the differences in the messages.
fn check(old: &Value, subresource: &str, rows: &[(Value, &[&str])]) {
    for (patch, wanted) in rows {
        let (_, errors) = update(old, subresource, patch);
        let texts = texts(&errors);
        let first_lines: Vec<&str> = texts.iter().filter_map(|text| text.lines().next()).collect();
        assert_eq!(first_lines, *wanted, "{patch}");
    }
}

const IMMUTABLE: &str = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

#[test]
fn only_few_fields_of_a_pod_change() {
    let old = stored(
        json!({"activeDeadlineSeconds": 10, "tolerations": [{"key": "k", "operator": "Exists"}]}),
        json!({}),
    );
    let image = |image: &str| {
        let mut containers = old["spec"]["containers"].clone();
        containers[0]["image"] = json!(image);
        json!({"spec": {"containers": containers}})
    };
    check(
        &old,
        "",
        &[
            (json!({"metadata": {"labels": {"a": "b"}}}), &[]),
            (image("new"), &[]),
            (
                image(""),
                &["spec.containers[0].image: Required value", "spec.containers[0].image: Required value"],
            ),
            (json!({"spec": {"activeDeadlineSeconds": 5}}), &[]),
            (
                json!({"spec": {"activeDeadlineSeconds": 11}}),
                &[
                    "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value",
                ],
            ),
            (
                json!({"spec": {"activeDeadlineSeconds": null}}),
                &[
                    "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
                ],
            ),
            (
                json!({"spec": {"tolerations": []}}),
                &[
                    "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
                ],
            ),
            (json!({"spec": {"nodeName": "n"}}), &[IMMUTABLE]),
            (json!({"spec": {"restartPolicy": "Never"}}), &[IMMUTABLE]),
            (
                json!({"spec": {"containers": [{"name": "c", "image": CONTAINER}, {"name": "d", "image": CONTAINER}]}}),
                &["spec.containers: Forbidden: pod updates may not add or remove containers"],
            ),
        ],
    );
    let (new, _) = update(&old, "", &image("new"));
    assert_eq!(new.i64_at("metadata.generation"), Some(2));
    let (new, _) =
        update(&old, "", &json!({"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}}));
    assert_eq!((new.i64_at("metadata.generation"), new.str_at("status.phase")), (Some(1), "Pending"));
}

#[test]
fn gates_go_and_placement_narrows_while_they_hold() {
    let required = |key: &str| {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]}],
        }}})
    };
    let old = stored(
        json!({"schedulingGates": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "y"}}),
        json!({}),
    );
    check(
        &old,
        "",
        &[
            (json!({"spec": {"schedulingGates": [{"name": "b"}], "nodeSelector": {"z": "1"}}}), &[]),
            (
                json!({"spec": {"schedulingGates": [{"name": "c"}]}}),
                &[
                    "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'c'",
                ],
            ),
            (
                json!({"spec": {"nodeSelector": {"x": "other"}}}),
                &[
                    "spec.nodeSelector: Invalid value: {\"x\":\"other\"}: only additions to spec.nodeSelector are allowed \
                   (no mutations or deletions)",
                ],
            ),
            (json!({"spec": {"dnsPolicy": "Default"}}), &[IMMUTABLE]),
            (json!({"spec": {"affinity": {}}}), &[IMMUTABLE]),
            (json!({"spec": {"affinity": required("a")}}), &[]),
        ],
    );
    let old = stored(json!({"schedulingGates": [{"name": "a"}], "affinity": required("a")}), json!({}));
    let none = json!({"spec": {"affinity": {"nodeAffinity": null}}});
    let (_, errors) = update(&old, "", &none);
    assert_eq!(
        errors.first().map(ToString::to_string).as_deref(),
        Some(
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Invalid value: null: \
             no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        )
    );
    check(
        &old,
        "",
        &[(
            json!({"spec": {"affinity": required("b")}}),
            &[
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: Invalid \
                 value: {\"MatchExpressions\":[{\"Key\":\"b\",\"Operator\":\"Exists\",\"Values\":null}],\"MatchFields\":null}: \
                 only additions are allowed (no mutations or deletions)",
            ],
        )],
    );
}

#[test]
fn ephemeral_containers_are_added_and_stay() {
    let container =
        |name: &str, image: &str| json!({"name": name, "image": image, "targetContainerName": "c"});
    let patch = |containers: Value| json!({"metadata": {"labels": {"x": "y"}}, "spec": {"nodeName": "n", "ephemeralContainers": containers}});
    let old = stored(json!({}), json!({}));
    let (old, errors) = update(&old, "ephemeralcontainers", &patch(json!([container("e", "i")])));
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((old.i64_at("metadata.generation"), old.str_at("spec.nodeName")), (Some(2), ""));
    assert_eq!(old.at("metadata.labels"), None);
    check(
        &old,
        "ephemeralcontainers",
        &[
            (patch(json!([container("f", "i"), container("e", "i")])), &[]),
            (
                patch(json!([])),
                &[
                    "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed",
                ],
            ),
            (
                patch(json!([container("e", "j")])),
                &[
                    "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be changed",
                ],
            ),
            (
                patch(
                    json!([container("e", "i"), {"name": "g", "image": "i", "targetContainerName": "none"}]),
                ),
                &["spec.ephemeralContainers[1].targetContainerName: Not found: \"none\""],
            ),
        ],
    );
}

#[test]
fn an_ephemeral_container_has_no_empty_lists_either() {
    let old = stored(json!({}), json!({}));
    let container = |more: Value| {
        let mut patch = json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}});
        merge(&mut patch["spec"]["ephemeralContainers"][0], &more);
        patch
    };
    let forbidden = |field: &str| {
        format!("spec.ephemeralContainers[0].{field}: Forbidden: cannot be set for an Ephemeral Container")
    };
    check(&old, "ephemeralcontainers", &[(container(json!({"lifecycle": {}})), &[&forbidden("lifecycle")])]);
    let (new, _) = update(&old, "ephemeralcontainers", &container(json!({})));
    for (path, field) in [("ports", "ports"), ("resources.limits", "resources")] {
        let empty_fields = EmptyFields::default();
        let path = format!("spec.ephemeralContainers[0].{path}");
        empty_fields.set(vec![EmptyField { path, value: json!([]) }]);
        let errors = validate_ephemeral_containers_update(&new, &old, &empty_fields);
        assert_eq!(texts(&errors), [forbidden(field)]);
    }
}

#[test]
fn a_resize_changes_amounts_of_cpu_and_memory() {
    let resources = json!({"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}});
    let containers = |resources: Value| json!([{"name": "c", "image": "i", "resources": resources}]);
    let old = stored(json!({"containers": containers(resources)}), json!({"status": {"phase": "Running"}}));
    let patch =
        |resources: Value| json!({"spec": {"restartPolicy": "Never", "containers": containers(resources)}});
    check(
        &old,
        "resize",
        &[
            (patch(json!({"requests": {"cpu": "2", "ephemeral-storage": "1Gi"}})), &[]),
            (patch(json!({"requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}})), &[]),
            (
                patch(json!({"requests": {"cpu": "2", "ephemeral-storage": "2Gi"}})),
                &["spec: Forbidden: only cpu and memory resources are mutable"],
            ),
            (
                patch(json!({"requests": {"ephemeral-storage": "1Gi"}})),
                &[
                    "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing",
                    "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
                ],
            ),
            (
                json!({"spec": {"containers": [{"name": "d", "image": "i"}]}}),
                &[
                    "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing",
                    "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
                ],
            ),
        ],
    );
    let mut without =
        stored(json!({"containers": containers(json!({}))}), json!({"status": {"phase": "Running"}}));
    // As it is decoded: the struct is empty.
    for container in without.items_at_mut("spec.containers") {
        container.remove_at("resources");
    }
    check(
        &without,
        "resize",
        &[(
            patch(json!({"requests": {"cpu": "2"}})),
            &["spec: Invalid value: \"BestEffort\": Pod QOS Class may not change as a result of resizing"],
        )],
    );
    let claims = json!({"requests": {"cpu": "1"}, "claims": [{"name": "c"}]});
    let with_claims = stored(
        json!({"containers": containers(claims), "resourceClaims": [{"name": "c", "resourceClaimName": "x"}]}),
        json!({"status": {"phase": "Running"}}),
    );
    check(
        &with_claims,
        "resize",
        &[(
            json!({"spec": {"containers": containers(json!({"requests": {"cpu": "2"}, "claims": [{"name": "c"}]}))}}),
            &["spec: Forbidden: only cpu and memory resources are mutable"],
        )],
    );
    let (new, _) =
        update(&old, "resize", &patch(json!({"requests": {"cpu": "2", "ephemeral-storage": "1Gi"}})));
    assert_eq!((new.i64_at("metadata.generation"), new.str_at("spec.restartPolicy")), (Some(2), "Always"));
}

#[test]
fn a_resize_follows_its_gates() {
    let running = json!({"status": {"phase": "Running"}});
    let with_cpu = |cpu: &str| {
        let resources = json!({"requests": {"cpu": cpu}});
        json!([{"name": "i", "image": "i", "resources": resources}])
    };
    let whole = stored(json!({"resources": {"requests": {"cpu": "1"}}}), running.clone());
    let init = stored(json!({"initContainers": with_cpu("1")}), running);
    let larger = json!({"spec": {"resources": {"requests": {"cpu": "2"}}}});
    let larger_init = json!({"spec": {"initContainers": with_cpu("2")}});
    check(&whole, "resize", &[(larger.clone(), &[])]);
    check(&init, "resize", &[(larger_init.clone(), &[])]);
    let gates = FeatureGates::default()
        .with(Gate::InPlacePodLevelResourcesVerticalScaling, false)
        .with(Gate::InPlacePodVerticalScalingInitContainers, false);
    let _gates = override_gates(&gates);
    let error = "[]: Forbidden: resize of pods with pod-level resources is forbidden when \
                 InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";
    check(&whole, "resize", &[(larger, &[error])]);
    let error = "spec: Forbidden: resources for non-sidecar init containers are immutable";
    check(&init, "resize", &[(larger_init, &[error])]);
}

#[test]
fn a_status_tells_what_can_be() {
    let ended = json!({"phase": "Running", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]});
    let old = stored(json!({"nodeName": "n", "restartPolicy": "Never"}), json!({"status": ended}));
    check(
        &old,
        "status",
        &[
            (json!({"spec": {"restartPolicy": "Always"}, "status": {"phase": "Failed"}}), &[]),
            (
                json!({"status": {"qosClass": "Guaranteed"}}),
                &["status.qosClass: Invalid value: \"Guaranteed\": field is immutable"],
            ),
            (json!({"status": {"qosClass": null}}), &[]),
            (
                json!({"status": {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}}),
                &[
                    "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state",
                ],
            ),
            (
                json!({"status": {"nominatedNodeName": "m"}}),
                &[
                    "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node",
                ],
            ),
            (
                json!({"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}}),
                &[
                    "status.podIPs: Invalid value: [{\"IP\":\"10.0.0.1\"},{\"IP\":\"10.0.0.2\"}]: may specify no more than one IP for each IP family",
                ],
            ),
            (
                json!({"status": {"hostIP": "1.1.1.1", "hostIPs": [{"ip": "2.2.2.2"}]}}),
                &["status.hostIPs[0].ip: Invalid value: \"2.2.2.2\": must be equal to `hostIP`"],
            ),
            (
                json!({"status": {"conditions": [{"type": "example.com/x", "observedGeneration": -1}]}}),
                &[
                    "status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
                ],
            ),
        ],
    );
}
