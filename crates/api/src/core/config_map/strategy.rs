//! The strategy of config maps.

use crate::core::data::{self, MAX_SIZE, Member};
use crate::rules;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy};

pub(super) struct ConfigMapStrategy;

impl Strategy for ConfigMapStrategy {
    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        let members = [
            Member { name: "data", is_empty_by_default: true },
            Member { name: "binaryData", is_empty_by_default: false },
        ];
        errors.extend(data::validate_immutable(object, old, &members, context.empty_fields));
        errors.extend(validate(object));
        errors
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = rules::metadata(object, true);
    let binary = object.map_at("binaryData");
    let (path, binary_path) = (FieldPath::new("data"), FieldPath::new("binaryData"));
    let mut size = 0;
    for (key, value) in object.map_at("data") {
        errors.extend(data::validate_key(key, &path));
        if binary.contains_key(key) {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(&path.key(key), key.as_str(), detail));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in binary {
        errors.extend(data::validate_key(key, &binary_path));
        size += data::decoded_len(value);
    }
    if size > MAX_SIZE {
        // As in the reference, the path is that of an unnamed field and prints as `[]`.
        errors.push(FieldError::too_long(&FieldPath::new("[]"), MAX_SIZE));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn keys_and_sizes_are_checked() {
        let check = |members: Value, messages: &[&str]| {
            let mut object = json!({"metadata": {"name": "a", "namespace": "n"}});
            object.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let errors: Vec<String> = validate(&object).iter().map(ToString::to_string).collect();
            assert_eq!(errors, messages);
        };
        let text = "x".repeat(MAX_SIZE);
        check(json!({"data": {"a": text}}), &[]);
        check(json!({"data": {"a": text, "b": "y"}}), &["[]: Too long: may not be more than 1048576 bytes"]);
        check(
            json!({"data": {"a": "1"}, "binaryData": {"a": "AAEC"}}),
            &[r#"data[a]: Invalid value: "a": duplicate of key present in binaryData"#],
        );
        check(
            json!({"binaryData": {"..": "AAEC"}}),
            &[r#"binaryData[..]: Invalid value: "..": must not be '..'"#],
        );
    }
}
