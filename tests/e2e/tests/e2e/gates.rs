//! Tests that gates have their effect: those that are closed by default when they are opened, and none before, and others when
//! they are closed.

use crate::Result;
use pintle_e2e::{Cli, config};
use pintle_harness::{Error, Server};
use serde_json::{Value, json};

/// Gates that are closed by default.
const CLOSED: [&str; 11] = [
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

/// Gates that are open by default.
const OPEN: [&str; 31] = [
    "APIResponseCompression",
    "APIServerIdentity",
    "ContainerRestartRules",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "EnvFiles",
    "ExtendWebSocketsToKubelet",
    "HPAConfigurableTolerance",
    "HostnameOverride",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "KubeletServiceAccountTokenForCredentialProviders",
    "MatchLabelKeysInPodTopologySpread",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "NodeDeclaredFeatures",
    "OpenAPIEnums",
    "PodLevelResources",
    "PodTopologyLabelsAdmission",
    "RelaxedServiceNameValidation",
    "ResourceHealthStatus",
    "ResourceHealthStatusMessage",
    "RestartAllContainersOnContainerExits",
    "ServiceCIDRStatusFieldWiping",
    "StorageVersionHash",
    "StrictIPCIDRValidation",
    "UnknownVersionInteroperabilityProxy",
    "WatchList",
];

/// The effect on a field of an object that kubectl applies.
enum Outcome {
    /// It has this value.
    Is(Value),
    /// The object is refused with this message.
    Refused(&'static str),
}
use Outcome::{Is, Refused};

/// Starts a server with other values of these gates than by default.
fn start(gates: &[&str], is_open: bool) -> Result<Server> {
    let mut config = config()?;
    if !gates.is_empty() {
        let gates: Vec<String> = gates.iter().map(|gate| format!("{gate}={is_open}")).collect();
        config = config.flag(format!("--feature-gates={}", gates.join(",")));
    }
    let server = Server::start(config)?;
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

fn apply(server: &Server, object: &Value) -> std::result::Result<Value, Error> {
    let arguments = ["apply", "--server-side", "-o", "json", "-f", "-"];
    let applied = Cli::kubectl(server)?.feed(&arguments, &object.to_string())?;
    Ok(serde_json::from_str(&applied)?)
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
    let (open, closed) = (start(&CLOSED, true)?, start(&[], true)?);
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
        let server = start(if is_open { &CLOSED } else { &[] }, true)?;
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

#[test]
fn fields_of_closed_gates_are_dropped() -> Result {
    let device = json!({
        "name": "a",
        "taints": [{"key": "k", "effect": "NoExecute"}],
        "allowMultipleAllocations": true,
        "capacity": {"memory": {"value": "1Gi", "requestPolicy": {"default": "1Gi", "validValues": ["1Gi"]}}},
        "bindsToNode": true,
        "bindingConditions": ["c"],
        "bindingFailureConditions": ["f"],
    });
    let counters = object(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "counters",
        json!({
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": {"name": "counters", "generation": 1, "resourceSliceCount": 1},
            "sharedCounters": [{"name": "s", "counters": {"c": {"value": "1"}}}],
        }),
    );
    let exactly = json!({
        "deviceClassName": "c",
        "tolerations": [{"operator": "Exists"}],
        "capacity": {"requests": {"memory": "1Gi"}},
    });
    let claim = json!({"devices": {"requests": [{"name": "a", "exactly": exactly}]}});
    let alternatives = json!({"devices": {"requests": [
        {"name": "a", "firstAvailable": [{"name": "b", "deviceClassName": "c"}]},
    ]}});
    let autoscaler = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "maxReplicas": 2,
        "behavior": {"scaleDown": {"tolerance": "100m"}},
    });
    let variables = json!({
        "volumes": [{"name": "v", "emptyDir": {}}],
        "initContainers": [{"name": "i", "image": "registry.example.com/c:1", "env": [{
            "name": "A",
            "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "k"}},
        }]}],
    });
    let variable = "/spec/initContainers/0/env/0/valueFrom/fileKeyRef/key";
    let restarted = json!({"initContainers": [
        {"name": "i", "image": "registry.example.com/c:1", "restartPolicy": "Never"},
    ]});
    let spread = json!({"topologySpreadConstraints": [{
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["version"],
    }]});
    let server = json!({"dnsConfig": {"nameservers": ["010.0.0.1"]}});
    let devices = slice("devices", &device);
    let claim = object("resource.k8s.io/v1", "ResourceClaim", "claim", claim);
    let requests = "/spec/devices/requests/0";
    let dropped = Is(Value::Null);
    let cases = [
        (&devices, "/spec/devices/0/taints/0/effect", Is(json!("NoExecute")), &dropped),
        (&devices, "/spec/devices/0/allowMultipleAllocations", Is(json!(true)), &dropped),
        (&devices, "/spec/devices/0/capacity/memory/requestPolicy/default", Is(json!("1Gi")), &dropped),
        (&devices, "/spec/devices/0/bindingConditions", Is(json!(["c"])), &dropped),
        (&counters, "/spec/sharedCounters/0/name", Is(json!("s")), &dropped),
        (&claim, &format!("{requests}/exactly/tolerations/0/operator"), Is(json!("Exists")), &dropped),
        (&claim, &format!("{requests}/exactly/capacity/requests/memory"), Is(json!("1Gi")), &dropped),
        (
            &object("resource.k8s.io/v1", "ResourceClaim", "alternatives", alternatives),
            &format!("{requests}/firstAvailable/0/name"),
            Is(json!("b")),
            &Refused("exactly one of `exactly` or `firstAvailable` is required"),
        ),
        (
            &object(
                "resource.k8s.io/v1",
                "DeviceClass",
                "class",
                json!({"extendedResourceName": "example.com/gpu"}),
            ),
            "/spec/extendedResourceName",
            Is(json!("example.com/gpu")),
            &dropped,
        ),
        (
            &object("autoscaling/v2", "HorizontalPodAutoscaler", "h", autoscaler),
            "/spec/behavior/scaleDown/tolerance",
            Is(json!("100m")),
            &dropped,
        ),
        (&pod("hosts", json!({"hostnameOverride": "h"})), "/spec/hostnameOverride", Is(json!("h")), &dropped),
        (
            &pod("whole", json!({"resources": {"limits": {"cpu": "1"}}})),
            "/spec/resources/limits/cpu",
            Is(json!("1")),
            &dropped,
        ),
        (&pod("restarted", restarted), "/spec/initContainers/0/restartPolicy", Is(json!("Never")), &dropped),
        (
            &pod("spread", spread),
            "/spec/topologySpreadConstraints/0/matchLabelKeys",
            Is(json!(["version"])),
            &dropped,
        ),
        (
            &pod("server", server),
            "/spec/dnsConfig/nameservers/0",
            Refused("spec.dnsConfig.nameservers[0]: Invalid value: \"010.0.0.1\": must not have leading 0s"),
            &Is(json!("010.0.0.1")),
        ),
        (
            &object("v1", "Service", "1st", json!({"ports": [{"port": 80}]})),
            "/metadata/name",
            Is(json!("1st")),
            &Refused("a DNS-1035 label must consist of lower case alphanumeric characters"),
        ),
        (
            &pod("variables", variables),
            variable,
            Is(json!("k")),
            &Refused(
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
            ),
        ),
    ];
    let (open, closed) = (start(&[], true)?, start(&OPEN, false)?);
    for (object, pointer, with, without) in cases {
        for (server, outcome) in [(&open, &with), (&closed, without)] {
            check(pointer, apply(server, object), pointer, outcome)?;
        }
    }
    Ok(())
}

#[test]
fn what_a_server_tells_follows_its_gates() -> Result {
    const NODE_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node";
    const LARGE: &str = "/api/v1/namespaces/default/configmaps/large";
    const WATCH: &str = "/api/v1/namespaces?watch=true&sendInitialEvents=true&timeoutSeconds=1\
                         &resourceVersionMatch=NotOlderThan";
    for is_open in [true, false] {
        let server = start(if is_open { &[] } else { &OPEN }, false)?;
        let client = server.client()?;
        let has = |path: &str, part: &str| -> std::result::Result<bool, Error> {
            Ok(client.get(path)?.text().contains(part))
        };
        assert_eq!(has("/api/v1", "storageVersionHash")?, is_open);
        assert_eq!(has("/openapi/v3/api/v1", "\"enum\":[")?, is_open);
        assert_eq!(has("/openapi/v2", "\"enum\":[")?, is_open);
        assert_eq!(has(NODE_ROLE, "serviceaccounts\"")?, is_open);
        assert_eq!(
            has("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", "\"apiserver-")?,
            is_open
        );
        let refusal = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        assert_eq!(has(WATCH, refusal)?, !is_open);
        let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"},
            "data": {"a": "x".repeat(200_000)}});
        Cli::kubectl(&server)?.feed(&["create", "-f", "-"], &large.to_string())?;
        let read = client.connect()?.request("GET", LARGE, &[("accept-encoding", "gzip")], b"")?;
        assert_eq!(read.header("content-encoding"), is_open.then_some("gzip"));
    }
    Ok(())
}
