//! The admission attributes of a request.

use crate::{
    Lister, ManagedFieldsBefore, Operation, Reinvocation, RequestOptions, RequestVersions, Undecoded,
};
use pintle_go_forms::quote;
use pintle_machinery::{
    GroupResource, GroupVersionKind, GroupVersionResource, Status, StatusReason, Value, ValueExt,
    selectors::LabelSelector, validation::validate_path_segment_name,
};
use pintle_offload::leave_worker;
use pintle_registry::RequestContext;
use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

/// The admission attributes of one request.
pub struct AdmissionRequest<'a> {
    /// The operation.
    pub operation: Operation,
    /// The resource of the path.
    pub resource: &'a GroupVersionResource,
    /// The subresource of the path, or "".
    pub subresource: &'a str,
    /// The kind of [`AdmissionRequest::object`].
    pub kind: &'a GroupVersionKind,
    /// The namespace of the path; "" for cluster-scoped resources. For a namespace itself it is its name.
    pub namespace: &'a str,
    /// The name, on a create that of the object; "" when it is not generated yet.
    pub name: &'a str,
    /// The object in the form to be stored, or the body of a subresource; null on delete. Owned if plugins may change
    /// it, otherwise borrowed.
    pub object: Cow<'a, Value>,
    /// The stored object; `None` on create.
    pub old_object: Option<&'a Value>,
    /// The options of the request.
    pub options: RequestOptions<'a>,
    /// The objects in the other versions of the resource.
    pub versions: &'a dyn RequestVersions,
    /// The rounds of mutating admission.
    pub reinvocation: Reinvocation,
    /// Whether a webhook or policy has replaced the object.
    pub is_replaced: bool,
    /// The managed fields before mutating admission.
    pub managed_fields: ManagedFieldsBefore,
    /// The time by which admission must end, if there is one.
    pub deadline: Option<Instant>,
    /// The request scope.
    pub context: &'a RequestContext<'a>,
    /// Cached reads.
    pub lister: &'a dyn Lister,
    /// Warnings for the client, sent as `Warning` headers.
    pub warnings: Vec<String>,
    /// Annotations of the audit event; a key names the plugin that adds it.
    pub audit_annotations: Vec<(Cow<'static, str>, String)>,
    /// As `audit_annotations`, with parts of the object: only events that have the object get them.
    pub detailed_audit_annotations: Vec<(Cow<'static, str>, String)>,
    /// The time that webhooks took.
    pub webhook_time: Duration,
}

/// The number of objects whose labels a worker may compare.
const MANY: usize = 4_096;

impl<'a> AdmissionRequest<'a> {
    /// Whether the request is for this resource itself (no subresource), in any version.
    pub fn is_for(&self, group: &str, resource: &str) -> bool {
        self.subresource.is_empty() && self.is_of(group, resource)
    }

    /// Whether the request is for this resource or one of its subresources, in any version.
    pub fn is_of(&self, group: &str, resource: &str) -> bool {
        self.resource.resource == resource && self.resource.group == group
    }

    /// Replaces the object by one that a webhook or policy has made of it. Whether its managed fields are valid is
    /// verified after mutating admission.
    pub fn replace_object(&mut self, object: Value) {
        self.managed_fields.changes(&self.object, &object);
        self.object = Cow::Owned(object);
        self.is_replaced = true;
    }

    /// A 403 for the object of this request, in the wording of all admission plugins.
    pub fn forbidden(&self, why: impl AsRef<str>) -> Status {
        Status::forbidden(&self.resource.group_resource(), self.display_name(), why.as_ref())
    }

    /// The name for messages: that of the request, of the object, its `generateName`, or `Unknown`.
    fn display_name(&self) -> &str {
        [self.name, self.object.str_at("metadata.name"), self.object.str_at("metadata.generateName")]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or("Unknown")
    }

    /// Returns another object of the server: from the cache, or from the store when the cache does not have it.
    ///
    /// # Errors
    /// 404 when the object does not exist.
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

    /// The error of Kubernetes' client about the name of an object that was not found, for which it sends no request: the name
    /// fits into no path.
    pub fn unusable_name(name: &str) -> Option<String> {
        let faults = validate_path_segment_name(name, false);
        (!faults.is_empty()).then(|| format!("invalid resource name {}: [{}]", quote(name), faults.join(" ")))
    }

    /// The labels of another object of the server that have one of these keys; `None` when there is no such object. An
    /// object that the cache has is not decoded for them.
    ///
    /// # Errors
    /// When the object cannot be read.
    pub async fn find_labels(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        keys: &[&str],
    ) -> Result<Option<Vec<(String, String)>>, Status> {
        if let Some(labels) = self.lister.labels(resource, namespace, name, keys) {
            return Ok(Some(labels));
        }
        match self.context.registry.get(resource, namespace, name).await {
            Ok(object) => {
                let own = object.map_at("metadata.labels");
                let label = |key: &&str| Some(((*key).to_owned(), own.get(key)?.as_str()?.to_owned()));
                Ok(Some(keys.iter().filter_map(label).collect()))
            }
            Err(status) if status.reason == StatusReason::NotFound => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Lists other objects of the server: from the cache, or from the store when the resource is not cached.
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

    /// Finds other objects of the server whose labels match, for use one after the other. Only the labels of the others
    /// are read: from the cache, or from the store when the resource is not cached.
    ///
    /// # Errors
    /// When an object of the namespace cannot be read.
    pub async fn select(
        &self,
        resource: &GroupResource,
        namespace: &str,
        selector: &LabelSelector,
    ) -> Result<Vec<Undecoded<'a>>, Status> {
        if self.lister.count(resource, namespace, "").is_some_and(|count| count > MANY) {
            leave_worker().await;
        }
        if let Some(selected) = self.lister.select(resource, namespace, selector) {
            return Ok(selected);
        }
        let matches = |object: &Value| selector.matches_labels(object.at("metadata.labels"));
        let registry = self.context.registry;
        let selected = registry.list_matching(resource, namespace, usize::MAX, &matches).await?;
        Ok(selected.into_iter().map(|object| Undecoded::from(Arc::new(object))).collect())
    }
}
