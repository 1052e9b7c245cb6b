//! Reads the header of a token, as the library of kube-apiserver does.

use crate::{
    go_values::{certificates, string, strings, wrong_type},
    json_web_key::JsonWebKey,
};
use pintle_go_forms::quote;
use pintle_machinery::{
    Value,
    codec::{
        DecodeError,
        json::{decode_any, raw_members},
    },
};
use std::collections::HashSet;

/// The relevant part of a header.
#[derive(Debug)]
pub(crate) struct Header {
    /// The name of the algorithm.
    pub(crate) algorithm: String,
    pub(crate) key_id: String,
    /// Whether all extensions that a recipient must understand are understood.
    pub(crate) is_understood: bool,
    /// Whether the payload is signed as base64url ([RFC 7797](https://www.rfc-editor.org/rfc/rfc7797)).
    pub(crate) signs_base64: bool,
}

/// The only extension that may be critical.
const UNENCODED_PAYLOAD: &str = "b64";

impl Header {
    /// Parses the bytes of a header. Duplicate members are refused: implementations differ in which one they use.
    ///
    /// # Errors
    /// The message of the library, when the header is invalid.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Header, String> {
        let mut header = Header {
            algorithm: String::new(),
            key_id: String::new(),
            is_understood: true,
            signs_base64: true,
        };
        if bytes.is_empty() {
            return Ok(header);
        }
        let text = String::from_utf8_lossy(bytes);
        match decode_any(text.as_bytes()) {
            Ok(Value::Null) => return Ok(header),
            // A number that has no float is found with its member.
            Ok(Value::Object(_)) | Err(DecodeError::Type { .. }) => {}
            Ok(other) => return Err(wrong_type(&other, "jose.rawHeader")),
            Err(error) => return Err(error.to_string()),
        }
        let members = raw_members(text.as_bytes()).map_err(|error| error.to_string())?;
        let mut names = HashSet::new();
        if let Some((name, _)) = members.iter().find(|(name, _)| !names.insert(name.as_str())) {
            return Err(format!("json: duplicate key '{name}' in object"));
        }
        let mut key = None;
        for (name, raw) in &members {
            let within = |what: &str, error: String| {
                format!("failed to unmarshal {what}: {error}: {}", quote(raw.get()))
            };
            let value = decode_any(raw.get().as_bytes());
            let value = value.map_err(|error| within("value", error.to_string()))?;
            if value.is_null() {
                continue;
            }
            let text = |what: &str| string(&value).map_err(|error| within(what, error));
            match name.as_str() {
                "alg" => header.algorithm = text("algorithm")?,
                "kid" => header.key_id = text("key ID")?,
                "nonce" => drop(text("nonce")?),
                "jwk" => key = Some(JsonWebKey::parse(&value).map_err(|error| within("JWK", error))?),
                "x5c" => drop(certificates(&value).map_err(|error| within("x5c header", error))?),
                "crit" => {
                    header.is_understood =
                        strings(&value).is_ok_and(|names| names.iter().all(|name| name == UNENCODED_PAYLOAD));
                }
                UNENCODED_PAYLOAD => header.signs_base64 = value.as_bool().unwrap_or(true),
                _ => {}
            }
        }
        if key.is_some_and(|key| !key.is_public) {
            return Err("go-jose/go-jose: invalid embedded jwk, must be public key".to_owned());
        }
        Ok(header)
    }
}
