//! Data keys in the clear, and those that are kept.

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

/// How long a data key is kept that no value was encrypted by and none of whose values was read first. Keys are few: one
/// for each start of a server and each change of the service's key.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// A data key that values are decrypted by.
pub(crate) struct DataKey {
    pub(crate) cipher: Box<dyn Cipher>,
    /// Counts the values decrypted by it.
    pub(crate) uses: KeyIdUse,
}

impl DataKey {
    /// A key as the service decrypted it.
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

/// The data keys of one provider that were decrypted before.
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

    pub(crate) fn get(&self, cache_key: &CacheKey) -> Option<Arc<DataKey>> {
        self.keys.lock().get(cache_key).map(|kept| kept.key.clone())
    }

    /// Keeps a key, and forgets those whose time is over.
    pub(crate) fn insert(&self, cache_key: CacheKey, key: Arc<DataKey>) {
        let now = Instant::now();
        let mut keys = self.keys.lock();
        keys.retain(|_, kept| kept.until > now);
        keys.insert(cache_key, Kept { key, until: now + KEPT_FOR });
        self.metrics.data_key_cache_size(&self.provider, keys.len());
    }
}
