//! Bindings of roles to subjects.

use crate::policy_rule::or_none;
use pintle_go_forms::quote;
use pintle_machinery::UserInfo;
use serde::Deserialize;
use std::{fmt, sync::Arc};

/// A user, a group or a service account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The namespace of a service account; "" stands for the binding's.
    pub namespace: String,
}

/// A reference to a role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// A role binding, or a cluster role binding, which has no namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleBinding {
    /// The namespace; "" stands for the whole cluster.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The granted role.
    pub role_ref: RoleRef,
    /// The subjects that it is granted to.
    pub subjects: Vec<Subject>,
}

impl RoleBinding {
    /// Parses a binding's JSON.
    ///
    /// # Errors
    /// When the JSON is not a binding.
    pub fn read(namespace: &str, name: &str, json: &[u8]) -> Result<RoleBinding, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Body {
            role_ref: RoleRef,
            #[serde(default, deserialize_with = "or_none")]
            subjects: Vec<Subject>,
        }
        let Body { role_ref, subjects } = serde_json::from_slice(json)?;
        Ok(RoleBinding { namespace: namespace.into(), name: name.into(), role_ref, subjects })
    }

    /// The first subject that matches a user.
    pub fn subject_of(&self, user: &UserInfo) -> Option<&Subject> {
        self.subjects.iter().find(|subject| match &*subject.kind {
            "User" => subject.name == user.name,
            "Group" => user.is_member_of(&subject.name),
            _ => self.service_account_user(subject).is_some_and(|name| name == user.name),
        })
    }

    /// The user name of a service account; `None` for other subjects, and for a service account without a namespace.
    pub(crate) fn service_account_user(&self, subject: &Subject) -> Option<String> {
        let namespace = self.namespace_of(subject);
        (subject.kind == "ServiceAccount" && !namespace.is_empty())
            .then(|| format!("system:serviceaccount:{namespace}:{}", subject.name))
    }

    fn namespace_of<'a>(&'a self, subject: &'a Subject) -> &'a str {
        match &*subject.namespace {
            "" => &self.namespace,
            own => own,
        }
    }

    /// The text of the binding and a subject, for messages about allowed requests.
    pub fn describe(&self, subject: &Subject) -> String {
        struct To<'a>(&'a RoleBinding, &'a Subject);
        impl fmt::Display for To<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let To(binding, Subject { kind, name, .. }) = *self;
                match &**kind {
                    "ServiceAccount" => {
                        write!(f, "{kind} {}", quote(&format!("{name}/{}", binding.namespace_of(self.1))))
                    }
                    _ => write!(f, "{kind} {}", quote(name)),
                }
            }
        }
        let RoleRef { kind, name } = &self.role_ref;
        let binding = match &*self.namespace {
            "" => format!("ClusterRoleBinding {}", quote(&self.name)),
            namespace => format!("RoleBinding {}", quote(&format!("{}/{namespace}", self.name))),
        };
        format!("{binding} of {kind} {} to {}", quote(name), To(self, subject))
    }
}
