//! Serves the `scale` subresource: `autoscaling/v1` `Scale` of any kind that declares the path of its replicas
//! (<https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md>).

use super::{
    apply::Configuration,
    decode::decode,
    encoder::{Encoder, IncludeObject},
    patch::{Patch, read_patched},
    request_scope::RequestScope,
    write::check_name,
};
use crate::{
    base::{
        body::{Body, RequestBody},
        encoding::encode,
        negotiation::{self, APPLY_PATCH, Accepted, Offers, body_media_type},
        response::{Response, with_content_type},
    },
    registry::{ManagedWrite, Preconditions, Transform, TypeSchema, Upsert, VersionedResource, Written},
};
use pintle_admission::Operation;
use pintle_cacher::Freshness;
use pintle_go_forms::quote;
use pintle_machinery::{
    FieldError, FieldPath, GroupVersionKind, Status, Value, ValueExt,
    managed_fields::{FieldManager, OneVersion, Replicas},
    nested::{nested_int64, nested_string},
    options::{FieldValidation, WriteOptions},
    selectors::format_label_selector,
};
use pintle_registry::{BoxFuture, RequestContext, Resource, ScalePaths, SubresourceKind};
use pintle_schema::{Schema, SchemaRef};
use serde_json::json;
use std::sync::Arc;

/// Serves a GET of a scale.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn get(scope: &RequestScope<'_>) -> Result<Response, Status> {
    let answer = Answer::new(scope)?;
    let store = scope.store()?;
    let namespace = if store.resource().is_namespaced() { scope.info.namespace.as_str() } else { "" };
    let key = store.object_key(namespace, &scope.info.name)?;
    let object = store.find(&key, Freshness::Consistent).await?;
    let object = object
        .ok_or_else(|| Status::not_found(&scope.resource.resource.group_resource(), &scope.info.name))?;
    let tree = store.version_tree(object.json()).await?;
    let (scale, is_found) = scale_of(&tree, answer.paths).map_err(Status::unknown)?;
    if !is_found {
        let path = quote(&format!(".{}", answer.paths.spec_replicas));
        return Err(Status::internal_error(format!("the spec replicas field {path} does not exist")));
    }
    answer.respond(scope, &scale)
}

/// Serves a PUT of a scale.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn update(scope: &RequestScope<'_>, body: RequestBody) -> Result<Response, Status> {
    let options = WriteOptions::parse(scope.query.pairs(), "UpdateOptions")?;
    let answer = Answer::new(scope)?;
    let body = body.read().await?;
    let scale = decode(scope, &body, &scale_kind(), scale_schema()?, options.field_validation)?;
    scope.note_body(&scale, scale_schema()?);
    check_name(&scale, &scope.info.name)?;
    let change = Change::Put(scale);
    let written = write(scope, &options, change, options.field_validation).await?;
    let (scale, _) = scale_of(&written.object, answer.paths).map_err(Status::bad_request)?;
    answer.respond(scope, &scale)
}

/// Serves a PATCH of a scale.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn patch(scope: &RequestScope<'_>, body: RequestBody) -> Result<Response, Status> {
    let is_apply = body_media_type(scope.headers) == APPLY_PATCH;
    let options = match is_apply {
        true => WriteOptions::parse_apply(scope.query.pairs())?,
        false => WriteOptions::parse(scope.query.pairs(), "PatchOptions")?,
    };
    let answer = Answer::new(scope)?;
    let body = body.read().await?;
    scope.note_patch(&body);
    let change = match is_apply {
        true => Change::Apply(Configuration::parse(&body)?),
        false => Change::Patch(Patch::parse(scope, &body)?),
    };
    let written = write(scope, &options, change, options.field_validation).await?;
    let (scale, _) = scale_of(&written.object, answer.paths).map_err(Status::bad_request)?;
    answer.respond(scope, &scale)
}

/// The `spec.replicas` of an object without replicas.
const MISSING: i64 = i32::MIN as i64;

enum Change {
    Put(Value),
    Patch(Patch),
    Apply(Configuration),
}

async fn write(
    scope: &RequestScope<'_>,
    options: &WriteOptions,
    change: Change,
    validation: FieldValidation,
) -> Result<Written, Status> {
    let store = scope.store()?;
    let context = scope.context(options.dry_run);
    let kind = scale_kind();
    let uid = match &change {
        Change::Put(scale) => scale.str_at("metadata.uid"),
        Change::Patch(_) | Change::Apply(_) => "",
    };
    let preconditions =
        Preconditions { uid: Some(uid.to_owned()).filter(|uid| !uid.is_empty()), resource_version: None };
    let mut transform = ScaleTransform {
        scope,
        kind: &kind,
        context: &context,
        change,
        validation,
        paths: paths(scope)?,
        options,
    };
    let updated = store
        .update(&context, store.strategy("")?, &preconditions, Upsert::Never, &mut transform, &scope.warnings)
        .await?;
    Ok(updated.written)
}

struct ScaleTransform<'a> {
    scope: &'a RequestScope<'a>,
    kind: &'a GroupVersionKind,
    context: &'a RequestContext<'a>,
    change: Change,
    validation: FieldValidation,
    paths: &'a ScalePaths,
    options: &'a WriteOptions,
}

impl Transform for ScaleTransform<'_> {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let old = old.ok_or_else(|| Status::internal_error("a scale without its object"))?;
            let (mut before, is_found) = scale_of(old, self.paths).map_err(Status::unknown)?;
            if !is_found {
                // A value that no client sends.
                before.set("spec.replicas", MISSING);
            }
            let resource = self.scope.resource;
            let group_version = resource.resource.group_version_kind().group_version().to_string();
            let write = self.scope.managed_write(&self.options.field_manager);
            let replicas = Replicas {
                path: &self.paths.spec_replicas,
                api_version: &group_version,
                is_served: &|version| write.is_served(version),
            };
            replicas.entries_to_scale(old, &mut before);
            let scale = match &self.change {
                Change::Put(scale) => {
                    let mut scale = scale.clone();
                    self.manager(&write, |manager| manager.update(Some(&before), &mut scale))?;
                    scale
                }
                Change::Patch(patch) => {
                    let schema = scale_schema()?;
                    let patched = patch.apply(before.clone(), schema, self.validation)?;
                    let mut patched = read_patched(
                        self.scope,
                        patched,
                        patch.problems(),
                        self.kind,
                        schema,
                        self.validation,
                    )?;
                    check_name(&patched, &self.scope.info.name)?;
                    self.manager(&write, |manager| manager.update(Some(&before), &mut patched))?;
                    patched
                }
                Change::Apply(config) => {
                    let force = self.options.force;
                    let applied =
                        self.manager(&write, |manager| manager.apply(Some(&before), &config.object, force))??;
                    config.check_strictly(self.scope, self.options)?;
                    check_name(&applied, &self.scope.info.name)?;
                    applied
                }
            };
            let scale =
                self.scope.admit(Operation::Update, self.kind, self.context, scale, Some(&before)).await?;
            let wanted = scale.i64_at("spec.replicas").unwrap_or_default();
            if wanted == MISSING && self.paths.custom.is_some() {
                let path = quote(&format!(".{}", self.paths.spec_replicas));
                return Err(Status::bad_request(format!("the spec replicas field {path} cannot be empty")));
            }
            // A custom resource's own validation decides on negative replicas.
            if wanted < 0 && self.paths.custom.is_none() {
                let path = FieldPath::new("spec").child("replicas");
                let error = FieldError::invalid(&path, wanted, "must be greater than or equal to 0");
                return Err(Status::invalid(
                    &self.kind.group_kind(),
                    scale.str_at("metadata.name"),
                    &vec![error],
                ));
            }
            let mut new = old.clone();
            new.set(&self.paths.spec_replicas, wanted);
            replicas.entries_to_object(&scale, &mut new);
            match scale.str_at("metadata.resourceVersion") {
                "" => {}
                version => new.set("metadata.resourceVersion", version),
            }
            Ok(new)
        })
    }
}

impl ScaleTransform<'_> {
    /// Runs the field manager on a scale.
    fn manager<R>(
        &self,
        write: &ManagedWrite<'_>,
        run: impl FnOnce(&FieldManager<'_>) -> R,
    ) -> Result<R, Status> {
        let version = self.kind.group_version().to_string();
        Ok(run(&FieldManager {
            manager: &self.options.field_manager,
            kind: &self.kind.kind,
            api_version: &version,
            subresource: "scale",
            now: write.now,
            schema: scale_schema()?,
            reset_fields: &[],
            versions: &OneVersion,
        }))
    }
}

/// The scale of an object, and whether the object has desired replicas.
///
/// # Errors
/// When a field of a custom resource has the wrong type.
fn scale_of(object: &Value, paths: &ScalePaths) -> Result<(Value, bool), String> {
    if paths.custom.is_some() {
        return custom_scale_of(object, paths);
    }
    let mut scale = plain_scale_of(object);
    let replicas = |path: &str| object.i64_at(path).unwrap_or_default();
    set_replicas(&mut scale, replicas(&paths.spec_replicas), replicas(&paths.status_replicas));
    if let Some(selector) = paths.selector.as_deref().and_then(|path| object.at(path)) {
        let text = match selector {
            Value::String(text) => text.clone(),
            selector
                if selector.field("matchLabels").is_some()
                    || selector.field("matchExpressions").is_some() =>
            {
                format_label_selector(Some(selector))
            }
            selector => {
                let pairs = selector.as_object().into_iter().flatten();
                let pairs: Vec<String> = pairs
                    .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                    .collect();
                pairs.join(",")
            }
        };
        if !text.is_empty() {
            scale.set("status.selector", text);
        }
    }
    Ok((scale, true))
}

/// The scale of a custom resource's object, whose selector is a string.
fn custom_scale_of(object: &Value, paths: &ScalePaths) -> Result<(Value, bool), String> {
    let wanted = nested_int64(object, &paths.spec_replicas)?;
    let actual = nested_int64(object, &paths.status_replicas)?;
    let selector = paths.selector.as_deref().map(|path| nested_string(object, path));
    let mut scale = plain_scale_of(object);
    // Go truncates to 32 bits.
    let cut = |number: Option<i64>| i64::from(number.unwrap_or_default() as i32);
    set_replicas(&mut scale, cut(wanted), cut(actual));
    if let Some(selector) = selector.transpose()?.flatten().filter(|text| !text.is_empty()) {
        scale.set("status.selector", selector);
    }
    Ok((scale, wanted.is_some()))
}

/// Sets the replicas of a scale. Zero desired replicas are omitted, so that no manager owns the field.
fn set_replicas(scale: &mut Value, wanted: i64, actual: i64) {
    if wanted != 0 {
        scale.set("spec.replicas", wanted);
    }
    scale.set("status.replicas", actual);
}

/// A scale with the object's metadata alone.
fn plain_scale_of(object: &Value) -> Value {
    let mut scale =
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {}, "status": {}});
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&format!("metadata.{name}")) {
            scale.set(&format!("metadata.{name}"), value.clone());
        }
    }
    scale
}

fn paths<'a>(scope: &RequestScope<'a>) -> Result<&'a ScalePaths, Status> {
    match scope.resource.resource.subresource(&scope.info.subresource).map(|found| &found.kind) {
        Some(SubresourceKind::Scale(paths)) => Ok(paths),
        _ => Err(Status::no_such_resource()),
    }
}

fn scale_kind() -> GroupVersionKind {
    GroupVersionKind::new("autoscaling", "v1", "Scale")
}

fn scale_schema() -> Result<SchemaRef<'static>, Status> {
    Schema::builtin().by_type_name("k8s.io/api/autoscaling/v1.Scale").ok_or_else(Status::no_such_resource)
}

/// The form of the response, negotiated before the write.
struct Answer<'a> {
    accepted: Accepted,
    include_object: IncludeObject,
    paths: &'a ScalePaths,
}

impl<'a> Answer<'a> {
    fn new(scope: &RequestScope<'a>) -> Result<Answer<'a>, Status> {
        let paths = paths(scope)?;
        let accepted = match paths.custom {
            Some(_) => scope.accepted(Offers::Object)?,
            None => negotiation::accepted(scope.headers, scope.query.first("pretty"), Offers::Plain)?,
        };
        let include_object = IncludeObject::parse(scope.query.first("includeObject"))?;
        Ok(Answer { accepted, include_object, paths })
    }

    fn respond(&self, scope: &RequestScope<'_>, scale: &Value) -> Result<Response, Status> {
        let content_type = self.accepted.media_type.as_str();
        let bytes = match (&self.accepted.transform, &self.paths.custom) {
            (Some(_), Some(table)) => {
                // A table belongs to a resource: the scale gets one with its own schema and columns.
                let mut resource = Resource::clone(&scope.resource.resource);
                resource.table = table.clone();
                resource.converter = None;
                let scale_resource = VersionedResource {
                    resource: Arc::new(resource),
                    schema: TypeSchema::Builtin(scale_schema()?),
                    slot: 0,
                    store: None,
                };
                let encoder = Encoder {
                    resource: &scale_resource,
                    accepted: self.accepted.clone(),
                    include_object: self.include_object,
                    now: scope.now,
                };
                encoder.tree_answer(scale.clone())?
            }
            _ => encode(scale, scale_schema()?, &self.accepted)?,
        };
        Ok(with_content_type(200, content_type, Body::from(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestServer;
    use serde_json::json;

    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

    #[tokio::test]
    async fn a_scale_shows_and_changes_the_replicas() {
        let server = TestServer::start().await;
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}},
        });
        assert_eq!(server.send("POST", DEPLOYMENTS, deployment).await.0, 201);
        let uri = format!("{DEPLOYMENTS}/web/scale");
        let (code, scale) = server.send("GET", &uri, json!(null)).await;
        assert_eq!((code, &scale["kind"], &scale["spec"]), (200, &json!("Scale"), &json!({"replicas": 2})));
        assert_eq!(scale["status"]["selector"], "app=web");
        let mut wanted = scale;
        wanted["spec"]["replicas"] = json!(5);
        let (code, scale) = server.send("PUT", &uri, wanted).await;
        assert_eq!((code, &scale["spec"]), (200, &json!({"replicas": 5})));
        let patch = json!({"spec": {"replicas": -1}});
        let (code, status) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
        assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
        let (_, deployment) = server.send("GET", &format!("{DEPLOYMENTS}/web"), json!(null)).await;
        assert_eq!(deployment["spec"]["replicas"], 5);
    }
}
