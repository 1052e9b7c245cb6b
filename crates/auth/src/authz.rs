//! What a user may do.

use pintle_machinery::{
    UserInfo,
    user::{AUTHENTICATED, SYSTEM_MASTERS},
};

/// What is asked for.
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a UserInfo,
    /// The verb.
    pub verb: &'a str,
    /// The group.
    pub group: &'a str,
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

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allow,
    /// They may not, or nobody says they may.
    Deny,
}

/// Says what users may do.
pub trait Authorizer: Send + Sync {
    /// Decides.
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision;
}

/// Members of `system:masters` may do everything; all others only what discovery and health checks need. What stands in
/// for RBAC until that is served.
#[derive(Debug, Clone, Copy, Default)]
pub struct MastersOnly;

/// What `system:public-info-viewer` opens to everybody.
const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
/// What `system:discovery` opens to everybody who is authenticated.
const DISCOVERY: &[&str] = &["/api", "/apis", "/openapi", "/version"];

impl Authorizer for MastersOnly {
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_member_of(SYSTEM_MASTERS) {
            return Decision::Allow;
        }
        if attributes.is_resource_request || attributes.verb != "get" {
            return Decision::Deny;
        }
        let below = |root: &str| {
            attributes.path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let allowed = PUBLIC.contains(&attributes.path)
            || attributes.user.is_member_of(AUTHENTICATED) && DISCOVERY.iter().any(|root| below(root));
        if allowed { Decision::Allow } else { Decision::Deny }
    }
}
