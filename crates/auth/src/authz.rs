//! What a user may do.

use crate::BoxFuture;
use pintle_machinery::{
    UserInfo,
    user::{AUTHENTICATED, SYSTEM_MASTERS},
};
use std::{borrow::Cow, future::ready};

/// What is asked for.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a UserInfo,
    /// The verb.
    pub verb: &'a str,
    /// The group.
    pub group: &'a str,
    /// The version, or "*".
    pub version: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource, or "".
    pub subresource: &'a str,
    /// The namespace, or "".
    pub namespace: &'a str,
    /// The name, or "".
    pub name: &'a str,
    /// The path of a request that is not for a resource.
    pub path: &'a str,
    /// Whether it is for a resource.
    pub is_resource_request: bool,
}

impl<'a> Attributes<'a> {
    /// A request for a resource of which nothing is said yet but who asks, and for what verb.
    pub fn of(user: &'a UserInfo, verb: &'a str) -> Attributes<'a> {
        Attributes {
            user,
            verb,
            group: "",
            version: "",
            resource: "",
            subresource: "",
            namespace: "",
            name: "",
            path: "",
            is_resource_request: true,
        }
    }
}

/// What an authorizer decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allow,
    /// They may not, whatever others say.
    Deny,
    /// Others are to decide; when nobody does, they may not.
    NoOpinion,
}

/// A decision with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// Why, for who is refused and for the audit log; may be empty.
    pub reason: Cow<'static, str>,
    /// What went wrong while deciding, such as a role that cannot be found; may be empty. It changes nothing.
    pub error: Cow<'static, str>,
}

impl Verdict {
    /// A decision for no particular reason.
    pub const fn new(decision: Decision) -> Verdict {
        Verdict { decision, reason: Cow::Borrowed(""), error: Cow::Borrowed("") }
    }

    /// Whether they may.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

/// Says what users may do.
pub trait Authorizer: Send + Sync {
    /// Decides.
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict>;
}

/// Lets everybody do everything: what the server's own parts work with.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(ready(Verdict::new(Decision::Allow)))
    }
}

/// Members of `system:masters` may do everything; all others only what discovery and health checks need. What stands in
/// for RBAC until that is served.
#[derive(Debug, Clone, Copy, Default)]
pub struct MastersOnly;

/// What `system:public-info-viewer` opens to everybody.
const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
/// What `system:discovery` opens to everybody who is authenticated.
const DISCOVERY: &[&str] = &["/api", "/apis", "/openapi", "/version"];

impl MastersOnly {
    fn decide(attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_member_of(SYSTEM_MASTERS) {
            return Decision::Allow;
        }
        if attributes.is_resource_request || attributes.verb != "get" {
            return Decision::NoOpinion;
        }
        let below = |root: &str| {
            attributes.path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let allowed = PUBLIC.contains(&attributes.path)
            || attributes.user.is_member_of(AUTHENTICATED) && DISCOVERY.iter().any(|root| below(root));
        if allowed { Decision::Allow } else { Decision::NoOpinion }
    }
}

impl Authorizer for MastersOnly {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(ready(Verdict::new(MastersOnly::decide(attributes))))
    }
}
