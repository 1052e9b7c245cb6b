//! The strategy of allocated addresses.

use crate::{field_checks, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{is_dns1123_subdomain, is_valid_ip, validate_object_meta, validate_path_segment_name},
};
use pintle_registry::{RequestContext, Strategy};

pub(super) struct IpAddressStrategy;

impl Strategy for IpAddressStrategy {
    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object);
        errors.extend(rules::metadata_update(object, old));
        let path = FieldPath::new("spec").child("parentRef");
        let (new, old) = (rules::value_at(object, "spec.parentRef"), rules::value_at(old, "spec.parentRef"));
        errors.extend(pintle_internal_form::validate_immutable(
            new,
            old,
            &path,
            "*networking.ParentReference",
        ));
        errors
    }

    fn validate_name(&self, name: &str, _prefix: bool) -> Vec<String> {
        validate_name(name, false)
    }
}

/// Requires the canonical form of an address as name.
fn validate_name(name: &str, _prefix: bool) -> Vec<String> {
    is_valid_ip(&FieldPath::default(), name).into_iter().map(|error| error.detail).collect()
}

fn validate(address: &Value) -> ErrorList {
    let mut errors = validate_object_meta(address, false, validate_name, &FieldPath::new("metadata"));
    let path = FieldPath::new("spec").child("parentRef");
    let Some(parent) = address.at("spec.parentRef") else {
        errors.push(FieldError::required(&path, ""));
        return errors;
    };
    let group = parent.str_at("group");
    if !group.is_empty() {
        errors.extend(field_checks::invalid_each(&path.child("group"), group, is_dns1123_subdomain(group)));
    }
    for (member, is_required) in [("resource", true), ("name", true), ("namespace", false)] {
        let (value, path) = (parent.str_at(member), path.child(member));
        match (value.is_empty(), is_required) {
            (true, true) => errors.push(FieldError::required(&path, "")),
            (true, false) => {}
            (false, _) => {
                let messages = validate_path_segment_name(value, false);
                errors.extend(field_checks::invalid_each(&path, value, messages));
            }
        }
    }
    errors
}

/// Formats the reference for messages.
#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn addresses_are_checked() {
        let check = |name: &str, spec: Value, expected: &[&str]| {
            let errors = validate(&json!({"metadata": {"name": name}, "spec": spec}));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        let parent = json!({"parentRef": {"resource": "services", "name": "a", "namespace": "n"}});
        check("10.0.0.1", parent.clone(), &[]);
        check(
            "FD00::1",
            parent,
            &[r#"metadata.name: Invalid value: "FD00::1": must be in canonical form ("fd00::1")"#],
        );
        check("10.0.0.1", json!({}), &["spec.parentRef: Required value"]);
        check(
            "10.0.0.1",
            json!({"parentRef": {"name": "a/b"}}),
            &[
                "spec.parentRef.resource: Required value",
                r#"spec.parentRef.name: Invalid value: "a/b": may not contain '/'"#,
            ],
        );
    }
}
