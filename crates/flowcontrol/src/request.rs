//! What is known of a request when its place is found.

use pintle_machinery::UserInfo;

/// A request, as far as flow control looks at it. The queues keep it while it waits and while it is served, for the debug
/// endpoints.
pub trait RequestAttributes: Send + Sync {
    /// Who asks.
    fn user(&self) -> &UserInfo;
    /// The verb; of a request that is not for a resource the HTTP method in lower case.
    fn verb(&self) -> &str;
    /// The path, decoded.
    fn path(&self) -> &str;
    /// Whether it is for a resource.
    fn is_resource_request(&self) -> bool;
    /// The group, "" for the core group.
    fn api_group(&self) -> &str;
    /// The version.
    fn api_version(&self) -> &str;
    /// The resource.
    fn resource(&self) -> &str;
    /// The subresource, or "".
    fn subresource(&self) -> &str;
    /// The namespace, or "".
    fn namespace(&self) -> &str;
    /// The name, or "".
    fn name(&self) -> &str;
    /// The first value of a parameter of the query.
    fn query(&self, parameter: &str) -> Option<&str>;
}

/// Whether a request only reads, as the metrics tell requests apart.
pub(crate) fn is_read_only(verb: &str) -> bool {
    matches!(verb, "get" | "list" | "watch")
}
