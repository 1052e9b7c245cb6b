//! Computes the permissions of a new kube-apiserver's roles and bindings, without any of the server's code.

use pintle_machinery::{Map, Value, json};

/// The attributes of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) verb: String,
    pub(super) group: String,
    /// The resource, with its subresource.
    pub(super) resource: String,
    pub(super) name: String,
    pub(super) namespace: String,
    /// The path of a non-resource request.
    pub(super) path: String,
}

pub(super) struct Policy {
    objects: Map,
}

/// The objects of a new server, by resource.
pub(super) fn objects() -> Map {
    serde_json::from_str(include_str!("initial-objects.json")).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    value[name].as_array().into_iter().flatten().map(|item| item.as_str().unwrap())
}

impl Policy {
    /// The policy of a new server, with aggregated roles filled.
    pub(super) fn of_a_fresh_server() -> Policy {
        let mut policy = Policy { objects: objects() };
        // Some roles aggregate roles that are aggregated themselves.
        for name in ["view", "edit", "admin"] {
            let roles = policy.objects["clusterroles"].as_array().unwrap();
            let role = roles.iter().position(|role| role["metadata"]["name"] == name).unwrap();
            let selector = &roles[role]["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"];
            let selected = roles.iter().filter(|other| {
                let mut labels = selector.as_object().unwrap().iter();
                labels.all(|(label, value)| other["metadata"]["labels"][label] == *value)
            });
            let rules: Vec<Value> =
                selected.flat_map(|other| other["rules"].as_array().unwrap().clone()).collect();
            assert!(!rules.is_empty());
            policy.objects["clusterroles"][role]["rules"] = json!(rules);
        }
        policy
    }

    /// Binds a cluster role in a namespace.
    pub(super) fn bind(&mut self, namespace: &str, role: &str, kind: &str, name: &str) {
        self.objects["rolebindings"].as_array_mut().unwrap().push(json!({
            "metadata": {"namespace": namespace},
            "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": [{"kind": kind, "name": name}],
        }));
    }

    /// The rules of a cluster role.
    pub(super) fn rules(&self, name: &str) -> &Value {
        let mut roles = self.objects["clusterroles"].as_array().unwrap().iter();
        &roles.find(|role| role["metadata"]["name"] == name).unwrap()["rules"]
    }

    pub(super) fn role_allows(&self, role: &str, wanted: &Wanted) -> bool {
        allow(self.rules(role), wanted)
    }

    pub(super) fn allows(&self, user: &str, groups: &[&str], wanted: &Wanted) -> bool {
        let everywhere = self.objects["clusterrolebindings"].as_array().unwrap().iter();
        let here = self.objects["rolebindings"].as_array().unwrap().iter();
        let here = here.filter(|binding| binding["metadata"]["namespace"] == wanted.namespace.as_str());
        everywhere.chain(here).any(|binding| {
            let mut subjects = binding["subjects"].as_array().into_iter().flatten();
            let is_given = subjects.any(|subject| {
                let name = subject["name"].as_str().unwrap();
                match subject["kind"].as_str().unwrap() {
                    "User" => name == user,
                    "Group" => groups.contains(&name),
                    _ => {
                        let namespace = subject["namespace"].as_str().unwrap();
                        user == format!("system:serviceaccount:{namespace}:{name}")
                    }
                }
            });
            is_given && allow(self.rules_of(binding), wanted)
        })
    }

    fn rules_of(&self, binding: &Value) -> &Value {
        let role_ref = &binding["roleRef"];
        if role_ref["kind"] == "ClusterRole" {
            return self.rules(role_ref["name"].as_str().unwrap());
        }
        let mut roles = self.objects["roles"].as_array().unwrap().iter();
        let role = roles.find(|role| {
            role["metadata"]["name"] == role_ref["name"]
                && role["metadata"]["namespace"] == binding["metadata"]["namespace"]
        });
        &role.unwrap()["rules"]
    }
}

fn allow(rules: &Value, wanted: &Wanted) -> bool {
    let Wanted { verb, group, resource, name, path, .. } = wanted;
    let any =
        |rule: &Value, member: &str, wanted: &str| list(rule, member).any(|own| own == "*" || own == wanted);
    rules.as_array().into_iter().flatten().any(|rule| {
        if !any(rule, "verbs", verb) {
            return false;
        }
        if resource.is_empty() {
            return list(rule, "nonResourceURLs").any(|own| match own.strip_suffix('*') {
                Some(start) => path.starts_with(start),
                None => path == own,
            });
        }
        let of_all = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        any(rule, "apiGroups", group)
            && (any(rule, "resources", resource)
                || of_all.is_some_and(|of_all| any(rule, "resources", &of_all)))
            && (list(rule, "resourceNames").next().is_none()
                || list(rule, "resourceNames").any(|own| own == name))
    })
}
