//! Decodes patched objects.

use super::super::{body_kind::BodyKind, decode::other_kind, request_scope::RequestScope};
use pintle_machinery::{
    FieldError, FieldPath, GroupVersion, Status, Value, ValueExt,
    codec::{StrictProblem, json},
    options::FieldValidation,
};

/// Decodes a patched tree, or part of one, by its schema, like a request body. `problems` are those of the patch itself,
/// which field validation reports with those of the tree.
///
/// # Errors
/// 422 when the tree does not decode or is of another kind, and for any problem under strict validation.
pub(in super::super) fn read_patched(
    scope: &RequestScope<'_>,
    patched: Value,
    problems: &[String],
    wanted: BodyKind<'_>,
    validation: FieldValidation,
) -> Result<Value, Status> {
    let BodyKind { kind, schema, model, .. } = wanted;
    let group_version = kind.group_version().to_string();
    // Type metadata that the patch removed is taken from the path.
    let other = |own: &str, wanted: &str| !own.is_empty() && own != wanted;
    let keeps_claim = model.keeps_claimed_kind();
    let said = |name: &str, wanted: &str| match patched.str_at(name) {
        own if keeps_claim && !own.is_empty() => own.to_owned(),
        _ => wanted.to_owned(),
    };
    let (own_kind, own_version) = (said("kind", &kind.kind), said("apiVersion", &group_version));
    let is_other =
        other(patched.str_at("kind"), &kind.kind) || other(patched.str_at("apiVersion"), &group_version);
    let undecodable = |error: &str| {
        let mut status = Status::invalid(&kind.group_kind(), "", &vec![invalid_patch(error)]);
        status.message = format!("{} \"\" is invalid: patch: Invalid value: {error}", kind.group_kind());
        status
    };
    if !keeps_claim && is_other {
        let own = |name: &str, wanted: &str| match patched.str_at(name) {
            "" => wanted.to_owned(),
            own => own.to_owned(),
        };
        let version = own("apiVersion", &group_version);
        let found = GroupVersion::parse(&version)
            .ok_or_else(|| undecodable(&format!("unexpected GroupVersion string: {version}")))?;
        return Err(undecodable(&other_kind(&found.with_kind(own("kind", &kind.kind)), kind)));
    }
    let text = patched.to_string();
    let decoded = json::decode(text.as_bytes(), schema).map_err(|error| {
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
    let mut problems = problems.to_vec();
    problems.extend(decoded.problems.iter().map(ToString::to_string));
    let unknown = wanted.coerce(&mut value).map_err(|status| undecodable(&status.message))?;
    problems.extend(unknown.into_iter().map(|path| StrictProblem::UnknownField(path).to_string()));
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => scope.warnings.extend(problems),
        FieldValidation::Strict if problems.is_empty() => {}
        FieldValidation::Strict => {
            let why = format!("strict decoding error: {}", problems.join(", "));
            return Err(Status::invalid(&kind.group_kind(), "", &vec![invalid_patch(&why)]));
        }
    }
    value.set("kind", own_kind);
    value.set("apiVersion", own_version);
    Ok(value)
}

fn invalid_patch(why: &str) -> FieldError {
    FieldError::invalid(&FieldPath::new("patch"), Value::Null, why)
}
