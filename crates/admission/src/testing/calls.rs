//! Calls of one plugin with one request.

use super::{Objects, Request};
use crate::{AdmissionPlugin, Operation};
use pintle_auth::authz::{AlwaysAllow, Attributes, Authorizer, Decision, Verdict};
use pintle_machinery::{UserInfo, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::BoxFuture;
use std::future::ready;

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
        "resourceslices" => "resource.k8s.io",
        _ => "",
    };
    let mut request = Request::new(operation, group, "v1", resource, object.namespace());
    object.str_at("kind").clone_into(&mut request.kind.kind);
    subresource.clone_into(&mut request.subresource);
    old_object.map_or(object.name(), ObjectMeta::name).clone_into(&mut request.name);
    request.object = object;
    request.old_object = old_object.cloned();
    request.user = user.clone();
    request.objects = objects.clone();
    request.with_authorizer(authorizer, async |request| {
        if plugin.handles(request) {
            plugin.admit(request).await.map_err(|status| status.message)?;
            plugin.validate(request).await.map_err(|status| status.message)?;
        }
        Ok((request.object.clone().into_owned(), std::mem::take(&mut request.warnings)))
    })
}
