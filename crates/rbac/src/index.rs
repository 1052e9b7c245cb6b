//! Indexes roles and bindings by the keys of authorization checks.
//!
//! A key is the namespace ("" for the cluster), which has no "/", and a name, so that one buffer serves all lookups of
//! a check: `default/reader` is a role, `default/uJane` the bindings of a user there, `/gdevs` those of a group in the
//! whole cluster. A service account is indexed as its user.

use crate::{PolicyRule, RoleBinding};
use pintle_go_forms::quote;
use pintle_machinery::UserInfo;
use std::{fmt, sync::Arc};

type Map<T> = imbl::HashMap<Arc<str>, T>;

/// Roles and bindings at one time. A shared index is immutable; a clone is cheap and shares everything.
#[derive(Clone, Default)]
pub struct Index {
    roles: Map<Arc<[PolicyRule]>>,
    bindings: Map<Arc<Entry>>,
    /// The bindings of each user and group, sorted by name. A list that no other index shares is changed in place.
    by_subject: Map<Arc<Vec<Arc<Entry>>>>,
}

/// A binding with the key of its role; `None` when the role's kind is unknown.
struct Entry {
    binding: RoleBinding,
    role: Option<Arc<str>>,
}

/// A role that a binding refers to and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MissingRole {
    /// `Role`, `ClusterRole`, or another kind that the binding names.
    pub kind: String,
    /// The role's name.
    pub name: String,
}

impl fmt::Display for MissingRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = match &*self.kind {
            "Role" => "role",
            "ClusterRole" => "clusterrole",
            kind => return write!(f, "unsupported role reference kind: {}", quote(kind)),
        };
        write!(f, "{resource}.{} {} not found", crate::GROUP_NAME, quote(&self.name))
    }
}

/// The grant of one binding of a user.
pub(crate) enum Given<'a> {
    /// The rules of the role, and the binding.
    Rules(&'a RoleBinding, &'a [PolicyRule]),
    /// No rules: the role does not exist.
    Nothing(MissingRole),
}

impl Index {
    /// Adds, replaces or (with `None`) removes a role; the namespace of a cluster role is "".
    pub fn set_role(&mut self, namespace: &str, name: &str, rules: Option<Vec<PolicyRule>>) {
        let key = key(namespace, name);
        match rules {
            Some(rules) => drop(self.roles.insert(key, rules.into())),
            None => drop(self.roles.remove(&key)),
        }
    }

    /// Adds or replaces a binding.
    pub fn set_binding(&mut self, binding: RoleBinding) {
        let key = key(&binding.namespace, &binding.name);
        self.forget_binding(&key);
        let role = match &*binding.role_ref.kind {
            "Role" if !binding.namespace.is_empty() => {
                Some(self::key(&binding.namespace, &binding.role_ref.name))
            }
            "ClusterRole" => Some(self::key("", &binding.role_ref.name)),
            _ => None,
        };
        let entry = Arc::new(Entry { binding, role });
        for subject in subject_keys(&entry.binding) {
            let list = Arc::make_mut(self.by_subject.entry(subject).or_default());
            let at = list.partition_point(|other| other.binding.name < entry.binding.name);
            if !list.get(at).is_some_and(|other| Arc::ptr_eq(other, &entry)) {
                list.insert(at, entry.clone());
            }
        }
        self.bindings.insert(key, entry);
    }

    /// Removes a binding.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        self.forget_binding(&key(namespace, name));
    }

    fn forget_binding(&mut self, key: &Arc<str>) {
        let Some(entry) = self.bindings.remove(key) else { return };
        for subject in subject_keys(&entry.binding) {
            let Some(list) = self.by_subject.get_mut(&subject) else { continue };
            let list = Arc::make_mut(list);
            list.retain(|other| !Arc::ptr_eq(other, &entry));
            if list.is_empty() {
                self.by_subject.remove(&subject);
            }
        }
    }

    /// The namespaces and names of all cluster roles, or of all other roles.
    pub(crate) fn role_names(&self, of_cluster: bool) -> Vec<(String, String)> {
        names(self.roles.keys(), of_cluster)
    }

    /// The namespaces and names of all cluster role bindings, or of all other bindings.
    pub(crate) fn binding_names(&self, of_cluster: bool) -> Vec<(String, String)> {
        names(self.bindings.keys(), of_cluster)
    }

    /// Visits the grants of a user in the whole cluster and then, unless it is "", in a namespace, until the visitor
    /// returns false. A binding that matches the user in several ways is visited several times.
    pub(crate) fn visit<'a>(
        &'a self,
        user: &UserInfo,
        namespace: &str,
        mut visit: impl FnMut(Given<'a>) -> bool,
    ) {
        let mut buffer = String::with_capacity(128);
        for namespace in ["", namespace].iter().take(if namespace.is_empty() { 1 } else { 2 }) {
            let groups = user.groups.iter().map(|group| ('g', group.as_str()));
            for (kind, name) in [('u', user.name.as_str())].into_iter().chain(groups) {
                buffer.clear();
                buffer.push_str(namespace);
                buffer.push('/');
                buffer.push(kind);
                buffer.push_str(name);
                let Some(list) = self.by_subject.get(buffer.as_str()) else { continue };
                for entry in list.iter() {
                    if !visit(self.given(entry)) {
                        return;
                    }
                }
            }
        }
    }

    fn given<'a>(&'a self, entry: &'a Entry) -> Given<'a> {
        match entry.role.as_ref().and_then(|role| self.roles.get(role)) {
            Some(rules) => Given::Rules(&entry.binding, rules),
            None => {
                let role_ref = &entry.binding.role_ref;
                Given::Nothing(MissingRole { kind: role_ref.kind.clone(), name: role_ref.name.clone() })
            }
        }
    }
}

fn key(namespace: &str, name: &str) -> Arc<str> {
    format!("{namespace}/{name}").into()
}

/// The keys that a binding is indexed under.
fn subject_keys(binding: &RoleBinding) -> Vec<Arc<str>> {
    let namespace = &binding.namespace;
    let keys = binding.subjects.iter().filter_map(|subject| match &*subject.kind {
        "User" => Some(format!("{namespace}/u{}", subject.name)),
        "Group" => Some(format!("{namespace}/g{}", subject.name)),
        _ => Some(format!("{namespace}/u{}", binding.service_account_user(subject)?)),
    });
    keys.map(Arc::from).collect()
}

fn names<'a>(keys: impl Iterator<Item = &'a Arc<str>>, of_cluster: bool) -> Vec<(String, String)> {
    let split = keys.filter_map(|key| key.split_once('/'));
    let wanted = split.filter(|(namespace, _)| namespace.is_empty() == of_cluster);
    wanted.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())).collect()
}
