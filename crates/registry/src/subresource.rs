//! Parts of an object that have a path of their own.

use crate::{BoxFuture, RequestContext, Strategy, TableConvertor};
use pintle_machinery::{ErrorList, GroupVersionKind, Status, Value};
use std::sync::Arc;

/// A subresource of a [`crate::Resource`].
#[derive(Clone)]
pub struct Subresource {
    /// The last part of the path, such as `status`.
    pub name: String,
    /// What it does.
    pub kind: SubresourceKind,
}

/// What a subresource does.
#[derive(Clone)]
pub enum SubresourceKind {
    /// Reads and writes the whole object by get, update and patch, under another strategy that keeps all but its part:
    /// `status`, `ephemeralcontainers`, `resize`, `approval`, `finalize`.
    Part {
        /// The rules of the part.
        strategy: Arc<dyn Strategy>,
        /// Verbs other than get, update and patch are not served; some parts lack get or patch.
        verbs: Vec<crate::Verb>,
    },
    /// `autoscaling/v1` `Scale` by get, update and patch.
    Scale(ScalePaths),
    /// A named create of another kind: `binding`, `eviction`, `token`.
    Create {
        /// The kind of the body.
        kind: GroupVersionKind,
        /// Other versions of the kind that a body may be in; their fields are the same.
        other_versions: Vec<String>,
        /// What it does.
        creater: Arc<dyn NamedCreater>,
    },
    /// Streams and proxied requests to a node, a pod or a service, which the server does not serve yet: declared so
    /// that discovery lists it.
    Connect {
        /// The kind that discovery lists.
        kind: GroupVersionKind,
        /// The options in the query of a request.
        options: ConnectOptions,
        /// The verbs it has.
        verbs: Vec<crate::Verb>,
    },
}

/// The options of a stream or a proxied request.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Their kind, whose fields are the parameters of the query.
    pub kind: GroupVersionKind,
    /// Validates the options before the object is looked up.
    pub validate: fn(&Value) -> ErrorList,
}

/// Where a kind keeps what `Scale` shows.
#[derive(Clone)]
pub struct ScalePaths {
    /// The path of the wanted number.
    pub spec_replicas: String,
    /// The path of the actual number.
    pub status_replicas: String,
    /// The path of the selector: a label selector object, a plain map, or (custom resources) its text.
    pub selector: Option<String>,
    /// Set for custom resources, of whose values nothing is certain: what is at the paths may be missing or of another
    /// type, and the scale has columns of its own.
    pub custom: Option<Arc<dyn TableConvertor>>,
}

/// A create below an existing object.
pub trait NamedCreater: Send + Sync {
    /// Serves a POST of `body` (decoded, with schema defaults) to the subresource of `context.name`; the answer is the
    /// body of the response, a `Status` object or another kind.
    ///
    /// # Errors
    /// The `Status` that the client gets.
    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        body: Value,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// Fills in what the client left out, besides what the schema says of it.
    fn set_defaults(&self, _body: &mut Value) {}

    /// What the client is to be told besides, if the create succeeds.
    fn warnings(&self, _context: &RequestContext<'_>, _body: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Whether the body's uid and times come from the client: they are conditions then. Others are taken out.
    fn keeps_system_metadata(&self) -> bool {
        false
    }
}
