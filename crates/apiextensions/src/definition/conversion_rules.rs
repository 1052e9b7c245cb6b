//! Validates the conversion strategy and its webhook
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion>).

use super::options::ValidationOptions;
use super::path::Path;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_machinery::{
    ErrorList, FieldError, Value, ValueExt,
    error_list::is_enough,
    validation::{is_dns1035_label, validate_webhook_service, validate_webhook_url},
};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use std::collections::HashSet;

const STRATEGIES: [&str; 2] = ["None", "Webhook"];
/// The versions of `ConversionReview` that older servers supported too; the webhook's list must contain one of them.
const RECOGNIZED: [&str; 2] = ["v1", "v1beta1"];

/// Validates `spec.conversion`.
pub(super) fn validate_conversion(
    conversion: &Value,
    path: &Path<'_>,
    options: &ValidationOptions,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let strategy = conversion.str_at("strategy");
    match strategy {
        "" => errors.push(FieldError::required(&path.child("strategy").field(), "")),
        known if STRATEGIES.contains(&known) => {}
        other => errors.push(
            FieldError::not_supported(&path.child("strategy").field(), other, &STRATEGIES).of_plain_text(),
        ),
    }
    let client_path = path.child("webhookClientConfig");
    let versions_path = path.child("conversionReviewVersions");
    let client = conversion.at("webhook.clientConfig");
    let versions = conversion.items_at("webhook.conversionReviewVersions");
    if strategy == "Webhook" {
        match client {
            None => {
                let detail = "required when strategy is set to Webhook";
                errors.push(FieldError::required(&client_path.field(), detail));
            }
            Some(client) => validate_client(client, &client_path, options, &mut errors),
        }
        validate_review_versions(versions, &versions_path, options, &mut errors);
    } else {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(&client_path.field(), detail));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&versions_path.field(), detail));
        }
    }
    errors
}

fn validate_client(client: &Value, path: &Path<'_>, options: &ValidationOptions, errors: &mut ErrorList) {
    match (client.at("url").and_then(Value::as_str), client.at("service")) {
        (Some(url), None) => errors.extend(validate_webhook_url(url, &path.child("url").field())),
        (None, Some(service)) => {
            errors.extend(validate_webhook_service(service, &path.child("service").field()));
        }
        _ => errors.push(FieldError::required(&path.field(), "exactly one of url or service is required")),
    }
    let bundle = client.str_at("caBundle");
    if !bundle.is_empty()
        && !options.allow_invalid_ca_bundle
        && let Err(error) = check_ca_bundle(bundle)
    {
        let detail = format!("unable to load root certificates: {error}");
        errors.push(FieldError::invalid(&path.child("caBundle").field(), bundle, detail));
    }
}

fn validate_review_versions(
    versions: &[Value],
    path: &Path<'_>,
    options: &ValidationOptions,
    errors: &mut ErrorList,
) {
    if versions.is_empty() {
        errors.push(FieldError::required(&path.field(), ""));
        return;
    }
    let mut seen = HashSet::with_capacity(versions.len());
    for (index, value) in versions.iter().enumerate() {
        if is_enough(errors) {
            return;
        }
        let version = value.as_str().unwrap_or_default();
        if !seen.insert(version) {
            errors.push(FieldError::invalid(&path.index(index).field(), version, "duplicate version"));
            continue;
        }
        for failure in is_dns1035_label(version) {
            errors.push(FieldError::invalid(&path.index(index).field(), version, failure));
        }
    }
    if options.require_recognized_review_version && !versions.iter().any(is_recognized) {
        let detail = format!("must include at least one of {}", RECOGNIZED.join(", "));
        errors.push(FieldError::invalid(&path.field(), versions, detail));
    }
}

fn is_recognized(version: &Value) -> bool {
    version.as_str().is_some_and(|version| RECOGNIZED.contains(&version))
}

/// Whether a stored conversion has a supported review version, or no list of versions.
pub(super) fn has_recognized_review_version(conversion: &Value) -> bool {
    let versions = conversion.items_at("webhook.conversionReviewVersions");
    versions.is_empty() || versions.iter().any(is_recognized)
}

/// Whether a stored conversion has an invalid CA bundle.
pub(super) fn is_invalid_ca_bundle(conversion: &Value) -> bool {
    let bundle = conversion.str_at("webhook.clientConfig.caBundle");
    !bundle.is_empty() && check_ca_bundle(bundle).is_err()
}

/// Checks that a bundle has a usable certificate.
///
/// # Errors
/// The message for an invalid bundle.
pub(crate) fn check_ca_bundle(bundle: &str) -> Result<(), String> {
    let pem = STANDARD.decode(bundle).unwrap_or_default();
    if pem.is_empty() {
        // An empty bundle means the system's trust anchors.
        return Ok(());
    }
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let Ok(certificate) = certificate else { break };
        found = true;
        if webpki_accepts(&certificate) {
            return Ok(());
        }
    }
    Err(match found {
        true => "failed to parse certificate: x509: malformed certificate".to_owned(),
        false => "unable to parse bytes as PEM block".to_owned(),
    })
}

fn webpki_accepts(certificate: &CertificateDer<'_>) -> bool {
    x509_parser::parse_x509_certificate(certificate).is_ok_and(|(rest, _)| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(conversion: Value, expected: &[&str]) {
        let options = ValidationOptions::for_create();
        let errors: Vec<String> = validate_conversion(&conversion, &Path::new("c"), &options)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(errors, expected, "{conversion}");
    }

    #[test]
    fn webhooks_are_reached_by_url_or_service() {
        let webhook = |client: Value| json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}});
        check(json!({"strategy": "None"}), &[]);
        check(webhook(json!({"url": "https://host/path"})), &[]);
        check(
            webhook(json!({"service": {"name": "n", "namespace": "m", "port": 443}, "url": "https://h"})),
            &["c.webhookClientConfig: Required value: exactly one of url or service is required"],
        );
        check(
            webhook(json!({"service": {"name": "n", "port": 443, "path": "/a//B"}})),
            &[
                "c.webhookClientConfig.service.name: Required value",
                r#"c.webhookClientConfig.service.path: Invalid value: "/a//B": segment[1] may not be empty"#,
                "c.webhookClientConfig.service.path: Invalid value: \"/a//B\": segment[2]: a lowercase RFC 1123 \
                 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end \
                 with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        );
        check(
            json!({"strategy": "Webhook"}),
            &[
                "c.webhookClientConfig: Required value: required when strategy is set to Webhook",
                "c.conversionReviewVersions: Required value",
            ],
        );
    }

    #[test]
    fn bundles_have_certificates() {
        assert_eq!(check_ca_bundle("QUJD").unwrap_err(), "unable to parse bytes as PEM block");
    }
}
