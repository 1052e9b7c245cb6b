//! Tests with keys and tokens from another implementation.

use pintle_jwt::{Algorithm, KeyError, PublicKey, SigningKey, Token, public_keys_from_pem};

macro_rules! key {
    ($name:literal) => {
        include_bytes!(concat!("keys/", $name))
    };
}

const RSA: &str = "wlEtPvzUEldQ9qkXQX54aFK6vEmSIxtU4bieNZ709EM";

#[test]
fn keys_are_read_in_every_form_and_known_by_the_digest_of_their_public_half() {
    let check = |pem: &[u8], algorithm: Algorithm, id: &str| {
        let signing = SigningKey::from_pem(pem).unwrap();
        assert_eq!((signing.algorithm(), signing.public().id()), (algorithm, id));
        assert_eq!(public_keys_from_pem(pem).unwrap(), [signing.public().clone()]);
        let token = signing.sign_token(br#"{"sub":"x"}"#).unwrap();
        let token = Token::parse(&token).unwrap();
        assert_eq!((token.key_id.as_str(), token.payload.as_slice()), (id, &br#"{"sub":"x"}"#[..]));
        assert!(token.is_signed_by(signing.public()));
    };
    check(key!("rsa-pkcs1.pem"), Algorithm::Rs256, RSA);
    check(key!("rsa-pkcs8.pem"), Algorithm::Rs256, RSA);
    check(key!("p256-sec1.pem"), Algorithm::Es256, "JPtg-DxyIKarYXzOV_GVD0wu_N2ZVBptS94eJRVduXE");
    check(key!("p384-pkcs8.pem"), Algorithm::Es384, "rQ-MwD2bP1BUbMkGo6FEEHztoUjVD98ZKzFP1-4W6N4");
    check(key!("p521-sec1.pem"), Algorithm::Es512, "KbIQrgg1YsXrQ-5g72sua16RbmpR53mwMDgbkJu0_cI");
}

#[test]
fn a_file_may_hold_several_keys_of_several_kinds() {
    let file = [
        &key!("rsa-public.pem")[..],
        b"# a remark\n",
        key!("ed25519.pem"),
        key!("p256-certificate.pem"),
        key!("p521-public.pem"),
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        key!("p384-pkcs8.pem"),
    ]
    .concat();
    let ids: Vec<_> = public_keys_from_pem(&file).unwrap().iter().map(|key| key.id().to_owned()).collect();
    assert_eq!(
        ids,
        [
            RSA,
            "JPtg-DxyIKarYXzOV_GVD0wu_N2ZVBptS94eJRVduXE",
            "KbIQrgg1YsXrQ-5g72sua16RbmpR53mwMDgbkJu0_cI",
            "rQ-MwD2bP1BUbMkGo6FEEHztoUjVD98ZKzFP1-4W6N4"
        ]
    );
}

#[test]
fn files_without_a_usable_key_say_so() {
    for file in [&b""[..], b"nonsense", key!("ed25519.pem"), key!("rsa-public.pem")] {
        assert_eq!(SigningKey::from_pem(file).unwrap_err(), KeyError::NoPrivateKey);
    }
    assert_eq!(public_keys_from_pem(key!("ed25519.pem")).unwrap_err(), KeyError::NoPublicKeys);
    let weak = SigningKey::from_pem(key!("rsa-1024.pem")).unwrap_err();
    assert!(matches!(weak, KeyError::Unusable(_)), "{weak}");
}

#[test]
fn tokens_of_other_signers_verify_by_the_algorithm_that_they_name_and_by_no_other_key() {
    let keys = |pem: &[u8]| public_keys_from_pem(pem).unwrap().remove(0);
    let rsa = keys(key!("rsa-public.pem"));
    for token in [
        &include_str!("keys/rs384.token"),
        &include_str!("keys/rs512.token"),
        &include_str!("keys/ps256.token"),
    ] {
        let token = Token::parse(token.trim()).unwrap();
        assert!(token.is_signed_by(&rsa), "{:?}", token.algorithm);
        for other in [key!("p256-sec1.pem").as_slice(), key!("p521-public.pem")] {
            assert!(!token.is_signed_by(&keys(other)));
        }
    }
}

#[test]
fn a_changed_token_and_one_that_names_another_algorithm_are_not_signed() {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let signing = SigningKey::from_pem(key!("rsa-pkcs8.pem")).unwrap();
    let text = signing.sign_token(br#"{"sub":"x"}"#).unwrap();
    let parts: Vec<_> = text.split('.').collect();
    let check = |header: &str, payload: &str, signature: &str| {
        let text = [&*URL_SAFE_NO_PAD.encode(header), payload, signature].join(".");
        assert!(!Token::parse(&text).unwrap().is_signed_by(signing.public()), "{header}");
    };
    let other = URL_SAFE_NO_PAD.encode(br#"{"sub":"y"}"#);
    check(r#"{"alg":"RS256"}"#, &other, parts[2]);
    check(r#"{"alg":"none"}"#, parts[1], "");
    check(r#"{"alg":"none"}"#, parts[1], parts[2]);
    check(r#"{}"#, parts[1], parts[2]);
    check(r#"{"alg":"RS384"}"#, parts[1], parts[2]);
    check(r#"{"alg":"ES256"}"#, parts[1], parts[2]);
    // The public key as the secret of an HMAC: algorithm confusion.
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#), parts[1]);
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key!("rsa-public.pem"));
    let tag = ring::hmac::sign(&secret, message.as_bytes());
    check(r#"{"alg":"HS256"}"#, parts[1], &URL_SAFE_NO_PAD.encode(tag));
    // Extensions that must be understood, and are not.
    for header in [r#"{"alg":"RS256","crit":["exp"]}"#, r#"{"alg":"RS256","crit":"b64"}"#] {
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), parts[1]);
        let signature = URL_SAFE_NO_PAD.encode(signing.sign(message.as_bytes()).unwrap());
        check(header, parts[1], &signature);
    }
}

#[test]
fn a_token_is_signed_in_its_canonical_form_and_its_payload_may_be_signed_unencoded() {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let signing = SigningKey::from_pem(key!("rsa-pkcs8.pem")).unwrap();
    let check = |header: &str, payload: &str, message: &str, written: fn(String) -> String| {
        let message = format!("{}.{message}", URL_SAFE_NO_PAD.encode(header));
        let signature = URL_SAFE_NO_PAD.encode(signing.sign(message.as_bytes()).unwrap());
        let parts = [URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload), signature];
        let text = written(parts.join("."));
        assert!(Token::parse(&text).unwrap().is_signed_by(signing.public()), "{header} {text}");
    };
    let plain = r#"{"alg":"RS256"}"#;
    let encoded = URL_SAFE_NO_PAD.encode("{}");
    check(plain, "{}", &encoded, |text| text);
    check(plain, "{}", &encoded, |text| text.replacen('.', " \n.", 1));
    check(plain, "{}", &encoded, |text| text.replacen(".e30.", ".e31.", 1));
    check(r#"{"alg":"RS256","crit":[]}"#, "{}", &encoded, |text| text);
    check(r#"{"alg":"RS256","crit":["b64"],"b64":true}"#, "{}", &encoded, |text| text);
    check(r#"{"alg":"RS256","crit":["b64"],"b64":false}"#, "{}", "{}", |text| text);
}

#[test]
fn headers_are_refused_with_the_messages_of_the_reference() {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    for (header, message) in [
        ("[]", "json: cannot unmarshal array into Go value of type jose.rawHeader"),
        ("{}x", "invalid character 'x' after top-level value"),
        (r#"{"alg":"a","alg":"b"}"#, "json: duplicate key 'alg' in object"),
        (
            r#"{"alg":1}"#,
            "failed to unmarshal algorithm: json: cannot unmarshal number into Go value of type string: \"1\"",
        ),
        (
            r#"{"kid":[ ]}"#,
            "failed to unmarshal key ID: json: cannot unmarshal array into Go value of type string: \"[ ]\"",
        ),
        (r#"{"jwk":{}}"#, "failed to unmarshal JWK: go-jose/go-jose: unknown json web key type '': \"{}\""),
        (r#"{"jwk":{"kty":"oct","k":"AA"}}"#, "go-jose/go-jose: invalid embedded jwk, must be public key"),
        (
            r#"{"z":1e999}"#,
            "failed to unmarshal value: json: cannot unmarshal number 1e999 into Go value of type float64: \"1e999\"",
        ),
    ] {
        let text = format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(header));
        assert_eq!(Token::parse(&text).unwrap_err().to_string(), message, "{header}");
    }
    let parts = "go-jose/go-jose: compact JWS format must have three parts";
    assert_eq!(Token::parse("a.b").unwrap_err().to_string(), parts);
    assert_eq!(Token::parse("e30.!.AA").unwrap_err().to_string(), "illegal base64 data at input byte 0");
}

#[test]
fn web_keys_verify_if_they_are_public_and_are_refused_as_the_reference_refuses_them() {
    use pintle_jwt::JsonWebKey;
    use pintle_machinery::json;
    let rsa = public_keys_from_pem(key!("rsa-public.pem")).unwrap().remove(0);
    let members: serde_json::Map<_, _> =
        rsa.json_web_key().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let with = |name: &str, value: serde_json::Value| {
        let mut members = members.clone();
        members.insert(name.to_owned(), value);
        let text = serde_json::to_vec(&members).unwrap();
        JsonWebKey::parse(&pintle_machinery::codec::json::decode_any(&text).unwrap())
    };
    let key = with("kid", "a".into()).unwrap();
    assert_eq!((key.id.as_str(), key.verifying.as_ref(), key.is_public), ("a", Some(&rsa), true));
    for (name, value, message) in [
        ("kty", "foo", "go-jose/go-jose: unknown json web key type 'foo'"),
        ("kty", "oct", "go-jose/go-jose: invalid OCT (symmetric) key, missing k value"),
        ("kty", "OKP", "go-jose/go-jose: unknown curve '"),
        ("kty", "EC", "go-jose/go-jose: unsupported elliptic curve ''"),
        ("d", "AA", "go-jose/go-jose: invalid RSA private key, missing P value(s)"),
        ("n", "!", "illegal base64 data at input byte 0"),
        ("x5c", "a", "json: cannot unmarshal string into Go value of type []string"),
        ("x5u", "a", "json: cannot unmarshal string into Go value of type url.URL"),
        ("x5t", "AAAA", "go-jose/go-jose: invalid JWK, x5t header is of incorrect size"),
        ("x5t", "!", "go-jose/go-jose: invalid JWK, x5t header has invalid encoding"),
    ] {
        assert_eq!(with(name, value.into()).unwrap_err(), message, "{name} {value}");
    }
    for (tree, is_public) in [
        (json!({"kty": "oct", "k": "AA"}), false),
        (json!({"kty": "OKP", "crv": "Ed25519", "x": "AA"}), true),
        (json!({"kty": "RSA", "n": "AQ", "e": "AQ"}), true),
    ] {
        let key = JsonWebKey::parse(&tree).unwrap();
        assert_eq!((key.verifying.is_none(), key.is_public), (true, is_public), "{tree:?}");
    }
}

#[test]
fn what_is_no_token_is_refused() {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let header = |text: &str| format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(text));
    assert!(Token::parse(&header(r#"{"alg":"RS256"}"#)).is_ok());
    let wrong = [
        String::new(),
        "a".to_owned(),
        "e30.e30".to_owned(),
        "e30.e30.AA.AA".to_owned(),
        "e30=.e30.AA".to_owned(),
        "e30.e30.A+".to_owned(),
        "e30.e30.A".to_owned(),
        header("[]"),
        header(r#"["RS256",null,null]"#),
        header(r#"{"alg":5}"#),
        header(r#"{"alg":"RS256","alg":"none"}"#),
        header(r#"{"kid":"a","alg":"RS256","kid":"b"}"#),
        header(&format!(r#"{{"alg":"RS256","x":{}}}"#, "[".repeat(10_000))),
        header(&format!(r#"{{"alg":"RS256","x":"{}"}}"#, "x".repeat(100_000))),
    ];
    for text in wrong {
        assert!(Token::parse(&text).is_err(), "{:.60}", text);
    }
}

#[test]
fn a_key_that_was_made_is_one_that_is_read_again() {
    let (key, file) = SigningKey::generate_rsa().unwrap();
    let again = SigningKey::from_pem(file.as_bytes()).unwrap();
    assert_eq!(key.public(), again.public());
    let token = again.sign_token(b"{}").unwrap();
    assert!(Token::parse(&token).unwrap().is_signed_by(key.public()));
    let (other, _) = SigningKey::generate_rsa().unwrap();
    assert_ne!(key.public(), other.public());
    assert!(!Token::parse(&token).unwrap().is_signed_by(other.public()));
}

#[test]
fn json_web_keys_have_their_members_in_the_order_of_the_reference() {
    let names = |pem: &[u8]| -> Vec<_> {
        let key = public_keys_from_pem(pem).unwrap().remove(0);
        key.json_web_key().into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(key!("rsa-public.pem")), ["use", "kty", "kid", "alg", "n", "e"]);
    assert_eq!(names(key!("p521-public.pem")), ["use", "kty", "kid", "crv", "alg", "x", "y"]);
    let key: PublicKey = public_keys_from_pem(key!("rsa-public.pem")).unwrap().remove(0);
    assert_eq!(key.json_web_key().last().unwrap(), &("e", "AQAB".into()));
}

proptest::proptest! {
    #[test]
    fn nothing_that_is_read_panics(bytes: Vec<u8>, text in "[A-Za-z0-9_.-]{0,200}") {
        let _ = public_keys_from_pem(&bytes);
        let _ = SigningKey::from_pem(&bytes);
        let _ = PublicKey::from_spki(&bytes);
        let _ = Token::parse(&text);
    }
}
