//! The patches that the expressions of mutations evaluate to, and their application.

use pintle_admission_cel::{Evaluation, Expression, Failure};
use pintle_cel::{EvaluationError, Object, Value as CelValue};
use pintle_machinery::{
    GroupVersionKind, Map, Status, Value, ValueExt,
    codec::json,
    managed_fields::merge_configuration,
    options::FieldValidation,
    patch::{PatchError, json_patch},
};
use pintle_schema::SchemaRef;

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
                let config = CelValue::Object(object)
                    .to_exact_json(&mut budget)
                    .map_err(|error| MutationError::Failed(error.to_string()))?;
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
    /// subresources that belong to another group, such as scales.
    pub(super) is_published: bool,
}

impl Patch {
    /// The object with the patch, before defaulting. Without a change it may be the object itself: a test of a JSON
    /// patch that fails drops the whole patch.
    ///
    /// # Errors
    /// When the patch does not fit the object, or the object its kind afterwards.
    pub(super) fn apply(self, object: &Value, patched: PatchedKind<'_>) -> Result<Value, MutationError> {
        match self {
            Patch::Configuration(config) => configure(object, config, patched),
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
    set_type(&mut config, kind);
    let mut merged = merge_configuration(object, config, schema).map_err(|why| failed(&why))?;
    set_type(&mut merged, kind);
    Ok(merged)
}

fn edit(object: &Value, operations: &Value, patched: PatchedKind<'_>) -> Result<Value, MutationError> {
    let PatchedKind { kind, schema, .. } = patched;
    let mut document = json::to_value(object, schema);
    set_type(&mut document, kind);
    let edited = match json_patch::apply(document, operations, FieldValidation::Ignore) {
        Ok(edited) => edited,
        Err(PatchError::TestFailed(_)) => return Ok(object.clone()),
        Err(error) => return Err(MutationError::Failed(format!("JSON Patch: {error}"))),
    };
    // Custom resources keep fields that their schemas do not declare until they are stored.
    let mut edited = match schema.is_structural() {
        true => edited,
        false => decode_strictly(&edited, schema)?,
    };
    if !edited.is_object() {
        edited = Value::Object(Map::new());
    }
    set_type(&mut edited, kind);
    Ok(edited)
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
