//! A request, from which the attributes of admission are made.

use super::Objects;
use crate::{
    AdmissionRequest, Endpoint, ManagedFieldsBefore, Operation, Reinvocation, RequestOptions, RequestVersions,
};
use jiff::Timestamp;
use pintle_auth::authz::{AlwaysAllow, Authorizer};
use pintle_machinery::{GroupVersion, GroupVersionKind, GroupVersionResource, Status, UserInfo, Value};
use pintle_registry::{BoxFuture, EmptyFields, PatientClient, RequestContext, testing::GoneClient};
use pintle_schema::SchemaRef;
use std::{
    borrow::Cow,
    future::ready,
    time::{Duration, Instant},
};

/// An endpoint of a group, version and resource. Its kind is the name of the resource.
pub fn endpoint(group: &str, version: &str, resource: &str) -> Endpoint {
    Endpoint {
        resource: GroupVersionResource::new(group, version, resource),
        subresource: String::new(),
        kind: GroupVersionKind::new(group, version, resource),
    }
}

/// A request, and the other objects that exist.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are those of the attributes")]
pub struct Request {
    pub operation: Operation,
    pub resource: GroupVersionResource,
    pub subresource: String,
    pub kind: GroupVersionKind,
    pub namespace: String,
    pub name: String,
    pub object: Value,
    pub old_object: Option<Value>,
    pub user: UserInfo,
    pub dry_run: bool,
    pub deadline: Option<Instant>,
    pub client_is_gone: bool,
    pub objects: Objects,
    pub empty_fields: EmptyFields,
}

impl Request {
    /// A request without objects by a user without a name. The kind is the name of the resource.
    pub fn new(operation: Operation, group: &str, version: &str, resource: &str, namespace: &str) -> Request {
        Request {
            operation,
            resource: GroupVersionResource::new(group, version, resource),
            subresource: String::new(),
            kind: GroupVersionKind::new(group, version, resource),
            namespace: namespace.to_owned(),
            name: String::new(),
            object: Value::Null,
            old_object: None,
            user: UserInfo::default(),
            dry_run: false,
            deadline: None,
            client_is_gone: false,
            objects: Objects::default(),
            empty_fields: EmptyFields::default(),
        }
    }

    /// The endpoint of the request.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            resource: self.resource.clone(),
            subresource: self.subresource.clone(),
            kind: self.kind.clone(),
        }
    }

    /// Calls a function with the admission attributes of the request, in a runtime of its own.
    pub fn with<T>(&self, call: impl AsyncFnOnce(&mut AdmissionRequest<'_>) -> T) -> T {
        self.with_authorizer(&AlwaysAllow, call)
    }

    /// As [`Request::with`], with an authorizer.
    pub fn with_authorizer<T>(
        &self,
        authorizer: &dyn Authorizer,
        call: impl AsyncFnOnce(&mut AdmissionRequest<'_>) -> T,
    ) -> T {
        let group_version = GroupVersion::new(&self.resource.group, &self.resource.version);
        let context = RequestContext {
            user: &self.user,
            verb: "update",
            namespace: &self.namespace,
            name: &self.name,
            subresource: &self.subresource,
            group_version: &group_version,
            now: Timestamp::UNIX_EPOCH,
            dry_run: self.dry_run,
            empty_fields: &self.empty_fields,
            registry: &self.objects,
            authorizer,
            client: if self.client_is_gone { &GoneClient } else { &PatientClient },
        };
        let mut request = AdmissionRequest {
            operation: self.operation,
            resource: &self.resource,
            subresource: &self.subresource,
            kind: &self.kind,
            namespace: &self.namespace,
            name: &self.name,
            object: Cow::Owned(self.object.clone()),
            old_object: self.old_object.as_ref(),
            options: RequestOptions::None,
            versions: &OneVersion,
            reinvocation: Reinvocation::default(),
            is_replaced: false,
            managed_fields: ManagedFieldsBefore::default(),
            deadline: self.deadline,
            context: &context,
            lister: &self.objects,
            warnings: Vec::new(),
            audit_annotations: Vec::new(),
            detailed_audit_annotations: Vec::new(),
            webhook_time: Duration::ZERO,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(call(&mut request))
    }
}

/// All versions have one form, and none is equivalent to another.
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

    fn encode(&self, object: &Value, _: &GroupVersionKind) -> Result<Vec<u8>, Status> {
        Ok(object.to_string().into_bytes())
    }

    fn read_version<'a>(
        &'a self,
        json: &'a [u8],
        _: &'a GroupVersionKind,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(ready(serde_json::from_slice(json).map_err(Status::internal_error)))
    }
}
