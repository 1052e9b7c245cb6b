use super::*;
use pintle_machinery::json;

fn service(spec: Value) -> Value {
    let mut service = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": spec});
    super::super::defaults::set_defaults(&mut service);
    super::super::change::normalize_cluster_ips(&mut service, None);
    service
}

fn messages(errors: ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn new_services_are_checked() {
    let check = |spec: Value, expected: &[&str]| {
        assert_eq!(messages(validate_create(&service(spec.clone()))), expected, "{spec}");
    };
    let between = "must be between 1 and 65535, inclusive";
    check(json!({"ports": [{"port": 80}]}), &[]);
    check(json!({}), &["spec.ports: Required value"]);
    check(json!({"clusterIP": "None"}), &[]);
    check(
        json!({"ports": [{"port": 0}]}),
        &[
            &format!("spec.ports[0].port: Invalid value: 0: {between}"),
            &format!("spec.ports[0].targetPort: Invalid value: 0: {between}"),
        ],
    );
    check(
        json!({"ports": [{"port": 80}, {"port": 81}]}),
        &["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
    );
    check(
        json!({"ports": [{"name": "a", "port": 80}, {"name": "a", "port": 80}]}),
        &[
            r#"spec.ports[1].name: Duplicate value: "a""#,
            r#"spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}"#,
        ],
    );
    check(
        json!({"ports": [{"port": 80, "protocol": "tcp", "targetPort": "8080", "nodePort": 30001}]}),
        &[
            r#"spec.ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP""#,
            r#"spec.ports[0].targetPort: Invalid value: "8080": must contain at least one letter (a-z)"#,
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ],
    );
    check(
        json!({"type": "Cluster", "ports": [{"port": 80}]}),
        &[
            r#"spec.type: Unsupported value: "Cluster": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort""#,
        ],
    );
    check(
        json!({"type": "NodePort", "clusterIP": "None", "ports": [{"port": 80}]}),
        &[r#"spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services"#],
    );
    check(
        json!({
            "type": "ExternalName", "externalName": ".", "clusterIP": "10.0.0.3", "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "externalTrafficPolicy": "Local"
        }),
        &[
            "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
            "spec.ipFamilies: Forbidden: may not be set for ExternalName services",
            "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services",
            "spec.externalName: Required value",
            r#"spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services"#,
        ],
    );
    check(
        json!({
            "ports": [{"port": 80}], "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}}
        }),
        &[
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400",
        ],
    );
    check(
        json!({
            "ports": [{"port": 80}], "externalIPs": ["x", "127.0.0.1"], "internalTrafficPolicy": "Zone",
            "healthCheckNodePort": 30002, "trafficDistribution": "Far", "loadBalancerClass": "a/b",
            "loadBalancerSourceRanges": ["10.0.0.0"], "allocateLoadBalancerNodePorts": true
        }),
        &[
            r#"spec.externalIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
            r#"spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)"#,
            "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
            r#"spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#,
            "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'",
            "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
            "spec.healthCheckNodePort: Invalid value: 30002: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            r#"spec.internalTrafficPolicy: Unsupported value: "Zone": supported values: "Cluster", "Local""#,
            r#"spec.trafficDistribution: Unsupported value: "Far": supported values: "PreferClose", "PreferSameZone", "PreferSameNode""#,
        ],
    );
}

#[test]
fn cluster_ips_are_checked() {
    let check = |spec: Value, expected: &[&str]| {
        let mut service = service(json!({"ports": [{"port": 80}]}));
        for (name, value) in spec.as_object().unwrap() {
            service.set(&format!("spec.{name}"), value.clone());
        }
        assert_eq!(messages(validate_cluster_ips(&service, None)), expected, "{spec}");
    };
    check(
        json!({"clusterIP": "10.0.0.3", "clusterIPs": ["10.0.0.4"]}),
        &[r#"spec.clusterIPs: Invalid value: ["10.0.0.4"]: first value must match `clusterIP`"#],
    );
    check(
        json!({"clusterIPs": ["10.0.0.3"]}),
        &[r#"spec.clusterIPs: Invalid value: ["10.0.0.3"]: must be empty when `clusterIP` is not specified"#],
    );
    check(
        json!({"clusterIP": "10.0.0.6", "clusterIPs": ["10.0.0.6", "10.0.0.7", "10.0.0.8"]}),
        &[
            r#"spec.clusterIPs: Invalid value: ["10.0.0.6","10.0.0.7","10.0.0.8"]: may only hold up to 2 values"#,
            r#"spec.clusterIPs: Invalid value: ["10.0.0.6","10.0.0.7","10.0.0.8"]: may specify no more than one IP for each IP family"#,
        ],
    );
    check(
        json!({"clusterIP": "None", "clusterIPs": ["None", "10.0.0.7"]}),
        &[r#"spec.clusterIPs: Invalid value: ["None","10.0.0.7"]: 'None' must be the first and only value"#],
    );
    check(
        json!({"clusterIP": "10.0.0.6", "clusterIPs": ["10.0.0.6", "fd00::1"], "ipFamilies": ["IPv6", "IPv4"]}),
        &[
            r#"spec.clusterIPs[0]: Invalid value: "10.0.0.6": expected an IPv6 value as indicated by `ipFamilies[0]`"#,
            r#"spec.clusterIPs[1]: Invalid value: "fd00::1": expected an IPv4 value as indicated by `ipFamilies[1]`"#,
        ],
    );
    check(
        json!({"ipFamilies": ["IPv4", "IPv4", "IPv5"], "ipFamilyPolicy": "Dual"}),
        &[
            r#"spec.ipFamilies[1]: Duplicate value: "IPv4""#,
            r#"spec.ipFamilies[2]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6""#,
            r#"spec.ipFamilyPolicy: Unsupported value: "Dual": supported values: "PreferDualStack", "RequireDualStack", "SingleStack""#,
        ],
    );
}

#[test]
fn what_may_not_change_is_told() {
    let check = |old: Value, new: Value, expected: &[&str]| {
        assert_eq!(messages(update::validate_transition(&service(new), &service(old))), expected);
    };
    let with_ip = |ip: &str| json!({"clusterIP": ip, "ipFamilies": ["IPv4"], "ports": [{"port": 80}]});
    check(with_ip("10.0.0.2"), with_ip("10.0.0.2"), &[]);
    check(
        with_ip("10.0.0.2"),
        with_ip("10.0.0.3"),
        &[r#"spec.clusterIPs[0]: Invalid value: ["10.0.0.3"]: may not change once set"#],
    );
    check(
        with_ip("10.0.0.2"),
        with_ip("None"),
        &[r#"spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set"#],
    );
    check(with_ip("10.0.0.2"), json!({"type": "ExternalName", "externalName": "a"}), &[]);
    let balanced = |class: Option<&str>, port: i64| {
        let mut spec = json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": port
        });
        if let Some(class) = class {
            spec["loadBalancerClass"] = class.into();
        }
        spec
    };
    check(
        balanced(Some("a/b"), 30001),
        balanced(None, 30002),
        &[
            "spec.loadBalancerClass: Invalid value: null: may not change once set",
            "spec.healthCheckNodePort: Forbidden: field is immutable",
        ],
    );
}

#[test]
fn status_is_checked() {
    let check = |kind: &str, ingress: Value, expected: &[&str]| {
        let mut service = json!({
            "metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"},
            "spec": {"type": kind}
        });
        let old = service.clone();
        service.set("status.loadBalancer.ingress", json!([ingress]));
        assert_eq!(messages(validate_status_update(&service, &old)), expected);
    };
    check("LoadBalancer", json!({"ip": "192.0.2.1", "ipMode": "VIP"}), &[]);
    check(
        "LoadBalancer",
        json!({"ip": "192.0.2.1.2", "ipMode": "Other"}),
        &[
            r#"status.loadBalancer.ingress[0].ip: Invalid value: "192.0.2.1.2": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
            r#"status.loadBalancer.ingress[0].ipMode: Unsupported value: "Other": supported values: "Proxy", "VIP""#,
        ],
    );
    check(
        "LoadBalancer",
        json!({"hostname": "192.0.2.1", "ipMode": "VIP"}),
        &[
            "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set",
            r#"status.loadBalancer.ingress[0].hostname: Invalid value: "192.0.2.1": must be a DNS name, not an IP address"#,
        ],
    );
    check(
        "ClusterIP",
        json!({"ip": "192.0.2.1"}),
        &["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"],
    );
}

#[test]
fn an_emulated_version_has_one_distribution_of_traffic() {
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};
    let _gates = override_gates(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33))));
    let service = service(json!({"ports": [{"port": 80}], "trafficDistribution": "PreferSameNode"}));
    let shown = messages(validate_create(&service));
    let expected =
        r#"spec.trafficDistribution: Unsupported value: "PreferSameNode": supported values: "PreferClose""#;
    assert!(shown.iter().any(|error| error == expected), "{shown:?}");
}
