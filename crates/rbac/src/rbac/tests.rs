use super::*;
use crate::{RoleBinding, RoleRef, Subject};
use pintle_machinery::{Value, json};
use proptest::{collection::vec, prelude::*, sample::select};
use serde::Deserialize;

fn rules(rules: Value) -> Vec<PolicyRule> {
    Vec::deserialize(&rules).unwrap()
}

fn binding(namespace: &str, name: &str, role: &str, subjects: &[&str]) -> RoleBinding {
    let (kind, role) = role.split_once(' ').unwrap();
    let subjects = subjects.iter().map(|subject| {
        let (kind, name) = subject.split_once(' ').unwrap();
        let (namespace, name) = match kind {
            "ServiceAccount" => name.split_once('/').unwrap_or(("", name)),
            _ => ("", name),
        };
        Subject { kind: kind.to_owned(), name: name.to_owned(), namespace: namespace.to_owned() }
    });
    RoleBinding {
        namespace: namespace.into(),
        name: name.into(),
        role_ref: RoleRef { kind: kind.to_owned(), name: role.to_owned() },
        subjects: subjects.collect(),
    }
}

fn user(name: &str, groups: &[&str]) -> UserInfo {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    UserInfo { name: name.to_owned(), groups, ..UserInfo::default() }
}

fn example() -> Rbac {
    let rbac = Rbac::default();
    rbac.change(|index| {
        let pods = rules(json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]));
        let nodes = rules(json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]},
                                 {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]));
        index.set_role("shop", "reader", Some(pods));
        index.set_role("", "nodes", Some(nodes));
        index.set_binding(binding(
            "shop",
            "b",
            "Role reader",
            &["User x", "User jane", "Group devs", "ServiceAccount bot"],
        ));
        index.set_binding(binding(
            "",
            "ops",
            "ClusterRole nodes",
            &["Group ops", "ServiceAccount kube-system/op", "ServiceAccount lost"],
        ));
        index.set_binding(binding("shop", "lost", "Role lost", &["User lost", "Group lost"]));
        index.set_binding(binding("", "lost", "ClusterRole gone", &["User lost"]));
        index.set_binding(binding("", "odd", "Role reader", &["User odd"]));
    });
    rbac
}

#[test]
fn reasons_are_those_of_kubernetes() {
    let rbac = example();
    let check = |user: &UserInfo, verb: &str, resource: &str, namespace: &str, decision, reason: &str| {
        let attributes = Attributes { resource, namespace, ..Attributes::of(user, verb) };
        let verdict = rbac.decide(&attributes);
        assert_eq!((verdict.decision, &*verdict.reason), (decision, reason), "{} {resource}", user.name);
        assert!(verdict.error.is_empty());
    };
    use Decision::{Allow, NoOpinion};
    let to =
        |subject: &str| format!("RBAC: allowed by RoleBinding \"b/shop\" of Role \"reader\" to {subject}");
    check(&user("jane", &[]), "get", "pods", "shop", Allow, &to("User \"jane\""));
    check(&user("joe", &["a", "devs"]), "get", "pods", "shop", Allow, &to("Group \"devs\""));
    // The message names the first subject that matches the user, whichever key found the binding.
    check(&user("jane", &["devs"]), "get", "pods", "shop", Allow, &to("User \"jane\""));
    let bot = user("system:serviceaccount:shop:bot", &[]);
    check(&bot, "get", "pods", "shop", Allow, &to("ServiceAccount \"bot/shop\""));
    check(&user("system:serviceaccount:other:bot", &[]), "get", "pods", "shop", NoOpinion, "");
    check(&user("jane", &[]), "get", "pods", "other", NoOpinion, "");
    check(&user("jane", &[]), "get", "pods", "", NoOpinion, "");
    check(&user("jane", &[]), "list", "pods", "shop", NoOpinion, "");
    check(&user("devs", &["jane"]), "get", "pods", "shop", NoOpinion, "");
    let op = user("system:serviceaccount:kube-system:op", &[]);
    let ops = "RBAC: allowed by ClusterRoleBinding \"ops\" of ClusterRole \"nodes\" to ";
    check(&op, "drain", "nodes", "", Allow, &format!("{ops}ServiceAccount \"op/kube-system\""));
    check(&user("joe", &["ops"]), "get", "nodes", "shop", Allow, &format!("{ops}Group \"ops\""));
    check(&user("system:serviceaccount::lost", &[]), "get", "nodes", "", NoOpinion, "");
    let [role, cluster_role] = [
        "role.rbac.authorization.k8s.io \"lost\" not found",
        "clusterrole.rbac.authorization.k8s.io \"gone\" not found",
    ];
    check(
        &user("lost", &["lost"]),
        "get",
        "nodes",
        "shop",
        NoOpinion,
        &format!("RBAC: [{cluster_role}, {role}]"),
    );
    check(&user("lost", &[]), "get", "nodes", "", NoOpinion, &format!("RBAC: {cluster_role}"));
    check(
        &user("odd", &[]),
        "get",
        "pods",
        "shop",
        NoOpinion,
        "RBAC: role.rbac.authorization.k8s.io \"reader\" not found",
    );
}

#[test]
fn changes_are_seen_at_once() {
    let rbac = example();
    let jane = user("jane", &["ops"]);
    let may = |resource: &str| {
        let attributes = Attributes { resource, namespace: "shop", ..Attributes::of(&jane, "get") };
        rbac.decide(&attributes).is_allowed()
    };
    assert!(may("pods") && may("nodes"));
    rbac.change(|index| index.set_binding(binding("shop", "b", "Role reader", &["User joe"])));
    assert!(!may("pods") && may("nodes"));
    rbac.change(|index| index.set_role("", "nodes", None));
    assert!(!may("nodes"));
    rbac.change(|index| {
        index.set_role(
            "",
            "nodes",
            Some(rules(json!([{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get"]}]))),
        )
    });
    assert!(may("pods") && may("nodes"));
    rbac.change(|index| index.remove_binding("", "ops"));
    assert!(!may("pods") && !may("nodes"));
    let names = rbac.index().binding_names(true);
    assert_eq!(names.len(), 2);
}

#[tokio::test]
async fn rules_are_told_once() {
    let rbac = example();
    rbac.change(|index| index.set_binding(binding("shop", "a", "ClusterRole nodes", &["User jane"])));
    let resolved = rbac.rules_for(&user("jane", &["devs", "ops", "lost"]), "shop").await;
    let resources: Vec<_> = resolved.resource_rules.iter().map(|rule| rule.resources.join(",")).collect();
    assert_eq!(resources, ["nodes", "nodes", "pods"]);
    assert_eq!(resolved.non_resource_rules.len(), 2);
    assert_eq!(resolved.errors, ["role.rbac.authorization.k8s.io \"lost\" not found"]);
    assert!(!resolved.incomplete);
}

/// Kube-apiserver's algorithm: every binding is checked.
fn by_looking_at_all(
    roles: &[(String, String, Vec<PolicyRule>)],
    bindings: &[RoleBinding],
    attributes: &Attributes<'_>,
) -> bool {
    bindings.iter().any(|binding| {
        let in_scope = binding.namespace.is_empty() || *binding.namespace == *attributes.namespace;
        let role_namespace = match &*binding.role_ref.kind {
            "ClusterRole" => "",
            _ if binding.namespace.is_empty() => return false,
            _ => &binding.namespace,
        };
        in_scope
            && binding.subject_of(attributes.user).is_some()
            && roles.iter().any(|(namespace, name, rules)| {
                namespace == role_namespace
                    && *name == binding.role_ref.name
                    && rules.iter().any(|rule| rule.allows(attributes))
            })
    })
}

proptest! {
    #[test]
    fn the_index_finds_what_looking_at_all_finds(
        changes in vec((select(vec!["", "a", "b"]), select(vec!["x", "y", "z"]), select(vec!["Role r", "Role s", "ClusterRole r", "ClusterRole s"]),
            vec(select(vec!["User u", "Group g", "Group h", "ServiceAccount a/u", "ServiceAccount u"]), 0..3), any::<bool>()), 0..12),
        present in vec((select(vec!["", "a", "b"]), select(vec!["r", "s"]), select(vec!["pods", "nodes"])), 0..5),
    ) {
        let rbac = Rbac::default();
        let mut bindings: Vec<RoleBinding> = Vec::new();
        for (namespace, name, role, subjects, remove) in changes {
            bindings.retain(|other| *other.namespace != *namespace || *other.name != *name);
            rbac.change(|index| match remove {
                true => index.remove_binding(namespace, name),
                false => index.set_binding(binding(namespace, name, role, &subjects)),
            });
            if !remove {
                bindings.push(binding(namespace, name, role, &subjects));
            }
        }
        let mut roles: Vec<(String, String, Vec<PolicyRule>)> = Vec::new();
        for (namespace, name, resource) in present {
            let rules = rules(json!([{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]));
            roles.retain(|other| other.0 != namespace || other.1 != name);
            roles.push((namespace.to_owned(), name.to_owned(), rules.clone()));
            rbac.change(|index| index.set_role(namespace, name, Some(rules)));
        }
        for who in [user("u", &[]), user("v", &["g"]), user("u", &["g", "h"]), user("system:serviceaccount:a:u", &["h"])] {
            for namespace in ["", "a", "b"] {
                for resource in ["pods", "nodes"] {
                    let attributes = Attributes { resource, namespace, ..Attributes::of(&who, "get") };
                    let verdict = rbac.decide(&attributes);
                    prop_assert_eq!(verdict.is_allowed(), by_looking_at_all(&roles, &bindings, &attributes));
                }
            }
        }
    }
}
