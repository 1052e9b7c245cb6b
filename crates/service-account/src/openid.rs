//! OpenID discovery: the documents with which others verify tokens
//! (<https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#service-account-issuer-discovery>).

use crate::{ExternalSigner, TokenKeys, TokenKeysError};
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc};

/// The path of the configuration.
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// The path of the keys.
pub const KEYS_PATH: &str = "/openid/v1/jwks";
/// The time for which the documents may be cached, in seconds, if the keys do not change.
const MAX_AGE_SECONDS: u64 = 3600;

/// The reason why no documents are served. It is not an error of the server: issuers need not be URLs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenIdError {
    /// The issuer is not an https URL.
    #[error("issuer URL must use https scheme, got: {0}")]
    Scheme(String),
    /// The issuer's URL has a query or a fragment.
    #[error("issuer URL may not include a {1}, got: {0}")]
    Part(String, &'static str),
    /// The URI of the keys is not an https URL.
    #[error("jwksURI requires https scheme, parsed as: {0}")]
    KeysScheme(String),
}

/// The two documents of OpenID discovery.
pub struct OpenIdMetadata {
    issuer: String,
    keys_uri: String,
    keys: Arc<TokenKeys>,
}

impl OpenIdMetadata {
    /// The time for which the documents may be cached, in seconds.
    pub fn max_age_seconds(&self) -> u64 {
        self.keys.signer().map_or(MAX_AGE_SECONDS, ExternalSigner::max_age_seconds)
    }

    /// The documents of an issuer whose keys are at `keys_uri`, or at this server's address when none is given.
    ///
    /// # Errors
    /// When the issuer or the URI of the keys is invalid for discovery.
    pub fn new(
        issuer: &str,
        keys_uri: Option<&str>,
        address: &str,
        keys: Arc<TokenKeys>,
    ) -> Result<OpenIdMetadata, OpenIdError> {
        if !has_https(issuer) {
            return Err(OpenIdError::Scheme(issuer.to_owned()));
        }
        let (issuer_path, fragment) = issuer.split_once('#').unwrap_or((issuer, ""));
        if issuer_path.split_once('?').is_some_and(|(_, query)| !query.is_empty()) {
            return Err(OpenIdError::Part(issuer.to_owned(), "query"));
        }
        if !fragment.is_empty() {
            return Err(OpenIdError::Part(issuer.to_owned(), "fragment"));
        }
        let keys_uri = match keys_uri {
            Some(uri) if has_https(uri) => uri.to_owned(),
            Some(uri) => return Err(OpenIdError::KeysScheme(uri.to_owned())),
            None => format!("https://{address}{KEYS_PATH}"),
        };
        Ok(OpenIdMetadata { issuer: issuer.to_owned(), keys_uri, keys })
    }

    /// The configuration document. The first call may block while the server generates its key.
    ///
    /// # Errors
    /// When there are no keys.
    pub fn configuration(&self) -> Result<String, TokenKeysError> {
        let keys = self.keys.published()?;
        let algorithms: BTreeSet<_> = keys.iter().map(|key| key.algorithm().as_str()).collect();
        Ok(object([
            ("issuer", json!(self.issuer)),
            ("jwks_uri", json!(self.keys_uri)),
            ("response_types_supported", json!(["id_token"])),
            ("subject_types_supported", json!(["public"])),
            ("id_token_signing_alg_values_supported", json!(algorithms)),
        ]))
    }

    /// The key set document. The first call may block while the server generates its key.
    ///
    /// # Errors
    /// When there are no keys.
    pub fn keys(&self) -> Result<String, TokenKeysError> {
        let keys = self.keys.published()?;
        let keys: Vec<_> = keys.iter().map(|key| object(key.json_web_key())).collect();
        Ok(format!(r#"{{"keys":[{}]}}"#, keys.join(",")))
    }
}

/// A JSON object with its members in this order.
fn object(members: impl IntoIterator<Item = (&'static str, serde_json::Value)>) -> String {
    let members: Vec<_> = members.into_iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
    format!("{{{}}}", members.join(","))
}

fn has_https(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_issuers_that_can_be_discovered_have_documents() {
        let check = |issuer: &str, uri: Option<&str>, expected: Result<&str, &str>| {
            let keys = Arc::new(TokenKeys::from_files(&[], None).unwrap());
            let metadata = OpenIdMetadata::new(issuer, uri, "10.0.0.1:6443", keys);
            let found = metadata.map(|metadata| metadata.keys_uri).map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(|error| &**error), expected);
        };
        check("https://a", None, Ok("https://10.0.0.1:6443/openid/v1/jwks"));
        check("https://a/b", Some("https://c/d"), Ok("https://c/d"));
        check("https://a", Some("http://c"), Err("jwksURI requires https scheme, parsed as: http://c"));
        check("http://a", None, Err("issuer URL must use https scheme, got: http://a"));
        check(
            "kubernetes/serviceaccount",
            None,
            Err("issuer URL must use https scheme, got: kubernetes/serviceaccount"),
        );
        check("https://a?b=c", None, Err("issuer URL may not include a query, got: https://a?b=c"));
        check("https://a#b", None, Err("issuer URL may not include a fragment, got: https://a#b"));
    }
}
