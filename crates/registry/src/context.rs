//! What the code of a kind may know of the request it serves.

use crate::Registry;
use jiff::Timestamp;
use pintle_auth::authz::Authorizer;
use pintle_machinery::{GroupVersion, UserInfo};

/// One request, as strategies, subresources and admission see it.
pub struct RequestContext<'a> {
    /// Who asks.
    pub user: &'a UserInfo,
    /// The namespace of the request; "" for cluster-scoped resources.
    pub namespace: &'a str,
    /// The name in the path; "" on create.
    pub name: &'a str,
    /// The subresource in the path, or "".
    pub subresource: &'a str,
    /// The group and version the client speaks.
    pub group_version: &'a GroupVersion,
    /// The time of the request, the same for everything the request does.
    pub now: Timestamp,
    /// Whether nothing may be kept.
    pub dry_run: bool,
    /// The other objects of this server.
    pub registry: &'a dyn Registry,
    /// Who says what else the user may do.
    pub authorizer: &'a dyn Authorizer,
}
