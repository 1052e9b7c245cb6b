//! The steps that the writing verbs share.

use super::{encoder::Encoder, request_scope::RequestScope};
use crate::{
    base::{
        body::Body,
        encoding::indent,
        negotiation::MediaType,
        response::{Response, with_content_type},
    },
    registry::Written,
};
use bytes::Bytes;
use pintle_machinery::{Status, Value, ValueExt};
use std::collections::HashSet;

/// The encoder of the response. It is made before the write, so that a failed negotiation leaves no change behind; the
/// [refusal](crate::base::negotiation::Accepted::refusal) of a form comes after the write, as in the reference.
///
/// # Errors
/// 406 when the server offers nothing that the client accepts.
pub(super) fn encoder<'a>(scope: &RequestScope<'a>) -> Result<Encoder<'a>, Status> {
    let (accepted, include_object) = scope.form(scope.object_forms())?;
    Ok(Encoder { resource: scope.resource, accepted, include_object, now: scope.now })
}

/// Sets the namespace of a sent object to that of the request; a cluster-scoped object has none.
///
/// # Errors
/// 400 for an object of another namespace.
pub(super) fn set_namespace(scope: &RequestScope<'_>, object: &mut Value) -> Result<(), Status> {
    scope.resource.resource.check_namespace(object, &scope.info.namespace)
}

/// Checks that the object of the body has the name of the path.
///
/// # Errors
/// 400 for an object with another name, or without one.
pub(super) fn check_name(object: &Value, name: &str) -> Result<(), Status> {
    match object.str_at("metadata.name") {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        own if own != name => Err(Status::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        ))),
        _ => Ok(()),
    }
}

/// The time at which duplicate owner references are removed, which the warning names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DedupTime {
    /// Those of the body of a create or update. A patch is only examined after admission.
    OfBody,
    /// Those of the object that mutating admission has admitted.
    AfterAdmission,
}

/// Removes duplicate owner references, with a warning.
pub(super) fn dedup_owner_references(scope: &RequestScope<'_>, object: &mut Value, time: DedupTime) {
    let mut twice: Vec<String> = Vec::new();
    let Some(references) = object.at_mut("metadata.ownerReferences").and_then(Value::as_array_mut) else {
        return;
    };
    if references.len() < 2 {
        return;
    }
    let mut seen = HashSet::with_capacity(references.len());
    let mut is_kept = Vec::with_capacity(references.len());
    for reference in references.iter() {
        is_kept.push(seen.insert(reference));
        if is_kept.last() == Some(&false) {
            twice.push(reference.str_at("uid").to_owned());
        }
    }
    let mut is_kept = is_kept.into_iter();
    references.retain(|_| is_kept.next().unwrap_or(true));
    if twice.is_empty() {
        return;
    }
    let when = match time {
        DedupTime::OfBody => "",
        DedupTime::AfterAdmission => " after mutating admission happens",
    };
    scope.warnings.add(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        twice.join(", ")
    ));
}

/// The response with a written object.
///
/// # Errors
/// As [`Encoder::stored_answer`].
pub(super) fn respond(encoder: &Encoder<'_>, code: u16, written: Written) -> Result<Response, Status> {
    respond_with(encoder, code, written.object, Some(&written.json))
}

/// The response with an object and its final JSON in the storage version, where that is known.
///
/// # Errors
/// As [`Encoder::stored_answer`].
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
        None => encoder.stored_answer(object)?,
    };
    Ok(with_content_type(code, encoder.accepted.media_type.as_str(), Body::from(bytes)))
}
