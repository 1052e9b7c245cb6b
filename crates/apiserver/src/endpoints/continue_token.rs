//! Continue tokens: where a paged list goes on, and at which revision. Opaque to clients; the form is that of the
//! reference, so that a client's list survives a change of server.

use base64::Engine;
use serde::{Deserialize, Serialize};

const VERSION: &str = "meta.k8s.io/v1";
const BASE64: base64::engine::GeneralPurpose = base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A decoded token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContinueToken {
    /// The revision of the list; `None` to go on from the newest state.
    pub(super) resource_version: Option<u64>,
    /// The storage key to go on from.
    pub(super) start_key: String,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    v: String,
    rv: i64,
    #[serde(default)]
    start: String,
}

impl ContinueToken {
    /// The text of the token, with keys relative to a prefix.
    pub(super) fn encode(&self, prefix: &str) -> String {
        let wire = Wire {
            v: VERSION.to_owned(),
            rv: self.resource_version.map_or(-1, |version| i64::try_from(version).unwrap_or(i64::MAX)),
            start: self.start_key.strip_prefix(prefix).unwrap_or(&self.start_key).to_owned(),
        };
        BASE64.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    /// Reads a token.
    ///
    /// # Errors
    /// Why it is none, in the words clients see.
    pub(super) fn decode(text: &str, prefix: &str) -> Result<ContinueToken, String> {
        let bytes =
            BASE64.decode(text.trim_end_matches('=')).map_err(|_| "illegal base64 data".to_owned())?;
        let wire: Wire = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        if wire.v != VERSION {
            return Err(format!(
                "server does not recognize this encoded version {}",
                pintle_machinery::error_list::quote(&wire.v)
            ));
        }
        if wire.rv == 0 {
            return Err("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned());
        }
        if wire.start.is_empty() {
            return Err("encoded start key empty (version meta.k8s.io/v1)".to_owned());
        }
        // A key that climbs out of the resource would read other resources' objects.
        if wire.start.split('/').any(|part| part == ".." || part == ".") || wire.start.starts_with('/') {
            return Err(format!("invalid continue key: {}", wire.start));
        }
        Ok(ContinueToken {
            resource_version: u64::try_from(wire.rv).ok(),
            start_key: format!("{prefix}{}", wire.start),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
        let token = ContinueToken { resource_version: Some(7), start_key: "/registry/pods/a/b\0".to_owned() };
        let text = token.encode("/registry/pods/");
        assert_eq!(ContinueToken::decode(&text, "/registry/pods/"), Ok(token));
    }

    #[test]
    fn forged_tokens_are_refused() {
        for forged in [
            "",
            "zzz!",
            "e30",
            &BASE64.encode(r#"{"v":"v9","rv":1,"start":"a"}"#),
            &BASE64.encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
            &BASE64.encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets"}"#),
            &BASE64.encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#),
        ] {
            assert!(ContinueToken::decode(forged, "/registry/pods/").is_err(), "{forged}");
        }
    }
}
