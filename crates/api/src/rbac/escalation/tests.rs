use super::*;
use pintle_machinery::{GroupVersion, UserInfo, json};
use pintle_rbac::{RoleBinding, RoleRef, Subject};
use pintle_registry::{
    Registry, WriteOptions,
    testing::{MemoryRegistry, now},
};

/// Jane may read pods in `shop` and has `rules` in the whole cluster.
fn rbac(rules: &Value) -> Rbac {
    let rbac = Rbac::default();
    let given = |namespace: &str, kind: &str, name: &str| RoleBinding {
        namespace: namespace.into(),
        name: name.into(),
        role_ref: RoleRef { kind: kind.to_owned(), name: name.to_owned() },
        subjects: vec![Subject { kind: "User".to_owned(), name: "jane".to_owned(), ..Subject::default() }],
    };
    rbac.change(|index| {
        let pods = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
        index.set_role("shop", "own", Some(PolicyRule::of_role(&pods)));
        index.set_role("", "own", Some(PolicyRule::of_role(&json!({"rules": rules}))));
        index.set_binding(given("shop", "Role", "own"));
        index.set_binding(given("", "ClusterRole", "own"));
        index.set_binding(given("lost", "Role", "gone"));
    });
    rbac
}

fn check(guard: Guard, rules: &Value, namespace: &str, object: &Value, old: Option<&Value>, expected: &str) {
    let registry = MemoryRegistry::default();
    let secrets = json!({"metadata": {"name": "secrets"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    for (resource, namespace) in [("roles", "shop"), ("clusterroles", "")] {
        let resource = GroupResource::new(GROUP_NAME, resource);
        now(registry.create(&resource, namespace, secrets.clone(), WriteOptions::default())).unwrap();
    }
    let rbac = rbac(rules);
    let user = UserInfo { name: "jane".to_owned(), ..UserInfo::default() };
    let name = old.map(|old| old.name()).unwrap_or_default();
    let context = RequestContext {
        user: &user,
        verb: "update",
        namespace,
        name,
        subresource: "",
        group_version: &GroupVersion::new(GROUP_NAME, "v1"),
        now: jiff::Timestamp::UNIX_EPOCH,
        dry_run: false,
        empty_fields: &pintle_registry::EmptyFields::default(),
        registry: &registry,
        authorizer: &rbac,
        client: &pintle_registry::PatientClient,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let message = match runtime.block_on(guard.check(&rbac, &context, object, old)) {
        Ok(()) => String::new(),
        Err(status) => format!("{} {}", status.code, status.message),
    };
    assert_eq!(message, expected, "{guard:?} {object}");
}

const HEAD: &str = "user \"jane\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n";
const SECRETS: &str = r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#;

fn role(name: &str, resource: &str) -> Value {
    json!({"metadata": {"name": name}, "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]})
}

#[test]
fn roles_give_what_their_writers_have() {
    let none = json!([]);
    check(Guard::Role, &none, "shop", &role("a", "pods"), None, "");
    let forbidden = format!("403 roles.rbac.authorization.k8s.io \"a\" is forbidden: {HEAD}{SECRETS}");
    check(Guard::Role, &none, "shop", &role("a", "secrets"), None, &forbidden);
    check(Guard::Role, &none, "shop", &role("a", "secrets"), Some(&role("a", "secrets")), &forbidden);
    let nameless = format!("403 roles.rbac.authorization.k8s.io is forbidden: {HEAD}{SECRETS}");
    check(Guard::Role, &none, "shop", &role("", "secrets"), None, &nameless);
    check(
        Guard::Role,
        &none,
        "lost",
        &role("a", "secrets"),
        None,
        &format!("{forbidden}; resolution errors: [roles.rbac.authorization.k8s.io \"gone\" not found]"),
    );
    let escalate = json!([{"apiGroups": [GROUP_NAME], "resources": ["roles"], "resourceNames": ["a"], "verbs": ["escalate"]}]);
    // A created object has no name yet.
    check(Guard::Role, &escalate, "shop", &role("a", "secrets"), None, &forbidden);
    check(Guard::Role, &escalate, "shop", &role("a", "secrets"), Some(&role("a", "pods")), "");
}

#[test]
fn gathering_needs_everything() {
    let mut gathers = role("a", "pods");
    gathers.set("aggregationRule", json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}));
    let pods = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let forbidden = "403 clusterroles.rbac.authorization.k8s.io \"a\" is forbidden: must have cluster-admin privileges to \
                     use the aggregationRule";
    check(Guard::ClusterRole, &pods, "", &gathers, None, forbidden);
    check(Guard::ClusterRole, &pods, "", &role("a", "pods"), Some(&gathers), forbidden);
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
    check(Guard::ClusterRole, &all, "", &gathers, None, forbidden);
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
    check(Guard::ClusterRole, &all, "", &gathers, None, "");
}

#[test]
fn bindings_give_what_their_writers_have() {
    let none = json!([]);
    let binding = |kind: &str, name: &str| json!({"metadata": {"name": "b"}, "roleRef": {"apiGroup": GROUP_NAME, "kind": kind, "name": name}});
    let forbidden = format!("403 rolebindings.rbac.authorization.k8s.io \"b\" is forbidden: {HEAD}{SECRETS}");
    check(Guard::RoleBinding, &none, "shop", &binding("Role", "secrets"), None, &forbidden);
    check(Guard::RoleBinding, &none, "shop", &binding("ClusterRole", "secrets"), None, &forbidden);
    let held = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]);
    check(Guard::RoleBinding, &held, "shop", &binding("Role", "secrets"), None, "");
    let bind = json!([{"apiGroups": [GROUP_NAME], "resources": ["clusterroles"], "resourceNames": ["secrets"], "verbs": ["bind"]}]);
    check(Guard::RoleBinding, &bind, "shop", &binding("ClusterRole", "secrets"), None, "");
    check(Guard::ClusterRoleBinding, &bind, "", &binding("ClusterRole", "secrets"), None, "");
    check(Guard::RoleBinding, &bind, "shop", &binding("Role", "secrets"), None, &forbidden);
    let check =
        |guard, namespace, object, expected: &str| check(guard, &none, namespace, &object, None, expected);
    check(
        Guard::RoleBinding,
        "shop",
        binding("Role", "gone"),
        "404 rolebindings.rbac.authorization.k8s.io \"gone\" not found",
    );
    check(Guard::ClusterRoleBinding, "", binding("Role", "gone"), "400 Namespace parameter required.");
    check(Guard::RoleBinding, "shop", binding("Role", ""), "400 Name parameter required.");
    check(
        Guard::RoleBinding,
        "shop",
        binding("Role", "a/b"),
        "400 Name parameter invalid: \"a/b\": may not contain '/'",
    );
    check(Guard::RoleBinding, "shop", binding("Job", "a"), "500 unsupported role reference kind: \"Job\"");
}

#[test]
fn the_garbage_collector_is_free_to_work() {
    let registry = MemoryRegistry::default();
    pintle_registry::testing::with_context(&registry, "shop", false, |context| {
        let mut old = role("a", "secrets");
        old.set("metadata.finalizers", json!(["a"]));
        old.set("metadata.managedFields", json!([{"manager": "a"}]));
        let mut new = role("a", "secrets");
        new.set("metadata.ownerReferences", json!([{"name": "o"}]));
        assert!(is_free(context, &new, Some(&old)));
        assert!(!is_free(context, &new, None));
        new.set("metadata.labels", json!({"a": "b"}));
        assert!(!is_free(context, &new, Some(&old)));
        let masters = UserInfo { groups: vec![SYSTEM_MASTERS.to_owned()], ..UserInfo::default() };
        assert!(is_free(&RequestContext { user: &masters, ..*context }, &new, None));
    });
}
