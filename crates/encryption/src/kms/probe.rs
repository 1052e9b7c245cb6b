//! Checks the health of a KMS plugin, and holds the data key for writes.
//!
//! **The data key** is generated when the plugin reports its first key id, or a changed one. It is used for writes
//! until three minutes after the last healthy check with the same key id, and without a limit for deciding whether
//! values are stale. So three minutes after the plugin changed its key, values are written with the new key or not at
//! all: a rewrite of all values after that removes the old key from use.
//!
//! **Checks** run once a minute, every ten seconds while the plugin is unhealthy, and when a health request finds the
//! last result old; never more often than `is_fresh` allows. Health requests never wait: they return the last result.

use super::messages::StatusResponse;
use super::{
    data_keys::DataKey,
    object::{CacheKey, EncryptedObject, HKDF_SHA256_XNONCE_AES_GCM_SEED, validate_key_id},
    service::KmsService,
};
use crate::{
    cipher::random,
    extended_nonce::{ExtendedNonceGcm, SEED},
    failure::Failure,
    metrics::{Direction, EncryptionMetrics, KeyIdUse},
};
use arc_swap::ArcSwapOption;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use pintle_config_metrics::content_hash;
use pintle_go_forms::quote;
use pintle_plugin_socket::rpc_error;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Notify, time::Instant};
use uuid::Uuid;
use zeroize::Zeroizing;

/// The time for which a healthy and an unhealthy result count as fresh.
const POSITIVE_TTL: Duration = Duration::from_secs(20);
const NEGATIVE_TTL: Duration = Duration::from_secs(3);
/// The interval of checks of a healthy and of an unhealthy plugin.
const POSITIVE_INTERVAL: Duration = Duration::from_secs(60);
const NEGATIVE_INTERVAL: Duration = Duration::from_secs(10);
/// The time for which values are written with a data key after the last healthy check.
const WRITE_TTL: Duration = Duration::from_secs(3 * 60);

/// The two names of the same API version.
const VERSIONS: [&str; 2] = ["v2", "v2beta1"];

/// The probe of one KMS plugin.
pub(crate) struct Probe {
    name: String,
    service: Arc<dyn KmsService>,
    metrics: Arc<EncryptionMetrics>,
    write_key: ArcSwapOption<WriteKey>,
    last: Mutex<Option<LastCheck>>,
    /// Held during a check; it guards the API version that the plugin reported first.
    version: tokio::sync::Mutex<Option<String>>,
    wanted: Notify,
}

/// The data key for writes, and its expiry.
pub(crate) struct WriteKey {
    pub(crate) key: Arc<DataKey>,
    /// The parts of a stored value besides the ciphertext.
    pub(crate) template: EncryptedObject,
    pub(crate) cache_key: CacheKey,
    /// Counts the values encrypted with it.
    pub(crate) uses: Arc<KeyIdUse>,
    expires: Instant,
}

struct LastCheck {
    at: Instant,
    outcome: Result<(), String>,
    /// Whether the service did not answer at all.
    is_unanswered: bool,
}

impl Probe {
    pub(crate) fn new(
        name: &str,
        service: Arc<dyn KmsService>,
        metrics: Arc<EncryptionMetrics>,
    ) -> Arc<Probe> {
        Arc::new(Probe {
            name: name.to_owned(),
            service,
            metrics,
            write_key: ArcSwapOption::empty(),
            last: Mutex::default(),
            version: tokio::sync::Mutex::default(),
            wanted: Notify::new(),
        })
    }

    /// The data key of the last healthy check, even if it has expired for writes.
    pub(crate) fn write_key(&self) -> Result<Arc<WriteKey>, Failure> {
        // Before the plugin's first healthy answer there is none; the text is the reference's.
        self.write_key.load_full().ok_or_else(|| Failure::new("got unexpected nil transformer"))
    }

    /// The result of the last check. If it is old, starts a new check without waiting for it.
    pub(crate) fn health(&self) -> Result<(), String> {
        let last = self.last.lock();
        if !last.as_ref().is_some_and(LastCheck::is_fresh) {
            self.wanted.notify_one();
        }
        match &*last {
            // As in kube-apiserver, where a request finds an old result by asking again.
            Some(last) if !last.is_fresh() => self.told(last),
            Some(last) => last.outcome.clone(),
            None => Err(format!("KMS Provider {} was not asked yet", self.name)),
        }
    }

    /// Checks the plugin periodically, until the future is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let is_well = self.last.lock().as_ref().is_some_and(|last| last.outcome.is_ok());
            let interval = if is_well { POSITIVE_INTERVAL } else { NEGATIVE_INTERVAL };
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = self.wanted.notified() => {}
            }
            // The log and the next health request report the outcome.
            let _ = self.check().await;
        }
    }

    /// Requests the plugin's status, unless the last result is fresh, and generates a new data key if the key id has
    /// changed.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let mut version = self.version.lock().await;
        if let Some(last) = self.last.lock().as_ref().filter(|last| last.is_fresh()) {
            return last.outcome.clone();
        }
        let mut is_unanswered = false;
        let outcome = match self.service.status().await {
            Ok(status) => self.judge(&mut version, status).await,
            Err(error) => {
                is_unanswered = true;
                Err(rpc_error(&error))
            }
        };
        let last = LastCheck { at: Instant::now(), outcome, is_unanswered };
        let told = self.told(&last);
        if let Err(error) = &told {
            tracing::warn!(provider = self.name, error, "key service failed its health check");
        }
        *self.last.lock() = Some(last);
        told
    }

    /// The result of a check as the check itself tells it.
    fn told(&self, last: &LastCheck) -> Result<(), String> {
        match &last.outcome {
            Err(error) if last.is_unanswered => Err(format!(
                "failed to perform status section of the healthz check for KMS Provider {}, error: {error}",
                self.name
            )),
            outcome => outcome.clone(),
        }
    }

    /// Checks a status, and reports all its failures.
    async fn judge(&self, version: &mut Option<String>, status: StatusResponse) -> Result<(), String> {
        let mut failures = Vec::new();
        if status.healthz != "ok" {
            failures.push(Failure::new(format!("got unexpected healthz status: {}", status.healthz)));
        }
        if !VERSIONS.contains(&status.version.as_str()) {
            let unexpected = format!("expected KMSv2 API version v2, got {}", status.version);
            failures.push(Failure::new(unexpected));
        } else {
            let first = version.get_or_insert_with(|| status.version.clone());
            if *first != status.version {
                failures.push(Failure::new(format!(
                    "KMSv2 API version should not change after the initial status response version {first}, got {}",
                    status.version
                )));
            }
        }
        match validate_key_id(&status.key_id) {
            Err(error) => {
                self.metrics.invalid_key_id_from_status(&self.name, error.code);
                failures.push(Failure::new(format!(
                    "got invalid KMSv2 KeyID hash {}: {}",
                    quote(&content_hash(status.key_id.as_bytes())),
                    error.text
                )));
            }
            Ok(()) => {
                self.metrics.key_id_from_status(&self.name, &status.key_id);
                failures.extend(self.rotate(&status.key_id).await.err());
            }
        }
        match Failure::aggregate(failures) {
            None => Ok(()),
            Some(failure) => Err(format!("kmsv2 Provider {} is not healthy, error: {failure}", self.name)),
        }
    }

    /// Extends the data key when it belongs to the plugin's key, and generates a new one otherwise. When that fails,
    /// or the plugin's key changed between the two calls, the old one is kept unchanged.
    async fn rotate(&self, key_id: &str) -> Result<(), Failure> {
        let current = self.write_key.load_full();
        // Taken before the call, so that the time is an upper bound.
        let expires = Instant::now() + WRITE_TTL;
        if let Some(current) = current.as_ref().filter(|current| current.template.key_id == key_id) {
            self.write_key.store(Some(Arc::new(current.until(expires))));
            return Ok(());
        }
        let uid = Uuid::new_v4().to_string();
        let made = self.make_write_key(&uid, expires).await;
        let (made_key_id, why) = match made {
            Ok(made) if made.template.key_id == key_id => {
                tracing::debug!(
                    provider = self.name,
                    uid,
                    key = content_hash(key_id.as_bytes()),
                    "new data key"
                );
                self.write_key.store(Some(Arc::new(made)));
                return Ok(());
            }
            Ok(made) => (made.template.key_id, "<nil>".to_owned()),
            Err(failure) => (String::new(), failure.to_string()),
        };
        let (state_error, state_key_id, expired_at) = match &current {
            Some(current) => ("<nil>", current.template.key_id.as_str(), current.expires_at()),
            None => ("got unexpected nil transformer", "", "0001-01-01T00:00:00Z".to_owned()),
        };
        Err(Failure::new(format!(
            "failed to rotate DEK uid={}, useSeed=true, errState={state_error}, errGen={why}, \
             statusKeyIDHash={}, encryptKeyIDHash={}, stateKeyIDHash={}, expirationTimestamp={expired_at}",
            quote(&uid),
            quote(&content_hash(key_id.as_bytes())),
            quote(&content_hash(made_key_id.as_bytes())),
            quote(&content_hash(state_key_id.as_bytes())),
        )))
    }

    async fn make_write_key(&self, uid: &str, expires: Instant) -> Result<WriteKey, Failure> {
        let start = std::time::Instant::now();
        let seed = random::<SEED>();
        self.metrics.data_key_generated(start, seed.is_ok());
        let seed = Zeroizing::new(seed?.to_vec());
        let response = self.service.encrypt(uid, &seed).await;
        let response =
            response.map_err(|error| Failure::of_call("failed to encrypt DEK, error: ", &error))?;
        let template = EncryptedObject {
            encrypted_data: Default::default(),
            key_id: response.key_id,
            encrypted_dek_source: response.ciphertext,
            annotations: response.annotations,
            encrypted_dek_source_type: HKDF_SHA256_XNONCE_AES_GCM_SEED,
        };
        template.validate_data_key()?;
        let uses = |direction| self.metrics.key_id(direction, &self.name, &template.key_id);
        let key =
            DataKey { cipher: Box::new(ExtendedNonceGcm::new(seed)?), uses: uses(Direction::FromStorage) };
        Ok(WriteKey {
            key: Arc::new(key),
            uses: Arc::new(uses(Direction::ToStorage)),
            cache_key: template.cache_key(),
            template,
            expires,
        })
    }
}

impl LastCheck {
    fn is_fresh(&self) -> bool {
        let ttl = if self.outcome.is_ok() { POSITIVE_TTL } else { NEGATIVE_TTL };
        self.at.elapsed() < ttl
    }
}

impl WriteKey {
    /// Checks that the key has not expired for writes.
    pub(crate) fn validate_encrypt_capability(&self) -> Result<(), Failure> {
        if Instant::now() <= self.expires {
            return Ok(());
        }
        Err(Failure::new(format!(
            "encryptedDEKSource with keyID hash {} expired at {} (current time is {})",
            quote(&content_hash(self.template.key_id.as_bytes())),
            self.expires_at(),
            rfc3339(Timestamp::now()),
        )))
    }

    fn until(&self, expires: Instant) -> WriteKey {
        WriteKey {
            key: self.key.clone(),
            template: self.template.clone(),
            cache_key: self.cache_key,
            uses: self.uses.clone(),
            expires,
        }
    }

    /// The expiry as wall-clock time.
    fn expires_at(&self) -> String {
        let now = Instant::now();
        let ahead = SignedDuration::try_from(self.expires.saturating_duration_since(now));
        let ago = SignedDuration::try_from(now.saturating_duration_since(self.expires));
        let time = Timestamp::now();
        let time = ahead.and_then(|ahead| time.checked_add(ahead)).unwrap_or(time);
        let time = ago.and_then(|ago| time.checked_sub(ago)).unwrap_or(time);
        rfc3339(time)
    }
}

/// A time in UTC, to the second.
fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
