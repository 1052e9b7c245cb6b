//! The public keys of an external signer.

use super::{
    error::{ExternalSignerError, label},
    messages::{FetchKeysRequest, FetchKeysResponse, Key},
    metrics::ExternalSignerMetrics,
};
use parking_lot::RwLock;
use pintle_go_forms::quote;
use pintle_jwt::PublicKey;
use pintle_plugin_socket::{PluginClient, Status};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Mutex, time::Instant};

/// How long a signature, or the list of keys, may take.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest id of a key, in bytes.
pub(super) const MAX_KEY_ID_BYTES: usize = 1024;
const FETCH_KEYS: &str = "/v1.ExternalJWTSigner/FetchKeys";
/// How long until keys are fetched again after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// The years 1 and 9999, between which a timestamp of protobuf is, in seconds.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The keys that the signer told last.
#[derive(Debug)]
pub(super) struct KeyCache {
    client: Arc<PluginClient>,
    metrics: Arc<ExternalSignerMetrics>,
    keys: RwLock<Keys>,
    /// Held while keys are fetched: there is one call at a time.
    fetching: Mutex<()>,
    /// The number of fetches that have ended.
    fetches: AtomicU64,
}

#[derive(Debug, Default)]
struct Keys {
    told: Vec<Key>,
    /// The keys, each with whether it is excluded from those that are published.
    parsed: Vec<(PublicKey, bool)>,
    /// The keys that are published: the last ones of which there was any.
    published: Vec<PublicKey>,
    /// The time at which the keys are fetched again.
    refresh: Option<Instant>,
    generation: u64,
}

impl KeyCache {
    pub(super) fn new(client: Arc<PluginClient>, metrics: Arc<ExternalSignerMetrics>) -> KeyCache {
        KeyCache {
            client,
            metrics,
            keys: RwLock::default(),
            fetching: Mutex::default(),
            fetches: AtomicU64::new(0),
        }
    }

    /// Fetches the keys whenever the signer wants it. Never returns.
    pub(super) async fn refresh(self: Arc<KeyCache>) {
        loop {
            let next = self.keys.read().refresh.unwrap_or_else(Instant::now);
            tokio::time::sleep_until(next).await;
            if let Err(error) = self.sync().await {
                tracing::error!(%error, "the keys of the external signer stay as they were");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }

    /// Fetches the keys, or waits for a fetch that is under way.
    ///
    /// # Errors
    /// When there are no keys to use; those from before stay. A fetch that somebody else has begun is no error.
    pub(super) async fn sync(&self) -> Result<(), ExternalSignerError> {
        let before = self.fetches.load(Ordering::SeqCst);
        let _fetching = self.fetching.lock().await;
        if self.fetches.load(Ordering::SeqCst) != before {
            return Ok(());
        }
        let fetched = self.fetch().await;
        self.fetches.fetch_add(1, Ordering::SeqCst);
        self.metrics.fetched(label(&fetched));
        fetched.map_err(|error| error.when("while fetching token verification keys"))
    }

    async fn fetch(&self) -> Result<(), ExternalSignerError> {
        let answer: Result<FetchKeysResponse, Status> =
            self.client.call(FETCH_KEYS, FetchKeysRequest {}, CALL_TIMEOUT).await;
        let answer = answer.map_err(|status| {
            ExternalSignerError::of_call(&status).when("while getting externally supported jwt signing keys")
        })?;
        let wrong = |text: String| Err(ExternalSignerError::new(text));
        let seconds = answer.refresh_hint_seconds;
        let Some(pause) = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0) else {
            return wrong(format!("found invalid refresh hint ({seconds}s)"));
        };
        if answer.keys.is_empty() {
            return wrong("found no keys".to_owned());
        }
        let time = match answer.data_timestamp {
            None => return wrong("invalid data timestamp: invalid nil Timestamp".to_owned()),
            Some(time) if TIMES.contains(&time.seconds) && (0..1_000_000_000).contains(&time.nanos) => time,
            Some(_) => return wrong("invalid data timestamp: timestamp out of range".to_owned()),
        };
        let parsed = answer.keys.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let published: Vec<PublicKey> =
            parsed.iter().filter(|(_, is_excluded)| !is_excluded).map(|(key, _)| key.clone()).collect();
        let mut keys = self.keys.write();
        keys.refresh = Instant::now().checked_add(Duration::from_secs(pause));
        if keys.told != answer.keys {
            keys.generation += 1;
            if !published.is_empty() {
                keys.published = published;
            }
            (keys.told, keys.parsed) = (answer.keys, parsed);
        }
        drop(keys);
        #[expect(clippy::cast_precision_loss, reason = "a gauge of seconds is a float")]
        self.metrics.told(time.seconds as f64 + f64::from(time.nanos) / 1e9);
        Ok(())
    }

    /// The keys with an id, or all for an empty one. An unknown id makes the signer be asked.
    pub(super) async fn find(&self, id: &str) -> Vec<PublicKey> {
        self.entries(id).await.into_iter().map(|(key, _)| key).collect()
    }

    /// Whether a key with this id is not published.
    pub(super) async fn is_excluded(&self, id: &str) -> bool {
        self.entries(id).await.iter().any(|(_, is_excluded)| *is_excluded)
    }

    async fn entries(&self, id: &str) -> Vec<(PublicKey, bool)> {
        let known = || -> Vec<(PublicKey, bool)> {
            let keys = self.keys.read();
            keys.parsed.iter().filter(|(key, _)| id.is_empty() || key.id() == id).cloned().collect()
        };
        let found = known();
        if !found.is_empty() {
            return found;
        }
        if let Err(error) = self.sync().await {
            tracing::error!(%error, "error while syncing keys");
        }
        known()
    }

    pub(super) fn published(&self) -> Vec<PublicKey> {
        self.keys.read().published.clone()
    }

    pub(super) fn max_age_seconds(&self) -> u64 {
        let refresh = self.keys.read().refresh;
        refresh.map(|refresh| refresh.saturating_duration_since(Instant::now()).as_secs()).unwrap_or_default()
    }

    pub(super) fn generation(&self) -> u64 {
        self.keys.read().generation
    }
}

fn parse(key: &Key) -> Result<(PublicKey, bool), ExternalSignerError> {
    if key.key_id.is_empty() || key.key_id.len() > MAX_KEY_ID_BYTES {
        return Err(ExternalSignerError::new(format!("found invalid public key id {}", quote(&key.key_id))));
    }
    if key.key.is_empty() {
        return Err(ExternalSignerError::new("found empty public key"));
    }
    let unreadable = || ExternalSignerError::new("while parsing external public keys: unknown kind of key");
    let parsed = PublicKey::from_spki(&key.key).ok_or_else(unreadable)?;
    Ok((parsed.with_id(key.key_id.clone()), key.exclude_from_oidc_discovery))
}
