//! Serves creates through a subresource (bindings, evictions, tokens) and of kinds that are not stored (reviews).

use super::{Exchange, create::dedup_owner_references, decode::decode_with_versions, method_not_allowed};
use crate::{
    body::{Body, RequestBody},
    encoding::encode,
    negotiation::Offers,
    response::{Answered, Response, with_content_type},
};
use pintle_admission::Operation;
use pintle_machinery::{
    GroupVersion, GroupVersionKind, Status, Value, ValueExt,
    managed_fields::{FieldManager, OneVersion},
    options::{WriteOptions, connect_options},
};
use pintle_registry::{NamedCreater, SubresourceKind};
use pintle_schema::{Schema, SchemaRef, default_by_schema};

/// Serves a POST to a subresource that supports create.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn create(exchange: &Exchange<'_>, body: RequestBody) -> Result<Response, Status> {
    let subresource = exchange.resource.resource.subresource(&exchange.info.subresource);
    match subresource.map(|subresource| &subresource.kind) {
        Some(SubresourceKind::Create { kind, other_versions, creater }) => {
            serve(exchange, body, kind, other_versions, &**creater).await
        }
        _ => Err(method_not_allowed()),
    }
}

/// Serves a POST whose body is handed to `creater`; the body may be in other versions of the kind.
pub(super) async fn serve(
    exchange: &Exchange<'_>,
    body: RequestBody,
    kind: &GroupVersionKind,
    other_versions: &[String],
    creater: &dyn NamedCreater,
) -> Result<Response, Status> {
    let accepted = exchange.accepted(Offers::Answer)?;
    let options = WriteOptions::parse(exchange.query.pairs(), "CreateOptions")?;
    let body = body.read().await?;
    let schema = Schema::builtin()
        .by_kind(&kind.group, &kind.version, &kind.kind)
        .ok_or_else(Status::no_such_resource)?;
    let mut object =
        decode_with_versions(exchange, &body, kind, other_versions, schema, options.field_validation)?;
    exchange.note_body(&object, schema);
    if exchange.resource.resource.is_namespaced() {
        let own = object.str_at("metadata.namespace");
        if !own.is_empty() && own != exchange.info.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        object.set("metadata.namespace", exchange.info.namespace.clone());
    } else {
        object.remove_at("metadata.namespace");
    }
    if exchange.info.subresource.is_empty() || !creater.keeps_system_metadata() {
        for field in SYSTEM_METADATA {
            object.remove_at(field);
        }
    }
    dedup_owner_references(exchange, &mut object);
    default_by_schema(&mut object, schema);
    creater.set_defaults(&mut object);
    manage(exchange, &options.field_manager, kind, schema, &mut object);
    let context = exchange.context(options.dry_run);
    let object = exchange.admit(Operation::Create, kind, &context, object, None).await?;
    exchange.validate(Operation::Create, kind, &context, &object, None).await?;
    let warnings = creater.warnings(&context, &object);
    let answer = creater.create(&context, object).await?;
    exchange.warnings.extend(warnings);
    let bytes = encode(&answer, answer_schema(&answer)?, &accepted)?;
    let mut response = with_content_type(201, accepted.media_type.as_str(), Body::from(bytes));
    if answer.str_at("kind") == "Status" {
        response.extensions_mut().insert(Answered::new(Status::success(None)));
    }
    Ok(response)
}

/// Metadata that only the server sets.
const SYSTEM_METADATA: [&str; 5] = [
    "metadata.creationTimestamp",
    "metadata.uid",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.selfLink",
];

/// Records the managed fields of a body: the response may be the same object, completed. There is no earlier state and
/// no other version of it.
fn manage(
    exchange: &Exchange<'_>,
    field_manager: &str,
    kind: &GroupVersionKind,
    schema: SchemaRef<'_>,
    object: &mut Value,
) {
    let manager = if field_manager.is_empty() { exchange.user_agent_manager() } else { field_manager };
    FieldManager {
        manager,
        kind: &kind.kind,
        api_version: &kind.group_version().to_string(),
        subresource: &exchange.info.subresource,
        now: exchange.now,
        schema,
        reset_fields: &[],
        versions: &OneVersion,
    }
    .update(None, object);
}

/// The schema of the response's own kind: a `Status`, or the body's kind, completed.
fn answer_schema(answer: &Value) -> Result<SchemaRef<'static>, Status> {
    let version = GroupVersion::parse(answer.str_at("apiVersion")).unwrap_or_default();
    Schema::builtin()
        .by_kind(&version.group, &version.version, answer.str_at("kind"))
        .ok_or_else(|| Status::internal_error("an answer of a kind without a schema"))
}

/// Serves streams and proxied requests. They need the network of a node's kubelet or a pod, which this server cannot
/// reach yet, so that every such request fails.
///
/// # Errors
/// 400 or 422 for invalid options, 404 for a missing object, a not-implemented `Status` otherwise.
pub(super) async fn connect(exchange: &Exchange<'_>) -> Result<Response, Status> {
    check_options(exchange)?;
    let store = exchange.store()?;
    let namespace = if store.resource().is_namespaced() { exchange.info.namespace.as_str() } else { "" };
    let key = store.object_key(namespace, &exchange.info.name)?;
    let object = store.find(&key, pintle_cacher::Freshness::Consistent).await?;
    if object.is_none() {
        return Err(Status::not_found(&exchange.resource.resource.group_resource(), &exchange.info.name));
    }
    Err(Status::failure(
        501,
        pintle_machinery::StatusReason::Unknown,
        format!("{} is not served yet", exchange.info.subresource),
    ))
}

/// Options are decoded and validated before the object is read.
fn check_options(exchange: &Exchange<'_>) -> Result<(), Status> {
    let subresource = exchange.resource.resource.subresource(&exchange.info.subresource);
    let Some(SubresourceKind::Connect { options, .. }) = subresource.map(|subresource| &subresource.kind)
    else {
        return Err(method_not_allowed());
    };
    let kind = &options.kind;
    let schema = Schema::builtin()
        .by_kind(&kind.group, &kind.version, &kind.kind)
        .ok_or_else(Status::no_such_resource)?;
    let errors = (options.validate)(&connect_options(exchange.query.pairs(), schema)?);
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(&kind.group_kind(), &exchange.info.name, &errors)),
    }
}
