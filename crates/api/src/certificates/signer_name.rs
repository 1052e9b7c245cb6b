//! Validates the names of signers: a domain and a path.

use pintle_go_forms::quote;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath,
    validation::{is_dns1123_label, is_dns1123_subdomain},
};

/// Whether the signer belongs to Kubernetes.
pub(super) fn is_kubernetes_signer(name: &str) -> bool {
    let domain = name.split('/').next().unwrap_or_default();
    domain == "kubernetes.io" || domain.ends_with(".kubernetes.io")
}

/// Requires the name of a signer.
pub(super) fn validate_signer_name(name: &str, path: &FieldPath) -> ErrorList {
    const DOMAIN_MAX_LENGTH: usize = 253;
    const PATH_MAX_LENGTH: usize = 253 + 63 + 1;
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![FieldError::invalid(path, name, detail)];
    };
    let mut errors = ErrorList::new();
    if domain.len() > DOMAIN_MAX_LENGTH {
        errors.push(FieldError::too_long(path, DOMAIN_MAX_LENGTH));
    }
    errors.extend(validate_labels(domain, is_dns1123_label, path));
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, detail));
    }
    errors.extend(validate_labels(rest, is_dns1123_subdomain, path));
    let max_length = DOMAIN_MAX_LENGTH + PATH_MAX_LENGTH + 1;
    if name.len() > max_length {
        errors.push(FieldError::too_long(path, max_length));
    }
    errors
}

/// Validates the labels of a segment and reports the first faulty one.
fn validate_labels(segment: &str, check: fn(&str) -> Vec<String>, path: &FieldPath) -> ErrorList {
    let wrong = segment.split('.').map(|label| (label, check(label))).find(|(_, wrong)| !wrong.is_empty());
    let (label, messages) = wrong.unwrap_or_default();
    let details = messages.into_iter().map(|message| format!("validating label {}: {message}", quote(label)));
    details.map(|detail| FieldError::invalid(path, segment, detail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signers_have_a_domain_and_a_path() {
        let check = |name: &str, errors: usize| {
            assert_eq!(validate_signer_name(name, &FieldPath::new("f")).len(), errors, "{name}");
        };
        check("example.com/a.b", 0);
        check("nodomain", 1);
        check("example.com/a/b", 1);
        check("foo/a", 1);
        check("Example.com/a", 1);
        check("example.com/", 1);
    }
}
