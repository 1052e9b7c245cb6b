//! Coerces and validates the metadata of embedded resources (`x-kubernetes-embedded-resource`).

use std::sync::LazyLock;

use pintle_machinery::codec::{DecodeError, Decoded, StrictProblem, json};
use pintle_machinery::validation::{
    is_dns1035_label, validate_object_meta_accessor, validate_path_segment_name,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, GroupVersion, Map, Value, ValueExt, json};
use pintle_schema::{Schema, SchemaRef};

use super::arena::Arena;
use super::node::{Flags, Node};
use super::path::Path;

/// The maximum number of unknown fields that are reported.
pub(super) const MAX_UNKNOWN: usize = 1000;

/// The treatment of embedded metadata with values of wrong types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidMetadata {
    /// The object is rejected, as for requests.
    Refuse,
    /// The values are dropped, as for stored objects, which may be older than the check.
    Drop,
}

/// The built-in `ObjectMeta`.
pub(super) fn schema() -> SchemaRef<'static> {
    static SCHEMA: LazyLock<Option<SchemaRef<'static>>> =
        LazyLock::new(|| Schema::builtin().by_type_name("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta"));
    // The built-in types contain it; every test would fail otherwise.
    SCHEMA.unwrap_or_else(|| Schema::builtin().root())
}

/// Coerces the metadata of all embedded resources, and returns the paths of fields that `ObjectMeta` does not have.
///
/// # Errors
/// With [`InvalidMetadata::Refuse`], the first value in metadata that has the wrong type.
pub(super) fn coerce(
    schema: &Arena,
    object: &mut Value,
    invalid: InvalidMetadata,
) -> Result<Vec<String>, FieldError> {
    coerce_below(schema, schema.root_node(), object, invalid)
}

/// As [`coerce`], for a value of a given node.
///
/// # Errors
/// As [`coerce`].
pub(super) fn coerce_below(
    schema: &Arena,
    node: &Node,
    value: &mut Value,
    invalid: InvalidMetadata,
) -> Result<Vec<String>, FieldError> {
    let mut coercer = Coercer { schema, invalid, unknown: Vec::new() };
    coercer.value(value, node, &Path::ROOT)?;
    coercer.unknown.sort_unstable();
    Ok(coercer.unknown)
}

/// Coerces the metadata of all resources in a value, including the value itself if it is one.
///
/// # Errors
/// The first value in metadata that has the wrong type.
pub(super) fn coerce_resources(
    schema: &Arena,
    node: &Node,
    value: &mut Value,
    is_resource: bool,
) -> Result<(), FieldError> {
    let mut coercer = Coercer { schema, invalid: InvalidMetadata::Refuse, unknown: Vec::new() };
    if let (true, Value::Object(members)) = (is_resource, &mut *value) {
        coercer.resource(members, &Path::ROOT)?;
    }
    coercer.value(value, node, &Path::ROOT)
}

/// Validates type and metadata of all resources in a value, including the value itself if it is one.
pub(super) fn validate_resources(schema: &Arena, node: &Node, value: &Value, is_resource: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    if let (true, false, Value::Object(members)) =
        (is_resource, node.flags.has(Flags::EMBEDDED_RESOURCE), value)
    {
        validate_resource(members, &FieldPath::default(), &mut errors);
    }
    validate_value(schema, node, value, &Path::ROOT, &mut errors);
    errors
}

/// Decodes a value as `ObjectMeta`, dropping invalid parts. A value that is not an object stays.
pub(super) fn coerce_metadata(metadata: &mut Value) {
    match decode(metadata) {
        Ok(decoded) => *metadata = decoded.value,
        Err(_) => {
            if let Some((coerced, _)) = salvage(metadata) {
                *metadata = coerced;
            }
        }
    }
}

struct Coercer<'s> {
    schema: &'s Arena,
    invalid: InvalidMetadata,
    unknown: Vec<String>,
}

impl Coercer<'_> {
    fn value(&mut self, value: &mut Value, node: &Node, path: &Path<'_>) -> Result<(), FieldError> {
        if !node.flags.has(Flags::BELOW_EMBEDDED) {
            return Ok(());
        }
        match value {
            Value::Object(members) => {
                if node.flags.has(Flags::EMBEDDED_RESOURCE) {
                    self.resource(members, path)?;
                }
                for (name, value) in members {
                    if let Some(property) = self.schema.property(node, name) {
                        self.value(value, property, &path.child(name))?;
                    } else if let Some(additional) = self.schema.additional(node) {
                        self.value(value, additional, &path.key(name))?;
                    }
                }
                Ok(())
            }
            Value::Array(items) => {
                let Some(node) = self.schema.items(node) else { return Ok(()) };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, node, &path.index(index))?;
                }
                Ok(())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn resource(&mut self, members: &mut Map, path: &Path<'_>) -> Result<(), FieldError> {
        for name in ["apiVersion", "kind"] {
            match members.get(name) {
                None | Some(Value::String(_)) => {}
                Some(_) if self.invalid == InvalidMetadata::Drop => {
                    members.remove(name);
                }
                Some(value) => {
                    let path = path.child(name).to_field_path();
                    return Err(FieldError::invalid(&path, value.clone(), "must be a string"));
                }
            }
        }
        let Some(metadata) = members.get_mut("metadata") else { return Ok(()) };
        let path = path.child("metadata");
        match decode(metadata) {
            Ok(decoded) => {
                self.report(&path, decoded.problems);
                *metadata = decoded.value;
            }
            Err(error) if self.invalid == InvalidMetadata::Refuse => {
                return Err(FieldError::invalid(&path.to_field_path(), metadata.clone(), error.to_string()));
            }
            Err(_) => {
                if let Some((coerced, problems)) = salvage(metadata) {
                    self.report(&path, problems);
                    *metadata = coerced;
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, path: &Path<'_>, problems: Vec<StrictProblem>) {
        for problem in problems {
            if self.unknown.len() >= MAX_UNKNOWN {
                return;
            }
            match problem {
                StrictProblem::UnknownField(field) | StrictProblem::DuplicateField(field) => {
                    self.unknown.push(format!("{path}.{field}"));
                }
                StrictProblem::Yaml(_) | StrictProblem::UnknownElement(_) => {}
            }
        }
    }
}

/// Embedded metadata has no schema of its own in the tree.
fn decode(metadata: &Value) -> Result<Decoded, DecodeError> {
    let mut decoded = json::from_value(metadata, schema())?;
    json::open_managed_fields(&mut decoded.value);
    Ok(decoded)
}

/// Decodes each field of metadata separately when it does not decode as a whole. `None` when it is not an object.
fn salvage(metadata: &Value) -> Option<(Value, Vec<StrictProblem>)> {
    let mut coerced = Map::new();
    let mut problems = Vec::new();
    for (name, value) in metadata.as_object()? {
        let single = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        if let Ok(decoded) = decode(&single) {
            if let Value::Object(members) = decoded.value {
                coerced.extend(members);
            }
            problems.extend(decoded.problems);
        }
    }
    Some((Value::Object(coerced), problems))
}

/// Validates type and metadata of all embedded resources, but not of the object itself.
pub(super) fn validate(schema: &Arena, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_value(schema, schema.root_node(), object, &Path::ROOT, &mut errors);
    errors
}

fn validate_value(schema: &Arena, node: &Node, value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if !node.flags.has(Flags::BELOW_EMBEDDED) {
        return;
    }
    match value {
        Value::Object(members) => {
            if node.flags.has(Flags::EMBEDDED_RESOURCE) {
                validate_resource(members, &path.to_field_path(), errors);
            }
            for (name, value) in members {
                if let Some(property) = schema.property(node, name) {
                    validate_value(schema, property, value, &path.child(name), errors);
                } else if let Some(additional) = schema.additional(node) {
                    validate_value(schema, additional, value, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(node) = schema.items(node) else { return };
            for (index, item) in items.iter().enumerate() {
                validate_value(schema, node, item, &path.index(index), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn validate_resource(members: &Map, path: &FieldPath, errors: &mut ErrorList) {
    let (api_version, kind) = (path.child("apiVersion"), path.child("kind"));
    for (name, path) in [("apiVersion", &api_version), ("kind", &kind)] {
        if !members.contains_key(name) {
            errors.push(FieldError::required(path, ""));
        }
    }
    match members.get("apiVersion") {
        None => {}
        Some(Value::String(text)) if text.is_empty() => {
            errors.push(FieldError::invalid(&api_version, "", "must not be empty"));
        }
        Some(Value::String(text)) if GroupVersion::parse(text).is_none() => {
            let detail = format!("unexpected GroupVersion string: {text}");
            errors.push(FieldError::invalid(&api_version, text.as_str(), detail));
        }
        Some(Value::String(_)) => {}
        Some(value) => errors.push(FieldError::invalid(&api_version, value.clone(), "must be a string")),
    }
    match members.get("kind") {
        None => {}
        Some(Value::String(text)) if text.is_empty() => {
            errors.push(FieldError::invalid(&kind, "", "must not be empty"));
        }
        Some(Value::String(text)) => {
            let problems = is_dns1035_label(&pintle_go_forms::to_lower(text));
            if !problems.is_empty() {
                let problems = problems.join(",");
                let detail = format!("may have mixed case, but should otherwise match: {problems}");
                errors.push(FieldError::invalid(&kind, text.as_str(), detail));
            }
        }
        Some(value) => errors.push(FieldError::invalid(&kind, value.clone(), "must be a string")),
    }
    if let Some(metadata) = members.get("metadata") {
        validate_metadata(metadata, &path.child("metadata"), errors);
    }
}

fn validate_metadata(metadata: &Value, path: &FieldPath, errors: &mut ErrorList) {
    match decode(metadata) {
        Err(error) => {
            errors.push(FieldError::invalid(path, metadata.clone(), error.to_string()));
        }
        Ok(decoded) => {
            let mut object = json!({ "metadata": decoded.value });
            // An embedded resource needs no name.
            object.set_default("metadata.name", "fakename");
            let namespaced = !object.str_at("metadata.namespace").is_empty();
            errors.extend(validate_object_meta_accessor(
                &object,
                namespaced,
                validate_path_segment_name,
                path,
            ));
        }
    }
}

/// The fields that every object has, and every embedded resource.
pub(super) fn is_meta_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

#[cfg(test)]
mod tests;
