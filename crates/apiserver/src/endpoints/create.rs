//! Serves creates.

use super::{
    Exchange,
    decode::decode,
    encoding::{Encoder, IncludeObject},
};
use crate::{
    body::{Body, RequestBody},
    encoding::indent,
    negotiation::{MediaType, Offers},
    registry::{Validation, Written},
    response::{Response, with_content_type},
};
use bytes::Bytes;
use pintle_admission::Operation;
use pintle_machinery::{GroupVersionKind, Status, Value, ValueExt, options::WriteOptions};
use pintle_registry::{BoxFuture, RequestContext};
use std::collections::HashSet;

/// Serves a POST to a collection.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn create(exchange: &Exchange<'_>, body: RequestBody) -> Result<Response, Status> {
    let encoder = encoder(exchange)?;
    let options = WriteOptions::parse(exchange.query.pairs(), "CreateOptions")?;
    let body = body.read().await?;
    let resource = &exchange.resource.resource;
    let kind = resource.group_version_kind();
    let schema = exchange.resource.schema.get();
    let object = decode(exchange, &body, &kind, schema, options.field_validation)?;
    exchange.note_object(&object);
    let mut object = exchange.resource.to_storage(object);
    prepare(exchange, &mut object)?;
    dedup_owner_references(exchange, &mut object);
    let store = exchange.store()?;
    store.set_defaults(&mut object);
    // These fields are set by the server alone and have no field manager.
    object.remove_at("metadata.deletionTimestamp");
    object.remove_at("metadata.deletionGracePeriodSeconds");
    exchange.managed_write(&options.field_manager).update(None, &mut object).await;
    let context = exchange.context(options.dry_run);
    let object = exchange.admit(Operation::Create, &kind, &context, object, None).await?;
    let written = store
        .create(
            &context,
            object,
            &AdmissionValidation { exchange, operation: Operation::Create, kind: &kind, context: &context },
            &exchange.warnings,
        )
        .await?;
    respond(&encoder, 201, written)
}

/// The encoder of the response. It is made before the write, so that a failed negotiation leaves no change behind.
pub(super) fn encoder<'a>(exchange: &Exchange<'a>) -> Result<Encoder<'a>, Status> {
    Ok(Encoder {
        resource: exchange.resource,
        accepted: exchange.accepted(Offers::Object)?,
        include_object: IncludeObject::parse(exchange.query.first("includeObject"))?,
        now: exchange.now,
    })
}

/// Checks that a sent object is in the namespace of the request.
pub(super) fn prepare(exchange: &Exchange<'_>, object: &mut Value) -> Result<(), Status> {
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
    Ok(())
}

/// Removes duplicate owner references, with a warning.
pub(super) fn dedup_owner_references(exchange: &Exchange<'_>, object: &mut Value) {
    let mut twice: Vec<String> = Vec::new();
    let Some(references) = object.at_mut("metadata.ownerReferences").and_then(Value::as_array_mut) else {
        return;
    };
    if references.len() < 2 {
        return;
    }
    let (mut seen, mut told) = (HashSet::with_capacity(references.len()), HashSet::new());
    let mut is_kept = Vec::with_capacity(references.len());
    for reference in references.iter() {
        is_kept.push(seen.insert(reference));
        if is_kept.last() == Some(&false) && told.insert(reference.str_at("uid")) {
            twice.push(reference.str_at("uid").to_owned());
        }
    }
    let mut is_kept = is_kept.into_iter();
    references.retain(|_| is_kept.next().unwrap_or(true));
    if twice.is_empty() {
        return;
    }
    exchange.warnings.add(format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please \
         fix your requests; duplicate UID(s) observed: {}",
        twice.join(", ")
    ));
}

/// The response with a written object.
pub(super) fn respond(encoder: &Encoder<'_>, code: u16, written: Written) -> Result<Response, Status> {
    respond_with(encoder, code, written.object, Some(&written.json))
}

/// The response with an object and its final JSON in the storage version, where that is known.
pub(super) fn respond_with(
    encoder: &Encoder<'_>,
    code: u16,
    object: Value,
    json: Option<&Bytes>,
) -> Result<Response, Status> {
    let plain = encoder.accepted.transform.is_none()
        && encoder.accepted.media_type == MediaType::Json
        && encoder.resource.is_storage_version();
    let bytes: Bytes = match json.filter(|_| plain) {
        Some(json) if encoder.accepted.pretty => indent(json),
        Some(json) => json.clone(),
        None => encoder.tree_answer(encoder.resource.from_storage(object))?,
    };
    Ok(with_content_type(code, encoder.accepted.media_type.as_str(), Body::from(bytes)))
}

/// Runs validating admission for the store.
pub(super) struct AdmissionValidation<'a> {
    pub(super) exchange: &'a Exchange<'a>,
    pub(super) operation: Operation,
    pub(super) kind: &'a GroupVersionKind,
    pub(super) context: &'a RequestContext<'a>,
}

impl Validation for AdmissionValidation<'_> {
    fn validate<'a>(
        &'a self,
        object: &'a Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.exchange.validate(self.operation, self.kind, self.context, object, old))
    }
}
