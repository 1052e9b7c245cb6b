//! Applies the patch of a webhook.

mod annotated;

use super::{
    answer::{Answer, JSON_PATCH},
    call::CallFailure,
    webhook::Webhook,
};
use crate::patched_kind::{built_in_type, is_built_in, patched_kind, type_meta};
use annotated::annotated;
use pintle_admission::{AdmissionRequest, Endpoint};
use pintle_go_forms::quote;
use pintle_machinery::{
    GroupVersionKind, Status, Value, ValueExt,
    codec::json::{self, TypeMeta},
    managed_fields::is_same_but_owners,
    meta::format_time,
    options::FieldValidation,
    patch::json_patch,
    scheme::{internal_package, unknown_conversion},
    validation::semantically_equal,
};
use pintle_schema::{Schema, SchemaRef, default_by_schema};
use std::collections::HashSet;

/// The result of a patch.
#[derive(Debug)]
pub(super) struct Patched {
    /// The object in the form of the request's object, or the reason why the request fails unless a later patch changes
    /// that: a patch may leave an object that is no object of the resource.
    pub(super) object: Result<Value, Status>,
    /// The object as the next webhook sees it that asks for the same version, with the fields that its type always has.
    pub(super) seen: Value,
    /// The JSON of `seen`.
    pub(super) json: Vec<u8>,
    /// Whether it differs from the object before.
    pub(super) is_changed: bool,
    /// The operations, for the audit annotation.
    pub(super) patch: Vec<u8>,
}

/// Applies the patch of an answer to `json`, the object in the version that the webhook has seen; `None` if there is no
/// operation.
///
/// # Errors
/// A patch that is none is a failed call. One that cannot be applied, or whose result cannot be decoded, fails the
/// request.
pub(super) async fn apply(
    webhook: &Webhook,
    answer: &Answer,
    request: &AdmissionRequest<'_>,
    matched: &Endpoint,
    json: Option<&[u8]>,
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
    // A patch that is no list of operations is reported before anything else.
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
    let before = json::decode_any(json).map_err(|error| internal(&error))?;
    let patched = json_patch::apply_any_number(before, &patch, FieldValidation::Ignore);
    let patched = patched.map_err(|error| internal(&error))?;
    let text = json::encode_any(&patched);
    let after = Named::decode(request, &text, &matched.kind).map_err(CallFailure::Internal)?;
    let before = Named::decode(request, json, &matched.kind).map_err(CallFailure::Internal)?;
    let is_changed = !after.equals(&before) || loses_precision(request, matched);
    let Accepted { object, seen, json } = after.accept(request, &text, &matched.kind).await;
    Ok(Some(Patched { object, seen, json, is_changed, patch: annotated(&answer.patch, &patch) }))
}

/// An object with the type that its JSON names.
struct Named<'a> {
    /// The names, as they are in the JSON.
    names: TypeMeta,
    /// The kind that they denote.
    kind: GroupVersionKind,
    /// The type of the kind; `None` for a custom resource.
    schema: Option<SchemaRef<'a>>,
    /// The object without defaults.
    object: Value,
}

/// The forms of an accepted object, as [`Patched`] has them.
struct Accepted {
    object: Result<Value, Status>,
    seen: Value,
    json: Vec<u8>,
}

impl<'a> Named<'a> {
    /// Decodes an object where one of the kind `expected` is wanted.
    ///
    /// # Errors
    /// 500 for a malformed object, for an unknown kind, and for an object without a kind that has no built-in type.
    fn decode(
        request: &'a AdmissionRequest<'_>,
        text: &[u8],
        expected: &GroupVersionKind,
    ) -> Result<Named<'a>, Status> {
        let named = |names: &GroupVersionKind, schema, object: Value| {
            let text = |name: &str| object.str_at(name).to_owned();
            let names_found = TypeMeta { api_version: text("apiVersion"), kind: text("kind") };
            Named { names: names_found, kind: names.clone(), schema, object }
        };
        if !is_built_in(expected) {
            let kind = type_meta(text)?;
            if kind.kind.is_empty() {
                let text = String::from_utf8_lossy(text);
                return Err(Status::internal_error(format!("Object 'Kind' is missing in '{text}'")));
            }
            let object = json::decode_any_body(text).map_err(Status::internal_error)?;
            return Ok(named(&kind, None, object));
        }
        let kind = patched_kind(text, expected)?;
        let schema = match request.versions.schema(&kind) {
            Some(schema) if kind.kind == expected.kind => schema,
            _ => built_in_type(&kind, expected)?,
        };
        let object = json::decode_body(text, schema).map_err(Status::internal_error)?.value;
        Ok(named(&kind, Some(schema), object))
    }

    fn equals(&self, other: &Named<'_>) -> bool {
        let (own, other_object) = (&self.object, &other.object);
        self.kind == other.kind
            && self.names == other.names
            && match self.schema {
                Some(_) => semantically_equal(own, other_object),
                // Custom resources are maps, which may have empty members.
                None => own == other_object,
            }
    }

    /// Converts the object to the form of the request's object, and sets its defaults. `text` is its JSON.
    async fn accept(
        self,
        request: &AdmissionRequest<'_>,
        text: &[u8],
        expected: &GroupVersionKind,
    ) -> Accepted {
        let of = |object, seen: Value, schema: Option<SchemaRef<'_>>| {
            let Some(schema) = schema else {
                return Accepted { object, json: json::encode_any(&seen), seen };
            };
            let (object, seen) = match json::with_written_fields(&seen, schema) {
                Ok(written) => (object, written.into_owned()),
                Err(too_large) => (Err(too_large), seen),
            };
            Accepted { object, json: json::encode(&seen, schema), seen }
        };
        let version = match self.version(request, expected) {
            Ok(version) => version,
            Err(status) => {
                let mut seen = self.object;
                if let Some(schema) = self.schema {
                    default_by_schema(&mut seen, schema);
                }
                return of(Err(status), seen, self.schema);
            }
        };
        let read = async {
            let mut object = request.versions.read_version(text, &version).await?;
            let mut seen = request.versions.to_version(&object, &version).await?.into_owned();
            // A built-in object is of its type without names, too.
            for (name, found) in [("apiVersion", &self.names.api_version), ("kind", &self.names.kind)] {
                if self.schema.is_some() {
                    object.set(name, request.object.str_at(name));
                }
                match found.is_empty() {
                    true => _ = seen.remove_at(name),
                    false => seen.set(name, found.as_str()),
                }
            }
            // The metadata of a custom resource may have members that its type has not.
            if self.schema.is_none() {
                match self.object.at("metadata") {
                    Some(metadata) => seen.set("metadata", metadata.clone()),
                    None => _ = seen.remove_at("metadata"),
                }
            }
            Ok::<_, Status>((object, seen))
        };
        match read.await {
            Ok((object, seen)) => of(Ok(object), seen, request.versions.schema(&version)),
            // The conversion fails, not the server.
            Err(status) => of(Err(Status::unknown(reason(status))), self.object, self.schema),
        }
    }

    /// The version of the expected kind that the object is of.
    ///
    /// # Errors
    /// 500 for an object of another kind.
    fn version(
        &self,
        request: &AdmissionRequest<'_>,
        expected: &GroupVersionKind,
    ) -> Result<GroupVersionKind, Status> {
        let found = &self.kind;
        if let Some(schema) = self.schema {
            if found == expected || found.kind == expected.kind && request.versions.schema(found).is_some() {
                return Ok(found.clone());
            }
            let to = format!("{}.{}", internal_package(&expected.group), expected.kind);
            return Err(Status::unknown(unknown_conversion(schema, &to)));
        }
        let GroupVersionKind { group, version, kind } = found;
        if *group != expected.group {
            return Err(Status::unknown(format!(
                "{group}/{version}, Kind={kind} is unstructured and is not suitable for converting to {}",
                quote(&request.kind.group_version().to_string())
            )));
        }
        // Another name of the kind is for validation to reject.
        let own = GroupVersionKind::new(&**group, &**version, &*expected.kind);
        match own == *expected || request.versions.schema(&own).is_some() {
            true => Ok(own),
            false => Err(Status::unknown(format!(
                "request to convert CR from an invalid group/version: {}",
                found.group_version()
            ))),
        }
    }
}

/// The reason of a failure, without the words that an internal error puts before it.
fn reason(status: Status) -> String {
    let message = status.message;
    message.strip_prefix("Internal error occurred: ").map(str::to_owned).unwrap_or(message)
}

/// Whether the first patch of a request changes the object in any case. The reference compares objects whose times have
/// nanoseconds with patched ones, whose times have seconds; managed fields that this request sets have its time.
fn loses_precision(request: &AdmissionRequest<'_>, matched: &Endpoint) -> bool {
    let kind = &matched.kind;
    if request.is_replaced || Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind).is_none() {
        return false;
    }
    let now = format_time(request.context.now);
    has_new_entry(&request.object, request.old_object, &now)
}

/// Whether an object has managed fields of this time that the old one has not, or has them from a write in the same second.
/// Both may have very many.
fn has_new_entry(object: &Value, old: Option<&Value>, now: &str) -> bool {
    let entries = |object| {
        let entries = Value::items_at(object, "metadata.managedFields").iter();
        entries.filter(|entry| entry.str_at("time") == now).map(json::encode_any)
    };
    let is_written = old.is_none_or(|old| !is_same_but_owners(old, object));
    let old: HashSet<Vec<u8>> = old.into_iter().flat_map(entries).collect();
    entries(object).any(|entry| is_written || !old.contains(&entry))
}

#[cfg(test)]
mod tests;
