//! The attributes of a request that policies match.

use pintle_machinery::UserInfo;

/// The attributes of a request that policies match.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// The requesting user; `None` when it is unknown.
    pub user: Option<&'a UserInfo>,
    /// The verb, or the method in lower case.
    pub verb: &'a str,
    /// Whether it is a resource request.
    pub is_resource_request: bool,
    /// The API group.
    pub api_group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource, or "".
    pub subresource: &'a str,
    /// The namespace, or "".
    pub namespace: &'a str,
    /// The name, or "".
    pub name: &'a str,
    /// The path.
    pub path: &'a str,
}
