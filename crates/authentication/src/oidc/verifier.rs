//! Verifies tokens: signature, issuer, audience and validity period
//! (<https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation>).

use super::{claims::Claims, key_set::RemoteKeySet};
use pintle_jwt::{Algorithm, Token};
use pintle_machinery::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Verifies the tokens of one issuer.
pub(super) struct Verifier<'a> {
    pub(super) issuer: &'a str,
    pub(super) audiences: &'a [String],
    pub(super) algorithms: &'a [Algorithm],
    pub(super) keys: &'a RemoteKeySet,
}

/// The allowed clock skew for tokens that are not valid yet.
const LEEWAY: Duration = Duration::from_secs(60);

/// Google's issuer URL, and its form in some of Google's tokens.
const GOOGLE: &str = "https://accounts.google.com";
const GOOGLE_WITHOUT_SCHEME: &str = "accounts.google.com";

impl Verifier<'_> {
    /// The claims of a valid token.
    ///
    /// # Errors
    /// The reason why the token is invalid, without its contents.
    pub(super) async fn verify(&self, text: &str) -> Result<Claims, String> {
        let token = Token::parse(text).map_err(|_| "oidc: malformed jwt".to_owned())?;
        let is_allowed = token.algorithm.is_some_and(|algorithm| self.algorithms.contains(&algorithm));
        if !is_allowed {
            let expected: Vec<_> = self.algorithms.iter().map(|algorithm| algorithm.as_str()).collect();
            return Err(format!("oidc: id token signed with unsupported algorithm, expected {expected:?}"));
        }
        self.keys.verify(&token).await.map_err(|error| format!("failed to verify signature: {error}"))?;
        let claims = Claims::parse(&token.payload).ok_or("oidc: failed to unmarshal claims")?;
        if issuer_of(&claims) != self.issuer {
            return Err("oidc: id token issued by a different provider".to_owned());
        }
        if !claims.audiences()?.iter().any(|audience| self.audiences.contains(audience)) {
            return Err(format!("oidc: expected audience in {:?}", self.audiences));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        if time(&claims, "exp")?.is_none_or(|expiry| expiry.trunc() < now) {
            return Err("oidc: token is expired".to_owned());
        }
        if time(&claims, "nbf")?.is_some_and(|from| now + LEEWAY.as_secs_f64() < from.trunc()) {
            return Err("oidc: the token is not good yet".to_owned());
        }
        Ok(claims)
    }
}

/// The issuer that an unverified token names.
pub(super) fn issuer_of(claims: &Claims) -> &str {
    match claims.get("iss").and_then(Value::as_str).unwrap_or_default() {
        GOOGLE_WITHOUT_SCHEME => GOOGLE,
        issuer => issuer,
    }
}

fn time(claims: &Claims, name: &str) -> Result<Option<f64>, String> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(format!("oidc: failed to unmarshal claims: {name} is no number")),
        },
    }
}
