//! Tests the validation of new pods, and the warnings about them.

use super::{create, pod, resource, texts, warnings_of};
use crate::core::node::KubeletAddresses;
use pintle_machinery::{Value, ValueExt, json};

fn check(rows: &[(Value, &[&str])]) {
    for (spec, wanted) in rows {
        let (_, errors) = create(pod(spec.clone()));
        assert_eq!(texts(&errors), *wanted, "{spec}");
    }
}

fn container(rest: Value) -> Value {
    let mut container = json!({"name": "c", "image": "i"});
    super::merge(&mut container, &rest);
    json!({"containers": [container]})
}

#[test]
fn a_new_pod_is_pending_in_its_first_generation() {
    let mut given = pod(json!({"schedulingGates": [{"name": "example.com/g"}]}));
    super::merge(
        &mut given,
        &json!({"metadata": {"generation": 7}, "status": {"phase": "Running", "podIP": "1.2.3.4"}}),
    );
    let (pod, errors) = create(given);
    assert!(errors.is_empty());
    assert_eq!(pod.i64_at("metadata.generation"), Some(1));
    assert_eq!(
        pod["status"],
        json!({"phase": "Pending", "qosClass": "BestEffort", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": "1970-01-01T00:00:00Z",
        }]})
    );
}

#[test]
fn containers_have_names_and_images_of_their_own() {
    check(&[
        (json!({}), &[]),
        (json!({"containers": []}), &["spec.containers: Required value"]),
        (
            json!({"containers": [{}]}),
            &["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
        ),
        (
            json!({"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": " i"}], "initContainers": [{"name": "c", "image": "i"}]}),
            &[
                "spec.containers[1].name: Duplicate value: \"c\"",
                "spec.initContainers[0].name: Duplicate value: \"c\"",
                "spec.containers[1].image: Invalid value: \" i\": must not have leading or trailing whitespace",
            ],
        ),
        (
            json!({"ephemeralContainers": [{"name": "e", "image": "i", "ports": [{"containerPort": 1}]}]}),
            &[
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers: Forbidden: cannot be set on create",
            ],
        ),
        (
            json!({"initContainers": [{"name": "i", "image": "i", "livenessProbe": {"exec": {"command": ["a"]}}}]}),
            &[
                "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
            ],
        ),
        (
            json!({"initContainers": [{"name": "i", "image": "i", "restartPolicyRules": [{"action": "No"}]}]}),
            &[
                "spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
            ],
        ),
    ]);
}

#[test]
fn ports_are_numbers_with_names() {
    check(&[
        (
            container(json!({"ports": [
                {"containerPort": 0, "hostPort": 65536}, {"containerPort": 1, "protocol": "HTTP"},
                {"containerPort": 2, "name": "a"}, {"containerPort": 3, "name": "a"}, {"containerPort": 4, "name": "1"},
            ]})),
            &[
                "spec.containers[0].ports[0].containerPort: Required value",
                "spec.containers[0].ports[0].hostPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
                "spec.containers[0].ports[1].protocol: Unsupported value: \"HTTP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                "spec.containers[0].ports[3].name: Duplicate value: \"a\"",
                "spec.containers[0].ports[4].name: Invalid value: \"1\": must contain at least one letter (a-z)",
            ],
        ),
        (
            container(
                json!({"ports": [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 80}]}),
            ),
            &["spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//80\""],
        ),
    ]);
}

#[test]
fn environment_variables_have_one_source() {
    check(&[
        (
            container(
                json!({"env": [{"name": "a=b"}, {"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            ),
            &[
                "spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name must consist \
                 only of printable ASCII characters other than '='",
                "spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
            ],
        ),
        (
            container(
                json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]}),
            ),
            &[
                "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"metadata.labels\": supported \
               values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \
               \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
            ],
        ),
        (
            container(
                json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name['x']"}}}]}),
            ),
            &[
                "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['x']\": error \
               converting fieldPath: field label does not support subscript: metadata.name['x']",
            ],
        ),
        (
            container(
                json!({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}]}),
            ),
            &[
                "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only \
               divisor's values 1m and 1 are supported with the cpu resource",
            ],
        ),
        (
            container(json!({"envFrom": [{}]})),
            &[
                "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
            ],
        ),
    ]);
}

#[test]
fn resources_fit_into_each_other() {
    check(&[
        (
            container(
                json!({"resources": {"requests": {"cpu": "2", "gpu": "1"}, "limits": {"cpu": "1500m"}}}),
            ),
            &[
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1500m",
                "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
                "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a standard resource for containers",
            ],
        ),
        (
            container(json!({"resources": {"requests": {"example.com/gpu": "1"}}})),
            &[
                "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
            ],
        ),
        (
            container(json!({"resources": {"limits": {"hugepages-2Mi": "3Mi"}}})),
            &[
                "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                "spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
            ],
        ),
        (
            json!({"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}),
            &[
                "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 2",
            ],
        ),
    ]);
}

#[test]
fn volumes_have_one_source_and_mounts_a_volume() {
    let mut with_mount = container(
        json!({"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}]}),
    );
    with_mount["volumes"] = json!([{"name": "v"}]);
    check(&[
        (
            json!({"volumes": [{"name": "V"}, {"name": "a", "secret": {"secretName": "s"}, "configMap": {"name": "c"}}]}),
            &[
                "spec.volumes[0].name: Invalid value: \"V\": a lowercase RFC 1123 label must consist of lower case \
                 alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  \
                 or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                "spec.volumes[1].configMap: Forbidden: may not specify more than 1 volume type",
            ],
        ),
        (
            with_mount,
            &[
                "spec.containers[0].volumeMounts[1].name: Not found: \"w\"",
                "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
            ],
        ),
        (
            json!({"volumes": [{"name": "v", "iscsi": {"targetPortal": "p", "iqn": "iqn.x", "lun": 256}}]}),
            &[
                "spec.volumes[0].iscsi.iqn: Invalid value: \"iqn.x\": must be valid format",
                "spec.volumes[0].iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
            ],
        ),
        (
            json!({"volumes": [{"name": "v", "projected": {"sources": [
                {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                {"configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}},
                {"serviceAccountToken": {"path": "/t", "expirationSeconds": 1}},
            ]}}]}),
            &[
                "spec.volumes[0].projected: Invalid value: \"m\": conflicting duplicate paths",
                "spec.volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes",
                "spec.volumes[0].projected.path: Invalid value: \"/t\": must be a relative path",
            ],
        ),
    ]);
}

#[test]
fn security_contexts_are_consistent() {
    check(&[
        (
            container(
                json!({"securityContext": {"runAsUser": -1, "procMount": "Unmasked", "seccompProfile": {"type": "Localhost"}}}),
            ),
            &[
                "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`",
                "spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
            ],
        ),
        (
            json!({"hostNetwork": true, "securityContext": {"sysctls": [{"name": "net.a"}, {"name": "net/b"}, {"name": "kernel.sem"}, {"name": "kernel.sem"}]}}),
            &[
                "spec.securityContext.sysctls[0].name: Invalid value: \"net.a\": may not be specified when 'hostNetwork' is true",
                "spec.securityContext.sysctls[1].name: Invalid value: \"net/b\": may not be specified when 'hostNetwork' is true",
                "spec.securityContext.sysctls[3].name: Duplicate value: \"kernel.sem\"",
            ],
        ),
        (
            json!({"hostUsers": false, "hostPID": true}),
            &["spec.HostPID: Forbidden: when `hostUsers` is false"],
        ),
        (
            json!({"os": {"name": "windows"}, "securityContext": {"fsGroup": 1}}),
            &["spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod"],
        ),
        (
            json!({"os": {"name": "plan9"}}),
            &["spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\""],
        ),
        (
            json!({"securityContext": {"windowsOptions": {"runAsUserName": "a\\b\\c"}}}),
            &[
                "spec.securityContext.windowsOptions.runAsUserName: Invalid value: \"a\\\\b\\\\c\": runAsUserName cannot contain more than one backslash",
            ],
        ),
    ]);
}

#[test]
fn placement_is_well_formed() {
    check(&[
        (
            json!({"tolerations": [{"operator": "Equal"}, {"key": "k", "operator": "Exists", "value": "v", "tolerationSeconds": 1}]}),
            &[
                "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                "spec.tolerations[1].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
                "spec.tolerations[1].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'",
            ],
        ),
        (
            json!({"topologySpreadConstraints": [
                {"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1, "labelSelector": {}},
                {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["a"]},
            ]}),
            &[
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{z, ScheduleAnyway}\"",
                "spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
                "spec.topologySpreadConstraints[1].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
            ],
        ),
        (
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {"matchFields": [{"key": "a", "operator": "Gt"}]}}],
            }}}),
            &[
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100",
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].operator: Invalid value: \"Gt\": not a valid selector operator",
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key: Invalid value: \"a\": not a valid field selector key",
            ],
        ),
        (
            json!({"dnsPolicy": "None"}),
            &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        ),
        (
            json!({"nodeName": "n", "schedulingGates": [{"name": "g"}]}),
            &["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
        ),
    ]);
}

#[test]
fn probes_have_one_handler() {
    check(&[
        (
            container(
                json!({"livenessProbe": {"successThreshold": 2, "periodSeconds": -1}, "readinessProbe": {
                "exec": {"command": ["a"]}, "tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 1}}),
            ),
            &[
                "spec.containers[0].livenessProbe: Required value: must specify a handler type",
                "spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
                "spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
                "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes",
            ],
        ),
        (
            container(
                json!({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}, "postStart": {"httpGet": {"port": "Bad"}}}}),
            ),
            &[
                "spec.containers[0].lifecycle.postStart.httpGet.port: Invalid value: \"Bad\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
            ],
        ),
    ]);
}

#[test]
fn annotations_agree_with_fields() {
    let rows: &[(Value, Value, &[&str])] = &[
        (
            json!({"kubernetes.io/config.mirror": "x", "controller.kubernetes.io/pod-deletion-cost": "+1"}),
            json!({}),
            &[
                "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must set spec.nodeName if mirror pod annotation is set",
                "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \"+1\": must be a 32bit integer",
            ],
        ),
        (
            json!({"container.apparmor.security.beta.kubernetes.io/x": "odd"}),
            json!({}),
            &[
                "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: \"x\": container not found",
                "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: \"odd\": invalid AppArmor profile name: \"odd\"",
            ],
        ),
        (
            json!({"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}),
            json!({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}),
            &[
                "spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match",
            ],
        ),
    ];
    for (annotations, spec, wanted) in rows {
        let mut given = pod(spec.clone());
        given.set("metadata.annotations", annotations.clone());
        assert_eq!(texts(&create(given).1), *wanted, "{annotations}");
    }
    let mut given = pod(json!({}));
    given.set(
        "metadata.annotations",
        json!({"container.apparmor.security.beta.kubernetes.io/c": "localhost/f"}),
    );
    let (created, errors) = create(given);
    assert!(errors.is_empty());
    let profile = created.pointer("/spec/containers/0/securityContext/appArmorProfile");
    assert_eq!(profile, Some(&json!({"type": "Localhost", "localhostProfile": "f"})));
}

#[test]
fn a_malformed_annotation_of_tolerations_has_the_message_of_go() {
    let errors = |text: &str| {
        let mut given = pod(json!({}));
        given.set("metadata.annotations", json!({"scheduler.alpha.kubernetes.io/tolerations": text}));
        texts(&create(given).1).to_vec()
    };
    let error = |why: &str| {
        let name = "\"scheduler.alpha.kubernetes.io/tolerations\"";
        vec![format!("metadata.annotations: Invalid value: {name}: {why}")]
    };
    assert_eq!(errors("a/b"), error("invalid character 'a' looking for beginning of value"));
    assert_eq!(
        errors(r#"[{"key":1}]"#),
        error("json: cannot unmarshal number into Go struct field Toleration.Key of type string")
    );
    assert_eq!(errors(r#"[{"Key":"a","operator":"Exists"}]"#), Vec::<String>::new());
}

#[test]
fn authors_are_warned() {
    let rows: &[(Value, &[&str])] = &[
        (
            json!({"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}]}),
            &[
                "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                "spec.hostAliases[1].ip: duplicate ip \"1.1.1.1\"",
            ],
        ),
        (
            container(
                json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"}]}),
            ),
            &[
                "spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped when using apply",
            ],
        ),
        (
            container(
                json!({"resources": {"requests": {"memory": "100m"}}, "ports": [{"containerPort": 1}, {"containerPort": 1}]}),
            ),
            &[
                "spec.containers[0].resources.requests[memory]: fractional byte value \"100m\" is invalid, must be an integer",
                "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
            ],
        ),
        (
            json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]}),
            &[
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ],
        ),
    ];
    for (spec, wanted) in rows {
        assert_eq!(warnings_of(pod(spec.clone())), *wanted, "{spec}");
    }
}

#[test]
fn app_armor_annotations_give_their_warning_before_validation() {
    let key = "container.apparmor.security.beta.kubernetes.io/c";
    let warning = format!(
        "metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
    );
    let warns = |annotation: &str, spec: Value, of_container: Value| {
        let mut given = pod(spec);
        given.set("metadata.annotations", json!({key: annotation}));
        given.set("spec.containers", json!([{"name": "c", "image": " ", "securityContext": of_container}]));
        let strategy = resource(&KubeletAddresses::default(), None).strategy;
        let warnings = strategy.preparation_warnings(&given);
        assert!(!create(given).1.is_empty());
        assert!(warnings.is_empty() || warnings == [warning.as_str()], "{warnings:?}");
        !warnings.is_empty()
    };
    let default = || json!({"appArmorProfile": {"type": "RuntimeDefault"}});
    assert!(warns("LOCALHOST/PROF", json!({}), json!({})));
    assert!(warns("runtime/default", json!({}), json!({})));
    assert!(warns("unconfined", json!({"securityContext": default()}), json!({})));
    assert!(!warns("runtime/default", json!({"securityContext": default()}), json!({})));
    assert!(!warns("runtime/default", json!({}), default()));
    assert!(!warns("unconfined", json!({}), default()));
}

#[test]
fn pod_level_defaults_follow_what_admission_sets() {
    let limited = json!({"resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}}});
    let mut given = pod(limited);
    given.set(
        "spec.containers",
        json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]),
    );
    let strategy = resource(&KubeletAddresses::default(), None).strategy;
    strategy.canonicalize(&mut given);
    assert_eq!(given["spec"]["resources"]["requests"], json!({"cpu": "2", "memory": "1Gi"}));
}
