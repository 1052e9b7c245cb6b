//! The exemptions from Pod Security.

use crate::AdmissionRequest;
use std::collections::BTreeSet;

/// The users, namespaces and runtime classes whose pods are not judged.
#[derive(Debug, Default)]
pub(super) struct Exemptions {
    pub(super) usernames: BTreeSet<String>,
    pub(super) namespaces: BTreeSet<String>,
    pub(super) runtime_classes: BTreeSet<String>,
}

impl Exemptions {
    /// Why a request is exempt, as in audit annotations: `namespace` or `user`.
    pub(super) fn of_request(&self, request: &AdmissionRequest<'_>) -> Option<&'static str> {
        if self.namespaces.contains(request.namespace) {
            return Some("namespace");
        }
        self.usernames.contains(&request.context.user.name).then_some("user")
    }
}
