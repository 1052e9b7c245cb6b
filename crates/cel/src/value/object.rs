//! Objects that expressions construct: `Object.spec{replicas: 3}`, `JSONPatch{op: 'remove', path: '/spec'}`.

use super::{Text, Value};
use crate::EvaluationError;
use crate::mutation::JSON_PATCH;
use crate::work;
use indexmap::IndexMap;
use std::sync::Arc;

/// An object that an expression constructs, with the name of its type. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    type_name: &'a str,
    fields: Arc<IndexMap<Text<'a>, Value<'a>>>,
}

impl<'a> Object<'a> {
    /// Creates an object. The fields of a `JSONPatch` have fixed names and types.
    pub(crate) fn new(
        type_name: &'a str,
        fields: IndexMap<Text<'a>, Value<'a>>,
    ) -> Result<Object<'a>, EvaluationError> {
        if type_name == JSON_PATCH {
            for (name, value) in &fields {
                match (name.as_str(), value) {
                    ("op" | "path" | "from", Value::String(_)) | ("value", _) => {}
                    (name @ ("op" | "path" | "from"), value) => {
                        return Err(EvaluationError::failed(format!(
                            "unexpected type {} for JSONPatchType '{name}' field",
                            go_type(value)
                        )));
                    }
                    (name, _) => {
                        return Err(EvaluationError::failed(format!(
                            "unexpected JSONPatchType field: {name}"
                        )));
                    }
                }
            }
        }
        Ok(Object { type_name, fields: Arc::new(fields) })
    }

    /// The name of the object's type.
    pub fn type_name(&self) -> &str {
        self.type_name
    }

    /// Whether this is an operation of a JSON patch.
    pub fn is_json_patch(&self) -> bool {
        self.type_name == JSON_PATCH
    }

    /// The fields, in the order of the expression.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A field; `None` if the expression does not set it.
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.get(&FieldName(name))
    }

    /// The differences between the names of types and the paths of the fields that hold their objects: the type of
    /// `Object{spec: …}` must be `Object.spec`. Lists and maps in between do not count. Each is a line of a message.
    ///
    /// # Errors
    /// [`EvaluationError::CostLimitExceeded`] if there are too many nested values to visit.
    pub fn mismatched_types(&self) -> Result<Vec<String>, EvaluationError> {
        let mut mismatches = Vec::new();
        let mut steps = MAX_VISITED;
        check_types(&Value::Object(self.clone()), self.type_name, &mut steps, &mut mismatches)?;
        Ok(mismatches)
    }

    /// The name of the reference's implementation type.
    pub(super) fn implementation_name(&self) -> &'static str {
        if self.is_json_patch() { "*mutation.JSONPatchVal" } else { "*dynamic.ObjectVal" }
    }

    /// The value of a field in expressions: unset texts of patch operations are empty.
    pub(crate) fn find(&self, name: &Value<'_>) -> Result<Option<Value<'a>>, EvaluationError> {
        work::count(1)?;
        let Value::String(name) = name else { return Err(EvaluationError::NO_SUCH_OVERLOAD) };
        match (self.field(name), self.is_json_patch()) {
            (Some(value), _) => Ok(Some(value.clone())),
            (None, false) => Ok(None),
            (None, true) => match name.as_str() {
                "op" | "path" | "from" => Ok(Some(Value::from(""))),
                "value" => Ok(None),
                name => Err(EvaluationError::failed(format!("unsupported indexer: {name}"))),
            },
        }
    }

    /// Whether a field is set and, for the texts of patch operations, not empty.
    pub(crate) fn has(&self, name: &Value<'_>) -> Result<bool, EvaluationError> {
        Ok(match self.find(name)? {
            Some(Value::String(text)) if self.is_json_patch() => !text.is_empty(),
            found => found.is_some(),
        })
    }

    /// Whether no field is set; operations of patches never count as zero.
    pub(super) fn is_zero(&self) -> bool {
        !self.is_json_patch() && self.fields.is_empty()
    }

    /// Whether type and fields are equal.
    pub(super) fn equal(&self, other: &Object<'_>) -> Result<bool, EvaluationError> {
        work::count(1)?;
        if self.type_name != other.type_name || self.fields.len() != other.fields.len() {
            return Ok(false);
        }
        for (name, value) in self.fields.iter() {
            let Some(other) = other.field(name) else { return Ok(false) };
            if !value.equal(other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn display(&self) -> String {
        let fields: Vec<_> = self
            .fields
            .iter()
            .map(|(name, value)| format!("{}: {}", name.as_str(), value.display()))
            .collect();
        format!("{}{{{}}}", self.type_name, fields.join(", "))
    }
}

/// A name for lookup, with any lifetime.
#[derive(Hash)]
struct FieldName<'n>(&'n str);

impl<'a> indexmap::Equivalent<Text<'a>> for FieldName<'_> {
    fn equivalent(&self, name: &Text<'a>) -> bool {
        self.0 == name.as_str()
    }
}

/// The maximum number of values that a check of a result visits. Results share values, so that a short expression can
/// denote a very large tree.
const MAX_VISITED: u64 = 1_000_000;
/// The maximum length of the mismatches that are reported.
const MAX_MISMATCHES: usize = 100;

fn check_types(
    value: &Value<'_>,
    path: &str,
    steps: &mut u64,
    mismatches: &mut Vec<String>,
) -> Result<(), EvaluationError> {
    *steps = steps.checked_sub(1).ok_or(EvaluationError::CostLimitExceeded)?;
    match value {
        Value::Object(object) => {
            if object.type_name() != path && mismatches.len() < MAX_MISMATCHES {
                mismatches.push(format!(
                    "unexpected type name \"{}\", expected \"{path}\", which matches field name path from root \
                     Object type",
                    object.type_name()
                ));
            }
            if object.is_json_patch() {
                return Ok(());
            }
            for (name, value) in object.fields() {
                check_types(value, &format!("{path}.{name}"), steps, mismatches)?;
            }
        }
        // Data of the request holds no constructed objects.
        Value::List(list) if list.is_computed() => {
            for item in list.iter() {
                check_types(&item?, path, steps, mismatches)?;
            }
        }
        Value::Map(map) if map.is_computed() => {
            for key in map.keys() {
                if let Some(value) = map.find(&key)? {
                    check_types(&value, path, steps, mismatches)?;
                }
            }
        }
        Value::Optional(Some(value)) => check_types(value, path, steps, mismatches)?,
        _ => {}
    }
    Ok(())
}

/// The name of the Go type behind a value.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::String(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Timestamp(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(list) if list.is_computed() => "[]ref.Val",
        Value::List(_) => "[]interface {}",
        Value::Map(map) if map.is_computed() => "map[ref.Val]ref.Val",
        Value::Map(_) | Value::Object(_) => "map[string]interface {}",
        _ => "interface {}",
    }
}
