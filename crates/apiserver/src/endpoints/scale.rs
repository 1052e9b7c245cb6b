//! The `scale` subresource: `autoscaling/v1` `Scale` over any kind that declares where its replicas are
//! (<https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md>).

use super::{
    Exchange,
    apply::{APPLY_PATCH, Configuration},
    decode::decode,
    encoding::encode,
    media_type,
    patch::{Patch, read_patched},
    update::check_name,
};
use crate::{
    body::{Body, RequestBody},
    negotiation::{Accepted, Offers},
    registry::{ManagedWrite, Preconditions, Transform, Upsert, Written},
    response::{Response, with_content_type},
};
use pintle_admission::Operation;
use pintle_cacher::Freshness;
use pintle_machinery::{
    FieldError, FieldPath, GroupVersionKind, Status, Value, ValueExt,
    codec::json::decode_any,
    managed_fields::{FieldManager, OneVersion, Replicas},
    options::{FieldValidation, WriteOptions},
    selectors::format_label_selector,
};
use pintle_registry::{BoxFuture, RequestContext, ScalePaths, SubresourceKind};
use pintle_schema::{Schema, SchemaRef};
use serde_json::json;

/// Serves a GET of a scale.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn get(exchange: &Exchange<'_>) -> Result<Response, Status> {
    let accepted = exchange.accepted(Offers::Plain)?;
    let store = exchange.store()?;
    let key = store.object_key(&exchange.info.namespace, &exchange.info.name)?;
    let object = store.find(&key, Freshness::Consistent).await?;
    let object = object.ok_or_else(|| {
        Status::not_found(&exchange.resource.resource.group_resource(), &exchange.info.name)
    })?;
    let tree = decode_any(object.json()).map_err(Status::internal_error)?;
    respond(&scale_of(&tree, paths(exchange)?), &accepted)
}

/// Serves a PUT of a scale.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn update(exchange: &Exchange<'_>, body: RequestBody) -> Result<Response, Status> {
    let options = WriteOptions::parse(exchange.query.pairs(), "UpdateOptions")?;
    let accepted = exchange.accepted(Offers::Plain)?;
    let body = body.read().await?;
    let scale = decode(exchange, &body, &scale_kind(), scale_schema()?, options.field_validation)?;
    check_name(&scale, &exchange.info.name)?;
    let change = Change::Put(scale);
    let written = write(exchange, &options, change, options.field_validation).await?;
    respond(&scale_of(&written.object, paths(exchange)?), &accepted)
}

/// Serves a PATCH of a scale.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn patch(exchange: &Exchange<'_>, body: RequestBody) -> Result<Response, Status> {
    let is_apply = media_type(exchange.headers) == APPLY_PATCH;
    let options = match is_apply {
        true => WriteOptions::parse_apply(exchange.query.pairs())?,
        false => WriteOptions::parse(exchange.query.pairs(), "PatchOptions")?,
    };
    let accepted = exchange.accepted(Offers::Plain)?;
    let body = body.read().await?;
    let change = match is_apply {
        true => Change::Apply(Configuration::parse(&body)?),
        false => Change::Patch(Patch::parse(exchange, &body)?),
    };
    let written = write(exchange, &options, change, options.field_validation).await?;
    respond(&scale_of(&written.object, paths(exchange)?), &accepted)
}

enum Change {
    Put(Value),
    Patch(Patch),
    Apply(Configuration),
}

async fn write(
    exchange: &Exchange<'_>,
    options: &WriteOptions,
    change: Change,
    validation: FieldValidation,
) -> Result<Written, Status> {
    let store = exchange.store()?;
    let context = exchange.context(options.dry_run);
    let kind = scale_kind();
    let uid = match &change {
        Change::Put(scale) => scale.str_at("metadata.uid"),
        Change::Patch(_) | Change::Apply(_) => "",
    };
    let preconditions =
        Preconditions { uid: Some(uid.to_owned()).filter(|uid| !uid.is_empty()), resource_version: None };
    let mut transform = ScaleTransform {
        exchange,
        kind: &kind,
        context: &context,
        change,
        validation,
        paths: paths(exchange)?,
        options,
    };
    let updated = store
        .update(
            &context,
            store.strategy("")?,
            &preconditions,
            Upsert::Never,
            &mut transform,
            &exchange.warnings,
        )
        .await?;
    Ok(updated.written)
}

struct ScaleTransform<'a> {
    exchange: &'a Exchange<'a>,
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
            let mut before = scale_of(old, self.paths);
            let resource = self.exchange.resource;
            let group_version = resource.resource.group_version_kind().group_version().to_string();
            let write = self.exchange.managed_write(&self.options.field_manager);
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
                    let mut patched =
                        read_patched(self.exchange, patched, self.kind, schema, self.validation)?;
                    check_name(&patched, &self.exchange.info.name)?;
                    self.manager(&write, |manager| manager.update(Some(&before), &mut patched))?;
                    patched
                }
                Change::Apply(config) => {
                    let force = self.options.force;
                    let applied =
                        self.manager(&write, |manager| manager.apply(Some(&before), &config.object, force))??;
                    config.check_strictly(self.exchange, self.options)?;
                    check_name(&applied, &self.exchange.info.name)?;
                    applied
                }
            };
            let scale =
                self.exchange.admit(Operation::Update, self.kind, self.context, scale, Some(&before)).await?;
            let wanted = scale.i64_at("spec.replicas").unwrap_or_default();
            if wanted < 0 {
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
    /// Runs the field manager of scales.
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

/// The scale of an object.
fn scale_of(object: &Value, paths: &ScalePaths) -> Value {
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {},
        "spec": {},
        "status": {"replicas": object.i64_at(&paths.status_replicas).unwrap_or_default()},
    });
    if let Some(replicas) = object.i64_at(&paths.spec_replicas).filter(|replicas| *replicas != 0) {
        scale.set("spec.replicas", replicas);
    }
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&format!("metadata.{name}")) {
            scale.set(&format!("metadata.{name}"), value.clone());
        }
    }
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
    scale
}

fn paths<'a>(exchange: &Exchange<'a>) -> Result<&'a ScalePaths, Status> {
    match exchange.resource.resource.subresource(&exchange.info.subresource).map(|found| &found.kind) {
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

fn respond(scale: &Value, accepted: &Accepted) -> Result<Response, Status> {
    let bytes = encode(scale, scale_schema()?, accepted)?;
    Ok(with_content_type(200, accepted.media_type.as_str(), Body::from(bytes)))
}
