//! Validates the resource claims of a pod
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/>).

use super::annotations::MIRROR_POD;
use super::resources::ClaimNames;
use crate::field_checks::invalid_each;
use pintle_machinery::error_list::is_enough;
use pintle_machinery::validation::{is_dns1123_label, is_dns1123_subdomain};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// The names of the claims in a spec.
pub(super) fn names(spec: &Value) -> ClaimNames<'_> {
    let claims = spec.items_at("resourceClaims").iter();
    claims.map(|claim| claim.str_at("name")).filter(|name| !name.is_empty()).collect()
}

/// Validates `resourceClaims`; `metadata` is that of the pod, `None` for a template.
pub(super) fn validate(claims: &[Value], metadata: Option<&Value>, path: &FieldPath) -> ErrorList {
    let is_mirror = metadata.is_some_and(|metadata| metadata.map_at("annotations").contains_key(MIRROR_POD));
    let mut errors = ErrorList::new();
    let mut seen = ClaimNames::new();
    for (index, claim) in claims.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        if is_mirror {
            let detail = "static pods do not support resource claims";
            errors.push(FieldError::forbidden(&FieldPath::new("[]"), detail));
            continue;
        }
        let path = path.index(index);
        let (name, name_path) = (claim.str_at("name"), path.child("name"));
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else if !seen.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        } else {
            errors.extend(invalid_each(&name_path, name, is_dns1123_label(name)));
        }
        const SOURCES: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
        let given = SOURCES.map(|field| claim.at(field).and_then(Value::as_str));
        let detail = match given {
            [Some(_), Some(_)] => {
                Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
            }
            [None, None] => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            _ => None,
        };
        if let Some(detail) = detail {
            let error = FieldError::invalid(&path, claim.clone(), detail);
            errors.push(pintle_internal_form::show(error, "core.PodResourceClaim"));
        }
        for (field, name) in SOURCES.into_iter().zip(given) {
            if let Some(name) = name {
                errors.extend(invalid_each(&path.child(field), name, is_dns1123_subdomain(name)));
            }
        }
    }
    errors
}
