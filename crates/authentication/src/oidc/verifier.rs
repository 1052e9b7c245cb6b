//! Verifies tokens: signature, issuer, audience and validity period
//! (<https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation>).

use super::{claims::Claims, go_time, id_token::IdToken, key_set::RemoteKeySet};
use pintle_go_forms::quote;
use pintle_jwt::{Algorithm, Token};
use pintle_machinery::Value;
use std::time::{SystemTime, UNIX_EPOCH};

/// Verifies the tokens of one issuer.
pub(super) struct Verifier<'a> {
    pub(super) issuer: &'a str,
    pub(super) audiences: &'a [String],
    pub(super) algorithms: &'a [Algorithm],
    pub(super) keys: &'a RemoteKeySet,
}

/// The allowed clock skew for tokens that are not valid yet, in seconds.
const LEEWAY: i64 = 60;

/// Google's issuer URL, and its form in some of Google's tokens.
const GOOGLE: &str = "https://accounts.google.com";
const GOOGLE_WITHOUT_SCHEME: &str = "accounts.google.com";

impl Verifier<'_> {
    /// The claims of a valid token.
    ///
    /// # Errors
    /// The reason why the token is invalid.
    pub(super) async fn verify(&self, text: &str) -> Result<Claims, String> {
        let token = Token::parse(text).map_err(|error| format!("oidc: malformed jwt: {error}"))?;
        let is_allowed = token.algorithm.is_some_and(|algorithm| self.algorithms.contains(&algorithm));
        if !is_allowed {
            let expected = quoted(self.algorithms.iter().map(|algorithm| algorithm.as_str()));
            let found = quote(&token.algorithm_name);
            return Err(format!(
                "oidc: id token signed with unsupported algorithm, expected {expected} got {found}"
            ));
        }
        self.keys.verify(&token).await.map_err(|error| format!("failed to verify signature: {error}"))?;
        let claims = Claims::parse(&token.payload)
            .map_err(|error| format!("oidc: failed to unmarshal claims: {error}"))?;
        let standard = IdToken::of(&claims)?;
        if issuer_of(&claims) != self.issuer {
            let found = claims.standard("iss").and_then(Value::as_str).unwrap_or_default();
            return Err(format!(
                "oidc: id token issued by a different provider, expected {} got {}",
                quote(self.issuer),
                quote(found)
            ));
        }
        let wrong_audience = || {
            let found = quoted(standard.audiences.iter().map(String::as_str));
            match self.audiences {
                [one] => format!("oidc: expected audience {} got {found}", quote(one)),
                several => {
                    let mut several: Vec<_> = several.iter().map(String::as_str).collect();
                    several.sort_unstable();
                    format!("oidc: expected audience in {} got {found}", quoted(several))
                }
            }
        };
        let is_meant = standard.audiences.iter().any(|audience| self.audiences.contains(audience));
        if !is_meant && self.audiences.len() == 1 {
            return Err(wrong_audience());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        if go_time::is_before(standard.expiry, now) {
            let expiry = go_time::format(standard.expiry);
            return Err(format!("oidc: token is expired (Token Expiry: {expiry})"));
        }
        if let Some(from) = standard.not_before
            && !go_time::is_before(from, now.saturating_add(LEEWAY))
        {
            let (now, from) = (go_time::format(now), go_time::format(from));
            return Err(format!("oidc: current time {now} before the nbf (not before) time: {from}"));
        }
        if !is_meant {
            return Err(wrong_audience());
        }
        Ok(claims)
    }
}

/// A list of texts as Go's `%q` writes it.
fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<_> = texts.into_iter().map(quote).collect();
    format!("[{}]", texts.join(" "))
}

/// The issuer that an unverified token names.
pub(super) fn issuer_of(claims: &Claims) -> &str {
    match claims.standard("iss").and_then(Value::as_str).unwrap_or_default() {
        GOOGLE_WITHOUT_SCHEME => GOOGLE,
        issuer => issuer,
    }
}
