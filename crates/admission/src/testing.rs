//! Test support for plugins: stored objects, and calls of one plugin with one request.

use crate::{
    AdmissionPlugin, AdmissionRequest, Endpoint, Lister, Operation, Reinvocation, RequestOptions,
    RequestVersions,
};
use jiff::Timestamp;
use pintle_auth::authz::{AlwaysAllow, Attributes, Authorizer, Decision, Verdict};
use pintle_machinery::{
    GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, Status, UserInfo, Value, ValueExt,
    meta::ObjectMeta,
};
use pintle_registry::{BoxFuture, DeleteOptions, Registry, RequestContext, WriteOptions};
use pintle_schema::SchemaRef;
use std::{borrow::Cow, future::ready, sync::Arc};

/// Stored objects, with the names of their resources.
#[derive(Debug, Default)]
pub(crate) struct Objects(Vec<(String, Value)>);

impl Objects {
    pub(crate) fn new<'a>(objects: impl IntoIterator<Item = (&'a str, Value)>) -> Objects {
        Objects(objects.into_iter().map(|(resource, object)| (resource.to_owned(), object)).collect())
    }

    fn of<'a>(&'a self, resource: &'a GroupResource, namespace: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0
            .iter()
            .filter(move |(own, object)| {
                *own == resource.resource && (namespace.is_empty() || object.namespace() == namespace)
            })
            .map(|(_, object)| object)
    }
}

/// Pages only: other reads go to the registry.
impl Lister for Objects {
    fn get(&self, _: &GroupResource, _: &str, _: &str) -> Option<Arc<Value>> {
        None
    }

    fn list(&self, _: &GroupResource, _: &str) -> Option<Vec<Arc<Value>>> {
        None
    }

    fn page(
        &self,
        resource: &GroupResource,
        namespace: &str,
        after: &str,
        limit: usize,
    ) -> Option<Vec<Value>> {
        let mut next: Vec<Value> =
            self.of(resource, namespace).filter(|object| object.name() > after).cloned().collect();
        next.sort_by(|one, other| one.name().cmp(other.name()));
        next.truncate(limit);
        Some(next)
    }

    fn count(&self, resource: &GroupResource, namespace: &str, after: &str) -> Option<usize> {
        Some(self.of(resource, namespace).filter(|object| object.name() > after).count())
    }
}

impl Registry for Objects {
    fn get<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        let found = self.of(resource, namespace).find(|object| object.name() == name).cloned();
        Box::pin(ready(found.ok_or_else(|| Status::not_found(resource, name))))
    }

    fn list<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        Box::pin(ready(Ok(self.of(resource, namespace).cloned().collect())))
    }

    fn create<'a>(
        &'a self,
        _: &'a GroupResource,
        _: &'a str,
        _: Value,
        _: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        unreachable!("plugins neither create nor delete")
    }

    /// Returns the changed object without storing it.
    fn update<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        mut change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
        _: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move { change(Registry::get(self, resource, namespace, name).await?) })
    }

    fn delete<'a>(
        &'a self,
        _: &'a GroupResource,
        _: &'a str,
        _: &'a str,
        _: DeleteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        unreachable!("plugins neither create nor delete")
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

/// An authorizer that allows one verb on some signers, and nothing else.
pub(crate) struct Signers {
    pub(crate) verb: &'static str,
    pub(crate) names: &'static [&'static str],
}

impl Authorizer for Signers {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        let is_allowed = (attributes.group, attributes.resource) == ("certificates.k8s.io", "signers")
            && attributes.verb == self.verb
            && self.names.contains(&attributes.name);
        let decision = if is_allowed { Decision::Allow } else { Decision::NoOpinion };
        Box::pin(ready(Verdict::new(decision)))
    }
}

/// Calls a plugin: returns the resulting object, or the refusal.
pub(crate) fn admit(
    plugin: &dyn AdmissionPlugin,
    objects: &Objects,
    operation: Operation,
    resource: &str,
    subresource: &str,
    object: Value,
    old_object: Option<&Value>,
) -> Result<Value, String> {
    admit_with(&AlwaysAllow, plugin, objects, operation, resource, subresource, object, old_object)
}

/// As [`admit`], with an authorizer.
#[expect(clippy::too_many_arguments, reason = "a request has many parts")]
pub(crate) fn admit_with(
    authorizer: &dyn Authorizer,
    plugin: &dyn AdmissionPlugin,
    objects: &Objects,
    operation: Operation,
    resource: &str,
    subresource: &str,
    object: Value,
    old_object: Option<&Value>,
) -> Result<Value, String> {
    let user = UserInfo::default();
    let call = call(&user, authorizer, plugin, objects, operation, resource, subresource, object, old_object);
    call.map(|(object, _)| object)
}

/// As [`admit`], for a user without any authorization.
#[expect(clippy::too_many_arguments, reason = "a request has many parts")]
pub(crate) fn admit_as(
    user: UserInfo,
    plugin: &dyn AdmissionPlugin,
    objects: &Objects,
    operation: Operation,
    resource: &str,
    subresource: &str,
    object: Value,
    old_object: Option<&Value>,
) -> Result<Value, String> {
    let nothing = Signers { verb: "", names: &[] };
    let call = call(&user, &nothing, plugin, objects, operation, resource, subresource, object, old_object);
    call.map(|(object, _)| object)
}

/// The warnings of a plugin about an update.
pub(crate) fn warnings_on_update(
    plugin: &dyn AdmissionPlugin,
    objects: &Objects,
    resource: &str,
    object: Value,
    old: &Value,
) -> Vec<String> {
    let user = UserInfo::default();
    let operation = Operation::Update;
    let call = call(&user, &AlwaysAllow, plugin, objects, operation, resource, "", object, Some(old));
    call.map(|(_, warnings)| warnings).unwrap()
}

#[expect(clippy::too_many_arguments, reason = "a request has many parts")]
fn call(
    user: &UserInfo,
    authorizer: &dyn Authorizer,
    plugin: &dyn AdmissionPlugin,
    objects: &Objects,
    operation: Operation,
    resource: &str,
    subresource: &str,
    object: Value,
    old_object: Option<&Value>,
) -> Result<(Value, Vec<String>), String> {
    let group = match resource {
        "priorityclasses" => "scheduling.k8s.io",
        "ingresses" => "networking.k8s.io",
        "podgroups" => "scheduling.k8s.io",
        "jobs" => "batch",
        "certificatesigningrequests" | "clustertrustbundles" => "certificates.k8s.io",
        _ => "",
    };
    let resource = GroupVersionResource::new(group, "v1", resource);
    let kind = GroupVersionKind::new(group, "v1", object.str_at("kind"));
    let group_version = GroupVersion::new(group, "v1");
    let name = old_object.map_or(object.name(), ObjectMeta::name).to_owned();
    let namespace = object.namespace().to_owned();
    let context = RequestContext {
        user,
        verb: "update",
        namespace: &namespace,
        name: &name,
        subresource,
        group_version: &group_version,
        now: Timestamp::UNIX_EPOCH,
        dry_run: false,
        registry: objects,
        authorizer,
    };
    let mut request = AdmissionRequest {
        operation,
        resource: &resource,
        subresource,
        kind: &kind,
        namespace: &namespace,
        name: &name,
        object: Cow::Owned(object),
        old_object,
        options: RequestOptions::None,
        versions: &OneVersion,
        reinvocation: Reinvocation::default(),
        context: &context,
        lister: objects,
        warnings: Vec::new(),
        audit_annotations: Vec::new(),
        detailed_audit_annotations: Vec::new(),
    };
    if !plugin.handles(&request) {
        return Ok((request.object.into_owned(), request.warnings));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        plugin.admit(&mut request).await.map_err(|status| status.message)?;
        plugin.validate(&mut request).await.map_err(|status| status.message)?;
        Ok((request.object.into_owned(), request.warnings))
    })
}
