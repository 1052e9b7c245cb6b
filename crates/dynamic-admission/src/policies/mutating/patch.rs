//! The patches that the expressions of mutations evaluate to, and their application.

use crate::patched_kind::{self, built_in_type, patched_kind};
use pintle_admission_cel::{Evaluation, Expression, Failure};
use pintle_cel::{EvaluationError, Object, Value as CelValue};
use pintle_go_forms::quote;
use pintle_machinery::{
    GroupVersionKind, Map, Status, Value, ValueExt,
    codec::json,
    managed_fields::{ConfigurationError, merge_configuration},
    options::FieldValidation,
    patch::{PatchError, json_patch},
    scheme::{internal_package, scheme_of, unknown_conversion, unsuitable},
};
use pintle_schema::SchemaRef;
use std::fmt::Write as _;

/// The maximum size of a patch, in bytes of JSON: that of a request. Values in a patch may be shared, so that a short
/// expression could denote a much larger patch.
const MAX_PATCH: usize = 3 * 1024 * 1024;

/// A compiled mutation.
#[derive(Debug)]
pub(super) enum Mutation {
    /// Merges an object as server-side apply does.
    ApplyConfiguration(Expression),
    /// Applies operations of a JSON patch.
    JsonPatch(Expression),
}

/// The result of a mutation's expression.
#[derive(Debug, PartialEq)]
pub(super) enum Patch {
    Configuration(Value),
    Operations(Value),
}

/// The reason why a mutation has no result.
#[derive(Debug, PartialEq)]
pub(super) enum MutationError {
    /// The failure policy decides.
    Failed(String),
    /// The request fails, whatever the failure policy says.
    Refused(Box<Status>),
    /// The decision of an authorizer must be awaited, and the evaluation be repeated.
    Undecided,
}

impl MutationError {
    fn internal(why: impl std::fmt::Display) -> MutationError {
        MutationError::Refused(Box::new(Status::internal_error(why)))
    }
}

impl From<Failure> for MutationError {
    fn from(failure: Failure) -> MutationError {
        match failure {
            Failure::Undecided => MutationError::Undecided,
            failure => MutationError::Failed(failure.to_string()),
        }
    }
}

impl Mutation {
    /// Evaluates the expression.
    ///
    /// # Errors
    /// When the evaluation fails, and when its result is no patch: of a wrong type, or too large.
    pub(super) async fn evaluate<'p>(
        &'p self,
        evaluation: &mut Evaluation<'p, '_>,
    ) -> Result<Patch, MutationError> {
        let mut budget = MAX_PATCH;
        match self {
            Mutation::ApplyConfiguration(expression) => {
                let CelValue::Object(object) = evaluation.evaluate(expression).await? else {
                    return Err(MutationError::Failed(
                        "unsupported return type from ApplyConfiguration expression".to_owned(),
                    ));
                };
                check_types(&object)?;
                let object = CelValue::Object(object);
                let config = object
                    .to_exact_json(&mut budget)
                    .map_err(|error| MutationError::Failed(error.to_string()))?;
                check_scalars(&object)?;
                Ok(Patch::Configuration(config))
            }
            Mutation::JsonPatch(expression) => {
                let CelValue::List(operations) = evaluation.evaluate(expression).await? else {
                    return Err(MutationError::Failed(
                        "type mismatch: JSONPatchType.expression should evaluate to array".to_owned(),
                    ));
                };
                let mut patch = Vec::new();
                for operation in operations.iter() {
                    let operation = operation.map_err(|error| MutationError::Failed(error.to_string()))?;
                    patch.push(operation_of(&operation, &mut budget)?);
                }
                Ok(Patch::Operations(Value::Array(patch)))
            }
        }
    }
}

/// Checks that the types of nested objects are those of their fields.
fn check_types(object: &Object<'_>) -> Result<(), MutationError> {
    match object.mismatched_types() {
        Ok(mismatches) if mismatches.is_empty() => Ok(()),
        Ok(mismatches) => Err(MutationError::Failed(format!("type mismatch: {}", mismatches.join("\n")))),
        Err(error) => Err(MutationError::Failed(error.to_string())),
    }
}

/// The maximum number of values that the refusal of a configuration names, and that of the bytes that it shows of each.
const MAX_FAULTS: usize = 100;
const MAX_SHOWN: usize = 1000;

/// Checks that a configuration has only values that JSON has, too: the reference merges the values of expressions as
/// they are. Its size is bounded already.
fn check_scalars(config: &CelValue<'_>) -> Result<(), MutationError> {
    let mut faults = Vec::new();
    find_foreign(config, &mut String::new(), &mut faults)
        .map_err(|error| MutationError::Failed(error.to_string()))?;
    let why = match faults.as_slice() {
        [] => return Ok(()),
        [fault] => fault.clone(),
        faults => format!("errors:\n  {}", faults.join("\n  ")),
    };
    let what = "error applying patch: failed to convert patch object to typed object";
    Err(MutationError::Failed(format!("{what}: {why}")))
}

/// Collects the values that JSON does not have, with their paths.
fn find_foreign(
    value: &CelValue<'_>,
    path: &mut String,
    faults: &mut Vec<String>,
) -> Result<(), EvaluationError> {
    if faults.len() >= MAX_FAULTS {
        return Ok(());
    }
    let length = path.len();
    let (wanted, found) = match value {
        CelValue::Object(object) => {
            for (name, value) in object.fields() {
                path.push('.');
                path.push_str(name);
                find_foreign(value, path, faults)?;
                path.truncate(length);
            }
            return Ok(());
        }
        CelValue::Map(map) => {
            for key in map.keys() {
                let (CelValue::String(name), Some(value)) = (&key, map.find(&key)?) else { continue };
                path.push('.');
                path.push_str(name.as_str());
                find_foreign(&value, path, faults)?;
                path.truncate(length);
            }
            return Ok(());
        }
        CelValue::List(list) => {
            for (at, item) in list.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = write!(path, "[{at}]");
                find_foreign(&item?, path, faults)?;
                path.truncate(length);
            }
            return Ok(());
        }
        CelValue::Bytes(bytes) => {
            let bytes: Vec<_> = bytes.iter().take(MAX_SHOWN).map(|byte| format!("{byte:#x}")).collect();
            ("string", format!("&value.valueUnstructured{{Value:[]uint8{{{}}}}}", bytes.join(", ")))
        }
        CelValue::Uint(_) => ("numeric (int or float)", "uint64".to_owned()),
        CelValue::Timestamp(_) | CelValue::Duration(_) | CelValue::Opaque(_) => {
            let json = value.to_exact_json(&mut { MAX_PATCH })?;
            let text = json.as_str().unwrap_or_default();
            let text = match value {
                CelValue::Timestamp(_) => text.replace('T', " ").replace('Z', " +0000 UTC"),
                _ => text.to_owned(),
            };
            ("any scalar", format!("&{{{text}}}"))
        }
        _ => return Ok(()),
    };
    faults.push(format!("{path}: expected {wanted}, got {found}"));
    Ok(())
}

/// One operation as JSON; `budget` bounds its size.
fn operation_of(operation: &CelValue<'_>, budget: &mut usize) -> Result<Value, MutationError> {
    let CelValue::Object(operation) = operation else {
        return Err(MutationError::Failed(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch".to_owned(),
        ));
    };
    let text = |name: &str| match operation.field(name) {
        Some(CelValue::String(text)) => text.as_str().to_owned(),
        _ => String::new(),
    };
    let mut json = Map::new();
    for (name, is_optional) in [("op", false), ("path", false), ("from", true)] {
        let text = text(name);
        *budget = budget.checked_sub(text.len()).ok_or_else(too_large)?;
        if !(is_optional && text.is_empty()) {
            json.insert(name, text.into());
        }
    }
    if let Some(value) = operation.field("value") {
        if let CelValue::Object(object) = value {
            check_types(object)?;
        }
        let value = value.to_json(budget).map_err(|error| {
            MutationError::Failed(format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}"
            ))
        })?;
        json.insert("value", value);
    }
    Ok(Value::Object(json))
}

fn too_large() -> MutationError {
    MutationError::Failed(EvaluationError::CostLimitExceeded.to_string())
}

/// The kind of the object that a patch changes.
#[derive(Clone, Copy)]
pub(super) struct PatchedKind<'a> {
    /// The group, version and kind.
    pub(super) kind: &'a GroupVersionKind,
    /// The schema of the kind.
    pub(super) schema: SchemaRef<'a>,
    /// Whether the group and version publish the kind, so that its fields have types. They do not publish the kinds of
    /// subresources that belong to another group, such as scales, and those of the options of connections.
    pub(super) is_published: bool,
}

impl Patch {
    /// The object with the patch, before defaulting, and its kind: a JSON patch may name another version. Without a
    /// change it may be the object itself: a test of a JSON patch that fails drops the whole patch.
    ///
    /// # Errors
    /// When the patch does not fit the object, or the object its kind afterwards.
    pub(super) fn apply(
        self,
        object: &Value,
        patched: PatchedKind<'_>,
    ) -> Result<(Value, GroupVersionKind), MutationError> {
        match self {
            Patch::Configuration(config) => {
                configure(object, config, patched).map(|object| (object, patched.kind.clone()))
            }
            Patch::Operations(operations) => edit(object, &operations, patched),
        }
    }
}

fn configure(object: &Value, mut config: Value, patched: PatchedKind<'_>) -> Result<Value, MutationError> {
    let failed = |why: &str| MutationError::Failed(format!("error applying patch: {why}"));
    let PatchedKind { kind, schema, is_published } = patched;
    if !is_published {
        let group_version = match kind.group.as_str() {
            "" => format!("/{}", kind.version),
            group => format!("{group}/{}", kind.version),
        };
        return Err(failed(&format!(
            "failed to convert patch object to typed object: no corresponding type for {group_version}, Kind={}",
            kind.kind
        )));
    }
    // A JSON patch may have given a custom resource another kind.
    let own_kind = object.str_at("kind");
    if schema.is_structural() && !own_kind.is_empty() && own_kind != kind.kind {
        let version = kind.group_version();
        return Err(failed(&format!(
            "failed to convert patch object to typed object: no corresponding type for {version}, Kind={own_kind}"
        )));
    }
    set_type(&mut config, kind);
    let mut merged = merge_configuration(object, config, schema).map_err(|error| match error {
        ConfigurationError::Refused(why) => failed(&why),
        ConfigurationError::Undecodable(why) => {
            let slash = if kind.group.is_empty() { "/" } else { "" };
            let (version, name) = (kind.group_version(), &kind.kind);
            MutationError::Failed(format!(
                "unable to convert unstructured object to {slash}{version}, Kind={name}: {why}"
            ))
        }
    })?;
    set_type(&mut merged, kind);
    Ok(merged)
}

fn edit(
    object: &Value,
    operations: &Value,
    patched: PatchedKind<'_>,
) -> Result<(Value, GroupVersionKind), MutationError> {
    let PatchedKind { kind, schema, .. } = patched;
    let mut document = json::to_value(object, schema);
    if !schema.is_structural() {
        set_type(&mut document, kind);
    }
    let edited = match json_patch::apply_any_number(document, operations, FieldValidation::Ignore) {
        Ok(edited) => edited,
        Err(PatchError::TestFailed(_)) => return Ok((object.clone(), kind.clone())),
        Err(error) => return Err(MutationError::Failed(format!("JSON Patch: {error}"))),
    };
    // Custom resources keep fields that their schemas do not declare until they are stored.
    match schema.is_structural() {
        true => claimed(&edited, kind).map(|kind| (edited, kind)),
        false => decode_as_named(&edited, patched).map(|object| (object, kind.clone())),
    }
}

/// The kind of an edited custom resource, in the version that it names. Another name of the kind is for validation to
/// reject.
fn claimed(edited: &Value, kind: &GroupVersionKind) -> Result<GroupVersionKind, MutationError> {
    let text = json::encode_any(edited);
    let named = patched_kind::type_meta(&text).map_err(refused)?;
    if named.kind.is_empty() {
        let text = String::from_utf8_lossy(&text);
        return Err(MutationError::internal(format!("Object 'Kind' is missing in '{text}'")));
    }
    let wanted = kind.group_version();
    if named.group == kind.group {
        return Ok(named.group_version().with_kind(&*kind.kind));
    }
    let (group, version, name) = (&named.group, &named.version, &named.kind);
    Err(MutationError::internal(format!(
        "failed to convert object: {group}/{version}, Kind={name} is unstructured and is not suitable for converting to {}",
        quote(&wanted.to_string())
    )))
}

/// Decodes an edited object of a built-in kind as the kind that it names.
fn decode_as_named(edited: &Value, patched: PatchedKind<'_>) -> Result<Value, MutationError> {
    let PatchedKind { kind, schema, .. } = patched;
    let found = patched_kind(&json::encode_any(edited), kind).map_err(refused)?;
    if found == *kind {
        let mut decoded = decode_strictly(edited, schema)?;
        if !decoded.is_object() {
            decoded = Value::Object(Map::new());
        }
        set_type(&mut decoded, kind);
        return Ok(decoded);
    }
    let other = built_in_type(&found, kind).map_err(refused)?;
    decode_strictly(edited, other)?;
    if found.group != kind.group {
        let to = kind.group_version();
        return Err(MutationError::Failed(unsuitable(other, &to.to_string(), scheme_of(&kind.group))));
    }
    if found.kind == kind.kind {
        let to = format!("{}.{}", kind.version, kind.kind);
        return Err(MutationError::Failed(unknown_conversion(other, &to)));
    }
    let to = format!("{}.{}", internal_package(&kind.group), kind.kind);
    let why = unknown_conversion(other, &to);
    Err(MutationError::internal(format!("failed to convert object: {why}")))
}

/// Checks that an object which a policy matches in this version can be that of the request. Objects of built-in kinds are
/// not converted after a mutation: as in kube-apiserver, policies change them in the version of the request alone.
///
/// # Errors
/// A failure of the policy, for another version.
pub(super) fn check_version(
    matched: PatchedKind<'_>,
    requested: &GroupVersionKind,
) -> Result<(), MutationError> {
    let PatchedKind { kind, schema, .. } = matched;
    let wanted = requested.group_version();
    if schema.is_structural() || kind.group_version() == wanted {
        return Ok(());
    }
    Err(MutationError::Failed(match kind.group == requested.group {
        true => unknown_conversion(schema, &format!("{}.{}", requested.version, requested.kind)),
        false => unsuitable(schema, &wanted.to_string(), scheme_of(&requested.group)),
    }))
}

fn refused(status: Status) -> MutationError {
    MutationError::Refused(Box::new(status))
}

fn decode_strictly(edited: &Value, schema: SchemaRef<'_>) -> Result<Value, MutationError> {
    let decoded = json::decode(edited.to_string().as_bytes(), schema).map_err(MutationError::internal)?;
    match decoded.problems.is_empty() {
        true => Ok(decoded.value),
        false => {
            let problems: Vec<_> = decoded.problems.iter().map(ToString::to_string).collect();
            Err(MutationError::internal(format!("strict decoding error: {}", problems.join(", "))))
        }
    }
}

fn set_type(object: &mut Value, kind: &GroupVersionKind) {
    object.set("apiVersion", kind.group_version().to_string());
    object.set("kind", kind.kind.as_str());
}

#[cfg(test)]
mod tests;
