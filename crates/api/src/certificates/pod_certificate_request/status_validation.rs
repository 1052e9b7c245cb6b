//! Validates the status of pod certificate requests. A request is issued, denied or failed once; an issued certificate is
//! for the requested key and as long as allowed.

use super::validation::{KEY, STUB, bytes};
use crate::{certificates::public_key::PublicKey, rules};
use jiff::{SignedDuration, Timestamp};
use pintle_go_forms::PemBlocks;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, json,
    meta::{format_time, parse_time},
    validation::validate_conditions,
};
use x509_parser::{
    certificate::X509Certificate, certification_request::X509CertificationRequest, extensions::GeneralName,
    prelude::FromDer,
};

const TERMINAL: [&str; 3] = ["Issued", "Denied", "Failed"];
const CHAIN: &str = "status.certificateChain";
const MAX_CHAIN: usize = 100 << 10;
/// The difference of the clocks of signers and of the server.
const SKEW: SignedDuration = SignedDuration::from_mins(5);
const MIN_LIFETIME: SignedDuration = SignedDuration::from_hours(1);
/// The time between the end of a certificate's time and its refresh, at least.
const REFRESH_MARGIN: SignedDuration = SignedDuration::from_mins(10);

/// Validates an update of the status.
pub(super) fn validate(request: &Value, old: &Value, now: Timestamp) -> ErrorList {
    let errors = rules::metadata_update(request, old);
    if !errors.is_empty() {
        return errors;
    }
    let errors = validate_terminal_conditions(request);
    if !errors.is_empty() {
        return errors;
    }
    let path = FieldPath::new("status");
    let unless = |is_valid: bool, detail: &str| match is_valid {
        true => ErrorList::new(),
        false => vec![rules::invalid_whole(&path, detail)],
    };
    let is_unchanged = !rules::differs(request, old, "status");
    if TERMINAL.iter().any(|condition| has(old, condition)) {
        return unless(is_unchanged, "immutable after PodCertificateRequest is issued, denied, or failed");
    }
    if has(request, "Denied") || has(request, "Failed") {
        let others =
            request.map_at("status").iter().filter(|(name, value)| *name != "conditions" && !value.is_null());
        let detail =
            "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
        return unless(others.count() == 0, detail);
    }
    if has(request, "Issued") {
        return validate_issued(request, old, now);
    }
    unless(is_unchanged, "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"")
}

fn has(request: &Value, condition_type: &str) -> bool {
    let mut conditions = request.items_at("status.conditions").iter();
    conditions
        .any(|condition| condition.str_at("type") == condition_type && condition.str_at("status") == "True")
}

/// At most one condition, which is true.
fn validate_terminal_conditions(request: &Value) -> ErrorList {
    let conditions = request.items_at("status.conditions");
    let path = FieldPath::new("status").child("conditions");
    let mut errors = ErrorList::new();
    let mut known = 0;
    for (index, condition) in conditions.iter().enumerate() {
        // The reference writes a dot before the index here.
        let path = path.child(&format!("[{index}]"));
        let (condition_type, status) = (condition.str_at("type"), condition.str_at("status"));
        if !TERMINAL.contains(&condition_type) {
            errors.push(
                FieldError::not_supported(&path.child("type"), condition_type, &TERMINAL).of_plain_text(),
            );
            continue;
        }
        known += 1;
        if known > 1 {
            let detail = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.push(FieldError::invalid(&path.child("type"), condition_type, detail));
        }
        if status != "True" {
            errors.push(FieldError::not_supported(&path.child("status"), status, &["True"]));
        }
    }
    errors.extend(validate_conditions(conditions, &path));
    errors
}

/// The times in the status of an issued certificate.
struct Times {
    not_before: Timestamp,
    not_after: Timestamp,
    begin_refresh_at: Timestamp,
}

fn validate_issued(request: &Value, old: &Value, now: Timestamp) -> ErrorList {
    let (chain, path) = (request.str_at(CHAIN), FieldPath::new(CHAIN));
    if chain.len() > MAX_CHAIN {
        return vec![FieldError::too_long(&path, MAX_CHAIN)];
    }
    let refused = |detail: &str| vec![FieldError::invalid(&path, chain, detail)];
    let mut blocks = PemBlocks::of(chain);
    let Some(block) = blocks.next() else {
        return refused("issued certificate chain must contain at least one certificate");
    };
    if block.label != "CERTIFICATE" {
        return refused("issued certificate chain must consist entirely of CERTIFICATE PEM blocks");
    }
    let Ok(([], leaf)) = X509Certificate::from_der(&block.contents) else {
        return refused("leaf certificate does not parse as valid X.509");
    };
    let mut errors = validate_names(&leaf, &path);
    match requested_key(old) {
        Err(error) => {
            errors.push(error);
            return errors;
        }
        Ok(key) if PublicKey::of(leaf.public_key()).as_ref() != Some(&key) => {
            errors.extend(refused("leaf certificate was not issued to the requested public key"));
            return errors;
        }
        Ok(_) => {}
    }
    let times = match times(request) {
        Ok(times) if errors.is_empty() => times,
        Ok(_) => return errors,
        Err(absent) => {
            errors.extend(absent);
            return errors;
        }
    };
    if let Err(error) = validate_times(request, &times, &leaf, now) {
        return vec![error];
    }
    for block in blocks {
        if block.label != "CERTIFICATE" {
            // The reference spells it so.
            return refused("issued certificate chain must consist entirely of CERTFICATE PEM blocks");
        }
        if !matches!(X509Certificate::from_der(&block.contents), Ok(([], _))) {
            return refused("intermediate certificate does not parse as valid X.509");
        }
    }
    ErrorList::new()
}

/// Checks the names in a certificate, which clients may not expect to be malformed.
fn validate_names(leaf: &X509Certificate<'_>, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let Ok(Some(names)) = leaf.subject_alternative_name() else { return errors };
    for name in &names.value.general_names {
        match name {
            GeneralName::DNSName(name) => {
                let mut refuse = |is_wrong: bool, detail: &str| {
                    if is_wrong {
                        errors.push(FieldError::invalid(path, *name, detail));
                    }
                };
                refuse(name.is_empty(), "leaf certificate should not contain empty DNSName");
                refuse(name.contains(".."), "leaf certificate's DNSName should not contain '..'");
                let at_end = name.starts_with('.') || name.ends_with('.');
                refuse(at_end, "leaf certificate's DNSName should not start or end with '.'");
            }
            GeneralName::RFC822Name(address) if !is_address(address) => {
                let detail = "leaf certificate should not contain invalid EmailAddress";
                errors.push(FieldError::invalid(path, *address, detail));
            }
            _ => {}
        }
    }
    errors
}

/// Whether a text is a mail address without a display name.
fn is_address(text: &str) -> bool {
    let is_atom = |text: &str| {
        let allowed = |byte: u8| {
            byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte) || !byte.is_ascii()
        };
        !text.is_empty() && text.bytes().all(allowed)
    };
    let is_local = |local: &str| {
        let quoted = local.strip_prefix('"').and_then(|local| local.strip_suffix('"'));
        quoted.is_some_and(|quoted| !quoted.contains('"')) || local.split('.').all(is_atom)
    };
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
        is_local(local) && (literal.is_some() || domain.split('.').all(is_atom))
    })
}

/// The key in the spec, which was validated when the request was created.
fn requested_key(old: &Value) -> Result<PublicKey, FieldError> {
    let stub = bytes(old, STUB);
    if stub.is_empty() {
        let malformed =
            || rules::invalid_whole(&FieldPath::new(KEY), "must be a valid PKIX-serialized public key");
        return PublicKey::from_der(&bytes(old, KEY)).ok_or_else(malformed);
    }
    let request = X509CertificationRequest::from_der(&stub).ok();
    let key = request.and_then(|(_, request)| PublicKey::of(&request.certification_request_info.subject_pki));
    key.ok_or_else(|| rules::invalid_whole(&FieldPath::new(STUB), "must be a valid PKCS#10 CSR"))
}

fn times(request: &Value) -> Result<Times, ErrorList> {
    const CONSISTENT: &str = "must be present and consistent with the issued certificate";
    let mut errors = ErrorList::new();
    let mut read = |name: &str, detail: &str| {
        let time = parse_time(request.str_at(&format!("status.{name}")));
        if time.is_none() {
            errors.push(FieldError::required(&FieldPath::new("status").child(name), detail));
        }
        time.unwrap_or_default()
    };
    let times = Times {
        not_before: read("notBefore", CONSISTENT),
        not_after: read("notAfter", CONSISTENT),
        begin_refresh_at: read(
            "beginRefreshAt",
            "must be present and in the range [notbefore+10min, notafter-10min]",
        ),
    };
    if errors.is_empty() { Ok(times) } else { Err(errors) }
}

fn validate_times(
    request: &Value,
    times: &Times,
    leaf: &X509Certificate<'_>,
    now: Timestamp,
) -> Result<(), FieldError> {
    let path = |name: &str| FieldPath::new("status").child(name);
    let wrong = |name: &str, time: Timestamp, detail: &str| {
        Err(FieldError::invalid(&path(name), format_time(time), detail))
    };
    let of_leaf = |seconds: i64| Timestamp::from_second(seconds).unwrap_or_default();
    let validity = leaf.validity();
    let (from, until) = (of_leaf(validity.not_before.timestamp()), of_leaf(validity.not_after.timestamp()));
    if times.not_before != from {
        let detail = "must be set to the NotBefore time encoded in the leaf certificate";
        return wrong("notBefore", times.not_before, detail);
    }
    if times.not_before.duration_since(now).abs() >= SKEW {
        let detail = "must be set to within 5 minutes of kube-apiserver's current time";
        return wrong("notBefore", times.not_before, detail);
    }
    if times.not_after != until {
        let detail = "must be set to the NotAfter time encoded in the leaf certificate";
        return wrong("notAfter", times.not_after, detail);
    }
    let lifetime = until.duration_since(from);
    let too_long_or_short = |detail: String| {
        let nanoseconds = i64::try_from(lifetime.as_nanos()).unwrap_or(i64::MAX);
        Err(FieldError::invalid(&FieldPath::new(CHAIN), json!(nanoseconds), detail))
    };
    if lifetime < MIN_LIFETIME {
        return too_long_or_short("leaf certificate lifetime must be >= 1 hour".to_owned());
    }
    let seconds = request.i64_at("spec.maxExpirationSeconds").unwrap_or_default();
    if lifetime > SignedDuration::from_secs(seconds) {
        return too_long_or_short(format!(
            "leaf certificate lifetime must be <= spec.maxExpirationSeconds ({seconds})"
        ));
    }
    let refresh = times.begin_refresh_at;
    if refresh.duration_since(times.not_before) < REFRESH_MARGIN {
        return wrong("beginRefreshAt", refresh, "must be at least 10 minutes after status.notBefore");
    }
    if times.not_after.duration_since(refresh) < REFRESH_MARGIN {
        return wrong("beginRefreshAt", refresh, "must be at least 10 minutes before status.notAfter");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::validation::tests::request, *};

    /// A certificate for the key of the request of the tests.
    const CERTIFICATE: &str = include_str!("testdata/pod.crt");
    const NOT_BEFORE: &str = "2026-11-23T23:47:23Z";
    const NOT_AFTER: &str = "2026-11-24T23:47:23Z";

    fn condition(condition_type: &str) -> Value {
        json!({"type": condition_type, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": NOT_BEFORE})
    }

    fn issued(change: &[(&str, Value)]) -> Value {
        let mut issued = request(&[("spec.maxExpirationSeconds", json!(86_400))]);
        issued.set(
            "status",
            json!({
                "conditions": [condition("Issued")], "certificateChain": CERTIFICATE, "notBefore": NOT_BEFORE,
                "notAfter": NOT_AFTER, "beginRefreshAt": NOT_AFTER,
            }),
        );
        let refresh = parse_time(NOT_AFTER).unwrap() - REFRESH_MARGIN;
        issued.set("status.beginRefreshAt", format_time(refresh));
        for (path, value) in change {
            issued.set(path, value.clone());
        }
        issued
    }

    #[track_caller]
    fn check(new: &Value, old: &Value, expected: &[&str]) {
        let now = parse_time(NOT_BEFORE).unwrap() + SignedDuration::from_mins(4);
        let messages: Vec<String> = validate(new, old, now)
            .iter()
            .map(|error| format!("{}: {}", error.field, error.detail))
            .collect();
        assert_eq!(messages, expected);
    }

    #[test]
    fn a_request_ends_once() {
        let new = request(&[]);
        let denied = request(&[("status.conditions", json!([condition("Denied")]))]);
        check(&new, &new, &[]);
        check(&denied, &new, &[]);
        check(
            &issued(&[]),
            &denied,
            &["status: immutable after PodCertificateRequest is issued, denied, or failed"],
        );
        check(
            &request(&[("status.notBefore", json!(NOT_BEFORE))]),
            &new,
            &[r#"status: status is immutable unless transitioning to "Issued", "Denied", or "Failed""#],
        );
        let mut with_chain = denied.clone();
        with_chain.set(CHAIN, CERTIFICATE);
        check(
            &with_chain,
            &new,
            &[
                "status: non-condition status fields must be empty when denying or failing the PodCertificateRequest",
            ],
        );
        check(
            &request(&[("status.conditions", json!([condition("Denied"), condition("Failed")]))]),
            &new,
            &[
                r#"status.conditions.[1].type: There may be at most one condition with type "Issued", "Denied", or "Failed""#,
            ],
        );
    }

    #[test]
    fn certificates_are_for_the_key_and_as_long_as_allowed() {
        let old = request(&[]);
        check(&issued(&[]), &old, &[]);
        check(
            &issued(&[(CHAIN, json!(""))]),
            &old,
            &["status.certificateChain: issued certificate chain must contain at least one certificate"],
        );
        let other = include_str!("../cluster_trust_bundle/testdata/leaf.crt");
        check(
            &issued(&[(CHAIN, json!(other))]),
            &old,
            &["status.certificateChain: leaf certificate was not issued to the requested public key"],
        );
        check(
            &issued(&[("status.notAfter", Value::Null)]),
            &old,
            &["status.notAfter: must be present and consistent with the issued certificate"],
        );
        check(
            &issued(&[("status.notAfter", json!(NOT_BEFORE))]),
            &old,
            &["status.notAfter: must be set to the NotAfter time encoded in the leaf certificate"],
        );
        check(
            &issued(&[("spec.maxExpirationSeconds", json!(3600))]),
            &old,
            &[
                "status.certificateChain: leaf certificate lifetime must be <= spec.maxExpirationSeconds (3600)",
            ],
        );
        check(
            &issued(&[("status.beginRefreshAt", json!(NOT_AFTER))]),
            &old,
            &["status.beginRefreshAt: must be at least 10 minutes before status.notAfter"],
        );
        check(
            &issued(&[(CHAIN, json!(format!("{CERTIFICATE}-----BEGIN A-----\nAAAA\n-----END A-----\n")))]),
            &old,
            &[
                "status.certificateChain: issued certificate chain must consist entirely of CERTFICATE PEM blocks",
            ],
        );
    }

    #[test]
    fn mail_addresses_are_plain() {
        for address in ["a@b", "a.b@c.d", "\"a b\"@c"] {
            assert!(is_address(address), "{address}");
        }
        for address in ["", "a", "@b", "a@", "a b@c", "a@b..c"] {
            assert!(!is_address(address), "{address}");
        }
    }
}
