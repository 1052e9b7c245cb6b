//! Restricts the changes of a webhook to labels and annotations in the metadata.

use pintle_machinery::{
    FieldPath, Map, Value,
    status::aggregate,
    text::go_type,
    validation::{validate_annotations, validate_labels},
};

/// Returns the converted object with the original's metadata, except for labels and annotations.
///
/// # Errors
/// When the labels or annotations are malformed.
pub(super) fn restore(mut original: Value, mut converted: Value) -> Result<Value, String> {
    let members = converted.as_object_mut().ok_or("invalid converted object")?;
    let found = members.remove("metadata").ok_or("missing metadata in converted object")?;
    let Value::Object(mut found) = found else {
        return Err(format!("invalid metadata of type {} in converted object", go_type(&found)));
    };
    let mut metadata = match original.as_object_mut().and_then(|members| members.remove("metadata")) {
        Some(Value::Object(metadata)) => metadata,
        None => Map::new(),
        Some(other) => return Err(format!("invalid metadata of type {} in input object", go_type(&other))),
    };
    for name in ["labels", "annotations"] {
        match found.remove(name) {
            None | Some(Value::Null) => {
                metadata.remove(name);
            }
            Some(Value::Object(own)) => {
                if metadata.get(name).and_then(Value::as_object) != Some(&own) {
                    check(name, &own)?;
                }
                metadata.insert(name, Value::Object(own));
            }
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{name} of type {} in converted object",
                    go_type(&other)
                ));
            }
        }
    }
    members.insert("metadata", Value::Object(metadata));
    Ok(converted)
}

fn check(name: &str, own: &Map) -> Result<(), String> {
    if let Some((key, value)) = own.iter().find(|(_, value)| !value.is_string()) {
        let found = go_type(value);
        return Err(format!("metadata.{name}[{key}] must be a string, but is {found} in converted object"));
    }
    let errors = match name {
        "labels" => validate_labels(own, &FieldPath::new("metadata.labels")),
        _ => validate_annotations(own, &FieldPath::new("metadata.annotation")),
    };
    match errors.is_empty() {
        true => Ok(()),
        false => Err(aggregate(errors.iter().map(ToString::to_string))),
    }
}
