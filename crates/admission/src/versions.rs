//! Defines [`RequestVersions`], the forms that the objects of a request have in other versions of its resource.

use pintle_machinery::{GroupVersionKind, GroupVersionResource, Status, Value};
use pintle_registry::BoxFuture;
use pintle_schema::SchemaRef;
use std::borrow::Cow;

/// A served resource or subresource, and the kind of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The resource.
    pub resource: GroupVersionResource,
    /// The subresource, or "".
    pub subresource: String,
    /// The kind of the objects.
    pub kind: GroupVersionKind,
}

/// The versions of a request's resource, and the conversion of its objects between them.
///
/// The objects of an [`crate::AdmissionRequest`] have the form in which the server works with them, which need not be
/// that of the request: webhooks and policies see them in the version that they ask for.
pub trait RequestVersions: Send + Sync {
    /// The endpoints that serve the same objects, that of the request among them
    /// (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-matchpolicy>).
    fn equivalents(&self) -> Vec<Endpoint>;

    /// The schema of the kind of one of the equivalents, or of the request.
    fn schema(&self, kind: &GroupVersionKind) -> Option<SchemaRef<'_>>;

    /// Converts an object of the request to the kind of one of the equivalents, if it is of another kind.
    ///
    /// # Errors
    /// The `Status` of a conversion that fails.
    fn to_version<'a>(
        &'a self,
        object: &'a Value,
        kind: &'a GroupVersionKind,
    ) -> BoxFuture<'a, Result<Cow<'a, Value>, Status>>;

    /// The JSON of an object in the kind of one of the equivalents, as clients get it.
    ///
    /// # Errors
    /// 500 for a kind without a schema.
    fn encode(&self, object: &Value, kind: &GroupVersionKind) -> Result<Vec<u8>, Status>;

    /// Decodes the JSON of a changed object of the kind of one of the equivalents, sets its defaults and converts it to
    /// the form of the request's objects. Unknown fields are dropped.
    ///
    /// # Errors
    /// 500 for JSON that is no object of this kind, and the `Status` of a conversion that fails.
    fn read_version<'a>(
        &'a self,
        json: &'a [u8],
        kind: &'a GroupVersionKind,
    ) -> BoxFuture<'a, Result<Value, Status>>;
}
