//! Applies the patch of a webhook.

use super::{
    answer::{Answer, JSON_PATCH},
    call::CallFailure,
    webhook::Webhook,
};
use crate::patched_kind::{built_in_type, is_built_in, patched_kind, type_meta};
use pintle_admission::{AdmissionRequest, Endpoint};
use pintle_go_forms::quote;
use pintle_machinery::{
    GroupVersionKind, Status, Value, ValueExt,
    codec::json,
    meta::format_time,
    options::FieldValidation,
    patch::json_patch,
    scheme::{internal_package, unknown_conversion},
    validation::semantically_equal,
};
use pintle_schema::Schema;

/// The result of a patch.
#[derive(Debug)]
pub(super) struct Patched {
    /// The object in the form of the request's object.
    pub(super) object: Value,
    /// Whether it differs from the object before.
    pub(super) is_changed: bool,
    /// The operations.
    pub(super) patch: Value,
}

/// Applies the patch of an answer to `json`, the object in the version that the webhook has seen; `None` if there is no
/// operation. `is_first` tells the first patch of the request.
///
/// # Errors
/// A patch that is none is a failed call. One that cannot be applied, or whose result is no object, fails the request.
pub(super) async fn apply(
    webhook: &Webhook,
    answer: &Answer,
    request: &AdmissionRequest<'_>,
    matched: &Endpoint,
    json: Option<&[u8]>,
    is_first: bool,
) -> Result<Option<Patched>, CallFailure> {
    if answer.patch.is_empty() {
        return Ok(None);
    }
    let undecodable = |why: String| {
        CallFailure::calling(format!("received undecodable patch in webhook response: {why}"), 503)
    };
    let patch = json::decode_any_body(&answer.patch).map_err(|error| undecodable(error.to_string()))?;
    match &patch {
        Value::Null => return Ok(None),
        Value::Array(operations) if operations.is_empty() => return Ok(None),
        _ => {}
    }
    // What is no list of operations is told before anything else.
    json_patch::check(&patch).map_err(|error| undecodable(error.to_string()))?;
    let internal = |why: &dyn std::fmt::Display| CallFailure::Internal(Status::internal_error(why));
    let Some(json) = json else {
        let name = quote(&webhook.name);
        let why = "attempted to modify the object, which is not supported for this operation";
        return Err(internal(&format!("admission webhook {name} {why}")));
    };
    if answer.patch_type != JSON_PATCH {
        let why = format!("unsupported patch type {}", quote(&answer.patch_type));
        return Err(CallFailure::calling(why, 400));
    }
    let object = json::decode_any(json).map_err(|error| internal(&error))?;
    let patched = json_patch::apply_any_number(object, &patch, FieldValidation::Ignore);
    let patched = patched.map_err(|error| internal(&error))?;
    let text = json::encode_any(&patched);
    let kind = kind_of(request, &text, &matched.kind).map_err(CallFailure::Internal)?;
    let mut object = request.versions.read_version(&text, &kind).await.map_err(CallFailure::Internal)?;
    if is_built_in(&matched.kind) {
        // The patch may have removed them.
        for name in ["kind", "apiVersion"] {
            object.set(name, request.object.str_at(name));
        }
    }
    let is_changed =
        !semantically_equal(&object, &request.object) || is_first && loses_precision(request, matched);
    Ok(Some(Patched { object, is_changed, patch }))
}

/// The kind of a patched object, whose JSON is `text`. A built-in one may be in another version of its kind.
///
/// # Errors
/// 500 for an object of another kind, and for one without a kind that has no built-in type.
fn kind_of(
    request: &AdmissionRequest<'_>,
    text: &[u8],
    expected: &GroupVersionKind,
) -> Result<GroupVersionKind, Status> {
    if !is_built_in(expected) {
        let named = type_meta(text)?;
        if named.kind.is_empty() {
            let text = String::from_utf8_lossy(text);
            return Err(Status::internal_error(format!("Object 'Kind' is missing in '{text}'")));
        }
        return Ok(expected.clone());
    }
    let found = patched_kind(text, expected)?;
    if found == *expected || found.kind == expected.kind && request.versions.schema(&found).is_some() {
        return Ok(found);
    }
    let other = built_in_type(&found, expected)?;
    json::decode_body(text, other).map_err(Status::internal_error)?;
    let to = format!("{}.{}", internal_package(&expected.group), expected.kind);
    Err(Status::unknown(unknown_conversion(other, &to)))
}

/// Whether the first patch of a request changes the object in any case. The reference compares objects whose times have
/// nanoseconds with patched ones, whose times have seconds; managed fields that this request sets have its time.
fn loses_precision(request: &AdmissionRequest<'_>, matched: &Endpoint) -> bool {
    let kind = &matched.kind;
    if Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind).is_none() {
        return false;
    }
    let now = format_time(request.context.now);
    request.object.items_at("metadata.managedFields").iter().any(|entry| entry.str_at("time") == now)
}

#[cfg(test)]
mod tests;
