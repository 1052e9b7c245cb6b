//! Fetches and caches the keys of an issuer.

use super::metrics::JwtMetrics;
use futures_util::{FutureExt, future::Shared};
use http::{HeaderMap, StatusCode, header};
use parking_lot::Mutex;
use pintle_auth::BoxFuture;
use pintle_config_metrics::content_hash;
use pintle_go_forms::{media_type, quote};
use pintle_jwt::{JsonWebKey, Token};
use pintle_machinery::{Value, codec::json::decode_any, text::go_json_type};
use pintle_webhook::DocumentClient;
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
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
type Fetch = Shared<BoxFuture<'static, Result<Arc<Vec<JsonWebKey>>, String>>>;

#[derive(Default)]
struct State {
    keys: Arc<Vec<JsonWebKey>>,
    /// The time until which the issuer declares the keys fresh.
    good_until: Option<Instant>,
    /// When the last fetch ended.
    fetched: Option<Instant>,
    /// The hash of the keys, for the metrics.
    hash: String,
    open: Option<Fetch>,
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
    pub(super) async fn verify(&self, token: &Token) -> Result<(), String> {
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
    async fn update(&self) -> Result<Arc<Vec<JsonWebKey>>, String> {
        // After a panic, too, the next caller fetches the keys again.
        let fetched = AssertUnwindSafe(self.get()).catch_unwind().await;
        let fetched = fetched.unwrap_or_else(|_| Err("oidc: get keys panicked".to_owned()));
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

    async fn get(&self) -> Result<(Vec<JsonWebKey>, Duration, String), String> {
        let document = self.client.get(&self.url, None, FETCH_TIMEOUT).await;
        let document = document.map_err(|error| format!("oidc: get keys failed {error}"))?;
        let body = shown(&document.body);
        if document.status != 200 {
            return Err(format!("oidc: get keys failed: {} {body}", status_text(document.status)));
        }
        let keys = keys(&document.body).map_err(|error| {
            let reason = described(&document.headers, &error);
            format!("oidc: failed to decode keys: {reason} {body}")
        })?;
        Ok((keys, lifetime(&document.headers), content_hash(&document.body)))
    }
}

/// The most bytes of a document that an error quotes.
const SHOWN: usize = 1000;

/// The start of a body, for an error.
fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(body.get(..SHOWN).unwrap_or(body)).into_owned()
}

/// A status with its reason: `404 Not Found`.
pub(super) fn status_text(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    format!("{status} {}", reason.unwrap_or_default())
}

/// An error of decoding with the media type of the document.
fn described(headers: &HeaderMap, error: &str) -> String {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match media_type(given).is_some_and(|name| name.eq_ignore_ascii_case("application/json")) {
        true => format!("got Content-Type = application/json, but could not unmarshal as JSON: {error}"),
        false => format!("expected Content-Type = application/json, got {}: {error}", quote(given)),
    }
}

/// The keys of a set. One that is not understood makes the set invalid.
fn keys(body: &[u8]) -> Result<Vec<JsonWebKey>, String> {
    let wrong = |found: &Value, place: &str| {
        Err(format!("json: cannot unmarshal {} into Go {place}", go_json_type(found)))
    };
    let set = decode_any(body).map_err(|error| error.to_string())?;
    let members = match &set {
        Value::Object(members) => members,
        Value::Null => return Ok(Vec::new()),
        other => return wrong(other, "value of type jose.JSONWebKeySet"),
    };
    let other = || members.iter().find(|(name, _)| name.eq_ignore_ascii_case("keys")).map(|(_, keys)| keys);
    match members.get("keys").or_else(other) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(keys)) => keys.iter().take(MAX_KEYS).map(JsonWebKey::parse).collect(),
        Some(other) => wrong(other, "struct field JSONWebKeySet.keys of type []jose.JSONWebKey"),
    }
}

fn is_signed(token: &Token, keys: &[JsonWebKey]) -> bool {
    keys.iter()
        .filter(|key| token.key_id.is_empty() || key.id == token.key_id)
        .filter_map(|key| key.verifying.as_ref())
        .any(|key| token.is_signed_by(key))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_with_a_key_that_is_not_understood_is_refused() {
        let check = |body: &str, expected: Result<usize, &str>| {
            let found = keys(body.as_bytes()).map(|keys| keys.len());
            assert_eq!(
                found.as_ref().map_err(String::as_str),
                expected.as_ref().map_err(|error| *error),
                "{body}"
            );
        };
        check("{}", Ok(0));
        check("null", Ok(0));
        check(r#"{"Keys":[{"kty":"oct","k":"AA"}]}"#, Ok(1));
        // Those beyond the most keys of a set are not read.
        let many = vec![r#"{"kty":"oct","k":"AA"}"#; MAX_KEYS + 1].join(",");
        check(&format!(r#"{{"keys":[{many},{{}}]}}"#), Ok(MAX_KEYS));
        check("[]", Err("json: cannot unmarshal array into Go value of type jose.JSONWebKeySet"));
        check(
            r#"{"keys":[{"kty":"oct","k":"AA"},{}]}"#,
            Err("go-jose/go-jose: unknown json web key type ''"),
        );
        check(
            r#"{"keys":{}}"#,
            Err(
                "json: cannot unmarshal object into Go struct field JSONWebKeySet.keys of type []jose.JSONWebKey",
            ),
        );
    }
}
