//! Resolves distributed claims: groups that the token refers to by a URL
//! (<https://openid.net/specs/openid-connect-core-1_0.html#AggregatedDistributedClaims>).

use super::{
    claims::Claims,
    key_set::RemoteKeySet,
    provider,
    verifier::{Verifier, issuer_of},
};
use parking_lot::Mutex;
use pintle_jwt::{Algorithm, Token};
use pintle_machinery::{Value, ValueExt};
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
        let Some(names) = claims.get("_claim_names") else { return Ok(()) };
        let Value::Object(names) = names else {
            return Err("oidc: error parsing distributed claim names".to_owned());
        };
        let sources = claims.get("_claim_sources").ok_or("oidc: no claim sources")?;
        let Some(source) = names.get(&self.claim).and_then(Value::as_str) else { return Ok(()) };
        let endpoint = sources
            .field(source)
            .ok_or("id token _claim_names contained a source missing in _claims_sources")?;
        let url = endpoint.str_at("endpoint").to_owned();
        if url.is_empty() {
            // It may be an aggregated claim, which is left as it is.
            return Ok(());
        }
        let token = Some(endpoint.str_at("access_token")).filter(|token| !token.is_empty());
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
            return Err(failed(&format!("status {}", document.status)));
        }
        let text = std::str::from_utf8(&document.body).map_err(|_| failed(&"it is no token"))?;
        let untrusted = Token::peek(text).and_then(|payload| Claims::parse(&payload));
        let untrusted = untrusted.ok_or_else(|| failed(&"it is no token"))?;
        let issuer = issuer_of(&untrusted);
        let keys = self.keys_of(issuer).await.map_err(|error| failed(&error))?;
        let verifier = Verifier { issuer, audiences, algorithms, keys: &keys };
        let claims = verifier.verify(text).await;
        let claims = claims.map_err(|error| format!("verify distributed claim token: {error}"))?;
        let value = claims.get(claim).cloned();
        value.ok_or_else(|| failed(&"the token did not contain the claim"))
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
