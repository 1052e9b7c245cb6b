//! Fetches and caches the keys of an issuer.

use super::metrics::{JwtMetrics, hash_of};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::{FutureExt, future::Shared};
use http::{HeaderMap, header};
use parking_lot::Mutex;
use pintle_auth::BoxFuture;
use pintle_jwt::{PublicKey, Token};
use pintle_machinery::{Value, ValueExt};
use pintle_webhook::DocumentClient;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Keys that are fetched on demand and cached. Clones are the same set.
#[derive(Clone)]
pub(super) struct RemoteKeySet(Arc<Inner>);

struct Inner {
    client: Arc<DocumentClient>,
    url: String,
    metrics: Option<(JwtMetrics, String)>,
    state: Mutex<State>,
}

/// A fetch in flight, whose result several requests may await.
type Fetch = Shared<BoxFuture<'static, Result<Arc<Vec<Key>>, String>>>;

#[derive(Default)]
struct State {
    keys: Arc<Vec<Key>>,
    /// The time until which the issuer declares the keys fresh.
    good_until: Option<Instant>,
    /// When the last fetch ended.
    fetched: Option<Instant>,
    /// The hash of the keys, for the metrics.
    hash: String,
    open: Option<Fetch>,
}

struct Key {
    id: String,
    key: PublicKey,
}

/// Keys this close to their expiry are refetched for a token that they do not verify.
const EARLY: Duration = Duration::from_secs(30);
/// The minimum interval of fetches, so that forged tokens cannot cause more.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// The limit on the number of keys in a set.
const MAX_KEYS: usize = 256;

impl RemoteKeySet {
    /// The keys at a URL. `metrics` come with the hash of the issuer.
    pub(super) fn new(
        client: Arc<DocumentClient>,
        url: String,
        metrics: Option<(JwtMetrics, String)>,
    ) -> RemoteKeySet {
        RemoteKeySet(Arc::new(Inner { client, url, metrics, state: Mutex::default() }))
    }

    /// Verifies a token's signature with the keys.
    ///
    /// # Errors
    /// When no key verifies it, or the keys cannot be fetched.
    pub(super) async fn verify(&self, token: &Token<'_>) -> Result<(), String> {
        let failed = || Err("failed to verify id token signature".to_owned());
        let (keys, good_until) = {
            let state = self.0.state.lock();
            (state.keys.clone(), state.good_until)
        };
        if is_signed(token, &keys) {
            return Ok(());
        }
        if good_until.is_some_and(|until| Instant::now() + EARLY <= until) {
            return failed();
        }
        let keys = self.fetch().await.map_err(|error| format!("fetching keys {error}"))?;
        if is_signed(token, &keys) { Ok(()) } else { failed() }
    }

    /// Removes the keys' series from the metrics.
    pub(super) fn forget(&self) {
        if let Some((metrics, issuer)) = &self.0.metrics {
            metrics.forget(issuer, &self.0.state.lock().hash);
        }
    }

    fn fetch(&self) -> Fetch {
        let mut state = self.0.state.lock();
        if let Some(open) = &state.open {
            return open.clone();
        }
        let wait = state.fetched.map(|at| at + MIN_INTERVAL);
        let inner = self.0.clone();
        let task = tokio::spawn(async move {
            if let Some(at) = wait {
                tokio::time::sleep_until(at).await;
            }
            inner.update().await
        });
        let answer: BoxFuture<'static, _> =
            Box::pin(async move { task.await.unwrap_or_else(|error| Err(error.to_string())) });
        let open = answer.shared();
        state.open = Some(open.clone());
        open
    }
}

impl Inner {
    async fn update(&self) -> Result<Arc<Vec<Key>>, String> {
        let fetched = self.get().await;
        let mut state = self.state.lock();
        state.open = None;
        state.fetched = Some(Instant::now());
        if let Some((metrics, issuer)) = &self.metrics {
            let hash = fetched.as_ref().ok().map(|(_, _, hash)| hash.as_str());
            metrics.keys_fetched(issuer, hash, &state.hash);
        }
        let (keys, good_for, hash) = fetched?;
        state.keys = Arc::new(keys);
        state.good_until = Some(Instant::now() + good_for);
        state.hash = hash;
        Ok(state.keys.clone())
    }

    async fn get(&self) -> Result<(Vec<Key>, Duration, String), String> {
        let document = self.client.get(&self.url, None, FETCH_TIMEOUT).await?;
        if document.status != 200 {
            return Err(format!("oidc: get keys failed: {}", document.status));
        }
        let set: Value = serde_json::from_slice(&document.body)
            .map_err(|error| format!("oidc: failed to decode keys: {error}"))?;
        let keys = set.items_at("keys").iter().take(MAX_KEYS).filter_map(key).collect();
        Ok((keys, lifetime(&document.headers), hash_of(&document.body)))
    }
}

fn is_signed(token: &Token<'_>, keys: &[Key]) -> bool {
    keys.iter()
        .filter(|key| token.key_id.is_empty() || key.id == token.key_id)
        .any(|key| token.is_signed_by(&key.key))
}

/// Parses a key that can verify tokens; `None` for other keys of a set.
fn key(json: &Value) -> Option<Key> {
    let number = |name: &str| URL_SAFE_NO_PAD.decode(json.str_at(name)).ok();
    let key = match json.str_at("kty") {
        "RSA" => PublicKey::from_rsa_components(&number("n")?, &number("e")?)?,
        "EC" => PublicKey::from_ec_components(json.str_at("crv"), &number("x")?, &number("y")?)?,
        _ => return None,
    };
    Some(Key { id: json.str_at("kid").to_owned(), key })
}

/// How long keys are fresh according to the response headers (<https://www.rfc-editor.org/rfc/rfc9111#section-4.2.1>).
fn lifetime(headers: &HeaderMap) -> Duration {
    let directives = headers.get_all(header::CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut max_age = None;
    for directive in directives.flat_map(|value| value.split(',')) {
        let (name, value) = directive.trim().split_once('=').unwrap_or((directive.trim(), ""));
        match name.to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" | "private" => return Duration::ZERO,
            "max-age" if max_age.is_none() => max_age = value.trim_matches('"').parse().ok(),
            "s-maxage" => max_age = value.trim_matches('"').parse().ok(),
            _ => {}
        }
    }
    // The lifetime is bounded by a week.
    Duration::from_secs(max_age.unwrap_or(0).min(7 * 86_400))
}
