//! Validates cluster trust bundles. An update that leaves the bundle unchanged does not parse it again.

use crate::{certificates::signer_name::validate_signer_name, rules};
use pintle_go_forms::PemBlocks;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    error_list::is_enough,
    validation::{name_is_dns_subdomain, validate_immutable_text, validate_object_meta},
};
use std::collections::HashMap;
use x509_parser::prelude::{FromDer, X509Certificate};

const BUNDLE: &str = "spec.trustBundle";
const SIGNER: &str = "spec.signerName";
const MAX_SIZE: usize = 1 << 20;

/// Validates a new bundle.
pub(super) fn validate(bundle: &Value) -> ErrorList {
    let mut errors = validate_names(bundle);
    errors.extend(validate_bundle(bundle.str_at(BUNDLE)));
    errors
}

/// Validates an update of a bundle.
pub(super) fn validate_update(bundle: &Value, old: &Value) -> ErrorList {
    let mut errors = validate_names(bundle);
    if bundle.str_at(BUNDLE) != old.str_at(BUNDLE) {
        errors.extend(validate_bundle(bundle.str_at(BUNDLE)));
    }
    errors.extend(rules::metadata_update(bundle, old));
    errors.extend(validate_immutable_text(bundle, old, &FieldPath::new(SIGNER)));
    errors
}

fn validate_names(bundle: &Value) -> ErrorList {
    let signer = bundle.str_at(SIGNER);
    let name = |name: &str, prefix: bool| validate_name(signer, name, prefix);
    let mut errors = validate_object_meta(bundle, false, name, &FieldPath::new("metadata"));
    if !signer.is_empty() {
        errors.extend(validate_signer_name(signer, &FieldPath::new(SIGNER)));
    }
    errors
}

/// The name of a bundle with a signer begins with the name of the signer.
fn validate_name(signer: &str, name: &str, prefix: bool) -> Vec<String> {
    if signer.is_empty() {
        return match name.contains(':') {
            true => vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()],
            false => name_is_dns_subdomain(name, prefix),
        };
    }
    let required = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&required) {
        Some(rest) => name_is_dns_subdomain(rest, prefix),
        None => {
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {required}")]
        }
    }
}

fn validate_bundle(text: &str) -> ErrorList {
    let path = FieldPath::new(BUNDLE);
    if text.len() > MAX_SIZE {
        return vec![FieldError::too_long(&path, MAX_SIZE)];
    }
    let invalid = |detail: String| FieldError::invalid(&path, "<value omitted>", detail);
    let mut errors = ErrorList::new();
    let mut anchors: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (index, block) in PemBlocks::of(text).enumerate() {
        if is_enough(&errors) {
            break;
        }
        if block.label != "CERTIFICATE" {
            errors.push(invalid(format!("entry {index} has bad block type: {}", block.label)));
            continue;
        }
        if block.has_headers {
            errors.push(invalid(format!("entry {index} has PEM block headers")));
            continue;
        }
        match is_authority(&block.contents) {
            None => errors.push(invalid(format!("entry {index} does not parse as X.509"))),
            Some(false) => errors.push(invalid(format!("entry {index} does not have the CA bit set"))),
            Some(true) => anchors.entry(block.contents).or_default().push(index),
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    if anchors.is_empty() {
        errors.push(invalid("at least one trust anchor must be provided".to_owned()));
    }
    let mut repeated: Vec<Vec<usize>> = anchors.into_values().filter(|indices| indices.len() > 1).collect();
    repeated.sort();
    for indices in repeated {
        let indices: Vec<String> = indices.iter().map(usize::to_string).collect();
        errors.push(invalid(format!("duplicate trust anchor (indices [{}])", indices.join(" "))));
    }
    errors
}

/// Whether the certificate may sign others; `None` if it is malformed.
fn is_authority(der: &[u8]) -> Option<bool> {
    let ([], certificate) = X509Certificate::from_der(der).ok()? else { return None };
    let constraints = certificate.basic_constraints().ok()?;
    Some(constraints.is_some_and(|constraints| constraints.value.ca))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate that signs no others, made for these tests.
    const LEAF: &str = include_str!("testdata/leaf.crt");
    /// A certificate that may sign others.
    const AUTHORITY: &str = include_str!("../certificate_signing_request/testdata/jane.crt");

    fn messages(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(|error| error.detail.clone()).collect()
    }

    #[test]
    fn names_begin_with_the_signer() {
        let check = |signer: &str, name: &str, expected: &[&str]| {
            assert_eq!(validate_name(signer, name, false), expected, "{signer} {name}");
        };
        check("", "a", &[]);
        check("", "a:b", &["ClusterTrustBundle without signer name must not have \":\" in its name"]);
        check("example.com/a", "example.com:a:b", &[]);
        check(
            "example.com/a",
            "b",
            &["ClusterTrustBundle for signerName example.com/a must be named with prefix example.com:a:"],
        );
        assert_eq!(validate_name("example.com/a", "example.com:a:B_", false).len(), 1);
    }

    #[test]
    fn bundles_are_of_authorities() {
        let check = |text: &str, expected: &[&str]| assert_eq!(messages(&validate_bundle(text)), expected);
        check(AUTHORITY, &[]);
        check("", &["at least one trust anchor must be provided"]);
        check(LEAF, &["entry 0 does not have the CA bit set"]);
        check(&format!("{AUTHORITY}{LEAF}"), &["entry 1 does not have the CA bit set"]);
        check(&format!("{AUTHORITY}{AUTHORITY}"), &["duplicate trust anchor (indices [0 1])"]);
        check(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            &["entry 0 does not parse as X.509"],
        );
        check("-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n", &["entry 0 has bad block type: KEY"]);
        check(&"x".repeat(MAX_SIZE + 1), &["may not be more than 1048576 bytes"]);
    }
}
