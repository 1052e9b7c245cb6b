//! Fetches the discovery document of an issuer
//! (<https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfig>).

use pintle_machinery::{Value, ValueExt};
use pintle_webhook::DocumentClient;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The URL of the issuer's keys. `discovery_url` is "" for the standard location.
///
/// # Errors
/// When the document cannot be fetched or is invalid.
pub(super) async fn discover(
    client: &DocumentClient,
    issuer: &str,
    discovery_url: &str,
) -> Result<String, String> {
    let usual;
    let url = match discovery_url {
        "" => {
            usual =
                format!("{}/.well-known/openid-configuration", issuer.strip_suffix('/').unwrap_or(issuer));
            &usual
        }
        url => url,
    };
    let document = client.get(url, None, TIMEOUT).await?;
    if document.status != 200 {
        return Err(format!("{url}: status {}", document.status));
    }
    let described: Value = serde_json::from_slice(&document.body)
        .map_err(|error| format!("oidc: failed to decode provider discovery object: {error}"))?;
    let named = described.str_at("issuer");
    if named != issuer {
        return Err(format!(
            "oidc: issuer did not match the issuer returned by provider, expected {issuer:?} got {named:?}"
        ));
    }
    match described.str_at("jwks_uri") {
        "" => Err("provider did not return JWKS URL".to_owned()),
        url => Ok(url.to_owned()),
    }
}
