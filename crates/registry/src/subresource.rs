//! Declares subresources: views of an object and actions on it that have a path of their own.

use crate::{BoxFuture, Connecter, RequestContext, Strategy, TableConvertor};
use pintle_machinery::{ErrorList, GroupVersionKind, Status, Value};
use std::sync::Arc;

/// A subresource of a [`crate::Resource`].
#[derive(Clone)]
pub struct Subresource {
    /// The last part of the path, such as `status`.
    pub name: String,
    /// The form of the subresource and its implementation.
    pub kind: SubresourceKind,
}

/// The forms of subresources.
#[derive(Clone)]
pub enum SubresourceKind {
    /// Reads and writes the whole object by get, update and patch, under a strategy that reverts changes outside the
    /// subresource: `status`, `ephemeralcontainers`, `resize`, `approval`, `finalize`.
    Object {
        /// The rules for writes to this subresource.
        strategy: Arc<dyn Strategy>,
        /// The verbs served, out of get, update and patch.
        verbs: Vec<crate::Verb>,
        /// Whether answers have the form of a table.
        has_table: bool,
    },
    /// `autoscaling/v1` `Scale` by get, update and patch.
    Scale(ScalePaths),
    /// A named create of another kind: `binding`, `eviction`, `token`.
    Create {
        /// The kind of the body.
        kind: GroupVersionKind,
        /// Other versions of the kind that are accepted in a body; their fields are the same.
        other_versions: Vec<String>,
        /// The implementation of the create.
        creater: Arc<dyn NamedCreater>,
    },
    /// Streams and proxied requests to a node, a pod or a service.
    Connect {
        /// The kind that discovery lists.
        kind: GroupVersionKind,
        /// The options in the query of a request.
        options: ConnectOptions,
        /// The verbs that discovery lists.
        verbs: Vec<crate::Verb>,
        /// Whether whole requests pass: by HEAD and OPTIONS, too, and with a rest of the path, which is the option
        /// `path`.
        is_proxy: bool,
        /// Resolves the destination of a request.
        connecter: Arc<dyn Connecter>,
    },
}

/// The options of a stream or a proxied request.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The kind of the options. Its fields are the query parameters.
    pub kind: GroupVersionKind,
    /// Validates the options; called before the object is read.
    pub validate: fn(&Value) -> ErrorList,
}

/// The paths of the fields that `Scale` shows.
#[derive(Clone)]
pub struct ScalePaths {
    /// The path of the desired number of replicas.
    pub spec_replicas: String,
    /// The path of the observed number of replicas.
    pub status_replicas: String,
    /// The path of the selector.
    pub selector: Option<String>,
    /// The values that the paths may have.
    pub values: ScaleValues,
    /// The columns of a scale.
    pub table: Arc<dyn TableConvertor>,
}

/// The values at the paths of a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleValues {
    /// Integers, and a label selector object or a plain map of labels. An absent integer is zero; a negative one in a
    /// scale is rejected.
    Typed,
    /// Any values: absent or wrong ones are errors of the request for the scale. The selector is a text. The validation
    /// of the object limits the integers.
    Any,
}

/// Remarks on the body of a create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Annotations of the audit event.
    pub audit_annotations: Vec<(&'static str, String)>,
}

/// Serves a create on a subresource of an existing object, or on a resource without storage.
pub trait NamedCreater: Send + Sync {
    /// Serves a POST of `body` (decoded, with schema defaults) to the subresource of `context.name`. Returns the body
    /// of the response, a `Status` object or another kind.
    ///
    /// # Errors
    /// The `Status` that the client gets.
    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        body: Value,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// Checks the body and completes it. Called before validating admission, which sees the completed body;
    /// [`NamedCreater::create`] is called after it.
    ///
    /// # Errors
    /// The `Status` that the client gets.
    fn prepare<'a>(
        &'a self,
        _context: &'a RequestContext<'a>,
        _body: &'a mut Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Remarks on a prepared body, made whether or not the create succeeds.
    ///
    /// # Errors
    /// The `Status` that the client gets.
    fn remarks<'a>(
        &'a self,
        _context: &'a RequestContext<'a>,
        _body: &'a Value,
    ) -> BoxFuture<'a, Result<Remarks, Status>> {
        Box::pin(std::future::ready(Ok(Remarks::default())))
    }

    /// Defaults fields of the body beyond the schema's own defaults.
    fn set_defaults(&self, _body: &mut Value) {}

    /// Warnings for the client, when the create succeeds.
    fn warnings(&self, _context: &RequestContext<'_>, _body: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Annotations of the audit event, when the create succeeds with this answer.
    fn audit_annotations(&self, _answer: &Value) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Whether the body keeps the client's uid and timestamps, as preconditions. Otherwise they are cleared.
    fn keeps_system_metadata(&self) -> bool {
        false
    }
}
