//! The strategy of service address ranges.

use crate::{field_checks, rules};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::Cidr;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, json,
    validation::{FIELD_IMMUTABLE_ERROR, is_valid_cidr},
};
use pintle_registry::{RequestContext, Strategy};

pub(super) struct ServiceCidrStrategy;

impl Strategy for ServiceCidrStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        if is_status_kept() { &["status"] } else { &[] }
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        if is_status_kept() {
            object.remove_at("status");
        }
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, false);
        errors.extend(validate_cidrs(object));
        errors
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        if is_status_kept() {
            rules::keep(object, old, "status");
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_change(object, old));
        errors
    }
}

/// Whether the status can be changed through its subresource alone.
fn is_status_kept() -> bool {
    enabled(Gate::ServiceCIDRStatusFieldWiping)
}

/// The strategy of the `status` subresource: conditions only.
pub(super) struct ServiceCidrStatusStrategy;

impl Strategy for ServiceCidrStatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata", "spec"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
        for member in
            ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"]
        {
            rules::keep(object, old, &format!("metadata.{member}"));
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        rules::metadata_update(object, old)
    }
}

fn cidrs(object: &Value) -> Vec<&str> {
    field_checks::texts(object.items_at("spec.cidrs")).collect()
}

fn validate_cidrs(object: &Value) -> ErrorList {
    let path = FieldPath::new("spec").child("cidrs");
    let cidrs = cidrs(object);
    match cidrs.len() {
        0 => return vec![FieldError::required(&path, "at least one CIDR required")],
        1 | 2 => {}
        _ => {
            let shown = json!({"CIDRs": cidrs});
            return vec![FieldError::invalid(&path, shown, "may only hold up to 2 values")];
        }
    }
    let mut errors: ErrorList =
        cidrs.iter().enumerate().flat_map(|(index, cidr)| is_valid_cidr(&path.index(index), cidr)).collect();
    let parsed: Vec<Cidr> = cidrs.iter().filter_map(|cidr| Cidr::parse_sloppy(cidr)).collect();
    if let [first, second] = parsed.as_slice()
        && first.address.is_ipv4() == second.address.is_ipv4()
    {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(&path, json!(cidrs), detail));
    }
    errors
}

/// Requires that blocks are unchanged, except that one of the other address family may be added.
fn validate_change(object: &Value, old: &Value) -> ErrorList {
    let path = FieldPath::new("spec").child("cidrs");
    let (now, before) = (cidrs(object), cidrs(old));
    let changed = now.iter().zip(&before).enumerate().filter(|(_, (now, before))| now != before);
    let mut errors: ErrorList = changed
        .map(|(index, (now, _))| FieldError::invalid(&path.index(index), *now, FIELD_IMMUTABLE_ERROR))
        .collect();
    match (before.len(), now.len()) {
        (before, now) if before == now => {}
        (1, 2) => errors.extend(validate_cidrs(object)),
        _ => {
            let shown = rules::value_at(object, "spec.cidrs").clone();
            errors = vec![FieldError::invalid(&path, shown, FIELD_IMMUTABLE_ERROR)];
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(errors: ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn blocks_are_checked() {
        let check = |cidrs: &[&str], expected: &[&str]| {
            assert_eq!(messages(validate_cidrs(&json!({"spec": {"cidrs": cidrs}}))), expected);
        };
        check(&["10.0.0.0/24", "fd00::/112"], &[]);
        check(&[], &["spec.cidrs: Required value: at least one CIDR required"]);
        check(
            &["10.2.3.4/16"],
            &[
                r#"spec.cidrs[0]: Invalid value: "10.2.3.4/16": must not have bits set beyond the prefix length"#,
            ],
        );
        check(
            &["10.2.0.0/16", "10.3.0.0/16"],
            &[
                r#"spec.cidrs: Invalid value: ["10.2.0.0/16","10.3.0.0/16"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"#,
            ],
        );
    }

    #[test]
    fn blocks_do_not_change() {
        let check = |old: &[&str], new: &[&str], expected: &[&str]| {
            let object = |cidrs: &[&str]| json!({"spec": {"cidrs": cidrs}});
            assert_eq!(messages(validate_change(&object(new), &object(old))), expected);
        };
        check(&["10.0.0.0/24"], &["10.0.0.0/24", "fd00::/112"], &[]);
        check(
            &["10.0.0.0/24"],
            &["10.0.1.0/24"],
            &[r#"spec.cidrs[0]: Invalid value: "10.0.1.0/24": field is immutable"#],
        );
        check(&["10.0.0.0/24"], &[], &["spec.cidrs: Invalid value: []: field is immutable"]);
    }
}
