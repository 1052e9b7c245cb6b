//! Validates new pod certificate requests. The pod proves that it has the private key.

use crate::{
    certificates::{
        public_key::PublicKey,
        request_signature::check_signature,
        signer_name::{is_kubernetes_signer, validate_signer_name},
    },
    field_checks::{invalid_each, invalid_each_of_named_type},
    rules,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_go_forms::to_lower;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Map, Value, ValueExt,
    validation::{is_dns1123_subdomain, is_qualified_name, validate_annotations},
};
use pintle_x509::{EC_KEY, ED25519_KEY, RSA_KEY};
use x509_parser::{certification_request::X509CertificationRequest, prelude::FromDer};

const MAX_UID: usize = 128;
const MAX_KEY: usize = 10 << 10;
const MIN_SECONDS: i64 = 60 * 60;
/// The longest lifetime of certificates of Kubernetes' own signers.
const KUBERNETES_MAX_SECONDS: i64 = 24 * 60 * 60;
const MAX_SECONDS: i64 = 91 * 24 * 60 * 60;

pub(super) const KEY: &str = "spec.pkixPublicKey";
pub(super) const PROOF: &str = "spec.proofOfPossession";
pub(super) const STUB: &str = "spec.stubPKCS10Request";

/// Validates a new request.
pub(super) fn validate(request: &Value) -> ErrorList {
    let mut errors = rules::metadata(request, true);
    errors.extend(validate_spec(request));
    errors
}

/// Validates an update: only the metadata may change.
pub(super) fn validate_update(request: &Value, old: &Value) -> ErrorList {
    let mut errors = rules::metadata_update(request, old);
    let (new, old) = (rules::value_at(request, "spec"), rules::value_at(old, "spec"));
    let path = FieldPath::new("spec");
    errors.extend(pintle_internal_form::validate_immutable(
        new,
        old,
        &path,
        "certificates.PodCertificateRequestSpec",
    ));
    errors
}

/// The decoded bytes of a member; decoding has rejected invalid base64.
pub(super) fn bytes(request: &Value, path: &str) -> Vec<u8> {
    STANDARD.decode(request.str_at(path)).unwrap_or_default()
}

fn validate_spec(request: &Value) -> ErrorList {
    let path = FieldPath::new("spec");
    let signer = request.str_at("spec.signerName");
    let mut errors = validate_signer_name(signer, &path.child("signerName"));
    let annotations = request.map_at("spec.unverifiedUserAnnotations");
    errors.extend(validate_user_annotations(annotations, &path.child("unverifiedUserAnnotations")));
    for (name, uid) in
        [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")]
    {
        let (text, at) = (request.str_at(&format!("spec.{name}")), path.child(name));
        let messages = is_dns1123_subdomain(text);
        errors.extend(match name {
            "nodeName" => invalid_each_of_named_type(&at, text, messages),
            _ => invalid_each(&at, text, messages),
        });
        let (text, at) = (request.str_at(&format!("spec.{uid}")), path.child(uid));
        match text.len() {
            0 => errors.push(FieldError::invalid(&at, "", "must not be empty")),
            length if length > MAX_UID => errors.push(FieldError::too_long(&at, MAX_UID)),
            _ => {}
        }
    }
    let at = path.child("maxExpirationSeconds");
    let Some(seconds) = request.i64_at("spec.maxExpirationSeconds") else {
        errors.push(FieldError::required(&at, "must be set"));
        return errors;
    };
    let max = if is_kubernetes_signer(signer) { KUBERNETES_MAX_SECONDS } else { MAX_SECONDS };
    if !(MIN_SECONDS..=max).contains(&seconds) {
        let detail = format!("must be in the range [{MIN_SECONDS}, {max}]");
        errors.push(FieldError::invalid(&at, seconds, detail));
    }
    let has = |path: &str| !request.str_at(path).is_empty();
    errors.extend(match (has(STUB), has(KEY), has(PROOF)) {
        (true, false, false) => validate_stub(&bytes(request, STUB)).err(),
        (false, true, true) => validate_proof(request).err(),
        _ => {
            let detail =
                "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
            Some(rules::invalid_whole(&path, detail))
        }
    });
    errors
}

/// Requires keys with a domain.
fn validate_user_annotations(annotations: &Map, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for key in annotations.keys().map(|key| to_lower(key)) {
        if key.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let wrong = invalid_each(path, &key, is_qualified_name(&key));
        if wrong.is_empty() && !key.contains('/') {
            let detail = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, key, detail));
        } else {
            errors.extend(wrong);
        }
    }
    // The size is that of annotations; their keys were checked above.
    let size = validate_annotations(annotations, path);
    errors.extend(size.into_iter().filter(|error| error.error_type == pintle_machinery::ErrorType::TooLong));
    errors
}

/// Requires a request of PKCS #10 with a strong key and a valid signature.
fn validate_stub(der: &[u8]) -> Result<(), FieldError> {
    let path = FieldPath::new(STUB);
    if der.len() > MAX_KEY {
        return Err(FieldError::too_long(&path, MAX_KEY));
    }
    let malformed = || rules::invalid_whole(&path, "must be a valid PKCS#10 CSR");
    let Ok(([], request)) = X509CertificationRequest::from_der(der) else { return Err(malformed()) };
    let info = &request.certification_request_info.subject_pki;
    match PublicKey::of(info) {
        None if is_known_type(&info.algorithm.algorithm.to_id_string()) => return Err(malformed()),
        None | Some(PublicKey::Other) => {
            let detail = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";
            return Err(rules::invalid_whole(&path, detail));
        }
        Some(key) => {
            if let Some((shown, detail)) = key.weakness() {
                return Err(FieldError::invalid(&path, shown, detail));
            }
        }
    }
    check_signature(&request).map_err(|_| rules::invalid_whole(&path, "invalid signature"))
}

/// Whether a malformed key of this type makes the whole request malformed.
fn is_known_type(algorithm: &str) -> bool {
    [RSA_KEY, EC_KEY, ED25519_KEY].contains(&algorithm)
}

/// Requires a strong key, and its signature of the pod's UID.
fn validate_proof(request: &Value) -> Result<(), FieldError> {
    let (key_path, proof_path) = (FieldPath::new(KEY), FieldPath::new(PROOF));
    let (key, proof) = (bytes(request, KEY), bytes(request, PROOF));
    for (bytes, path) in [(&key, &key_path), (&proof, &proof_path)] {
        if bytes.len() > MAX_KEY {
            return Err(FieldError::too_long(path, MAX_KEY));
        }
    }
    let shown = request.str_at(KEY);
    let Some(key) = PublicKey::from_der(&key) else {
        return Err(FieldError::invalid(&key_path, shown, "must be a valid PKIX-serialized public key"));
    };
    if key == PublicKey::Other {
        let detail = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";
        return Err(FieldError::invalid(&key_path, shown, detail));
    }
    if let Some((shown, detail)) = key.weakness() {
        // The reference names two curves here, and accepts three.
        let detail = detail.replace("P256, P384, or P521", "P256 or P384");
        return Err(FieldError::invalid(&key_path, shown, detail));
    }
    match key.verifies(request.str_at("spec.podUID").as_bytes(), &proof) {
        true => Ok(()),
        false => Err(rules::invalid_whole(&proof_path, "could not verify proof-of-possession signature")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use pintle_machinery::json;

    const UID: &str = "11111111-1111-1111-1111-111111111111";
    pub(in super::super) const STUB_OF_P256: &str = include_str!("testdata/stub-p256.base64");

    pub(in super::super) fn request(change: &[(&str, Value)]) -> Value {
        let mut request = json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}, "spec": {
            "signerName": "example.com/s", "podName": "p", "podUID": UID, "serviceAccountName": "s",
            "serviceAccountUID": UID, "nodeName": "n", "nodeUID": UID, "maxExpirationSeconds": 3600,
            "stubPKCS10Request": STUB_OF_P256.replace('\n', ""),
        }});
        for (path, value) in change {
            request.set(path, value.clone());
        }
        request
    }

    #[track_caller]
    fn check(change: &[(&str, Value)], expected: &[&str]) {
        let errors = validate(&request(change));
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn requests_are_checked() {
        check(&[], &[]);
        check(
            &[("spec.podUID", json!("")), ("spec.maxExpirationSeconds", json!(60))],
            &[
                "spec.podUID: Invalid value: \"\": must not be empty",
                "spec.maxExpirationSeconds: Invalid value: 60: must be in the range [3600, 7862400]",
            ],
        );
        check(
            &[
                ("spec.signerName", json!("kubernetes.io/kube-apiserver-client-pod")),
                ("spec.maxExpirationSeconds", json!(86_401)),
            ],
            &["spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"],
        );
        check(
            &[("spec.unverifiedUserAnnotations", json!({"a": "b"}))],
            &[
                "spec.unverifiedUserAnnotations: Invalid value: \"a\": must be a domain-prefixed key (such as \"acme.io/foo\")",
            ],
        );
        check(&[("spec.unverifiedUserAnnotations", json!({"Example.com/A": "b"}))], &[]);
    }

    #[test]
    fn the_key_is_proven() {
        check(
            &[(STUB, Value::Null)],
            &[
                "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
            ],
        );
        check(
            &[(STUB, json!("eA=="))],
            &["spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"],
        );
        let mut other = bytes(&request(&[]), STUB);
        *other.last_mut().unwrap() ^= 1;
        check(
            &[(STUB, json!(STANDARD.encode(other)))],
            &["spec.stubPKCS10Request: Invalid value: invalid signature"],
        );
        for (key, proof) in [
            (include_str!("testdata/key-ed25519.base64"), include_str!("testdata/proof-ed25519.base64")),
            (include_str!("testdata/key-p384.base64"), include_str!("testdata/proof-p384.base64")),
            (include_str!("testdata/key-rsa.base64"), include_str!("testdata/proof-rsa.base64")),
        ] {
            let (key, proof) = (json!(key.replace('\n', "")), json!(proof.replace('\n', "")));
            check(&[(STUB, Value::Null), (KEY, key.clone()), (PROOF, proof.clone())], &[]);
            check(
                &[(STUB, Value::Null), (KEY, key), (PROOF, proof), ("spec.podUID", json!("other"))],
                &["spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature"],
            );
        }
        check(
            &[(STUB, Value::Null), (KEY, json!("eA==")), (PROOF, json!("eA=="))],
            &["spec.pkixPublicKey: Invalid value: \"eA==\": must be a valid PKIX-serialized public key"],
        );
        let mut off_curve =
            STANDARD.decode(include_str!("testdata/key-p384.base64").replace('\n', "")).unwrap();
        *off_curve.last_mut().unwrap() ^= 1;
        let off_curve = STANDARD.encode(off_curve);
        let message = format!(
            "spec.pkixPublicKey: Invalid value: \"{off_curve}\": must be a valid PKIX-serialized public key"
        );
        check(&[(STUB, Value::Null), (KEY, json!(off_curve)), (PROOF, json!("eA=="))], &[&message]);
    }

    #[test]
    fn the_spec_is_immutable() {
        let errors = validate_update(&request(&[("spec.podName", json!("q"))]), &request(&[]));
        let text = errors.first().map(ToString::to_string).unwrap_or_default();
        assert!(
            text.starts_with("spec: Invalid value: {\"SignerName\":\"example.com/s\",\"PodName\":\"q\","),
            "{text}"
        );
        assert!(text.contains("\"MaxExpirationSeconds\":3600,\"PKIXPublicKey\":null,"), "{text}");
    }
}
