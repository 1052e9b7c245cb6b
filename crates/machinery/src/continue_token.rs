//! Encodes and decodes continue tokens: the position where the next page of a list begins
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks>).
//!
//! A token is JSON in base64: `{"v":"meta.k8s.io/v1","rv":7,"start":"default/a\u0000"}`. The start is the first key of
//! the next page, without the key prefix of the listed resource. The server adds its own prefix, so that a forged token
//! reads nothing outside the list.

use crate::{Status, Value, codec::json, text::go_json_type};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

const VERSION: &str = "meta.k8s.io/v1";

/// The position where the next page of a list begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// The resourceVersion of all pages; `None` when it is compacted and the remaining pages come from the latest
    /// state.
    pub resource_version: Option<u64>,
    /// The first key of the next page.
    pub start_key: String,
}

/// The reasons why a token is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContinueTokenError {
    /// The resourceVersion is missing.
    #[error("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")]
    InvalidResourceVersion,
    /// The start key is missing.
    #[error("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")]
    EmptyStartKey,
    /// The token is malformed.
    #[error("continue key is not valid: {0}")]
    Invalid(String),
    /// The token has another format version.
    #[error("continue key is not valid: server does not recognize this encoded version {0}")]
    UnrecognizedVersion(String),
}

impl From<ContinueTokenError> for Status {
    fn from(error: ContinueTokenError) -> Status {
        Status::bad_request(format!("invalid continue token: {error}"))
    }
}

#[derive(Serialize, Default)]
struct Encoded {
    #[serde(rename = "v")]
    version: String,
    #[serde(rename = "rv")]
    resource_version: i64,
    start: String,
}

/// The names of the members.
const MEMBERS: [&str; 3] = ["v", "rv", "start"];

impl Encoded {
    /// Decodes the JSON of a token; the error is Go's.
    fn decode(bytes: &[u8]) -> Result<Encoded, String> {
        let mut encoded = Encoded::default();
        let members = match json::decode_any(bytes).map_err(|error| error.to_string())? {
            Value::Object(members) => members,
            Value::Null => return Ok(encoded),
            other => {
                let found = go_json_type(&other);
                return Err(format!(
                    "json: cannot unmarshal {found} into Go value of type storage.continueToken"
                ));
            }
        };
        for (name, value) in members {
            // As in Go, the case of names does not matter.
            let Some(name) = MEMBERS.into_iter().find(|member| member.eq_ignore_ascii_case(&name)) else {
                continue;
            };
            let wrong = |ty: &str| {
                let found = match &value {
                    Value::Number(number) if ty == "int64" => format!("number {number}"),
                    other => go_json_type(other).to_owned(),
                };
                format!(
                    "json: cannot unmarshal {found} into Go struct field continueToken.{name} of type {ty}"
                )
            };
            match (name, &value) {
                (_, Value::Null) => {}
                ("v", Value::String(text)) => encoded.version = text.to_string(),
                ("start", Value::String(text)) => encoded.start = text.to_string(),
                ("rv", Value::Number(number)) if !number.is_f64() => {
                    encoded.resource_version = number.as_i64().ok_or_else(|| wrong("int64"))?;
                }
                ("v" | "start", _) => return Err(wrong("string")),
                ("rv", _) => return Err(wrong("int64")),
                _ => {}
            }
        }
        Ok(encoded)
    }
}

impl ContinueToken {
    /// Encodes the token for a client. `key_prefix` is the key prefix of the listed resource, which the start key
    /// contains.
    pub fn encode(&self, key_prefix: &str) -> String {
        let start = self.start_key.strip_prefix(key_prefix).unwrap_or(&self.start_key);
        let resource_version = match self.resource_version {
            Some(version) => i64::try_from(version).unwrap_or(i64::MAX),
            None => -1,
        };
        let encoded = Encoded { version: VERSION.into(), resource_version, start: start.into() };
        // Strings and a number always have a JSON form.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&encoded).unwrap_or_default())
    }

    /// Decodes a token for a list of the keys with this prefix.
    ///
    /// # Errors
    /// [`ContinueTokenError`], when the token is invalid.
    pub fn decode(token: &str, key_prefix: &str) -> Result<ContinueToken, ContinueTokenError> {
        let bytes = pintle_go_forms::base64::decode_raw_url(token).map_err(ContinueTokenError::Invalid)?;
        let encoded = Encoded::decode(&bytes).map_err(ContinueTokenError::Invalid)?;
        if encoded.version != VERSION {
            return Err(ContinueTokenError::UnrecognizedVersion(encoded.version));
        }
        if encoded.resource_version == 0 {
            return Err(ContinueTokenError::InvalidResourceVersion);
        }
        if encoded.start.is_empty() {
            return Err(ContinueTokenError::EmptyStartKey);
        }
        let relative = encoded.start.strip_prefix('/').unwrap_or(&encoded.start);
        if !is_clean(relative) {
            return Err(ContinueTokenError::Invalid(encoded.start));
        }
        Ok(ContinueToken {
            resource_version: u64::try_from(encoded.resource_version).ok(),
            start_key: format!("{key_prefix}{relative}"),
        })
    }
}

/// Whether a relative path has no empty, `.` or `..` segments.
fn is_clean(path: &str) -> bool {
    path.is_empty() || path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "/registry/pods/";

    fn decode_json(json: &str) -> Result<ContinueToken, ContinueTokenError> {
        ContinueToken::decode(&URL_SAFE_NO_PAD.encode(json), PREFIX)
    }

    #[test]
    fn tokens_are_those_of_kubernetes() {
        let token =
            ContinueToken { resource_version: Some(7), start_key: "/registry/pods/default/a\0".to_owned() };
        let text = token.encode(PREFIX);
        let json = URL_SAFE_NO_PAD.decode(&text).unwrap();
        assert_eq!(
            String::from_utf8(json).unwrap(),
            r#"{"v":"meta.k8s.io/v1","rv":7,"start":"default/a\u0000"}"#
        );
        assert_eq!(ContinueToken::decode(&text, PREFIX), Ok(token));
        let latest = ContinueToken { resource_version: None, start_key: "/registry/pods/b".to_owned() };
        assert_eq!(ContinueToken::decode(&latest.encode(PREFIX), PREFIX), Ok(latest));
    }

    #[test]
    fn the_case_of_names_does_not_matter() {
        let token = decode_json(r#"{"V":"meta.k8s.io/v1","Rv":1,"START":"a"}"#).unwrap();
        assert_eq!((token.resource_version, token.start_key.as_str()), (Some(1), "/registry/pods/a"));
    }

    #[test]
    fn what_is_no_token_says_why() {
        let rows = [
            (r#"{"v":"meta.k8s.io/v1","start":"a"}"#, ContinueTokenError::InvalidResourceVersion),
            (r#"{"v":"meta.k8s.io/v1","rv":1}"#, ContinueTokenError::EmptyStartKey),
            (r#"{"v":"v2","rv":1,"start":"a"}"#, ContinueTokenError::UnrecognizedVersion("v2".to_owned())),
            (
                r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets"}"#,
                ContinueTokenError::Invalid("../secrets".to_owned()),
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}"#,
                ContinueTokenError::Invalid("a//b".to_owned()),
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a/"}"#, ContinueTokenError::Invalid("a/".to_owned())),
        ];
        for (json, error) in rows {
            assert_eq!(decode_json(json), Err(error), "{json}");
        }
        assert_eq!(
            Status::from(ContinueToken::decode("a$b", PREFIX).unwrap_err()).message,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 1"
        );
        let malformed = [
            ("[]x", "invalid character 'x' after top-level value"),
            ("[]", "json: cannot unmarshal array into Go value of type storage.continueToken"),
            (
                r#"{"rv":"1"}"#,
                "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
            ),
            (
                r#"{"rv":1.5}"#,
                "json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64",
            ),
            (
                r#"{"v":1}"#,
                "json: cannot unmarshal number into Go struct field continueToken.v of type string",
            ),
        ];
        for (json, why) in malformed {
            assert_eq!(decode_json(json), Err(ContinueTokenError::Invalid(why.to_owned())), "{json}");
        }
    }
}
