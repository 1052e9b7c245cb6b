//! Validates tolerations of taints
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>).

use super::PodValidationOptions;
use crate::embedded_json::{GoStruct, GoType};
use crate::field_checks::{invalid_each, parse_int64};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::validation::{is_decimal_integer, is_valid_label_value, validate_label_name};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::HashSet;

/// The Go type of a toleration in an annotation.
pub(super) const GO_STRUCT: GoStruct = GoStruct {
    name: "Toleration",
    fields: &[
        ("Key", GoType::String("string")),
        ("Operator", GoType::String("core.TolerationOperator")),
        ("Value", GoType::String("string")),
        ("Effect", GoType::String("core.TaintEffect")),
        ("TolerationSeconds", GoType::Int64),
    ],
};

/// Validates `tolerations`.
pub(crate) fn validate(tolerations: &[Value], options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, toleration) in tolerations.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        errors.extend(validate_one(toleration, options, &path.index(index)));
    }
    errors
}

fn validate_one(toleration: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    let text = |field: &str| toleration.str_at(field);
    let (key, operator, value, effect) = (text("key"), text("operator"), text("value"), text("effect"));
    let (operator_path, effect_path) = (path.child("operator"), path.child("effect"));
    let mut errors = ErrorList::new();
    if !key.is_empty() {
        errors.extend(validate_label_name(key, &path.child("key")));
    } else if operator != "Exists" {
        let detail =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&operator_path, operator, detail).of_named_type());
    }
    if toleration.at("tolerationSeconds").is_some() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&effect_path, effect, detail).of_named_type());
    }
    match operator {
        "" | "Equal" => {
            let messages = is_valid_label_value(value);
            if !messages.is_empty() {
                errors.push(FieldError::invalid(&operator_path, value, messages.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&operator_path, value, detail));
        }
        "Exists" => {}
        "Lt" | "Gt" if options.allow_toleration_comparison => {
            let path = path.child("value");
            errors.extend(invalid_each(&path, value, is_decimal_integer(value)));
            errors.extend(parse_int64(value).err().map(|why| FieldError::invalid(&path, value, why)));
        }
        "Lt" | "Gt" => {
            let operators = ["Equal", "Exists", "Lt", "Gt"];
            errors.push(FieldError::not_supported(&operator_path, operator, &operators));
        }
        _ => errors.push(FieldError::not_supported(&operator_path, operator, &["Equal", "Exists"])),
    }
    if !effect.is_empty() {
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.extend(crate::field_checks::supported(effect, &effects, &effect_path));
    }
    errors
}

/// Validates an update of tolerations: they may be added, and their seconds may change.
pub(crate) fn validate_only_added(
    new: &[Value],
    old: &[Value],
    options: &PodValidationOptions,
    path: &FieldPath,
) -> ErrorList {
    const FIELDS: [&str; 4] = ["key", "operator", "value", "effect"];
    let identity = |toleration| FIELDS.map(|field| Value::str_at(toleration, field));
    let kept: HashSet<_> = new.iter().map(identity).collect();
    if !old.iter().all(|old| kept.contains(&identity(old))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        return vec![FieldError::forbidden(path, detail)];
    }
    validate(new, options, path)
}
