//! Decrypted data keys, and their cache.

use super::object::{CacheKey, HKDF_SHA256_XNONCE_AES_GCM_SEED};
use crate::{
    aes_gcm::aes_gcm,
    cipher::Cipher,
    extended_nonce::ExtendedNonceGcm,
    failure::Failure,
    metrics::{EncryptionMetrics, KeyIdUse},
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use zeroize::Zeroizing;

/// The time for which a data key is cached, from its decryption or its last write on. Keys are few: one for each
/// start of a server and each change of the plugin's key.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// A data key for decryption.
pub(crate) struct DataKey {
    pub(crate) cipher: Box<dyn Cipher>,
    /// Counts the values decrypted with it.
    pub(crate) uses: KeyIdUse,
}

impl DataKey {
    /// A key that the KMS plugin decrypted.
    pub(crate) fn decrypted(
        source_type: i32,
        key: Zeroizing<Vec<u8>>,
        uses: KeyIdUse,
    ) -> Result<DataKey, Failure> {
        let cipher: Box<dyn Cipher> = match source_type {
            HKDF_SHA256_XNONCE_AES_GCM_SEED => Box::new(ExtendedNonceGcm::new(key)?),
            _ => aes_gcm(&key)?,
        };
        Ok(DataKey { cipher, uses })
    }
}

/// The cache of one provider's decrypted data keys.
pub(crate) struct DataKeyCache {
    provider: String,
    metrics: Arc<EncryptionMetrics>,
    keys: Mutex<HashMap<CacheKey, Kept>>,
}

struct Kept {
    key: Arc<DataKey>,
    until: Instant,
}

impl DataKeyCache {
    pub(crate) fn new(provider: &str, metrics: Arc<EncryptionMetrics>) -> DataKeyCache {
        DataKeyCache { provider: provider.to_owned(), metrics, keys: Mutex::default() }
    }

    /// A cached key, also one that has expired: the key of an identity never changes.
    pub(crate) fn get(&self, cache_key: &CacheKey) -> Option<Arc<DataKey>> {
        self.keys.lock().get(cache_key).map(|kept| kept.key.clone())
    }

    /// Keeps the key that a value is encrypted with.
    pub(crate) fn keep(&self, cache_key: CacheKey, key: &Arc<DataKey>) {
        if let Some(kept) = self.keys.lock().get_mut(&cache_key) {
            kept.until = Instant::now() + KEPT_FOR;
            return;
        }
        self.insert(cache_key, key.clone());
    }

    /// Adds a key, and removes expired ones.
    pub(crate) fn insert(&self, cache_key: CacheKey, key: Arc<DataKey>) {
        let now = Instant::now();
        let mut keys = self.keys.lock();
        keys.retain(|_, kept| kept.until > now);
        keys.insert(cache_key, Kept { key, until: now + KEPT_FOR });
        self.metrics.data_key_cache_size(&self.provider, keys.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kms::object::EncryptedObject, metrics::Direction};

    #[tokio::test(start_paused = true)]
    async fn a_key_that_values_are_encrypted_with_outlives_others() {
        let metrics = Arc::new(EncryptionMetrics::new("apiserver-test").unwrap());
        let cache = DataKeyCache::new("kms", metrics.clone());
        let key = || {
            let uses = metrics.key_id(Direction::FromStorage, "kms", "1");
            let secret = Zeroizing::new(vec![7; 32]);
            Arc::new(DataKey::decrypted(HKDF_SHA256_XNONCE_AES_GCM_SEED, secret, uses).unwrap())
        };
        let [written, read, other] = ["a", "b", "c"]
            .map(|id| EncryptedObject { key_id: id.to_owned(), ..EncryptedObject::default() }.cache_key());
        cache.keep(written, &key());
        cache.insert(read, key());
        tokio::time::advance(KEPT_FOR / 2).await;
        cache.keep(written, &key());
        tokio::time::advance(KEPT_FOR / 2).await;
        assert!(cache.get(&read).is_some(), "an expired key still decrypts");
        cache.insert(other, key());
        let left = [written, read, other].map(|cache_key| cache.get(&cache_key).is_some());
        assert_eq!(left, [true, false, true]);
    }
}
