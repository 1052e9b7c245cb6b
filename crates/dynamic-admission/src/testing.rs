//! Test support: requests with the objects that admission reads beside them.

use jiff::Timestamp;
use pintle_admission::{
    AdmissionRequest, Endpoint, Lister, Operation, Reinvocation, RequestOptions, RequestVersions,
};
use pintle_auth::authz::AlwaysAllow;
use pintle_machinery::{
    GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, Status, UserInfo, Value,
};
use pintle_registry::{BoxFuture, DeleteOptions, Registry, RequestContext, WriteOptions};
use pintle_schema::SchemaRef;
use std::{borrow::Cow, future::ready, sync::Arc};

/// An endpoint of a group, version and resource. Its kind is the name of the resource.
pub(crate) fn endpoint(group: &str, version: &str, resource: &str) -> Endpoint {
    Endpoint {
        resource: GroupVersionResource::new(group, version, resource),
        subresource: String::new(),
        kind: GroupVersionKind::new(group, version, resource),
    }
}

/// A request, and the namespaces that exist.
pub(crate) struct Request {
    pub(crate) operation: Operation,
    pub(crate) resource: GroupVersionResource,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) object: Value,
    pub(crate) old_object: Option<Value>,
    pub(crate) namespaces: Vec<(&'static str, Value)>,
}

impl Request {
    pub(crate) fn new(
        operation: Operation,
        group: &str,
        version: &str,
        resource: &str,
        namespace: &str,
    ) -> Request {
        Request {
            operation,
            resource: GroupVersionResource::new(group, version, resource),
            subresource: String::new(),
            namespace: namespace.to_owned(),
            name: String::new(),
            object: Value::Null,
            old_object: None,
            namespaces: Vec::new(),
        }
    }

    /// Calls a function with the admission attributes of the request.
    pub(crate) fn with<T>(&self, call: impl AsyncFnOnce(&mut AdmissionRequest<'_>) -> T) -> T {
        let user = UserInfo::default();
        let GroupVersionResource { group, version, resource } = &self.resource;
        let group_version = GroupVersion::new(group, version);
        let objects = Namespaces(self.namespaces.clone());
        let context = RequestContext {
            user: &user,
            verb: "update",
            namespace: &self.namespace,
            name: &self.name,
            subresource: &self.subresource,
            group_version: &group_version,
            now: Timestamp::UNIX_EPOCH,
            dry_run: false,
            registry: &objects,
            authorizer: &AlwaysAllow,
        };
        let mut request = AdmissionRequest {
            operation: self.operation,
            resource: &self.resource,
            subresource: &self.subresource,
            kind: &GroupVersionKind::new(group, version, resource),
            namespace: &self.namespace,
            name: &self.name,
            object: Cow::Borrowed(&self.object),
            old_object: self.old_object.as_ref(),
            options: RequestOptions::None,
            versions: &OneVersion,
            reinvocation: Reinvocation::default(),
            context: &context,
            lister: &objects,
            warnings: Vec::new(),
            audit_annotations: Vec::new(),
            detailed_audit_annotations: Vec::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(call(&mut request))
    }
}

/// Versions that are not asked for.
struct OneVersion;

impl RequestVersions for OneVersion {
    fn equivalents(&self) -> Vec<Endpoint> {
        Vec::new()
    }

    fn schema(&self, _: &GroupVersionKind) -> Option<SchemaRef<'_>> {
        None
    }

    fn to_version<'a>(
        &'a self,
        object: &'a Value,
        _: &'a GroupVersionKind,
    ) -> BoxFuture<'a, Result<Cow<'a, Value>, Status>> {
        Box::pin(ready(Ok(Cow::Borrowed(object))))
    }

    fn encode(&self, _: &Value, _: &GroupVersionKind) -> Result<Vec<u8>, Status> {
        Err(Status::no_such_resource())
    }

    fn read_version<'a>(
        &'a self,
        _: &'a [u8],
        _: &'a GroupVersionKind,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(ready(Err(Status::no_such_resource())))
    }
}

/// The namespaces, which are read from the registry: nothing is cached.
struct Namespaces(Vec<(&'static str, Value)>);

impl Lister for Namespaces {
    fn get(&self, _: &GroupResource, _: &str, _: &str) -> Option<Arc<Value>> {
        None
    }

    fn list(&self, _: &GroupResource, _: &str) -> Option<Vec<Arc<Value>>> {
        None
    }

    fn page(&self, _: &GroupResource, _: &str, _: &str, _: usize) -> Option<Vec<Value>> {
        None
    }

    fn count(&self, _: &GroupResource, _: &str, _: &str) -> Option<usize> {
        None
    }
}

impl Registry for Namespaces {
    fn get<'a>(
        &'a self,
        resource: &'a GroupResource,
        _: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        let found = self.0.iter().find(|(own, _)| *own == name).map(|(_, namespace)| namespace.clone());
        Box::pin(ready(found.ok_or_else(|| Status::not_found(resource, name))))
    }

    fn list<'a>(&'a self, _: &'a GroupResource, _: &'a str) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn create<'a>(
        &'a self,
        _: &'a GroupResource,
        _: &'a str,
        _: Value,
        _: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        unreachable!("admission reads only")
    }

    fn update<'a>(
        &'a self,
        _: &'a GroupResource,
        _: &'a str,
        _: &'a str,
        _: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
        _: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        unreachable!("admission reads only")
    }

    fn delete<'a>(
        &'a self,
        _: &'a GroupResource,
        _: &'a str,
        _: &'a str,
        _: DeleteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        unreachable!("admission reads only")
    }
}
