use super::{
    binding::Subject,
    object::{AUTO_UPDATE, object},
    *,
};
use pintle_feature_gates::{EffectiveVersion, FeatureGates, Gate, MinorVersion, testing::override_gates};
use pintle_machinery::{GroupResource, Value, ValueExt, json, meta::ObjectMeta};
use pintle_rbac::GROUP_NAME;
use pintle_registry::{
    DeleteOptions, WriteOptions,
    testing::{MemoryRegistry, now},
};

fn cluster(resource: &str) -> GroupResource {
    GroupResource::new(GROUP_NAME, resource)
}

fn change(registry: &MemoryRegistry, resource: &str, name: &str, change: impl Fn(&mut Value) + Send + Sync) {
    let change = |mut object: Value| {
        change(&mut object);
        Ok(object)
    };
    let resource = cluster(resource);
    now(registry.update(&resource, "", name, Box::new(change), WriteOptions::default())).unwrap();
}

#[test]
fn a_fresh_server_gets_its_roles_once() {
    let registry = MemoryRegistry::default();
    now(reconcile(&registry)).unwrap();
    let role = registry.stored(&cluster("clusterroles"), "", "system:basic-user").unwrap();
    assert_eq!(role["metadata"]["labels"], json!({"kubernetes.io/bootstrapping": "rbac-defaults"}));
    assert_eq!(role["rules"][1]["resources"], json!(["selfsubjectreviews"]));
    let role = registry.stored(&cluster("clusterroles"), "", "edit").unwrap();
    assert_eq!(role.at("rules"), None);
    let label = json!({"rbac.authorization.k8s.io/aggregate-to-edit": "true"});
    assert_eq!(role["aggregationRule"], json!({"clusterRoleSelectors": [{"matchLabels": label}]}));
    let name = "system:controller:job-controller";
    let binding = registry.stored(&cluster("clusterrolebindings"), "", name).unwrap();
    let account = json!({"kind": "ServiceAccount", "name": "job-controller", "namespace": "kube-system"});
    assert_eq!(binding["subjects"], json!([account]));
    let roles = now(registry.list(&cluster("roles"), "kube-system")).unwrap();
    assert_eq!(roles.len(), 6);
    let revision = registry.revision();
    now(reconcile(&registry)).unwrap();
    assert_eq!(registry.revision(), revision);
}

#[test]
fn what_is_missing_is_added_and_what_was_added_stays() {
    let registry = MemoryRegistry::default();
    now(reconcile(&registry)).unwrap();
    let stored = |resource, name| registry.stored(&cluster(resource), "", name).unwrap();
    let extra = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let wanted = stored("clusterroles", "system:auth-delegator")["rules"].clone();
    change(&registry, "clusterroles", "system:auth-delegator", |role| {
        role.set("rules", json!([extra, wanted[1]]));
        role.set("metadata.labels", json!({"mine": "yes"}));
        role.set("aggregationRule", json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}));
    });
    change(&registry, "clusterroles", "view", |role| {
        role.set("aggregationRule", json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}));
        role.set("rules", json!([extra]));
    });
    change(&registry, "clusterrolebindings", "system:discovery", |binding| {
        binding.set("subjects", json!([Subject::User("jane").object()]));
    });
    let mut kept = Value::Null;
    for (resource, name) in [("clusterroles", "edit"), ("clusterrolebindings", "system:basic-user")] {
        change(&registry, resource, name, |object| {
            object.set("metadata.annotations", json!({(AUTO_UPDATE): "false"}));
            object.remove_at("aggregationRule");
            object.remove_at("subjects");
        });
        kept = stored(resource, name);
    }
    now(reconcile(&registry)).unwrap();
    let role = stored("clusterroles", "system:auth-delegator");
    assert_eq!(role["rules"], json!([extra, wanted[1], wanted[0]]));
    assert_eq!(
        role["metadata"]["labels"],
        json!({"mine": "yes", "kubernetes.io/bootstrapping": "rbac-defaults"})
    );
    assert_eq!(role.at("aggregationRule"), None);
    let role = stored("clusterroles", "view");
    assert_eq!(role["aggregationRule"]["clusterRoleSelectors"].as_array().unwrap().len(), 2);
    assert_eq!(role["rules"], json!([extra]));
    let binding = stored("clusterrolebindings", "system:discovery");
    assert_eq!(
        binding["subjects"],
        json!([Subject::User("jane").object(), Subject::Group("system:authenticated").object()])
    );
    assert_eq!(stored("clusterroles", "edit").at("aggregationRule"), None);
    assert_eq!(stored("clusterrolebindings", "system:basic-user"), kept);
}

#[test]
fn a_binding_to_another_role_is_made_anew() {
    let registry = MemoryRegistry::default();
    let resource = cluster("clusterrolebindings");
    let mut other = binding::without_subjects("", "system:monitoring", "cluster-admin");
    now(registry.create(&resource, "", other.clone(), WriteOptions::default())).unwrap();
    now(reconcile(&registry)).unwrap();
    let made = registry.stored(&resource, "", "system:monitoring").unwrap();
    assert_eq!(made["roleRef"]["name"], "system:monitoring");
    assert_eq!(made["subjects"], json!([Subject::Group("system:monitoring").object()]));

    other.set("metadata.annotations", json!({(AUTO_UPDATE): "false"}));
    now(registry.delete(&resource, "", other.name(), DeleteOptions::default())).unwrap();
    now(registry.create(&resource, "", other, WriteOptions::default())).unwrap();
    now(reconcile(&registry)).unwrap();
    let kept = registry.stored(&resource, "", "system:monitoring").unwrap();
    assert_eq!(kept["roleRef"]["name"], "cluster-admin");
}

#[test]
fn old_clusters_keep_what_they_had() {
    let registry = MemoryRegistry::default();
    let create = |resource: &str, object: Value| {
        now(registry.create(&cluster(resource), "", object, WriteOptions::default())).unwrap();
    };
    let mut edit = object("ClusterRole", "", "edit");
    let own = json!({"apiGroups": ["shop"], "resources": ["carts"], "verbs": ["get"]});
    edit.set("rules", json!([own]));
    create("clusterroles", edit);
    let mut discovery = binding::without_subjects("", "system:discovery", "system:discovery");
    discovery.set("subjects", json!([Subject::Group("a").object()]));
    create("clusterrolebindings", discovery);
    now(reconcile(&registry)).unwrap();
    let role = registry.stored(&cluster("clusterroles"), "", "system:aggregate-to-edit").unwrap();
    assert_eq!(role["rules"][0], own);
    assert!(role["rules"].as_array().unwrap().len() > 10);
    let viewer = registry.stored(&cluster("clusterrolebindings"), "", "system:public-info-viewer").unwrap();
    assert_eq!(viewer["subjects"][0], Subject::Group("a").object());
}

#[test]
fn parts_behind_closed_gates_are_left_out() {
    let registry = MemoryRegistry::default();
    now(reconcile(&registry)).unwrap();
    let closed = "system:cluster-trust-bundle-discovery";
    for resource in ["clusterroles", "clusterrolebindings"] {
        assert_eq!(registry.stored(&cluster(resource), "", closed), None);
    }
    let role = registry.stored(&cluster("clusterroles"), "", "system:aggregate-to-view").unwrap();
    let groups: Vec<&Value> = role.items_at("rules").iter().map(|rule| &rule["apiGroups"]).collect();
    assert!(
        groups.contains(&&json!(["resource.k8s.io"])) && !groups.contains(&&json!(["scheduling.k8s.io"]))
    );
}

#[test]
fn gates_that_an_emulated_version_closes_close_their_parts() {
    let emulated = EffectiveVersion::emulating(MinorVersion::new(1, 33));
    let _gates = override_gates(
        &FeatureGates::new(emulated)
            .with(Gate::KubeletServiceAccountTokenForCredentialProviders, false)
            .with(Gate::KubeletFineGrainedAuthz, false)
            .with(Gate::SELinuxChangePolicy, false),
    );
    let registry = MemoryRegistry::default();
    now(reconcile(&registry)).unwrap();
    let stored = |name: &str| registry.stored(&cluster("clusterroles"), "", name);
    for closed in [
        "resource-claim-controller",
        "selinux-warning-controller",
        "volumeattributesclass-protection-controller",
    ] {
        assert_eq!(stored(&format!("system:controller:{closed}")), None);
    }
    let admin = stored("system:kubelet-api-admin").unwrap();
    assert!(!admin.to_string().contains("nodes/healthz") && admin.to_string().contains("nodes/log"));
    for (name, count) in [
        ("system:aggregate-to-edit", 14),
        ("system:aggregate-to-view", 11),
        ("system:kube-scheduler", 20),
        ("system:node", 22),
    ] {
        assert_eq!(stored(name).unwrap().items_at("rules").len(), count, "{name}");
    }
    let urls = |role: Value| role["rules"][0]["nonResourceURLs"].clone();
    let expected =
        ["/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*"];
    assert_eq!(urls(stored("system:monitoring").unwrap()), json!(expected));
}
