//! The desired state of a binding.

use super::object::object;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Value, ValueExt, json};
use pintle_rbac::GROUP_NAME;

/// The subject of a binding.
pub(super) enum Subject {
    User(&'static str),
    Group(&'static str),
    /// Its namespace and name.
    ServiceAccount(&'static str, &'static str),
}

impl Subject {
    pub(super) fn object(&self) -> Value {
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
pub(super) struct Binding {
    name: &'static str,
    /// "" is a cluster role binding, which refers to a cluster role. A binding in a namespace refers to a role.
    namespace: &'static str,
    role: &'static str,
    subjects: &'static [Subject],
    /// The gate without which the binding is not created.
    gate: Option<Gate>,
}

impl Binding {
    pub(super) const fn new(name: &'static str, role: &'static str, subjects: &'static [Subject]) -> Binding {
        Binding { name, namespace: "", role, subjects, gate: None }
    }

    pub(super) const fn within(self, namespace: &'static str) -> Binding {
        Binding { namespace, ..self }
    }

    /// Puts the binding behind a gate.
    pub(super) const fn behind(self, gate: Gate) -> Binding {
        Binding { gate: Some(gate), ..self }
    }

    /// Whether the binding belongs to the server: its gate is open.
    pub(super) fn is_in_force(&self) -> bool {
        self.gate.is_none_or(enabled)
    }

    pub(super) fn object(&self) -> Value {
        let mut binding = without_subjects(self.namespace, self.name, self.role);
        if !self.subjects.is_empty() {
            binding.set("subjects", self.subjects.iter().map(Subject::object).collect::<Value>());
        }
        binding
    }

    /// Binds a controller's role to the service account of its name.
    pub(super) fn of_controller(role: &'static str) -> Value {
        let mut binding = without_subjects("", role, role);
        let account = Subject::ServiceAccount("kube-system", role.trim_start_matches(CONTROLLER_PREFIX));
        binding.set("subjects", json!([account.object()]));
        binding
    }
}

/// The name prefix of controllers' roles.
const CONTROLLER_PREFIX: &str = "system:controller:";

/// A binding to a role of its kind, without subjects.
pub(super) fn without_subjects(namespace: &str, name: &str, role: &str) -> Value {
    let [kind, role_kind] = match namespace {
        "" => ["ClusterRoleBinding", "ClusterRole"],
        _ => ["RoleBinding", "Role"],
    };
    let mut binding = object(kind, namespace, name);
    binding.set("roleRef", json!({"apiGroup": GROUP_NAME, "kind": role_kind, "name": role}));
    binding
}
