//! Defaults pods beyond the defaults of the spec.

use crate::core::pod_spec::{self, containers_of::ContainerKind};
use crate::resource_list;
use pintle_machinery::{Map, Value, ValueExt, json};

/// Applies the defaults of a pod. Idempotent.
pub(super) fn set_defaults(pod: &mut Value) {
    pod.object_at_mut("spec");
    if let Some(spec) = pod.at_mut("spec") {
        set_spec_defaults(spec);
    }
    drop_init_container_annotations(pod);
    if let Some(status) = pod.at_mut("status") {
        set_status_defaults(status);
    }
}

fn set_spec_defaults(spec: &mut Value) {
    for kind in [ContainerKind::Regular, ContainerKind::Init] {
        for container in spec.items_at_mut(kind.field()) {
            default_requests(container);
        }
    }
    resource_list::set_pod_level_defaults(spec);
    spec.set_default("enableServiceLinks", true);
    if spec.bool_at("hostNetwork") {
        for kind in [ContainerKind::Regular, ContainerKind::Init] {
            for container in spec.items_at_mut(kind.field()) {
                default_host_ports(container);
            }
        }
    }
    pod_spec::set_defaults(spec);
    // A negative grace period becomes one second; templates keep it.
    if spec.i64_at("terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        spec.set("terminationGracePeriodSeconds", 1);
    }
}

/// Defaults requests to the limits.
fn default_requests(container: &mut Value) {
    let limits: Map = container.map_at("resources.limits").clone();
    if limits.is_empty() {
        return;
    }
    let requests = container.object_at_mut("resources.requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

/// Defaults host ports to container ports in the host's network.
fn default_host_ports(container: &mut Value) {
    for port in container.items_at_mut("ports") {
        if port.i64_at("hostPort").unwrap_or_default() == 0
            && let Some(container_port) = port.i64_at("containerPort")
        {
            port.set("hostPort", container_port);
        }
    }
}

/// Former annotations of init containers, which must not reach old kubelets.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// Removes the former annotations of init containers from a pod or template.
pub(in crate::core) fn drop_init_container_annotations(pod: &mut Value) {
    let Some(annotations) = pod.at_mut("metadata.annotations").and_then(Value::as_object_mut) else { return };
    for name in INIT_CONTAINER_ANNOTATIONS {
        annotations.remove(name);
    }
}

fn set_status_defaults(status: &mut Value) {
    // `podIP` is the older field and takes precedence; both are then synchronized.
    let ip = status.str_at("podIP").to_owned();
    let first = status.items_at("podIPs").first().map(|first| first.str_at("ip").to_owned());
    match first {
        Some(first) if ip.is_empty() && !first.is_empty() => status.set("podIP", first),
        first if !ip.is_empty() && first.as_ref() != Some(&ip) => status.set("podIPs", json!([{"ip": ip}])),
        _ => {}
    }
    for statuses in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
        for container in status.items_at_mut(statuses) {
            let lists = ["allocatedResources", "resources.limits", "resources.requests"];
            resource_list::round_up_at(container, &lists);
        }
    }
    resource_list::round_up_at(status, &["allocatedResources", "resources.limits", "resources.requests"]);
}

#[cfg(test)]
mod tests {
    use super::set_defaults;
    use pintle_machinery::{Value, json};

    fn check(rows: &[(Value, Value)]) {
        for (given, wanted) in rows {
            let mut pod = given.clone();
            set_defaults(&mut pod);
            let again = {
                let mut again = pod.clone();
                set_defaults(&mut again);
                again
            };
            assert_eq!(again, pod, "defaulting twice changes {given}");
            for (path, value) in wanted.as_object().unwrap() {
                assert_eq!(pod.pointer(path).unwrap_or(&Value::Null), value, "{path} of {given}");
            }
        }
    }

    #[test]
    fn a_minimal_pod_gets_what_every_pod_has() {
        let mut pod = json!({"spec": {"containers": [{"name": "c", "image": "nginx"}]}});
        set_defaults(&mut pod);
        let wanted = json!({"spec": {
            "containers": [{
                "name": "c", "image": "nginx", "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
        }});
        assert_eq!(pod, wanted);
    }

    #[test]
    fn what_is_left_out_follows_from_what_is_said() {
        check(&[
            (
                json!({"spec": {"terminationGracePeriodSeconds": -1}}),
                json!({"/spec/terminationGracePeriodSeconds": 1}),
            ),
            (
                json!({"spec": {"terminationGracePeriodSeconds": 0}}),
                json!({"/spec/terminationGracePeriodSeconds": 0}),
            ),
            (
                json!({"spec": {"serviceAccount": "a"}}),
                json!({"/spec/serviceAccountName": "a", "/spec/serviceAccount": "a"}),
            ),
            (
                json!({"spec": {"serviceAccount": "a", "serviceAccountName": "b"}}),
                json!({"/spec/serviceAccountName": "b", "/spec/serviceAccount": "b"}),
            ),
            (
                json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}]}}),
                json!({"/spec/containers/0/resources/requests": {"cpu": "500m", "memory": "1Gi"}}),
            ),
            (
                json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "0.1m"}}}]}}),
                json!({
                    "/spec/containers/0/resources/requests": {"cpu": "1m"},
                    "/spec/containers/0/resources/limits": {"cpu": "1m"},
                }),
            ),
            (
                json!({"spec": {"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}]}]}}),
                json!({"/spec/containers/0/ports/0": {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}}),
            ),
            (
                json!({"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 80}}}]}}),
                json!({"/spec/containers/0/livenessProbe": {
                    "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "failureThreshold": 3,
                    "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
                }}),
            ),
            (
                json!({"spec": {"containers": [{"livenessProbe": {"grpc": {"port": 80}}}]}}),
                json!({"/spec/containers/0/livenessProbe/grpc": {"port": 80, "service": ""}}),
            ),
            (
                json!({"spec": {"containers": [{"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "f"}}}]}]}}),
                json!({"/spec/containers/0/env/0/valueFrom/fieldRef": {"fieldPath": "f", "apiVersion": "v1"}}),
            ),
            (
                json!({"spec": {"volumes": [{"name": "v"}]}}),
                json!({"/spec/volumes/0": {"name": "v", "emptyDir": {}}}),
            ),
            (
                json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}),
                json!({"/spec/volumes/0/hostPath": {"path": "/", "type": ""}}),
            ),
            (
                json!({"spec": {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}}),
                json!({"/spec/volumes/0/projected": {
                    "defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}}],
                }}),
            ),
            (json!({"status": {"podIP": "10.0.0.1"}}), json!({"/status/podIPs": [{"ip": "10.0.0.1"}]})),
            (
                json!({"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]}}),
                json!({"/status/podIPs": [{"ip": "10.0.0.1"}]}),
            ),
            (
                json!({"status": {"podIPs": [{"ip": "10.0.0.2"}, {"ip": "::1"}]}}),
                json!({"/status/podIP": "10.0.0.2"}),
            ),
            (
                json!({"metadata": {"annotations": {"pod.beta.kubernetes.io/init-containers": "x", "a": "b"}}}),
                json!({"/metadata/annotations": {"a": "b"}}),
            ),
        ]);
    }
}
