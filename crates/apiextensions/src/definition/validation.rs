//! Validates definitions; errors have the order of the reference.

use super::check::Check;
use super::columns::validate_column;
use super::conversion_rules::validate_conversion;
use super::names::validate_names;
use super::options::ValidationOptions;
use super::path::Path;
use super::schema_validation::validate_validation;
use super::selectable_fields::validate_selectable_fields;
use super::spec::{Parts, Spec, Version};
use super::subresources::validate_subresources;
use super::{api_approval, deprecation, go_json, structural_rules};
use crate::columns::MAX_COLUMNS;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    error_list::is_enough,
    validation::{
        is_dns1035_label, is_dns1123_subdomain, name_is_dns_subdomain, validate_immutable_text,
        validate_object_meta_accessor, validate_object_meta_accessor_update,
    },
};
use std::collections::{HashMap, HashSet};

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];

/// The maximum number of versions of a definition. Each served one has an API service.
const MAX_VERSIONS: usize = 1000;

fn too_many_versions(definition: &Value) -> Option<FieldError> {
    let count = definition.items_at("spec.versions").len();
    (count > MAX_VERSIONS)
        .then(|| FieldError::too_many(&FieldPath::new("spec.versions"), count, MAX_VERSIONS))
}

/// Validates a new definition.
pub(super) fn validate(definition: &Value) -> ErrorList {
    if let Some(error) = too_many_versions(definition) {
        return vec![error];
    }
    let name = |name: &str, prefix: bool| {
        let mut wrong = name_is_dns_subdomain(name, prefix);
        let required =
            format!("{}.{}", definition.str_at("spec.names.plural"), definition.str_at("spec.group"));
        if name != required {
            wrong.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        wrong
    };
    let options = ValidationOptions::for_create();
    let spec = Spec::of(definition);
    let mut errors = validate_object_meta_accessor(definition, false, name, &FieldPath::new("metadata"));
    validate_spec(&spec, &options, &mut errors);
    validate_rest(definition, &spec, None, &mut errors);
    errors
}

/// Validates an update of a definition.
pub(super) fn validate_update(definition: &Value, old: &Value) -> ErrorList {
    if let Some(error) = too_many_versions(definition) {
        return vec![error];
    }
    let options = ValidationOptions::for_update(definition, old);
    let spec = Spec::of(definition);
    let mut errors = validate_object_meta_accessor_update(definition, old, &FieldPath::new("metadata"));
    validate_spec(&spec, &options, &mut errors);
    let mut immutable = |path: &str| {
        let changed = validate_immutable_text(definition, old, &FieldPath::new(path)).into_iter();
        errors.extend(changed.map(|error| match path {
            "spec.scope" => error.of_named_type(),
            _ => error,
        }));
    };
    if options.require_immutable_names {
        // Stored objects depend on these fields.
        immutable("spec.scope");
        immutable("spec.names.kind");
    }
    immutable("spec.group");
    immutable("spec.names.plural");
    validate_rest(definition, &spec, Some(old), &mut errors);
    errors
}

/// Validates an update of a definition's status.
pub(super) fn validate_status_update(definition: &Value, old: &Value) -> ErrorList {
    let mut errors = validate_object_meta_accessor_update(definition, old, &FieldPath::new("metadata"));
    validate_status(definition, &mut errors);
    errors
}

/// Validates everything except metadata and spec.
fn validate_rest(definition: &Value, spec: &Spec<'_>, old: Option<&Value>, errors: &mut ErrorList) {
    validate_status(definition, errors);
    validate_stored_versions(definition, spec, errors);
    validate_approval(definition, old, errors);
    let did_preserve = old.is_some_and(|old| old.bool_at("spec.preserveUnknownFields"));
    if spec.preserves_unknown_fields() && !did_preserve {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&FieldPath::new("spec.preserveUnknownFields"), true, detail));
    }
}

fn validate_status(definition: &Value, errors: &mut ErrorList) {
    let status = Path::new("status");
    if let Some(names) = definition.at("status.acceptedNames") {
        validate_names(names, &status.child("acceptedNames"), errors);
    }
}

/// Validates `storedVersions`: stored objects may have any of these versions until the version is removed from the
/// list.
fn validate_stored_versions(definition: &Value, spec: &Spec<'_>, errors: &mut ErrorList) {
    let path = FieldPath::new("status.storedVersions");
    let stored = definition.items_at("status.storedVersions");
    if stored.is_empty() {
        let value = definition.at("status.storedVersions").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path, value, "must have at least one stored version"));
        return;
    }
    let stored_names: HashSet<&str> = stored.iter().filter_map(Value::as_str).collect();
    let mut names = HashSet::with_capacity(spec.versions.len());
    for version in &spec.versions {
        let is_taken = !names.insert(version.name);
        if version.tree.bool_at("storage") && (is_taken || !stored_names.contains(version.name)) {
            let detail = format!("must have the storage version {}", version.name);
            errors.push(with_versions(&path, stored, detail));
            if is_enough(errors) {
                return;
            }
        }
    }
    let last: HashMap<&Value, usize> = stored.iter().enumerate().map(|(index, name)| (name, index)).collect();
    for (index, name) in stored.iter().enumerate() {
        let is_last = last.get(name) == Some(&index);
        let name = name.as_str().unwrap_or_default();
        if is_last && !names.contains(name) && !is_enough(errors) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                 {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(index), name, detail));
        }
    }
}

/// Each of many errors would show all versions, so their number is limited.
fn with_versions(path: &FieldPath, stored: &[Value], detail: String) -> FieldError {
    const MAX_SHOWN: usize = 64;
    let error = FieldError::invalid(path, Value::Null, detail);
    FieldError { bad_value: (stored.len() <= MAX_SHOWN).then(|| Value::from(stored)), ..error }
}

fn validate_approval(definition: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    use api_approval::{ANNOTATION, ApprovalState, approval};
    use pintle_machinery::meta::ObjectMeta;
    if !api_approval::is_protected_group(definition.str_at("spec.group")) {
        return;
    }
    let annotation = |definition: &Value| definition.annotation(ANNOTATION).unwrap_or_default().to_owned();
    let own = annotation(definition);
    let (state, reason) = approval(&own);
    if old.is_some_and(|old| approval(&annotation(old)).0 == state) {
        // An unchanged annotation is not checked.
        return;
    }
    let path = FieldPath::new("metadata.annotations").key(ANNOTATION);
    match state {
        ApprovalState::Approved | ApprovalState::Bypassed => {}
        ApprovalState::Missing => errors.push(FieldError::required(&path, reason)),
        ApprovalState::Invalid => errors.push(FieldError::invalid(&path, own, reason)),
    }
}

fn validate_spec(spec: &Spec<'_>, options: &ValidationOptions, errors: &mut ErrorList) {
    let path = Path::new("spec");
    validate_group_and_scope(spec, &path, errors);
    validate_presence_of_schemas(spec, options, &path, errors);
    let preserves = spec.preserves_unknown_fields();
    let has_defaults = spec.any_schema(|schema| schema.default.is_some());
    if has_defaults && preserves {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&path.child("preserveUnknownFields").field(), true, detail));
    }
    let needs_structure = !preserves
        || has_defaults
        || options.require_structural_schemas
        || spec.any_schema(|schema| {
            schema.embedded_resource
                || schema.preserve_unknown_fields.is_some()
                || schema.int_or_string
                || !schema.list_map_keys.is_empty()
                || schema.list_type.is_some()
                || !schema.validations.is_empty()
        });
    let check = Check::new(options, needs_structure);
    let has_own_subresources = spec.versions.iter().any(|version| version.own.subresources.is_some());
    // Of several versions with one name the first counts.
    let mut with_status: HashMap<&str, bool> = HashMap::new();
    for version in &spec.versions {
        with_status.entry(version.name).or_insert(version.own.has_status());
    }
    let versions_path = path.child("versions");
    for (index, version) in spec.versions.iter().enumerate() {
        if is_enough(errors) {
            break;
        }
        let path = versions_path.index(index);
        let wrong = is_dns1035_label(version.name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path.child("name").field(), version.name, wrong.join(",")));
        }
        let has_status = match has_own_subresources {
            false => spec.common.has_status(),
            true => with_status.get(version.name).is_some_and(|has_status| *has_status),
        };
        validate_version(version, has_status, &check, &path, errors);
    }
    validate_set_of_versions(spec, &path, errors);
    validate_presence_of_names(spec, &path, errors);
    let first = spec.versions.first().map_or("", |version| version.name);
    let has_status = spec.common.has_status() || spec.versions.iter().any(|version| version.own.has_status());
    if let Some(validation) = &spec.common.validation {
        validate_validation(validation, has_status, first, &check, &path.child("validation"), errors);
    }
    validate_parts(&spec.common, &path, errors);
    validate_common_selectable_fields(spec, options, &path, errors);
    if let Some(conversion) = spec.tree.at("conversion") {
        let path = path.child("conversion");
        let strategy = conversion.str_at("strategy");
        if strategy != "None" && preserves {
            let detail = "must be None if spec.preserveUnknownFields is true";
            let error = FieldError::invalid(&path.child("strategy").field(), strategy, detail);
            errors.push(go_json::as_json(error));
        }
        errors.extend(validate_conversion(conversion, &path, options));
    }
}

fn validate_group_and_scope(spec: &Spec<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let group = spec.tree.str_at("group");
    let group_path = path.child("group");
    let wrong = is_dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&group_path.field(), ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid(&group_path.field(), group, wrong.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(&group_path.field(), group, detail));
    }
    match spec.tree.str_at("scope") {
        "" => errors.push(FieldError::required(&path.child("scope").field(), "")),
        scope if SCOPES.contains(&scope) => {}
        other => errors
            .push(FieldError::not_supported(&path.child("scope").field(), other, &SCOPES).of_plain_text()),
    }
}

fn validate_presence_of_schemas(
    spec: &Spec<'_>,
    options: &ValidationOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if spec.common.schema().is_some() || !options.require_schemas && spec.preserves_unknown_fields() {
        return;
    }
    let path = path.child("versions");
    for (index, version) in spec.versions.iter().enumerate() {
        if version.own.schema().is_some() || !options.require_schemas && !version.tree.bool_at("served") {
            continue;
        }
        let path = path.index(index);
        let path = path.child("schema");
        let detail = if options.require_schemas { "" } else { "because otherwise all fields are pruned" };
        errors.push(FieldError::required(&path.child("openAPIV3Schema").field(), detail));
    }
}

fn validate_version(
    version: &Version<'_>,
    has_status: bool,
    check: &Check<'_>,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    deprecation::validate_deprecation(version.tree, path, errors);
    if let Some(validation) = &version.own.validation {
        validate_validation(validation, has_status, version.name, check, &path.child("schema"), errors);
    }
    validate_parts(&version.own, path, errors);
    let fields = version.own.selectable_fields;
    if fields.is_empty() {
        return;
    }
    let fields_path = path.child("selectableFields");
    match version.own.schema() {
        None => {
            let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
            errors.push(FieldError::invalid(&fields_path.field(), "", detail));
        }
        Some(schema) => {
            if let Some(error) = structural_rules::unreadable(schema) {
                errors.push(FieldError::invalid(&path.child("schema.openAPIV3Schema").field(), "", error));
            }
            let fields =
                validate_selectable_fields(fields, schema, &fields_path, version.name, check.options);
            errors.extend(fields);
        }
    }
}

fn validate_common_selectable_fields(
    spec: &Spec<'_>,
    options: &ValidationOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let fields = spec.common.selectable_fields;
    if fields.is_empty() {
        return;
    }
    let fields_path = path.child("selectableFields");
    if spec.common.validation.is_none() {
        let detail = "may only be set when validations.schema is included";
        errors.push(FieldError::invalid(&fields_path.field(), "", detail));
    } else if let Some(schema) = spec.common.schema() {
        if let Some(error) = structural_rules::unreadable(schema) {
            errors.push(FieldError::invalid(&path.child("schema.openAPIV3Schema").field(), "", error));
        }
        errors.extend(validate_selectable_fields(fields, schema, &fields_path, "", options));
    }
}

/// Validates subresources and columns.
fn validate_parts(parts: &Parts<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(subresources) = parts.subresources {
        validate_subresources(subresources, &path.child("subresources"), errors);
    }
    let path = path.child("additionalPrinterColumns");
    if parts.columns.len() > MAX_COLUMNS {
        errors.push(FieldError::too_many(&path.field(), parts.columns.len(), MAX_COLUMNS));
    }
    for (index, column) in parts.columns.iter().enumerate().take(MAX_COLUMNS) {
        validate_column(column, &path.index(index), errors);
    }
}

fn validate_set_of_versions(spec: &Spec<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let mut names: Vec<&str> = spec.versions.iter().map(|version| version.name).collect();
    names.sort_unstable();
    let mut wrong = |detail: &str| {
        let error = FieldError::invalid(&path.child("versions").field(), Value::Null, detail);
        errors.push(go_json::shown(error, go_json::bounded_versions(spec)));
    };
    if names.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
        wrong("must contain unique version names");
    }
    if spec.versions.iter().filter(|version| version.tree.bool_at("storage")).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
    let first = spec.versions.first().map_or("", |version| version.name);
    let wrong = is_dns1035_label(first);
    if !first.is_empty() && !wrong.is_empty() {
        errors.push(FieldError::invalid(&path.child("version").field(), first, wrong.join(",")));
    }
}

/// Validates the presence of names, which are required in the spec but not in the status.
fn validate_presence_of_names(spec: &Spec<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    static NOTHING: Value = Value::Null;
    let names = spec.tree.at("names").unwrap_or(&NOTHING);
    let path = path.child("names");
    for name in ["plural", "singular", "kind", "listKind"] {
        if names.str_at(name).is_empty() {
            errors.push(FieldError::required(&path.child(name).field(), ""));
        }
    }
    validate_names(names, &path, errors);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, MinorVersion, testing::override_gates};
    use pintle_machinery::json;

    /// A stored definition with one version of this schema.
    fn definition_of(schema: Value) -> Value {
        json!({
            "metadata": {"name": "as.example.com", "resourceVersion": "1"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"},
                "conversion": {"strategy": "None"},
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
            "status": {"storedVersions": ["v1"]},
        })
    }

    #[test]
    fn rules_keep_functions_that_new_ones_may_not_use() {
        let definition = |rule: &str, message: &str| {
            definition_of(json!({
                "type": "object",
                "x-kubernetes-validations": [{"rule": rule, "messageExpression": message}],
            }))
        };
        let (rule, message) = ("lists.range(1) == [0]", "['a'].reverse()[0]");
        let old = definition(rule, message);
        assert!(validate(&old).is_empty());
        let gates = FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33)));
        let _gates = override_gates(&gates);
        let rejected = |errors: ErrorList| {
            let field =
                |error: &FieldError| error.to_string().split(':').next().unwrap_or_default().to_owned();
            errors.iter().map(field).collect::<Vec<_>>()
        };
        let path = "spec.validation.openAPIV3Schema.x-kubernetes-validations[0]";
        assert_eq!(rejected(validate(&old)), [format!("{path}.rule")]);
        assert_eq!(rejected(validate(&definition("true", message))), [format!("{path}.messageExpression")]);
        assert_eq!(rejected(validate_update(&old, &old)), [""; 0]);
        let changed = definition("lists.range(2) == [0, 1]", message);
        assert_eq!(rejected(validate_update(&changed, &old)), [format!("{path}.rule")]);
    }

    #[test]
    fn optional_members_of_the_root_beside_a_status_are_set_when_empty() {
        let check = |members: Value, expected: &[&str]| {
            let mut schema = json!({"type": "object"});
            schema.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let mut definition = definition_of(schema);
            definition.at_mut("spec.versions").unwrap()[0].set("subresources", json!({"status": {}}));
            let mut errors = validate(&definition);
            errors.retain(|error| error.detail.contains("allowed at the root"));
            let shown: Vec<String> = errors.into_iter().filter_map(|error| error.shown_as).collect();
            assert_eq!(shown.len(), expected.len(), "{definition}");
            for (shown, expected) in shown.iter().zip(expected) {
                assert!(shown.contains(expected), "{shown}");
            }
        };
        check(json!({"required": [], "properties": {}}), &[]);
        check(json!({"enum": [], "properties": {}}), &[r#""Enum":[],"#]);
        check(json!({"allOf": [], "properties": {}}), &[r#""AllOf":[],"#]);
        check(json!({"nullable": true, "properties": {}}), &[r#""Properties":{},"#]);
        check(json!({"default": ""}), &[r#""Default":"","#]);
        check(json!({"default": false}), &[r#""Default":false,"#]);
        check(json!({"x-kubernetes-list-type": ""}), &[r#""XListType":"","#]);
    }

    #[test]
    fn a_type_that_does_not_exist_is_reported_beside_wrong_defaults_and_rules() {
        let definition = definition_of(json!({
            "type": "object",
            "properties": {
                "a": {"type": "text", "default": "x"},
                "b": {"type": "array", "items": {"type": "null"}, "default": [null, 1]},
                "c": {"type": "integer", "default": "x"},
            },
        }));
        let errors: Vec<String> = validate(&definition).iter().map(ToString::to_string).collect();
        let at = |rest: &str| format!("spec.validation.openAPIV3Schema.properties{rest}");
        const SUPPORTED: &str =
            r#"supported values: "array", "boolean", "integer", "number", "object", "string""#;
        assert_eq!(
            errors,
            [
                at(r#"[a].default: Invalid value: "string":  in body must be of type text: "string""#),
                at(
                    r#"[b].default.[1]: Invalid value: "integer": [1] in body must be of type null: "integer""#
                ),
                at(r#"[c].default: Invalid value: "string":  in body must be of type integer: "string""#),
                at(&format!(r#"[a].type: Unsupported value: "text": {SUPPORTED}"#)),
                at(&format!(r#"[b].items.type: Unsupported value: "null": {SUPPORTED}"#)),
                at("[b].items.type: Forbidden: type cannot be set to null, use nullable as an alternative"),
            ]
        );
        let definition = definition_of(json!({
            "type": "object",
            "properties": {"a": {
                "type": "text",
                "properties": {"b": {"type": "object", "x-kubernetes-validations": [{"rule": "self.c == 1"}]}},
            }},
        }));
        let errors: Vec<String> = validate(&definition).iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[1].contains("undefined field 'c'"), "{errors:?}");
    }

    #[test]
    fn a_type_that_does_not_exist_is_reported_once_beside_rules() {
        let definition = definition_of(json!({
            "type": "object",
            "properties": {"spec": {
                "type": "object",
                "properties": {"a": {"type": "::1"}},
                "x-kubernetes-validations": [{"rule": "true"}],
            }},
        }));
        let errors: Vec<String> = validate(&definition).iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].type: Unsupported value: \"::1\": \
                 supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\""
            ]
        );
    }
}
