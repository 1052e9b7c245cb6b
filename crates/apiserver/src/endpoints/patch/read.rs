//! Decodes patched objects.

use super::{
    super::{
        body_kind::BodyKind,
        decode::{NULL_VERSION, other_kind},
        request_scope::RequestScope,
    },
    Patch,
};
use crate::registry::VersionedResource;
use pintle_machinery::{
    FieldError, FieldPath, GroupVersion, GroupVersionKind, Map, Status, Value, ValueExt,
    codec::{StrictProblem, json},
    options::FieldValidation,
    scheme::{missing_version, not_registered, not_registered_internally, registered, scheme_of},
};
use std::{cell::OnceCell, sync::Arc};

/// Decodes a patched tree, or part of one, by its schema, like a request body. `written` makes its text, which has more than
/// the tree: members twice, the digits of numbers, and the order of members ([`Patch::written`]). `is_whole` tells a tree with type metadata from a part without; problems of the patch itself are reported with those of the tree, as field validation demands.
///
/// # Errors
/// 422 when the tree does not decode or is of another kind, and for any problem under strict validation.
pub(in super::super) fn read_patched(
    scope: &RequestScope<'_>,
    patch: &Patch,
    patched: Value,
    written: &dyn Fn() -> Option<String>,
    is_whole: bool,
    wanted: BodyKind<'_>,
    validation: FieldValidation,
) -> Result<Value, Status> {
    let keeps_claim = wanted.model.keeps_claimed_kind();
    let other = OnceCell::new();
    let wanted = match is_whole && keeps_claim {
        true => wanted.of_claim(scope, patched.str_at("apiVersion"), patched.str_at("kind"), &other),
        false => wanted,
    };
    let BodyKind { kind, schema, .. } = wanted;
    let undecodable = |error: &str| {
        let mut status = Status::invalid(&kind.group_kind(), "", &vec![invalid_patch(error)]);
        status.message = format!("{} \"\" is invalid: patch: Invalid value: {error}", kind.group_kind());
        status
    };
    let mut problems = patch.problems().to_vec();
    let mut own = kind.clone();
    let mut other_version = None;
    let text = if patch.needs_text(wanted) { written() } else { None };
    let is_written = text.is_some();
    let text = text.unwrap_or_else(|| String::from_utf8(json::encode_exact(&patched)).unwrap_or_default());
    if is_whole && keeps_claim {
        own = claimed_kind(&patched, &text).map_err(|why| undecodable(&why))?;
    } else if is_whole && patch.is_of_text() {
        match named_kind(scope, &patched, &text, wanted).map_err(|why| undecodable(&why))? {
            Named::Own => {}
            Named::OtherVersion(other) => other_version = Some(other),
            Named::Internal => {
                let unknown = patched.as_object().into_iter().flatten().map(|(name, _)| name);
                let unknown = unknown.filter(|name| !matches!(name.as_str(), "kind" | "apiVersion"));
                problems
                    .extend(unknown.map(|name| StrictProblem::UnknownField(name.to_string()).to_string()));
                report(scope, kind, problems, validation)?;
                return Ok(Value::Object(Map::new()));
            }
        }
    }
    let schema = other_version.as_ref().map_or(schema, |other| other.schema.get());
    let decode = if patch.is_of_text() { json::decode } else { json::decode_merged };
    let decoded = decode(text.as_bytes(), schema).map_err(|error| {
        // The type metadata is decoded before the rest.
        match json::type_meta(text.as_bytes()) {
            Err(error) if !keeps_claim => {
                undecodable(&format!("couldn't get version/kind; json parse error: {error}"))
            }
            _ => undecodable(&error.to_string()),
        }
    })?;
    let mut value = decoded.value;
    scope.empty_fields.set(decoded.empty_fields);
    let in_order = match decoded.problems.len() {
        0 | 1 => None,
        _ if is_written || !patch.is_of_text() => None,
        _ => written().and_then(|text| json::decode(text.as_bytes(), schema).ok()),
    };
    let found = in_order.map_or(decoded.problems, |decoded| decoded.problems);
    problems.extend(found.iter().map(|problem| match problem {
        // Those of a merged map are not escaped.
        StrictProblem::UnknownField(path) if !patch.is_of_text() => format!("unknown field \"{path}\""),
        problem => problem.to_string(),
    }));
    let unknown = wanted.coerce(&mut value).map_err(|status| match patch.is_of_text() {
        true => undecodable(&status.message),
        // A merged map is restored first, and converted then.
        false => Status::unknown(status.message),
    })?;
    problems.extend(unknown.into_iter().map(|path| StrictProblem::UnknownField(path).to_string()));
    report(scope, kind, problems, validation)?;
    if let Some(other) = other_version {
        value = scope.resource.from_storage(other.to_storage(value));
    }
    value.set("kind", own.kind.as_str());
    value.set("apiVersion", own.group_version().to_string());
    Ok(value)
}

/// Reports the problems of a patch and of the patched tree as field validation demands.
///
/// # Errors
/// 422 for problems under strict validation.
fn report(
    scope: &RequestScope<'_>,
    kind: &GroupVersionKind,
    problems: Vec<String>,
    validation: FieldValidation,
) -> Result<(), Status> {
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => scope.warnings.extend(problems),
        FieldValidation::Strict if problems.is_empty() => {}
        FieldValidation::Strict => {
            let why = format!("strict decoding error: {}", problems.join(", "));
            return Err(Status::invalid(&kind.group_kind(), "", &vec![invalid_patch(&why)]));
        }
    }
    Ok(())
}

/// The kind that a patched object, whose JSON is `text`, claims. It must name one; an empty version is found later, by
/// the store.
///
/// # Errors
/// The error message of the reference, which reads the object's JSON.
fn claimed_kind(patched: &Value, text: &str) -> Result<GroupVersionKind, String> {
    let found = json::type_meta(text.as_bytes())
        .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
    let kind = patched.str_at("kind");
    if kind.is_empty() {
        let shown = json::encode_any(patched);
        return Err(format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(&shown)));
    }
    if patched.get("apiVersion").is_some_and(Value::is_null) {
        return Err(NULL_VERSION.to_owned());
    }
    let version = GroupVersion::parse(patched.str_at("apiVersion"))
        .ok_or_else(|| format!("unexpected GroupVersion string: {}", found.api_version))?;
    Ok(match version.version.is_empty() {
        true => GroupVersion::default().with_kind(kind),
        false => version.with_kind(kind),
    })
}

/// The source line of the scheme that the scales of custom resources have; part of one error message.
const SCALE_SCHEME: &str = "k8s.io/client-go/scale/util.go:146";

/// The kind and version in the type metadata of a patched object of a built-in kind.
enum Named {
    /// The kind of the request. Its absent name is taken from the path.
    Own,
    /// The kind of the request in another version that is served.
    OtherVersion(Arc<VersionedResource>),
    /// The kind of the request in the version inside of kube-apiserver, since the object names no version. That has
    /// none of the field names of the API.
    Internal,
}

/// The kind that a patched object of a built-in kind, whose JSON is `text`, names. The scale of a custom resource has no internal
/// version.
///
/// # Errors
/// The error message for an object of another kind.
fn named_kind(
    scope: &RequestScope<'_>,
    patched: &Value,
    text: &str,
    wanted: BodyKind<'_>,
) -> Result<Named, String> {
    let kind = wanted.kind;
    let resource = &scope.resource.resource;
    let is_custom_scale = resource.model.keeps_claimed_kind();
    json::type_meta(text.as_bytes())
        .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
    let (name, version) = (patched.str_at("kind"), patched.str_at("apiVersion"));
    let name = if name.is_empty() { &kind.kind } else { name };
    let found =
        GroupVersion::parse(version).ok_or_else(|| format!("unexpected GroupVersion string: {version}"))?;
    let is_internal = found.version.is_empty() && (found.group.is_empty() || found.group == kind.group);
    let found = found.with_kind(name);
    match is_internal {
        true if *name == kind.kind && is_custom_scale => return Ok(Named::Own),
        true if *name == kind.kind => return Ok(Named::Internal),
        true => return Err(not_registered_internally(&found.kind, &kind.group)),
        false if found == *kind => return Ok(Named::Own),
        false if is_custom_scale => {
            return Err(not_registered(&found.kind, &found.group_version().to_string(), SCALE_SCHEME));
        }
        false if found.version.is_empty() => return Err(missing_version(text)),
        false => {}
    }
    if resource.group_version_kind() == *kind && found.kind == kind.kind {
        let versions = scope.server.stores.versions_of(resource);
        let is_found = |other: &Arc<VersionedResource>| other.resource.group_version_kind() == found;
        if let Some(other) = versions.into_iter().find(is_found) {
            return Ok(Named::OtherVersion(other));
        }
    }
    let decoded =
        registered(&found, scheme_of(&kind.group)).map(|schema| json::decode(text.as_bytes(), schema));
    match decoded {
        Some(Err(error)) => Err(error.to_string()),
        Some(Ok(_)) | None => Err(other_kind(&found, kind)),
    }
}

fn invalid_patch(why: &str) -> FieldError {
    FieldError::invalid(&FieldPath::new("patch"), Value::Null, why)
}
