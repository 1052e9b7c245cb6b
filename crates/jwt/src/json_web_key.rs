//! Reads JSON Web Keys ([RFC 7517](https://www.rfc-editor.org/rfc/rfc7517)), as the library of kube-apiserver does.

use crate::{
    PublicKey,
    go_values::{certificates, string, strings, wrong_type},
};
use pintle_go_forms::base64;
use pintle_machinery::Value;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// A JSON Web Key.
#[derive(Debug, Clone)]
pub struct JsonWebKey {
    /// The member `kid`; "" for none.
    pub id: String,
    /// The key that verifies tokens; `None` for private and symmetric keys, for those on other curves, and for RSA keys of an
    /// unsuitable size.
    pub verifying: Option<PublicKey>,
    /// Whether the key is the public half of a pair.
    pub is_public: bool,
}

/// The members that hold bytes.
const BYTES: [&str; 11] = ["k", "x", "y", "n", "e", "d", "p", "q", "dp", "dq", "qi"];

impl JsonWebKey {
    /// The key in a tree.
    ///
    /// # Errors
    /// The message of the library, when the tree is not a key.
    pub fn parse(tree: &Value) -> Result<JsonWebKey, String> {
        let members = match tree {
            Value::Object(_) | Value::Null => tree,
            other => return Err(wrong_type(other, "jose.rawJSONWebKey")),
        };
        let member = |name: &str| members.get(name).unwrap_or(&Value::Null);
        let text = |name: &str| string(member(name));
        for name in BYTES {
            bytes(member(name))?;
        }
        text("use")?;
        text("alg")?;
        if !matches!(member("x5u"), Value::Null | Value::Object(_)) {
            return Err(wrong_type(member("x5u"), "url.URL"));
        }
        strings(member("x5c"))?;
        let chain = certificates(member("x5c"));
        let chain =
            chain.map_err(|error| format!("go-jose/go-jose: failed to unmarshal x5c field: {error}"))?;
        let (verifying, is_public) = key(&text("kty")?, &text("crv")?, |name| bytes(member(name)))?;
        let certified = chain.first().and_then(|certificate| PublicKey::from_certificate(certificate));
        if let (Some(certified), Some(own)) = (&certified, &verifying)
            && certified != own
        {
            return Err(
                "go-jose/go-jose: invalid JWK, public keys in key and x5c fields to not match".to_owned()
            );
        }
        for (name, algorithm, size) in [("x5t", &SHA1_FOR_LEGACY_USE_ONLY, 20), ("x5t#S256", &SHA256, 32)] {
            let print = thumbprint(name, &text(name)?, size)?;
            if let (Some(print), Some(leaf)) = (print, chain.first())
                && digest(algorithm, leaf).as_ref() != print
            {
                return Err(format!(
                    "go-jose/go-jose: invalid JWK, x5c thumbprint does not match {name} value"
                ));
            }
        }
        Ok(JsonWebKey { id: text("kid")?, verifying, is_public })
    }
}

/// The key that verifies, and whether it is a public one.
fn key(
    kind: &str,
    curve: &str,
    bytes: impl Fn(&str) -> Result<Option<Vec<u8>>, String>,
) -> Result<(Option<PublicKey>, bool), String> {
    let refused = |text: &str| Err(format!("go-jose/go-jose: {text}"));
    let private = bytes("d")?;
    match (kind, private) {
        ("RSA", None) => {
            let (Some(modulus), Some(exponent)) = (bytes("n")?, bytes("e")?) else {
                return refused("invalid RSA key, missing n/e values");
            };
            Ok((PublicKey::from_rsa_components(&modulus, &exponent), true))
        }
        ("RSA", Some(_)) => {
            let missing = missing(&["n", "e", "p", "q"], &bytes)?;
            if missing.is_empty() {
                return Ok((None, false));
            }
            refused(&format!("invalid RSA private key, missing {missing} value(s)"))
        }
        ("EC", private) => {
            let Some(size) = PublicKey::coordinate_size(curve) else {
                return refused(&format!("unsupported elliptic curve '{curve}'"));
            };
            let half = if private.is_some() { "private" } else { "public" };
            let (Some(x), Some(y)) = (bytes("x")?, bytes("y")?) else {
                return refused(match private.is_some() {
                    true => "invalid EC private key, missing x/y/d values",
                    false => "invalid EC key, missing x/y values",
                });
            };
            for (name, length) in
                [("x", Some(x.len())), ("y", Some(y.len())), ("d", private.as_ref().map(Vec::len))]
            {
                if length.is_some_and(|length| length != size) {
                    return refused(&format!("invalid EC {half} key, wrong length for {name}"));
                }
            }
            let is_public = private.is_none();
            let key = is_public.then(|| PublicKey::from_ec_components(curve, &x, &y)).flatten();
            Ok((key, is_public))
        }
        ("oct", _) => match bytes("k")? {
            Some(_) => Ok((None, false)),
            None => refused("invalid OCT (symmetric) key, missing k value"),
        },
        ("OKP", private) => match bytes("x")? {
            Some(_) if curve == "Ed25519" => Ok((None, private.is_none())),
            _ => refused(&format!("unknown curve {curve}'")),
        },
        (other, _) => refused(&format!("unknown json web key type '{other}'")),
    }
}

/// The names of the members that are missing, as messages list them.
fn missing(
    names: &[&str],
    bytes: &impl Fn(&str) -> Result<Option<Vec<u8>>, String>,
) -> Result<String, String> {
    for name in names {
        if bytes(name)?.is_none() {
            // The first missing member is named.
            return Ok(name.to_uppercase());
        }
    }
    Ok(String::new())
}

/// Bytes in base64url; `None` where the member is missing.
fn bytes(value: &Value) -> Result<Option<Vec<u8>>, String> {
    match value {
        Value::Null => Ok(None),
        value => base64::decode_raw_url(&string(value)?).map(Some),
    }
}

/// A digest of `size` bytes in base64url, or its hexadecimal digits in base64url.
fn thumbprint(name: &str, text: &str, size: usize) -> Result<Option<Vec<u8>>, String> {
    let invalid = |why: &str| format!("go-jose/go-jose: invalid JWK, {why}");
    let bytes =
        base64::decode_raw_url(text).map_err(|_| invalid(&format!("{name} header has invalid encoding")))?;
    match bytes.len() {
        0 => Ok(None),
        length if length == size => Ok(Some(bytes)),
        length if length == 2 * size => {
            if let Some(wrong) = bytes.iter().find(|byte| !byte.is_ascii_hexdigit()) {
                let shown = char::from(*wrong);
                return Err(invalid(&format!(
                    "unable to hex decode {name}: encoding/hex: invalid byte: U+{wrong:04X} {shown:?}"
                )));
            }
            let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or_default();
            let byte = |pair: &[u8]| pair.iter().fold(0, |byte, digit_of| byte << 4 | digit(digit_of) as u8);
            Ok(Some(bytes.chunks(2).map(byte).collect()))
        }
        _ => Err(invalid(&format!("{name} header is of incorrect size"))),
    }
}
