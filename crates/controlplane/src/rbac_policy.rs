//! The roles and bindings that every cluster has
//! (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings>).
//!
//! They are reconciled whenever a server starts: missing parts are added, and additions of users stay. The annotation
//! `rbac.authorization.kubernetes.io/autoupdate` with the value "false" disables this for an object.

mod bindings;
mod cluster_roles;
mod controller_roles;
mod reconcile;
mod roles;

use crate::objects::unless_off;
use pintle_machinery::{GroupResource, Status, Value, ValueExt};
use pintle_rbac::GROUP_NAME;
use pintle_registry::Registry;
use serde_json::{Map, json};
use std::{future::Future, pin::Pin};

/// Creates the missing roles and bindings, and adds missing parts to the others. Disabled resources are ignored.
///
/// # Errors
/// The first failure. Objects that were created stay, and a second call creates the rest.
pub async fn bootstrap_roles(registry: &dyn Registry) -> Result<(), Status> {
    unless_off(reconcile(registry)).await
}

async fn reconcile(registry: &dyn Registry) -> Result<(), Status> {
    reconcile::carry_over(registry).await?;
    let roles = cluster_roles::CLUSTER_ROLES.iter().chain(controller_roles::CONTROLLER_ROLES);
    let roles = roles.chain(roles::ROLES).map(|role| role.object());
    let of_controllers =
        controller_roles::CONTROLLER_ROLES.iter().map(|role| Binding::of_controller(role.name));
    let bindings = bindings::CLUSTER_ROLE_BINDINGS.iter().chain(bindings::ROLE_BINDINGS);
    let bindings = bindings.map(Binding::object).chain(of_controllers);
    // Concurrent, so that the writes share a group commit.
    let roles = roles.map(|role| -> Reconciliation<'_> { Box::pin(reconcile::role(registry, role)) });
    let bindings =
        bindings.map(|binding| -> Reconciliation<'_> { Box::pin(reconcile::binding(registry, binding)) });
    futures_util::future::try_join_all(roles.chain(bindings)).await.map(drop)
}

type Reconciliation<'a> = Pin<Box<dyn Future<Output = Result<(), Status>> + Send + 'a>>;

/// The desired state of a role.
struct Role {
    name: &'static str,
    /// "" is a cluster role.
    namespace: &'static str,
    rules: &'static [Rule],
    /// An additional label, besides those that all roles have.
    label: Option<&'static str>,
    /// The label of the roles that a controller aggregates into this one.
    aggregates: Option<&'static str>,
}

/// A rule, with its lists as words separated by spaces.
struct Rule {
    verbs: &'static str,
    /// `core` is the group without a name.
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
    urls: &'static str,
}

/// Verbs on resources of groups.
const fn on(verbs: &'static str, groups: &'static str, resources: &'static str) -> Rule {
    Rule { verbs, groups, resources, names: "", urls: "" }
}

/// Verbs on non-resource paths.
const fn at(verbs: &'static str, urls: &'static str) -> Rule {
    Rule { verbs, groups: "", resources: "", names: "", urls }
}

impl Rule {
    /// Restricts the rule to objects with these names.
    const fn named(self, names: &'static str) -> Rule {
        Rule { names, ..self }
    }

    fn object(&self) -> Value {
        let groups = self.groups.split(' ').filter(|group| !group.is_empty());
        let groups: Vec<&str> = groups.map(|group| if group == "core" { "" } else { group }).collect();
        let words = |text: &'static str| text.split(' ').filter(|word| !word.is_empty()).collect();
        let lists: [(&str, Vec<&str>); 5] = [
            ("verbs", words(self.verbs)),
            ("apiGroups", groups),
            ("resources", words(self.resources)),
            ("resourceNames", words(self.names)),
            ("nonResourceURLs", words(self.urls)),
        ];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        Value::Object(lists.map(|(name, list)| (name.to_owned(), json!(list))).collect())
    }
}

impl Role {
    const fn new(name: &'static str, rules: &'static [Rule]) -> Role {
        Role { name, namespace: "", rules, label: None, aggregates: None }
    }

    const fn within(self, namespace: &'static str) -> Role {
        Role { namespace, ..self }
    }

    const fn labelled(self, label: &'static str) -> Role {
        Role { label: Some(label), ..self }
    }

    const fn aggregating(self, label: &'static str) -> Role {
        Role { aggregates: Some(label), ..self }
    }

    fn object(&self) -> Value {
        let kind = if self.namespace.is_empty() { "ClusterRole" } else { "Role" };
        let mut role = object(kind, self.namespace, self.name);
        if let Some(labels) = role.at_mut("metadata.labels").and_then(Value::as_object_mut) {
            labels.extend(self.label.map(|label| (label.to_owned(), "true".into())));
        }
        if !self.rules.is_empty() {
            role.set("rules", self.rules.iter().map(Rule::object).collect::<Value>());
        }
        if let Some(label) = self.aggregates {
            let labels: Map<String, Value> = [(label.to_owned(), "true".into())].into_iter().collect();
            role.set("aggregationRule", json!({"clusterRoleSelectors": [{"matchLabels": labels}]}));
        }
        role
    }
}

/// The subject of a binding.
enum Subject {
    User(&'static str),
    Group(&'static str),
    /// Its namespace and name.
    ServiceAccount(&'static str, &'static str),
}

impl Subject {
    fn object(&self) -> Value {
        match self {
            Subject::User(name) => json!({"kind": "User", "apiGroup": GROUP_NAME, "name": name}),
            Subject::Group(name) => json!({"kind": "Group", "apiGroup": GROUP_NAME, "name": name}),
            Subject::ServiceAccount(namespace, name) => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
            }
        }
    }
}

/// The desired state of a binding.
struct Binding {
    name: &'static str,
    /// "" is a cluster role binding, which refers to a cluster role. A binding in a namespace refers to a role.
    namespace: &'static str,
    role: &'static str,
    subjects: &'static [Subject],
}

impl Binding {
    const fn new(name: &'static str, role: &'static str, subjects: &'static [Subject]) -> Binding {
        Binding { name, namespace: "", role, subjects }
    }

    const fn within(self, namespace: &'static str) -> Binding {
        Binding { namespace, ..self }
    }

    fn object(&self) -> Value {
        let mut binding = binding(self.namespace, self.name, self.role);
        if !self.subjects.is_empty() {
            binding.set("subjects", self.subjects.iter().map(Subject::object).collect::<Value>());
        }
        binding
    }

    /// Binds a controller's role to the service account of its name.
    fn of_controller(role: &'static str) -> Value {
        let mut binding = binding("", role, role);
        let account = Subject::ServiceAccount("kube-system", role.trim_start_matches(CONTROLLER_PREFIX));
        binding.set("subjects", json!([account.object()]));
        binding
    }
}

/// The name prefix of controllers' roles.
const CONTROLLER_PREFIX: &str = "system:controller:";

fn binding(namespace: &str, name: &str, role: &str) -> Value {
    let [kind, role_kind] = match namespace {
        "" => ["ClusterRoleBinding", "ClusterRole"],
        _ => ["RoleBinding", "Role"],
    };
    let mut binding = object(kind, namespace, name);
    binding.set("roleRef", json!({"apiGroup": GROUP_NAME, "kind": role_kind, "name": role}));
    binding
}

/// Creates an object with the common labels and annotations.
fn object(kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {reconcile::AUTO_UPDATE: "true"},
        },
    });
    if !namespace.is_empty() {
        object.set("metadata.namespace", namespace);
    }
    object
}

/// The resource of an object's kind.
fn resource_of(object: &Value) -> GroupResource {
    GroupResource::new(GROUP_NAME, format!("{}s", object.str_at("kind").to_lowercase()))
}

#[cfg(test)]
mod tests;
