use super::*;
use pintle_machinery::{Value, ValueExt, json};

/// A pod that passes every check of every version.
fn hardened() -> Value {
    json!({"metadata": {"name": "p"}, "spec": {
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        }}],
    }})
}

/// The violations of a level, such as `baseline:v1.30`, by the pod that `change` makes of a hardened one.
fn violations(policy: &str, change: impl FnOnce(&mut Value)) -> String {
    let (level, version) = policy.split_once(':').unwrap();
    let policy = LevelVersion { level: level.parse().unwrap(), version: version.parse().unwrap() };
    let mut pod = hardened();
    change(&mut pod);
    evaluate(policy, &Pod::new(&pod).unwrap()).to_string()
}

fn set(path: &'static str, value: Value) -> impl FnOnce(&mut Value) {
    move |pod| pod.set(path, value)
}

/// Sets a value of the only container.
fn set_in_container(path: &'static str, value: Value) -> impl FnOnce(&mut Value) {
    move |pod| pod.items_at_mut("spec.containers")[0].set(path, value)
}

#[test]
fn a_hardened_pod_violates_nothing() {
    for policy in
        ["privileged:latest", "baseline:v1.0", "restricted:v1.0", "restricted:v1.24", "restricted:latest"]
    {
        assert_eq!(violations(policy, |_| ()), "", "{policy}");
    }
}

#[test]
fn privileged_allows_everything() {
    assert_eq!(violations("privileged:latest", set("spec.hostNetwork", json!(true))), "");
}

#[test]
fn baseline_forbids_what_escalates_privileges() {
    let check = |change: Box<dyn FnOnce(&mut Value)>, expected: &str| {
        assert_eq!(violations("baseline:latest", change), expected);
    };
    check(
        Box::new(|pod| {
            pod.set("spec.hostNetwork", true);
            pod.set("spec.hostIPC", true);
        }),
        "host namespaces (hostNetwork=true, hostIPC=true)",
    );
    check(
        Box::new(set_in_container("securityContext.privileged", json!(true))),
        "privileged (container \"c\" must not set securityContext.privileged=true)",
    );
    check(
        Box::new(set_in_container(
            "securityContext.capabilities.add",
            json!(["CHOWN", "SYS_ADMIN", "NET_RAW"]),
        )),
        "non-default capabilities (container \"c\" must not include \"NET_RAW\", \"SYS_ADMIN\" in \
         securityContext.capabilities.add)",
    );
    check(
        Box::new(set("spec.volumes", json!([{"name": "v", "hostPath": {}}, {"name": "e", "emptyDir": {}}]))),
        "hostPath volumes (volume \"v\")",
    );
    check(
        Box::new(|pod| {
            let ports = json!([{"hostPort": 8080}, {"hostPort": 90}, {"containerPort": 1}]);
            pod.set("spec.initContainers", json!([{"name": "i", "ports": ports}]));
            pod.items_at_mut("spec.containers")[0].set("ports", ports);
        }),
        "hostPort (containers \"i\", \"c\" use hostPorts 8080, 90)",
    );
    check(
        Box::new(set_in_container("livenessProbe", json!({"httpGet": {"host": "10.0.0.1"}}))),
        "probe or lifecycle host (container \"c\" uses probe or lifecycle host \"10.0.0.1\")",
    );
    check(
        Box::new(set_in_container("securityContext.procMount", json!("Unmasked"))),
        "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
    );
    check(
        Box::new(|pod| {
            pod.set("spec.securityContext.seLinuxOptions", json!({"type": "spc_t", "user": "u"}));
            pod.items_at_mut("spec.containers")[0]
                .set("securityContext.seLinuxOptions", json!({"role": "r"}));
        }),
        "seLinuxOptions (pod and container \"c\" set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may \
         not be set; role may not be set)",
    );
    check(
        Box::new(set("spec.securityContext.seccompProfile.type", json!("Unconfined"))),
        "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
    );
    check(
        Box::new(set(
            "spec.securityContext.sysctls",
            json!([{"name": "net.ipv4.tcp_rmem"}, {"name": "kernel.msgmax"}]),
        )),
        "forbidden sysctls (kernel.msgmax)",
    );
    check(
        Box::new(set("spec.securityContext.windowsOptions", json!({"hostProcess": true}))),
        "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
    );
}

#[test]
fn app_armor_profiles_count_in_fields_and_annotations() {
    let unconfined = "container.apparmor.security.beta.kubernetes.io/c";
    let annotate = |pod: &mut Value| pod.set("metadata.annotations", json!({unconfined: "unconfined"}));
    assert_eq!(
        violations("baseline:latest", annotate),
        "forbidden AppArmor profile (annotation must not set AppArmor profile type to \
         \"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")"
    );
    assert_eq!(
        violations("baseline:latest", |pod| {
            annotate(pod);
            pod.set("spec.securityContext.appArmorProfile.type", "Unconfined");
        }),
        "forbidden AppArmor profiles (pod and annotation must not set AppArmor profile type to \"Unconfined\", \
         \"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")"
    );
}

#[test]
fn restricted_forbids_what_is_not_hardened() {
    let check = |change: Box<dyn FnOnce(&mut Value)>, expected: &str| {
        assert_eq!(violations("restricted:latest", change), expected);
    };
    check(
        Box::new(|pod| {
            pod.set("spec.containers", json!([{"name": "a"}, {"name": "b"}]));
            pod.set("spec.securityContext", json!({}));
        }),
        "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set \
         securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers \"a\", \"b\" must set \
         securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or containers \"a\", \"b\" must set \
         securityContext.runAsNonRoot=true), seccompProfile (pod or containers \"a\", \"b\" must set \
         securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
    );
    check(
        Box::new(set(
            "spec.volumes",
            json!([{"name": "v", "hostPath": {}}, {"name": "w"}, {"name": "n", "nfs": {}}]),
        )),
        "restricted volume types (volumes \"v\", \"w\", \"n\" use restricted volume types \"hostPath\", \"nfs\", \"unknown\")",
    );
    check(
        Box::new(set("spec.securityContext.runAsUser", json!(0))),
        "runAsUser=0 (pod must not set runAsUser=0)",
    );
    check(
        Box::new(set_in_container("securityContext.runAsNonRoot", json!(false))),
        "runAsNonRoot != true (container \"c\" must not set securityContext.runAsNonRoot=false)",
    );
    check(
        Box::new(set_in_container("securityContext.capabilities.add", json!(["CHOWN"]))),
        "unrestricted capabilities (container \"c\" must not include \"CHOWN\" in securityContext.capabilities.add)",
    );
}

#[test]
fn rules_apply_from_their_version_on() {
    let check = |policy: &str, change: &dyn Fn(&mut Value), is_allowed: bool| {
        assert_eq!(violations(policy, change).is_empty(), is_allowed, "{policy}");
    };
    let bare: &dyn Fn(&mut Value) = &|pod| pod.set("spec.securityContext", json!({"runAsNonRoot": true}));
    check("restricted:v1.18", bare, true);
    check("restricted:v1.19", bare, false);
    let annotated: &dyn Fn(&mut Value) = &|pod| {
        pod.set("metadata.annotations", json!({"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}))
    };
    check("baseline:v1.18", annotated, false);
    check("baseline:v1.19", annotated, true);
    let sysctl: &dyn Fn(&mut Value) = &|pod| {
        pod.set("spec.securityContext.sysctls", json!([{"name": "net.ipv4.tcp_fin_timeout"}]));
    };
    check("baseline:v1.28", sysctl, false);
    check("baseline:v1.29", sysctl, true);
    let engine: &dyn Fn(&mut Value) =
        &|pod| pod.set("spec.securityContext.seLinuxOptions.type", "container_engine_t");
    check("baseline:v1.30", engine, false);
    check("baseline:v1.31", engine, true);
    let windows: &dyn Fn(&mut Value) = &|pod| {
        pod.set("spec", json!({
            "os": {"name": "windows"}, "containers": [{"name": "c"}], "securityContext": {"runAsNonRoot": true},
        }));
    };
    check("restricted:v1.24", windows, false);
    check("restricted:v1.25", windows, true);
    let in_user_namespace: &dyn Fn(&mut Value) = &|pod| {
        pod.set("spec.hostUsers", false);
        pod.set("spec.securityContext.runAsNonRoot", false);
        pod.set("spec.securityContext.runAsUser", 0);
    };
    check("restricted:v1.34", in_user_namespace, false);
    check("restricted:v1.35", in_user_namespace, true);
    check("restricted:v1.99", in_user_namespace, true);
    // Only baseline lets pods with a user namespace choose the masks of `/proc`.
    let unmasked: &dyn Fn(&mut Value) = &|pod| {
        pod.set("spec.hostUsers", false);
        pod.items_at_mut("spec.containers")[0].set("securityContext.procMount", "Unmasked");
    };
    check("baseline:v1.34", unmasked, false);
    check("baseline:v1.35", unmasked, true);
    check("restricted:v1.35", unmasked, false);
}
