//! Resolves distributed claims: groups that the token refers to by a URL
//! (<https://openid.net/specs/openid-connect-core-1_0.html#AggregatedDistributedClaims>).

use super::{
    claims::Claims,
    key_set::{RemoteKeySet, status_text},
    provider,
    verifier::{Verifier, issuer_of},
};
use parking_lot::Mutex;
use pintle_go_forms::quote;
use pintle_jwt::{Algorithm, Token};
use pintle_machinery::Value;
use pintle_webhook::DocumentClient;
use std::{collections::HashMap, sync::Arc, time::Duration};

/// Resolves one claim.
pub(super) struct ClaimResolver {
    claim: String,
    client: Arc<DocumentClient>,
    /// The key sets of the issuers of resolved claims. Only verified tokens add entries, up to `MAX_ISSUERS`.
    keys: Mutex<HashMap<String, RemoteKeySet>>,
}

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ISSUERS: usize = 16;

impl ClaimResolver {
    pub(super) fn new(claim: String, client: Arc<DocumentClient>) -> ClaimResolver {
        ClaimResolver { claim, client, keys: Mutex::default() }
    }

    /// Resolves the claim and adds it to the claims.
    ///
    /// # Errors
    /// When the claim cannot be fetched, or its token is invalid.
    pub(super) async fn expand(
        &self,
        claims: &mut Claims,
        audiences: &[String],
        algorithms: &[Algorithm],
    ) -> Result<(), String> {
        if claims.get(&self.claim).is_some() {
            return Ok(());
        }
        // The verifier has checked the types of names and sources.
        let Some(names) = claims.get("_claim_names") else { return Ok(()) };
        let sources = claims.get("_claim_sources").ok_or("oidc: no claim sources")?;
        let Some(source) = names.get(&self.claim).and_then(Value::as_str) else { return Ok(()) };
        let endpoint = sources.get(source).ok_or_else(|| {
            format!("id token _claim_names contained a source {source} missing in _claims_sources")
        })?;
        let member = |name: &str| {
            let other = || {
                let members = endpoint.as_object().into_iter().flat_map(|members| members.iter());
                members.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
            };
            endpoint.get(name).or_else(other).and_then(Value::as_str).unwrap_or_default()
        };
        let url = member("endpoint").to_owned();
        if url.is_empty() {
            // It may be an aggregated claim, which is left as it is.
            return Ok(());
        }
        let token = Some(member("access_token")).filter(|token| !token.is_empty());
        let value = self.resolve(&url, token, audiences, algorithms).await?;
        claims.insert(self.claim.clone(), value);
        Ok(())
    }

    async fn resolve(
        &self,
        url: &str,
        access_token: Option<&str>,
        audiences: &[String],
        algorithms: &[Algorithm],
    ) -> Result<Value, String> {
        let claim = &self.claim;
        let failed =
            |why: &dyn std::fmt::Display| format!("while getting distributed claim {claim:?}: {why}");
        let document = self.client.get(url, access_token, TIMEOUT).await.map_err(|error| failed(&error))?;
        if !(200..=226).contains(&document.status) {
            let status = status_text(document.status);
            return Err(failed(&format!("error while getting distributed claim JWT: {status}")));
        }
        let text = String::from_utf8_lossy(&document.body);
        let untrusted = match text.trim_start().starts_with('{') {
            true => Err("token is not compact JWT".to_owned()),
            false => Token::peek(&text).ok_or_else(|| "malformed token".to_owned()),
        };
        let untrusted = untrusted.and_then(|payload| Claims::parse(&payload));
        let untrusted = untrusted.map_err(|error| {
            format!("getting untrusted issuer from endpoint {url} failed for claim {}: {error}", quote(claim))
        })?;
        let issuer = issuer_of(&untrusted);
        let keys = self.keys_of(issuer).await;
        let keys = keys.map_err(|error| format!("verifying untrusted issuer {issuer} failed: {error}"))?;
        let verifier = Verifier { issuer, audiences, algorithms, keys: &keys };
        let claims = verifier.verify(&text).await;
        let claims = claims.map_err(|error| format!("verify distributed claim token: {error}"))?;
        let value = claims.get(claim).cloned();
        value.ok_or_else(|| {
            let url = quote(url);
            format!("jwt returned by distributed claim endpoint {url} did not contain claim: {claim}")
        })
    }

    async fn keys_of(&self, issuer: &str) -> Result<RemoteKeySet, String> {
        if let Some(keys) = self.keys.lock().get(issuer) {
            return Ok(keys.clone());
        }
        let url = provider::discover(&self.client, issuer, "").await?;
        let keys = RemoteKeySet::new(self.client.clone(), url, None);
        let mut known = self.keys.lock();
        if known.len() >= MAX_ISSUERS {
            known.clear();
        }
        Ok(known.entry(issuer.to_owned()).or_insert(keys).clone())
    }
}
