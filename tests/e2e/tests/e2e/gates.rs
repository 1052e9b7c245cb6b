//! Tests that gates which are closed by default have their effect when they are opened, and none before.

use crate::Result;
use pintle_e2e::{Cli, config};
use pintle_harness::{Error, Server};
use serde_json::{Value, json};

/// The gates of these tests.
const GATES: [&str; 11] = [
    "CrossNamespaceVolumeDataSource",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "HPAScaleToZero",
    "ImageVolumeWithDigest",
    "MaxUnavailableStatefulSet",
    "MutablePVNodeAffinity",
    "PodLogsQuerySplitStreams",
    "SELinuxMount",
    "UserNamespacesHostNetworkSupport",
    "VolumeLimitScaling",
];

/// What becomes of a field of an object that kubectl applies.
enum Outcome {
    /// It has this value.
    Is(Value),
    /// The object is refused with this message.
    Refused(&'static str),
}
use Outcome::{Is, Refused};

/// Starts a server, with these gates or without.
fn start(is_open: bool) -> Result<Server> {
    let open: Vec<String> = GATES.iter().map(|gate| format!("{gate}=true")).collect();
    let config = config()?;
    let server = Server::start(if is_open {
        config.flag(format!("--feature-gates={}", open.join(",")))
    } else {
        config
    })?;
    Cli::kubectl(&server)?.run(&["create", "serviceaccount", "default"])?;
    Ok(server)
}

fn check(case: &str, answer: std::result::Result<Value, Error>, pointer: &str, outcome: &Outcome) -> Result {
    match (answer, outcome) {
        (Ok(object), Is(value)) => {
            assert_eq!(object.pointer(pointer).unwrap_or(&Value::Null), value, "{case}: {object}");
        }
        (Err(error), Refused(message)) => assert!(error.to_string().contains(message), "{case}: {error}"),
        (Ok(object), Refused(_)) => panic!("{case}: accepted: {object}"),
        (Err(error), Is(_)) => return Err(format!("{case}: {error}").into()),
    }
    Ok(())
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn pod(name: &str, mut spec: Value) -> Value {
    spec["containers"] = json!([{"name": "c", "image": "registry.example.com/c:1"}]);
    object("v1", "Pod", name, spec)
}

fn slice(name: &str, device: &Value) -> Value {
    object(
        "resource.k8s.io/v1",
        "ResourceSlice",
        name,
        json!({
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        }),
    )
}

#[test]
fn fields_behind_gates_are_kept_and_validated() -> Result {
    let scaler = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "minReplicas": 0,
        "maxReplicas": 2,
        "metrics": [{"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}],
    });
    let stateful_set = json!({
        "selector": {"matchLabels": {"app": "s"}},
        "template": {
            "metadata": {"labels": {"app": "s"}},
            "spec": {"containers": [{"name": "c", "image": "registry.example.com/c:1"}]},
        },
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
    });
    let claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "a", "namespace": "b"},
    });
    let lists = json!({"name": "a", "attributes": {"lanes": {"ints": [1, 2]}}});
    let empty = json!({"name": "a", "attributes": {"lanes": {"int": 1, "ints": []}}});
    let mapped = json!({"name": "a", "capacity": {"memory": {"value": "1Gi"}},
        "nodeAllocatableResourceMappings": {"memory": {"capacityKey": "memory"}}});
    let class = json!({"selectors": [{"cel": {"expression": "device.attributes['gpu.example.com'].lanes.includes(1)"}}]});
    let cases = [
        (
            object("autoscaling/v2", "HorizontalPodAutoscaler", "h", scaler),
            "/spec/minReplicas",
            Is(json!(0)),
            Refused("spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"),
        ),
        (
            object("apps/v1", "StatefulSet", "s", stateful_set),
            "/spec/updateStrategy/rollingUpdate/maxUnavailable",
            Is(json!("25%")),
            Is(Value::Null),
        ),
        (
            object("storage.k8s.io/v1", "CSIDriver", "gpu.example.com", json!({})),
            "/spec/preventPodSchedulingIfMissing",
            Is(json!(false)),
            Is(Value::Null),
        ),
        (
            pod("mounts", json!({"securityContext": {"seLinuxChangePolicy": "MountOption"}})),
            "/spec/securityContext/seLinuxChangePolicy",
            Is(json!("MountOption")),
            Refused("Unsupported value: \"MountOption\""),
        ),
        (
            pod("users", json!({"hostUsers": false, "hostNetwork": true})),
            "/spec/hostNetwork",
            Is(json!(true)),
            Refused("spec.hostNetwork: Forbidden: when `hostUsers` is false"),
        ),
        (
            object("v1", "PersistentVolumeClaim", "c", claim),
            "/spec/dataSourceRef/namespace",
            Is(json!("b")),
            Is(Value::Null),
        ),
        (
            slice("lists", &lists),
            "/spec/devices/0/attributes/lanes/ints",
            Is(json!([1, 2])),
            Refused(
                "spec.devices[0].attributes[lanes]: Invalid value: \"\": exactly one value must be specified",
            ),
        ),
        (
            slice("empty", &empty),
            "/spec/devices/0/attributes/lanes",
            Refused(
                "spec.devices[0].attributes[lanes].ints: Invalid value: []: must not be empty if specified",
            ),
            Is(json!({"int": 1})),
        ),
        (
            slice("mapped", &mapped),
            "/spec/devices/0/nodeAllocatableResourceMappings/memory/allocationMultiplier",
            Is(json!("1")),
            Is(Value::Null),
        ),
        (
            object("resource.k8s.io/v1", "DeviceClass", "class", class),
            "/metadata/name",
            Is(json!("class")),
            Refused("undeclared reference to 'includes'"),
        ),
    ];
    let (open, closed) = (start(true)?, start(false)?);
    for (object, pointer, with, without) in &cases {
        for (server, outcome) in [(&open, with), (&closed, without)] {
            let kubectl = Cli::kubectl(server)?;
            let applied =
                kubectl.feed(&["apply", "--server-side", "-o", "json", "-f", "-"], &object.to_string());
            let applied = applied.and_then(|applied| Ok(serde_json::from_str(&applied)?));
            check(pointer, applied, pointer, outcome)?;
        }
    }
    Ok(())
}

#[test]
fn updates_behind_gates_are_allowed() -> Result {
    let term =
        |zone: &str| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
    let affinity = |zone: &str| json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [term(zone)]}}});
    let mut volume = affinity("a");
    volume["capacity"] = json!({"storage": "1Gi"});
    volume["accessModes"] = json!(["ReadWriteOnce"]);
    volume["hostPath"] = json!({"path": "/x"});
    let moved = json!({"spec": affinity("b")}).to_string();
    let image = |reference: &str| {
        json!({"status": {"containerStatuses": [{
            "name": "c", "image": "registry.example.com/c:1", "imageID": "", "ready": false, "restartCount": 0,
            "volumeMounts": [{"name": "v", "mountPath": "/v", "volumeStatus": {"image": {"imageRef": reference}}}],
        }]}})
        .to_string()
    };
    let zone = "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0";
    let mounted = "/status/containerStatuses/0/volumeMounts/0/volumeStatus/image/imageRef";
    for (is_open, moved_to, reference, none, stdout, other) in [
        (
            true,
            Is(json!("b")),
            Is(json!("registry.example.com/i@sha256:1")),
            Refused("imageRef must not be empty"),
            None,
            "supported values: \"All\", \"Stderr\", \"Stdout\"",
        ),
        (
            false,
            Refused("nodeAffinity: Invalid value"),
            Is(Value::Null),
            Is(Value::Null),
            Some("stream: Forbidden: may not be specified"),
            "stream: Forbidden: may not be specified",
        ),
    ] {
        let server = start(is_open)?;
        let kubectl = Cli::kubectl(&server)?;
        for object in [object("v1", "PersistentVolume", "v", volume.clone()), pod("p", json!({}))] {
            kubectl.feed(&["create", "-f", "-"], &object.to_string())?;
        }
        let patched = kubectl.json(&["patch", "pv", "v", "--type=merge", "-p", &moved]);
        check("a volume that moves", patched, zone, &moved_to)?;
        for (wanted, outcome) in [("registry.example.com/i@sha256:1", reference), ("", none)] {
            let patch = image(wanted);
            let arguments = ["patch", "pod", "p", "--subresource=status", "--type=merge", "-p", &patch];
            check("the image of a volume", kubectl.json(&arguments), mounted, &outcome)?;
        }
        // The pod has no node, so that there is no log yet.
        let log = |query: &str| format!("/api/v1/namespaces/default/pods/p/log?{query}");
        match stdout {
            None => assert_eq!(kubectl.run(&["get", "--raw", &log("stream=Stdout")])?, ""),
            Some(message) => {
                let error = kubectl.fails(&["get", "--raw", &log("stream=Stdout")])?;
                assert!(error.contains(message), "{error}");
            }
        }
        let error = kubectl.fails(&["get", "--raw", &log("stream=other")])?;
        assert!(error.contains(other), "{error}");
    }
    Ok(())
}
