//! Merges a configuration as server-side apply does, without ownership: for mutating admission policies
//! (<https://kep.k8s.io/3962>).

use super::{
    atom::{Atom, Scalar, Shape},
    merge::merge,
    validate::{Faults, describe, restored, validate, validate_admitted, with_go_numbers},
};
use crate::{Value, codec::json, field_path::push_name};
use pintle_schema::SchemaRef;
use std::fmt::Write as _;

/// The maximum number of atomic fields that an error names.
const MAX_ATOMICS: usize = 100;
/// The maximum number of faults, beyond which nulls are not collected.
const MAX_NULLS: usize = 100;

/// The reason why a configuration cannot be merged, in the words of the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigurationError {
    /// The configuration or the object does not fit the schema, or the configuration sets a list or map that is merged as a whole, since other
    /// authors' items would be lost.
    Refused(String),
    /// The merged object does not decode.
    Undecodable(String),
}

/// Returns the object with the fields of a configuration, before defaulting. Both have the type of the schema.
///
/// # Errors
/// [`ConfigurationError`].
pub fn merge_configuration(
    object: &Value,
    mut config: Value,
    schema: SchemaRef<'_>,
) -> Result<Value, ConfigurationError> {
    with_go_numbers(&mut config);
    let shape = Shape::of(schema);
    let mut faults = validate(&config, shape);
    find_nulls(&config, shape, &mut String::new(), &mut faults);
    if !faults.is_empty() {
        let why = format!("failed to convert patch object to typed object: {}", describe(&faults));
        return Err(ConfigurationError::Refused(why));
    }
    let mut atomics = Vec::new();
    find_atomics(&config, shape, &mut String::new(), &mut atomics);
    if !atomics.is_empty() {
        let atomics = atomics.join(", ");
        return Err(ConfigurationError::Refused(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        )));
    }
    // Built-in types have no other fields, and no values of other types.
    let faults = if schema.is_structural() { validate_admitted(object, shape) } else { Faults::new() };
    if !faults.is_empty() {
        let why = format!("failed to convert original object to typed object: {}", describe(&faults));
        return Err(ConfigurationError::Refused(why));
    }
    let mut merged = json::to_value(object, schema);
    merge(&mut merged, &config, schema);
    restored(merged, &config, schema).map(|decoded| decoded.value).map_err(ConfigurationError::Undecodable)
}

/// Collects the null values. In expressions null is a value of its own, which has the wrong type for every field.
fn find_nulls(value: &Value, shape: Shape<'_>, path: &mut String, faults: &mut Faults) {
    if faults.len() >= MAX_NULLS {
        return;
    }
    match (shape.atom(Some(value)), value) {
        (Atom::Map(members), Value::Object(object)) => {
            for (name, value) in object {
                let Some((shape, _)) = members.member(name) else { continue };
                let length = path.len();
                path.push('.');
                push_name(path, name);
                find_nulls(value, shape, path, faults);
                path.truncate(length);
            }
        }
        (Atom::List(items), Value::Array(values)) => {
            for (at, value) in values.iter().enumerate() {
                let length = path.len();
                // Writing to a string cannot fail.
                let _ = write!(path, "[{at}]");
                find_nulls(value, items.item(), path, faults);
                path.truncate(length);
            }
        }
        (atom, Value::Null) => {
            let expected = match atom {
                Atom::Map(_) => "map, got &{NULL_VALUE}",
                Atom::List(_) => "list, got &{NULL_VALUE}",
                Atom::Scalar(Scalar::Numeric) => "numeric (int or float), got structpb.NullValue",
                Atom::Scalar(Scalar::String) => "string, got &value.valueUnstructured{Value:0}",
                Atom::Scalar(Scalar::Boolean) => "boolean, got &{NULL_VALUE}",
                Atom::Scalar(Scalar::Any) => "any scalar, got &{NULL_VALUE}",
            };
            faults.push((path.clone(), format!("expected {expected}")));
        }
        _ => {}
    }
}

/// Collects the paths of the values that are merged as a whole. Of maps only declared fields are visited.
fn find_atomics(value: &Value, shape: Shape<'_>, path: &mut String, atomics: &mut Vec<String>) {
    if atomics.len() >= MAX_ATOMICS {
        return;
    }
    match (shape.atom(Some(value)), value) {
        (Atom::Map(members), Value::Object(object)) => {
            if members.atomic {
                atomics.push(path.clone());
            }
            for (name, value) in object {
                let Some((shape, true)) = members.member(name) else { continue };
                let length = path.len();
                path.push('.');
                push_name(path, name);
                find_atomics(value, shape, path, atomics);
                path.truncate(length);
            }
        }
        (Atom::List(items), Value::Array(values)) => {
            if items.is_atomic() {
                atomics.push(path.clone());
            }
            for (at, value) in values.iter().enumerate() {
                let length = path.len();
                // Writing to a string cannot fail.
                let _ = write!(path, "[{at}]");
                find_atomics(value, items.item(), path, atomics);
                path.truncate(length);
            }
        }
        (Atom::Scalar(_) | Atom::Map(_) | Atom::List(_), _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_schema::Schema;
    use pintle_tree::json;

    fn pod() -> SchemaRef<'static> {
        Schema::builtin().by_kind("", "v1", "Pod").expect("a built-in kind")
    }

    #[test]
    fn fields_are_merged_by_their_type() {
        let object = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
            {"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "Z", "value": "z"}]},
        ]}});
        let config = json!({"metadata": {"labels": {"n": "v"}}, "spec": {"containers": [
            {"name": "c", "env": [{"name": "A", "value": "2"}]}, {"name": "side", "image": "s"},
        ]}});
        let merged = merge_configuration(&object, config, pod()).expect("a configuration");
        assert_eq!(
            merged,
            json!({"metadata": {"labels": {"a": "b", "n": "v"}}, "spec": {"containers": [
                {"name": "c", "image": "i", "env": [{"name": "A", "value": "2"}, {"name": "Z", "value": "z"}]},
                {"name": "side", "image": "s"},
            ]}})
        );
    }

    #[test]
    fn integers_or_texts_have_no_type_and_quantities_are_scalars() {
        let faults = |spec: Value| {
            let config = json!({"spec": spec});
            validate(&config, Shape::of(pod())).into_iter().map(|(path, _)| path).collect::<Vec<_>>()
        };
        let probe = |port: Value| json!({"containers": [{"name": "c", "livenessProbe": {"httpGet": {"port": port}}}]});
        assert!(faults(probe(json!({}))).is_empty() && faults(probe(json!([1]))).is_empty());
        assert_eq!(faults(json!({"overhead": {"cpu": {}}})), [".spec.overhead.cpu"]);
    }

    fn refusal(config: Value) -> String {
        match merge_configuration(&json!({}), config, pod()) {
            Err(ConfigurationError::Refused(why)) => why,
            other => panic!("no refusal: {other:?}"),
        }
    }

    #[test]
    fn configurations_fit_their_type() {
        let error = refusal;
        assert_eq!(
            error(json!({"bogus": "x"})),
            "failed to convert patch object to typed object: .bogus: field not declared in schema"
        );
        assert_eq!(
            error(json!({"spec": {"terminationGracePeriodSeconds": "5"}})),
            "failed to convert patch object to typed object: .spec.terminationGracePeriodSeconds: expected numeric \
             (int or float), got string"
        );
        assert_eq!(
            error(json!({"spec": {"containers": null}})),
            "failed to convert patch object to typed object: .spec.containers: expected list, got &{NULL_VALUE}"
        );
        assert_eq!(
            error(json!({"metadata": {"labels": {"x": 5}}})),
            "failed to convert patch object to typed object: .metadata.labels.x: expected string, got \
             &value.valueUnstructured{Value:5}"
        );
    }

    #[test]
    fn values_that_are_merged_as_a_whole_may_not_be_set() {
        let refused = |config: Value| {
            let error = refusal(config);
            error.rsplit(": ").next().unwrap_or_default().to_owned()
        };
        assert_eq!(
            refused(json!({"spec": {"containers": [{"name": "a"}, {"name": "c", "command": ["x"]}]}})),
            ".spec.containers[1].command"
        );
        assert_eq!(refused(json!({"spec": {"tolerations": []}})), ".spec.tolerations");
        assert_eq!(refused(json!({"spec": {"nodeSelector": {"a": "b"}}})), ".spec.nodeSelector");
    }
}
