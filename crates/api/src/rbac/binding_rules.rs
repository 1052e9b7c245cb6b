//! Rules that role bindings and cluster role bindings share.

use super::metadata;
use crate::{field_checks, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{name_is_dns_subdomain, validate_path_segment_name},
};

const GROUP_NAME: &str = "rbac.authorization.k8s.io";

/// Defaults the API groups of roles, users and groups to this group; service accounts have the core group.
pub(super) fn set_defaults(binding: &mut Value) {
    if binding.str_at("roleRef.apiGroup").is_empty() {
        binding.set("roleRef.apiGroup", GROUP_NAME);
    }
    for subject in binding.items_at_mut("subjects") {
        let of_this_group = matches!(subject.str_at("kind"), "User" | "Group");
        if of_this_group && subject.str_at("apiGroup").is_empty() {
            subject.set("apiGroup", GROUP_NAME);
        }
    }
}

/// Validates a new binding, which may refer to roles of these kinds.
pub(super) fn validate(binding: &Value, namespaced: bool, role_kinds: &[&str]) -> ErrorList {
    let mut errors = metadata::validate(binding, namespaced);
    let path = FieldPath::new("roleRef");
    let group = binding.str_at("roleRef.apiGroup");
    errors.extend(field_checks::supported_plain(group, &[GROUP_NAME], &path.child("apiGroup")));
    let kind = binding.str_at("roleRef.kind");
    errors.extend(field_checks::supported_plain(kind, role_kinds, &path.child("kind")));
    let name = binding.str_at("roleRef.name");
    errors.extend(match name.is_empty() {
        true => vec![FieldError::required(&path.child("name"), "")],
        false => {
            field_checks::invalid_each(&path.child("name"), name, validate_path_segment_name(name, false))
        }
    });
    let path = FieldPath::new("subjects");
    for (index, subject) in binding.items_at("subjects").iter().enumerate() {
        errors.extend(validate_subject(subject, namespaced, &path.index(index)));
    }
    errors
}

/// Validates an update: the role of a binding is immutable.
pub(super) fn validate_update(
    binding: &Value,
    old: &Value,
    namespaced: bool,
    role_kinds: &[&str],
) -> ErrorList {
    let mut errors = validate(binding, namespaced, role_kinds);
    errors.extend(rules::metadata_update(binding, old));
    if rules::differs(binding, old, "roleRef") {
        let reference = rules::value_at(binding, "roleRef");
        let changed =
            FieldError::invalid(&FieldPath::new("roleRef"), reference.clone(), "cannot change roleRef");
        errors.push(pintle_internal_form::show(changed, "rbac.RoleRef"));
    }
    errors
}

fn validate_subject(subject: &Value, namespaced: bool, path: &FieldPath) -> ErrorList {
    let (name, group) = (subject.str_at("name"), subject.str_at("apiGroup"));
    let mut errors = field_checks::required(subject, "name", path);
    match subject.str_at("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let messages = name_is_dns_subdomain(name, false);
                errors.extend(field_checks::invalid_each(&path.child("name"), name, messages));
            }
            errors.extend(field_checks::supported_plain(group, &[""], &path.child("apiGroup")));
            if !namespaced {
                errors.extend(field_checks::required(subject, "namespace", path));
            }
        }
        "User" | "Group" => {
            errors.extend(field_checks::supported_plain(group, &[GROUP_NAME], &path.child("apiGroup")));
        }
        kind => errors.push(
            FieldError::not_supported(&path.child("kind"), kind, &["ServiceAccount", "User", "Group"])
                .of_plain_text(),
        ),
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn binding(role_ref: Value, subjects: Value) -> Value {
        let mut binding = json!({"metadata": {"name": "b", "namespace": "n", "uid": "u", "resourceVersion": "1"},
                   "roleRef": role_ref, "subjects": subjects});
        set_defaults(&mut binding);
        binding
    }

    #[test]
    fn groups_are_filled_in() {
        let subjects = json!([{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]);
        let binding = binding(json!({"kind": "Role", "name": "r"}), subjects);
        assert_eq!(binding.str_at("roleRef.apiGroup"), GROUP_NAME);
        let expected = json!([
            {"kind": "User", "name": "u", "apiGroup": GROUP_NAME},
            {"kind": "ServiceAccount", "name": "s"},
        ]);
        assert_eq!(binding.at("subjects"), Some(&expected));
    }

    #[test]
    fn bindings_are_checked() {
        let check = |role_ref: Value, subjects: Value, expected: &[&str]| {
            let errors = validate(&binding(role_ref, subjects), true, &["Role", "ClusterRole"]);
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        let role = json!({"kind": "Role", "name": "a:b"});
        check(role.clone(), json!([{"kind": "ServiceAccount", "name": "s"}]), &[]);
        check(
            json!({}),
            json!([]),
            &[
                r#"roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole""#,
                "roleRef.name: Required value",
            ],
        );
        check(
            json!({"kind": "Role", "name": "a/b"}),
            json!([]),
            &[r#"roleRef.name: Invalid value: "a/b": may not contain '/'"#],
        );
        check(
            role,
            json!([{"kind": "User"}, {"kind": "ServiceAccount", "apiGroup": "x", "name": "s"}, {"kind": "Robot", "name": "r"}]),
            &[
                "subjects[0].name: Required value",
                r#"subjects[1].apiGroup: Unsupported value: "x": supported values: """#,
                r#"subjects[2].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group""#,
            ],
        );
    }

    #[test]
    fn the_role_stays() {
        let old = binding(json!({"kind": "Role", "name": "a"}), json!([]));
        let new = binding(json!({"kind": "Role", "name": "b"}), json!([]));
        assert_eq!(validate_update(&old, &old, true, &["Role"]), []);
        let errors = validate_update(&new, &old, true, &["Role"]);
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                r#"roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}: cannot change roleRef"#
            ]
        );
    }
}
