//! Allows members of privileged groups everything.

use pintle_auth::{
    BoxFuture,
    authz::{Attributes, Authorizer, Decision, Verdict},
};
use std::future::ready;

/// Allows members of some groups everything and has no opinion on other users. It precedes the configured authorizers,
/// so that no configuration can lock the administrators out.
pub(crate) struct PrivilegedGroups(Vec<String>);

impl PrivilegedGroups {
    /// An authorizer for members of these groups.
    pub(crate) fn new(groups: impl IntoIterator<Item = impl Into<String>>) -> PrivilegedGroups {
        PrivilegedGroups(groups.into_iter().map(Into::into).collect())
    }
}

impl Authorizer for PrivilegedGroups {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        let is_member = attributes.user.groups.iter().any(|group| self.0.contains(group));
        let decision = if is_member { Decision::Allow } else { Decision::NoOpinion };
        Box::pin(ready(Verdict::new(decision)))
    }
}
