//! Validates object metadata.
//!
//! The generic registry checks every object's metadata with [`validate_object_meta_accessor`] and
//! [`validate_object_meta_accessor_update`]; built-in kinds check it again with [`validate_object_meta`] and
//! [`validate_object_meta_update`], so many errors occur twice on update.

use super::formats::validate_nonnegative_field;
use super::labels::{is_qualified_name, validate_annotations, validate_labels};
use super::names::name_is_dns_label;
use crate::meta::ObjectMeta;
use crate::options::validate_field_manager;
use crate::{ErrorList, FieldError, FieldPath, GroupVersion, Map, Value, ValueExt};
use std::collections::HashSet;

/// The error for a change of an immutable field.
pub const FIELD_IMMUTABLE_ERROR: &str = "field is immutable";
/// The finalizer that makes the garbage collector orphan an object's dependents.
pub const FINALIZER_ORPHAN_DEPENDENTS: &str = "orphan";
/// The finalizer that makes the garbage collector delete an object's dependents first.
pub const FINALIZER_DELETE_DEPENDENTS: &str = "foregroundDeletion";

const MAX_SUBRESOURCE_NAME_LENGTH: usize = 256;

/// Validates the metadata of a new built-in object. The name must already be generated.
pub fn validate_object_meta(
    object: &Value,
    namespaced: bool,
    name_fn: impl Fn(&str, bool) -> Vec<String>,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = validate_object_meta_accessor(object, namespaced, name_fn, path);
    errors.extend(validate_kube_finalizers(object, path));
    errors
}

fn validate_kube_finalizers(object: &Value, path: &FieldPath) -> ErrorList {
    let path = path.child("finalizers");
    let finalizers = object.finalizers().into_iter().enumerate();
    finalizers.flat_map(|(index, name)| validate_kube_finalizer_name(name, &path.index(index))).collect()
}

/// Validates the metadata of a new object of any kind, including custom ones. The name must already be generated.
pub fn validate_object_meta_accessor(
    object: &Value,
    namespaced: bool,
    name_fn: impl Fn(&str, bool) -> Vec<String>,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let generate_name = object.str_at("metadata.generateName");
    if !generate_name.is_empty() {
        let path = path.child("generateName");
        for message in name_fn(generate_name, true) {
            errors.push(FieldError::invalid(&path, generate_name, message));
        }
    }
    let name_path = path.child("name");
    if object.name().is_empty() {
        errors.push(FieldError::required(&name_path, "name or generateName is required"));
    } else {
        for message in name_fn(object.name(), false) {
            errors.push(FieldError::invalid(&name_path, object.name(), message));
        }
    }
    let namespace = object.namespace();
    let namespace_path = path.child("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(&namespace_path, "")),
        (true, false) => {
            for message in name_is_dns_label(namespace, false) {
                errors.push(FieldError::invalid(&namespace_path, namespace, message));
            }
        }
        (false, false) => errors.push(FieldError::forbidden(&namespace_path, "not allowed on this type")),
        (false, true) => {}
    }
    errors.extend(validate_nonnegative_field(object.generation(), &path.child("generation")));
    errors.extend(validate_labels(object.map_at("metadata.labels"), &path.child("labels")));
    errors.extend(validate_annotations(object.map_at("metadata.annotations"), &path.child("annotations")));
    let owner_references = object.items_at("metadata.ownerReferences");
    errors.extend(validate_owner_references(owner_references, &path.child("ownerReferences")));
    errors.extend(validate_finalizers(&object.finalizers(), &path.child("finalizers")));
    let managed_fields = object.items_at("metadata.managedFields");
    errors.extend(validate_managed_fields(managed_fields, &path.child("managedFields")));
    errors
}

/// Validates the metadata of an updated built-in object against the stored object.
pub fn validate_object_meta_update(new: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_object_meta_accessor_update(new, old, path);
    errors.extend(validate_kube_finalizers(new, path));
    errors
}

/// Validates the metadata of an updated object of any kind, including custom ones, against the stored object.
pub fn validate_object_meta_accessor_update(new: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.is_terminating() {
        let finalizers = path.child("finalizers");
        errors.extend(validate_no_new_finalizers(&new.finalizers(), &old.finalizers(), &finalizers));
    }
    if new.resource_version().is_empty() {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid(&path.child("resourceVersion"), "", detail));
    }
    if new.generation() < old.generation() {
        let path = path.child("generation");
        errors.push(FieldError::invalid(&path, new.generation(), "must not be decremented"));
    }
    let metadata = |object| Value::map_at(object, "metadata");
    let (new_metadata, old_metadata) = (metadata(new), metadata(old));
    for name in ["name", "namespace", "uid"] {
        let text =
            |metadata: &Map| Value::from(metadata.get(name).and_then(Value::as_str).unwrap_or_default());
        if new_metadata.get(name) != old_metadata.get(name) {
            let (new, old) = (text(new_metadata), text(old_metadata));
            let changed = validate_immutable_field(&new, &old, &path.child(name));
            errors.extend(if name == "uid" { changed } else { plain(changed) });
        }
    }
    for name in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new, old) = (new_metadata.get(name), old_metadata.get(name));
        if new != old {
            let (new, old) = (new.unwrap_or(&Value::Null), old.unwrap_or(&Value::Null));
            errors.extend(validate_immutable_field(new, old, &path.child(name)));
        }
    }
    errors.extend(validate_labels(new.map_at("metadata.labels"), &path.child("labels")));
    errors.extend(validate_annotations(new.map_at("metadata.annotations"), &path.child("annotations")));
    let owner_references = new.items_at("metadata.ownerReferences");
    errors.extend(validate_owner_references(owner_references, &path.child("ownerReferences")));
    let managed_fields = new.items_at("metadata.managedFields");
    errors.extend(validate_managed_fields(managed_fields, &path.child("managedFields")));
    errors
}

/// Validates an immutable field. Absent, null and empty are equal, as in Go's semantic equality. A text is shown as one of
/// a pointer or a named type; for those of `string` there is [`validate_immutable_text`].
pub fn validate_immutable_field(new: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    if semantically_equal(new, old) {
        return ErrorList::new();
    }
    vec![FieldError::invalid(path, new.clone(), FIELD_IMMUTABLE_ERROR).of_named_type()]
}

/// Validates an immutable text of an object, which is at `path`. An absent text is empty, as in Go's structs.
pub fn validate_immutable_text(new: &Value, old: &Value, path: &FieldPath) -> ErrorList {
    let text = |object: &Value| Value::from(object.str_at(path.as_str()));
    plain(validate_immutable_field(&text(new), &text(old), path))
}

/// Errors that show texts of the type `string`.
fn plain(errors: ErrorList) -> ErrorList {
    errors.into_iter().map(FieldError::of_plain_text).collect()
}

/// Whether two values are equal, where absent, null, and empty lists do not differ. In a canonical tree an empty object is
/// a struct behind a pointer, which differs from none: `securityContext: {}` is not the same as no `securityContext`.
pub fn semantically_equal(one: &Value, other: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            // Both are sorted by name.
            let mut rest = other.iter().peekable();
            let have_equals = one.iter().all(|(name, value)| {
                while let Some((_, value)) = rest.next_if(|(other, _)| *other < name) {
                    if !is_empty(value) {
                        return false;
                    }
                }
                match rest.next_if(|(other, _)| *other == name) {
                    Some((_, other)) => semantically_equal(value, other),
                    None => is_empty(value),
                }
            });
            have_equals && rest.all(|(_, value)| is_empty(value))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| semantically_equal(one, other))
        }
        _ => one == other || (is_empty(one) && is_empty(other)),
    }
}

/// The maximum number of errors for further controllers of an object.
const MAX_MORE_CONTROLLERS: usize = 16;

/// Validates all owner references of an object; at most one of them may be the controller.
pub fn validate_owner_references(references: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut first_controller = None;
    let mut more_controllers = 0;
    for reference in references {
        errors.extend(validate_owner_reference(reference, path));
        if !reference.bool_at("controller") {
            continue;
        }
        let controller = format!("{}/{}", reference.str_at("kind"), reference.str_at("name"));
        match &first_controller {
            None => first_controller = Some(controller),
            // Each such error contains all references.
            Some(_) if more_controllers >= MAX_MORE_CONTROLLERS => {}
            Some(first) => {
                more_controllers += 1;
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                     {controller}"
                );
                let shown: Vec<String> = references.iter().map(show_owner_reference).collect();
                errors.push(
                    FieldError::invalid(path, Value::Array(references.to_vec()), detail)
                        .shown_as(format!("[{}]", shown.join(","))),
                );
            }
        }
    }
    errors
}

fn validate_owner_reference(reference: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let api_version = reference.str_at("apiVersion");
    let group_version = GroupVersion::parse(api_version).unwrap_or_default();
    if group_version.version.is_empty() {
        let detail = "version must not be empty";
        errors.push(FieldError::invalid(&path.child("apiVersion"), api_version, detail));
    }
    for name in ["kind", "name", "uid"] {
        if reference.str_at(name).is_empty() {
            errors.push(FieldError::invalid(&path.child(name), "", "must not be empty"));
        }
    }
    // Events are numerous and expire by themselves, so the garbage collector does not track them.
    if group_version == GroupVersion::new("", "v1") && reference.str_at("kind") == "Event" {
        errors.push(
            FieldError::invalid(path, reference.clone(), "/v1, Kind=Event is disallowed from being an owner")
                .shown_as(show_owner_reference(reference)),
        );
    }
    errors
}

/// Formats the members in the order in which the API declares them.
fn show_owner_reference(reference: &Value) -> String {
    let always =
        ["apiVersion", "kind", "name", "uid"].map(|name| (name, Some(Value::from(reference.str_at(name)))));
    let optional = ["controller", "blockOwnerDeletion"].map(|name| (name, reference.field(name).cloned()));
    let members: Vec<String> = always
        .into_iter()
        .chain(optional)
        .filter_map(|(name, value)| Some(format!("{}:{}", Value::from(name), value?)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Validates the finalizers of any object: qualified names, and at most one of the two propagation finalizers.
pub fn validate_finalizers(finalizers: &[&str], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for finalizer in finalizers {
        errors.extend(validate_finalizer_name(finalizer, path));
    }
    if finalizers.contains(&FINALIZER_ORPHAN_DEPENDENTS) && finalizers.contains(&FINALIZER_DELETE_DEPENDENTS)
    {
        let detail = format!(
            "finalizer {FINALIZER_ORPHAN_DEPENDENTS} and {FINALIZER_DELETE_DEPENDENTS} cannot be both set"
        );
        errors.push(FieldError::invalid(path, finalizers.to_vec(), detail));
    }
    errors
}

/// Validates one finalizer: a qualified name.
pub fn validate_finalizer_name(name: &str, path: &FieldPath) -> ErrorList {
    is_qualified_name(name).into_iter().map(|message| FieldError::invalid(path, name, message)).collect()
}

/// Validates one finalizer of a built-in object: a standard one or one with a domain.
pub fn validate_kube_finalizer_name(name: &str, path: &FieldPath) -> ErrorList {
    let standard = ["kubernetes", FINALIZER_ORPHAN_DEPENDENTS, FINALIZER_DELETE_DEPENDENTS];
    if name.contains('/') || standard.contains(&name) {
        return ErrorList::new();
    }
    let detail = "name is neither a standard finalizer name nor is it fully qualified";
    vec![FieldError::invalid(path, name, detail)]
}

/// Rejects new finalizers on an object that is being deleted.
pub fn validate_no_new_finalizers(new: &[&str], old: &[&str], path: &FieldPath) -> ErrorList {
    let old: HashSet<&str> = old.iter().copied().collect();
    let mut added: Vec<&str> = new.iter().copied().filter(|finalizer| !old.contains(finalizer)).collect();
    if added.is_empty() {
        return ErrorList::new();
    }
    added.sort_unstable();
    added.dedup();
    let added: Vec<String> = added.into_iter().map(pintle_go_forms::quote).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    vec![FieldError::forbidden(path, detail)]
}

/// Validates the entries of `managedFields`.
pub fn validate_managed_fields(entries: &[Value], path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = path.index(index);
        let operation = entry.str_at("operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&path.child("operation"), operation, detail).of_named_type());
        }
        let fields_type = entry.str_at("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_field_manager(entry.str_at("manager"), &path.child("manager")));
        if entry.str_at("subresource").len() > MAX_SUBRESOURCE_NAME_LENGTH {
            errors.push(FieldError::too_long(&path.child("subresource"), MAX_SUBRESOURCE_NAME_LENGTH));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::name_is_dns_subdomain;
    use pintle_tree::json;

    #[test]
    fn immutable_texts_are_shown_by_their_types() {
        let object =
            |name: &str, uid: &str| json!({"metadata": {"name": name, "uid": uid, "resourceVersion": "1"}});
        let (new, old) = (object("<", "<"), object("a", "u"));
        let errors = validate_object_meta_update(&new, &old, &FieldPath::new("metadata"));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                r#"metadata.name: Invalid value: "<": field is immutable"#,
                r#"metadata.uid: Invalid value: "\u003c": field is immutable"#
            ]
        );
    }

    fn texts(errors: ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn new_metadata_is_right_or_says_why_not() {
        let rows = [
            (json!({"name": "a", "namespace": "n"}), vec![]),
            (
                json!({}),
                vec![
                    "metadata.name: Required value: name or generateName is required",
                    "metadata.namespace: Required value",
                ],
            ),
            (
                json!({"name": "a", "namespace": "n", "generation": -1, "finalizers": ["q", "kubernetes"]}),
                vec![
                    "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
                    "metadata.finalizers[0]: Invalid value: \"q\": name is neither a standard finalizer name nor is it \
                     fully qualified",
                ],
            ),
            (
                json!({"name": "a", "namespace": "n", "finalizers": ["orphan", "foregroundDeletion"]}),
                vec![
                    r#"metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set"#,
                ],
            ),
            (
                json!({"name": "a", "namespace": "n", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u", "controller": true},
                    {"apiVersion": "a/b/c", "kind": "B", "name": "m", "uid": "", "controller": true},
                ]}),
                vec![
                    r#"metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"u","controller":true}: /v1, Kind=Event is disallowed from being an owner"#,
                    r#"metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty"#,
                    r#"metadata.ownerReferences.uid: Invalid value: "": must not be empty"#,
                    r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Event","name":"n","uid":"u","controller":true},{"apiVersion":"a/b/c","kind":"B","name":"m","uid":"","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Event/n and B/m"#,
                ],
            ),
            (
                json!({"name": "a", "namespace": "n", "managedFields": [
                    {"operation": "Put", "fieldsType": "V2", "manager": "a\u{7}"},
                ]}),
                vec![
                    r#"metadata.managedFields[0].operation: Invalid value: "Put": must be `Apply` or `Update`"#,
                    r#"metadata.managedFields[0].fieldsType: Invalid value: "V2": must be `FieldsV1`"#,
                    r#"metadata.managedFields[0].manager: Invalid value: "a\a": invalid character U+0007 (at position 1)"#,
                ],
            ),
        ];
        for (metadata, messages) in rows {
            let object = json!({"metadata": metadata});
            let errors =
                validate_object_meta(&object, true, name_is_dns_subdomain, &FieldPath::new("metadata"));
            assert_eq!(texts(errors), messages, "{object}");
        }
    }

    #[test]
    fn changed_metadata_is_right_or_says_why_not() {
        let old = json!({"metadata": {
            "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2024-01-01T00:00:00Z", "deletionTimestamp": "2024-01-02T00:00:00Z",
        }});
        let path = FieldPath::new("metadata");
        assert!(validate_object_meta_update(&old, &old, &path).is_empty());
        let new = json!({"metadata": {
            "name": "b", "namespace": "n", "generation": 1, "finalizers": ["b.c/d", "a.b/c"],
            "creationTimestamp": "2024-01-01T00:00:00Z",
        }});
        assert_eq!(
            texts(validate_object_meta_update(&new, &old, &path)),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found \
                 new finalizers []string{\"a.b/c\", \"b.c/d\"}",
                "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
                "metadata.generation: Invalid value: 1: must not be decremented",
                "metadata.name: Invalid value: \"b\": field is immutable",
                "metadata.uid: Invalid value: \"\": field is immutable",
                "metadata.deletionTimestamp: Invalid value: null: field is immutable",
            ]
        );
        let mut new = old.clone();
        new.set("metadata.finalizers", json!(["nope"]));
        let live = json!({"metadata": {"name": "a"}});
        let names = |errors: ErrorList| {
            errors.iter().filter(|error| error.field.as_str() == "metadata.finalizers[0]").count()
        };
        assert_eq!(names(validate_object_meta_update(&new, &live, &path)), 1);
        assert_eq!(names(validate_object_meta_accessor_update(&new, &live, &path)), 0);
    }

    #[test]
    fn empty_equals_absent() {
        let rows = [
            (json!(null), json!([]), true),
            (json!({"a": []}), json!({}), true),
            (json!({"a": null, "b": 1}), json!({"b": 1}), true),
            (json!({"a": 0}), json!({}), false),
            (json!([1]), json!([]), false),
            (json!({"a": {"b": []}}), json!({"a": {}}), true),
            (json!({"a": {}}), json!({}), false),
            (json!({}), json!(null), false),
            (json!({"a": null, "c": 1, "d": []}), json!({"b": [], "c": 1, "e": null}), true),
            (json!({"a": 1, "c": 1}), json!({"b": 1, "c": 1}), false),
        ];
        for (one, other, equal) in rows {
            assert_eq!(semantically_equal(&one, &other), equal, "{one} {other}");
            assert_eq!(semantically_equal(&other, &one), equal, "{one} {other}");
        }
    }
}
