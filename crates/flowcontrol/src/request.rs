//! The attributes of a request that flow control uses.

use pintle_machinery::UserInfo;

/// A request's attributes. The queues keep them while the request waits and executes, for the debug endpoints.
pub trait RequestAttributes: Send + Sync {
    /// The requesting user.
    fn user(&self) -> &UserInfo;
    /// The verb; for a request without a resource the HTTP method in lower case.
    fn verb(&self) -> &str;
    /// The path, decoded.
    fn path(&self) -> &str;
    /// Whether it is a resource request.
    fn is_resource_request(&self) -> bool;
    /// The API group, "" for the core group.
    fn api_group(&self) -> &str;
    /// The API version.
    fn api_version(&self) -> &str;
    /// The resource.
    fn resource(&self) -> &str;
    /// The subresource, or "".
    fn subresource(&self) -> &str;
    /// The namespace, or "".
    fn namespace(&self) -> &str;
    /// The name, or "".
    fn name(&self) -> &str;
    /// The first value of a query parameter.
    fn query(&self, parameter: &str) -> Option<&str>;
}

/// Whether a request only reads, as the metrics distinguish requests.
pub(crate) fn is_read_only(verb: &str) -> bool {
    matches!(verb, "get" | "list" | "watch")
}
