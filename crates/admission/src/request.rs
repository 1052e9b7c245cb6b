//! The request that a plugin decides on.

use crate::Lister;
use pintle_machinery::{
    GroupResource, GroupVersionKind, GroupVersionResource, Status, StatusReason, Value, ValueExt,
};
use pintle_registry::RequestContext;
use std::{borrow::Cow, sync::Arc};

/// What a request does to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A new state of an object; patches too.
    Update,
    /// An object goes.
    Delete,
    /// A stream or a proxied request.
    Connect,
}

impl Operation {
    /// The operation as webhooks and policies name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// One write, as admission sees it.
pub struct AdmissionRequest<'a> {
    /// What is done.
    pub operation: Operation,
    /// The resource of the path.
    pub resource: &'a GroupVersionResource,
    /// The subresource of the path, or "".
    pub subresource: &'a str,
    /// The kind of [`AdmissionRequest::object`].
    pub kind: &'a GroupVersionKind,
    /// The namespace of the path; "" for cluster-scoped resources. For a namespace itself it is its name.
    pub namespace: &'a str,
    /// The name; "" on a create whose name is still to be generated.
    pub name: &'a str,
    /// The object as it is to be stored, or the body of a subresource; null on delete. Owned where plugins change it,
    /// borrowed where they only look.
    pub object: Cow<'a, Value>,
    /// The object as it is stored; `None` on create.
    pub old_object: Option<&'a Value>,
    /// The options of the write (`CreateOptions`, `UpdateOptions`, `DeleteOptions`); null when there are none.
    pub options: Value,
    /// The request.
    pub context: &'a RequestContext<'a>,
    /// Cached reads.
    pub lister: &'a dyn Lister,
    /// What the client should know; sent as `Warning` headers.
    pub warnings: Vec<String>,
}

impl AdmissionRequest<'_> {
    /// Whether the request is about this resource itself (no subresource), in any version.
    pub fn is_for(&self, group: &str, resource: &str) -> bool {
        self.subresource.is_empty() && self.is_of(group, resource)
    }

    /// Whether the request is about this resource or a subresource of it, in any version.
    pub fn is_of(&self, group: &str, resource: &str) -> bool {
        self.resource.resource == resource && self.resource.group == group
    }

    /// 403 for the object of this request, worded as all admission plugins do.
    pub fn forbidden(&self, why: impl AsRef<str>) -> Status {
        Status::forbidden(&self.resource.group_resource(), self.display_name(), why.as_ref())
    }

    /// The name for messages: that of the request, of the object, what it will begin with, or `Unknown`.
    fn display_name(&self) -> &str {
        [self.name, self.object.str_at("metadata.name"), self.object.str_at("metadata.generateName")]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or("Unknown")
    }

    /// Another object of the server: from the cache, or as it is stored when the cache does not have it.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn get(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Value>, Status> {
        match self.lister.get(resource, namespace, name) {
            Some(object) => Ok(object),
            None => self.context.registry.get(resource, namespace, name).await.map(Arc::new),
        }
    }

    /// As [`AdmissionRequest::get`], but `None` when there is no such object.
    ///
    /// # Errors
    /// When the object cannot be read.
    pub async fn find(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Value>>, Status> {
        match self.get(resource, namespace, name).await {
            Ok(object) => Ok(Some(object)),
            Err(status) if status.reason == StatusReason::NotFound => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Other objects of the server: from the cache, or as they are stored when nothing is cached.
    ///
    /// # Errors
    /// When the objects cannot be read.
    pub async fn list(&self, resource: &GroupResource, namespace: &str) -> Result<Vec<Arc<Value>>, Status> {
        match self.lister.list(resource, namespace) {
            Some(objects) => Ok(objects),
            None => {
                let objects = self.context.registry.list(resource, namespace).await?;
                Ok(objects.into_iter().map(Arc::new).collect())
            }
        }
    }
}
