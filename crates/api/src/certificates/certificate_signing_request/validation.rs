//! Validates certificate signing requests, their approval and their status.
//!
//! Ratcheting: an update may keep values that were accepted before a rule existed.

use super::pem::{check_certificates, check_request};
use crate::{certificates::signer_name::validate_signer_name, field_checks::required, rules};
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_go_forms::quote;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{semantically_equal, validate_object_meta},
};
use std::collections::HashSet;

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";
const CERTIFICATE: &str = "status.certificate";
const MIN_SECONDS: i64 = 600;
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The part of a request that an update changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The metadata.
    Main,
    /// The approval.
    Approval,
    /// The status.
    Status,
}

/// Validates a new request.
pub(super) fn validate(request: &Value) -> ErrorList {
    validate_since(request, None)
}

/// Validates an update of a part of a request.
pub(super) fn validate_update(request: &Value, old: &Value, part: Part) -> ErrorList {
    let mut errors = validate_since(request, Some(old));
    let path = FieldPath::new("status").child("conditions");
    for condition_type in [APPROVED, DENIED, FAILED] {
        if conditions(request, condition_type).len() < conditions(old, condition_type).len() {
            let detail = format!("updates may not remove a condition of type {}", quote(condition_type));
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    if part != Part::Approval {
        for condition_type in [APPROVED, DENIED] {
            let (new, old) = (conditions(request, condition_type), conditions(old, condition_type));
            let change = if new.len() > old.len() {
                "add"
            } else if new.len() == old.len()
                && new.iter().zip(&old).any(|(new, old)| !semantically_equal(new, old))
            {
                "modify"
            } else {
                continue;
            };
            let detail = format!("updates may not {change} a condition of type {}", quote(condition_type));
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    if rules::differs(request, old, CERTIFICATE) {
        let path = FieldPath::new("status").child("certificate");
        if part != Part::Status {
            errors.push(FieldError::forbidden(&path, "updates may not set certificate content"));
        } else if !old.str_at(CERTIFICATE).is_empty() {
            errors.push(FieldError::forbidden(&path, "updates may not modify existing certificate content"));
        }
    }
    errors.extend(rules::metadata_update(request, old));
    errors
}

fn conditions<'a>(request: &'a Value, condition_type: &str) -> Vec<&'a Value> {
    let conditions = request.items_at("status.conditions").iter();
    conditions.filter(|condition| condition.str_at("type") == condition_type).collect()
}

fn validate_since(request: &Value, old: Option<&Value>) -> ErrorList {
    // Requests may have any name.
    let any_name = |_: &str, _| Vec::new();
    let mut errors = validate_object_meta(request, false, any_name, &FieldPath::new("metadata"));
    errors.extend(validate_spec(request, old));
    errors.extend(validate_conditions(request, old));
    let keeps_certificate = old.is_some_and(|old| {
        !rules::differs(request, old, CERTIFICATE) || check_certificates(&bytes(old, CERTIFICATE)).is_err()
    });
    if !keeps_certificate && let Err(error) = check_certificates(&bytes(request, CERTIFICATE)) {
        let path = FieldPath::new("status").child("certificate");
        errors.push(FieldError::invalid(&path, "<certificate data>", error));
    }
    errors
}

fn validate_spec(request: &Value, old: Option<&Value>) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = ErrorList::new();
    if let Err(error) = check_request(&bytes(request, "spec.request")) {
        let shown = rules::value_at(request, "spec.request").clone();
        errors.push(FieldError::invalid(&path.child("request"), shown, error));
    }
    errors.extend(validate_usages(request, old, &path.child("usages")));
    let (signer, signer_path) = (request.str_at("spec.signerName"), path.child("signerName"));
    let had_legacy_signer = old.is_some_and(|old| old.str_at("spec.signerName") == LEGACY_SIGNER);
    if signer == LEGACY_SIGNER && !had_legacy_signer {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.push(FieldError::invalid(&signer_path, signer, detail));
    } else {
        errors.extend(validate_signer_name(signer, &signer_path));
    }
    if let Some(seconds) = request.i64_at("spec.expirationSeconds").filter(|seconds| *seconds < MIN_SECONDS) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, detail));
    }
    errors
}

fn validate_usages(request: &Value, old: Option<&Value>, path: &FieldPath) -> ErrorList {
    let usages = request.items_at("spec.usages");
    if usages.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let unknown = |request: &Value| -> Vec<(usize, String)> {
        let usages = request.items_at("spec.usages").iter().enumerate();
        let usages = usages.map(|(index, usage)| (index, usage.as_str().unwrap_or_default().to_owned()));
        usages.filter(|(_, usage)| !USAGES.contains(&usage.as_str())).collect()
    };
    let mut errors = ErrorList::new();
    if old.is_none_or(|old| unknown(old).is_empty()) {
        let unknown = unknown(request).into_iter();
        errors.extend(
            unknown.map(|(index, usage)| FieldError::not_supported(&path.index(index), usage, USAGES)),
        );
    }
    if old.is_none_or(|old| repeated(old.items_at("spec.usages")).is_empty()) {
        let repeated = repeated(usages).into_iter();
        errors.extend(
            repeated.map(|(index, usage)| {
                FieldError::duplicate(&path.index(index), usage.clone()).of_named_type()
            }),
        );
    }
    errors
}

/// The items of a list that repeat an earlier one, with their positions.
fn repeated(items: &[Value]) -> Vec<(usize, &Value)> {
    let mut seen = HashSet::new();
    items.iter().enumerate().filter(|(_, item)| !seen.insert(*item)).collect()
}

fn validate_conditions(request: &Value, old: Option<&Value>) -> ErrorList {
    let types = |request: &Value| -> Vec<Value> {
        let conditions = request.items_at("status.conditions").iter();
        conditions.map(|condition| condition.str_at("type").into()).collect()
    };
    let old_types = old.map(types).unwrap_or_default();
    let had = |condition_type: &str| old_types.iter().any(|old| old.as_str() == Some(condition_type));
    let had_both = had(APPROVED) && had(DENIED);
    let (had_empty, had_repeated) = (had(""), !repeated(&old_types).is_empty());
    let list_path = FieldPath::new("status").child("conditions");
    let mut errors = ErrorList::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, condition) in request.items_at("status.conditions").iter().enumerate() {
        let path = list_path.index(index);
        if !had_empty {
            errors.extend(required(condition, "type", &path));
        }
        let condition_type = condition.str_at("type");
        let statuses: &[&str] = match condition_type {
            APPROVED | DENIED | FAILED => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        let status = condition.str_at("status");
        errors.extend(crate::field_checks::required_supported(status, statuses, &path.child("status")));
        let opposite = match condition_type {
            APPROVED => Some(DENIED),
            DENIED => Some(APPROVED),
            _ => None,
        };
        if !had_both && opposite.is_some_and(|opposite| seen.contains(opposite)) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(&list_path, condition_type, detail));
        }
        if !seen.insert(condition_type) && !had_repeated {
            errors.push(FieldError::duplicate(&path.child("type"), condition_type).of_named_type());
        }
    }
    errors
}

/// The decoded bytes of a member; decoding has rejected invalid base64.
fn bytes(request: &Value, path: &str) -> Vec<u8> {
    STANDARD.decode(request.str_at(path)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    /// A request of `CN=jane`, made for these tests.
    const REQUEST: &str = include_str!("testdata/jane.csr");
    /// A certificate of `CN=jane`, signed by itself.
    const JANE: &str = include_str!("testdata/jane.crt");

    fn request(spec: Value) -> Value {
        let mut request = json!({"metadata": {"name": "Any:name", "uid": "u", "resourceVersion": "1"}, "spec": {
            "request": STANDARD.encode(REQUEST), "signerName": "example.com/a", "usages": ["any"]}});
        for (name, value) in spec.as_object().into_iter().flatten() {
            request.set(&format!("spec.{name}"), value.clone());
        }
        request
    }

    fn with_status(status: Value) -> Value {
        let mut request = request(json!({}));
        request.set("status", status);
        request
    }

    #[track_caller]
    fn check(errors: &ErrorList, expected: &[&str]) {
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn requests_are_checked() {
        check(&validate(&request(json!({}))), &[]);
        check(
            &validate(&json!({"metadata": {"name": "a"}})),
            &[
                "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST",
                "spec.usages: Required value",
                "spec.signerName: Required value",
            ],
        );
        check(
            &validate(&request(json!({"usages": ["any", "any"], "expirationSeconds": 599}))),
            &[
                r#"spec.usages[1]: Duplicate value: "any""#,
                "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
            ],
        );
        let legacy = request(json!({"signerName": LEGACY_SIGNER}));
        assert_eq!(validate(&legacy).len(), 1);
        check(&validate_update(&legacy, &legacy, Part::Main), &[]);
    }

    #[test]
    fn only_approvers_approve() {
        let approved = json!({"type": "Approved", "status": "True"});
        let denied = json!({"type": "Denied", "status": "True"});
        let (new, old) = (with_status(json!({"conditions": [approved]})), with_status(json!({})));
        check(&validate_update(&new, &old, Part::Approval), &[]);
        check(
            &validate_update(&new, &old, Part::Status),
            &[r#"status.conditions: Forbidden: updates may not add a condition of type "Approved""#],
        );
        check(
            &validate_update(&old, &new, Part::Approval),
            &[r#"status.conditions: Forbidden: updates may not remove a condition of type "Approved""#],
        );
        let both = with_status(json!({"conditions": [approved, denied]}));
        check(
            &validate_update(&both, &new, Part::Approval),
            &[
                r#"status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive"#,
            ],
        );
        check(&validate_update(&both, &both, Part::Approval), &[]);
    }

    #[test]
    fn only_signers_set_the_certificate_and_only_once() {
        let old = with_status(json!({}));
        let signed = with_status(json!({"certificate": STANDARD.encode(JANE)}));
        check(&validate_update(&signed, &old, Part::Status), &[]);
        check(
            &validate_update(&signed, &old, Part::Approval),
            &["status.certificate: Forbidden: updates may not set certificate content"],
        );
        let again = with_status(json!({"certificate": STANDARD.encode(format!("{JANE}{JANE}"))}));
        check(
            &validate_update(&again, &signed, Part::Status),
            &["status.certificate: Forbidden: updates may not modify existing certificate content"],
        );
        let with_headers = JANE.replacen('\n', "\nA: b\n\n", 1);
        for (data, detail) in [
            ("hello", "must contain at least one CERTIFICATE PEM block"),
            (&with_headers, "no PEM block headers are permitted"),
            (REQUEST, "only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\""),
        ] {
            let wrong = with_status(json!({"certificate": STANDARD.encode(data)}));
            check(
                &validate_update(&wrong, &old, Part::Status),
                &[&format!("status.certificate: Invalid value: \"<certificate data>\": {detail}")],
            );
        }
    }
}
