//! Tests of the sources of keys.

use pintle_machinery::Value;
use pintle_service_account::{OpenIdMetadata, TokenKeys};
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../jwt/tests/keys")).join(name)
}

fn ids(keys: &TokenKeys) -> Vec<String> {
    keys.verifying("").map(|key| key.id().to_owned()).collect()
}

#[test]
fn a_key_is_made_when_it_is_needed_and_kept() {
    let directory = std::env::temp_dir().join(format!("pintle-token-keys-{}", std::process::id()));
    let path = directory.join("certs/service-account.key");
    let keys = TokenKeys::generated(path.clone()).unwrap();
    assert!(keys.can_sign() && ids(&keys).is_empty() && !path.exists());
    keys.ensure().unwrap();
    let made = ids(&keys);
    assert_eq!(made.len(), 1);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    keys.ensure().unwrap();
    assert_eq!(ids(&keys), made);
    let again = TokenKeys::generated(path.clone()).unwrap();
    assert_eq!(ids(&again), made);
    assert_eq!(again.verifying("other").count(), 0);
    fs::write(&path, "no key").unwrap();
    let error = TokenKeys::generated(path.clone()).unwrap_err().to_string();
    assert!(
        error.contains("service-account.key: data does not contain a valid RSA or ECDSA private key"),
        "{error}"
    );
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn files_verify_together_and_one_signs() {
    let several = [fixture("rsa-public.pem"), fixture("p256-certificate.pem"), fixture("rsa-pkcs1.pem")];
    let keys = TokenKeys::from_files(&several, None).unwrap();
    assert!(!keys.can_sign());
    assert_eq!(ids(&keys).len(), 2);
    let signing = TokenKeys::from_files(&[], Some(&fixture("p384-pkcs8.pem"))).unwrap();
    assert!(signing.can_sign());
    assert_eq!(ids(&signing).len(), 1);
    assert!(TokenKeys::from_files(&[fixture("none.pem")], None).is_err());
    assert!(TokenKeys::from_files(&[], Some(&fixture("rsa-public.pem"))).is_err());

    let metadata = OpenIdMetadata::new("https://me", None, "10.0.0.1:6443", Arc::new(keys)).unwrap();
    assert_eq!(
        metadata.configuration().unwrap(),
        r#"{"issuer":"https://me","jwks_uri":"https://10.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256","RS256"]}"#
    );
    let text = metadata.keys().unwrap();
    assert!(text.starts_with(r#"{"keys":[{"use":"sig","kty":"RSA","kid":""#), "{text}");
    let served: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(served["keys"][1]["crv"], "P-256");
}
