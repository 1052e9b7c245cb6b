//! Encrypts and decrypts values with the data keys of a KMS plugin.

use super::{
    data_keys::{DataKey, DataKeyCache},
    messages::DecryptRequest,
    object::{EncryptedObject, HKDF_SHA256_XNONCE_AES_GCM_SEED},
    probe::{Probe, WriteKey},
    service::KmsService,
};
use crate::{
    failure::Failure,
    key_ring::Opened,
    metrics::{Direction, EncryptionMetrics},
};
use pintle_telemetry::{TARGET, event};
use std::sync::Arc;
use tracing::Instrument;
use uuid::Uuid;

/// Encrypts with the data key of a [`Probe`], and decrypts with the data key stored beside each value.
pub(crate) struct KmsTransformer {
    provider: String,
    service: Arc<dyn KmsService>,
    probe: Arc<Probe>,
    cache: DataKeyCache,
    metrics: Arc<EncryptionMetrics>,
}

impl KmsTransformer {
    pub(crate) fn new(
        provider: &str,
        service: Arc<dyn KmsService>,
        probe: Arc<Probe>,
        metrics: Arc<EncryptionMetrics>,
    ) -> KmsTransformer {
        let cache = DataKeyCache::new(provider, metrics.clone());
        KmsTransformer { provider: provider.to_owned(), service, probe, cache, metrics }
    }

    /// Encrypts `plain`, and appends its stored form to `out`. Makes no call.
    pub(crate) fn seal(&self, authenticated: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let _span = tracing::info_span!(
            target: TARGET,
            "TransformToStorage with envelopeTransformer",
            "transformer.provider.name" = self.provider
        )
        .entered();
        let write_key = self.probe.write_key()?;
        write_key.validate_encrypt_capability()?;
        // Values written with it stay readable after the key has changed, without a call.
        self.cache.keep(write_key.cache_key, &write_key.key);
        let mut sealed = Vec::new();
        event!("About to encrypt data using DEK");
        write_key.key.cipher.seal(authenticated, plain, &mut sealed)?;
        event!("Data encryption succeeded");
        write_key.uses.record();
        let object = EncryptedObject { encrypted_data: sealed.into(), ..write_key.template.clone() };
        event!("About to encode encrypted object");
        object.append_to(out)?;
        event!("Encoded encrypted object");
        Ok(())
    }

    /// Decrypts a stored value. It is stale when its key is not the plugin's present one.
    pub(crate) async fn open(&self, authenticated: &[u8], stored: &[u8]) -> Result<Opened, Failure> {
        let span = tracing::info_span!(
            target: TARGET,
            "TransformFromStorage with envelopeTransformer",
            "transformer.provider.name" = self.provider
        );
        self.open_in_span(authenticated, stored).instrument(span).await
    }

    async fn open_in_span(&self, authenticated: &[u8], stored: &[u8]) -> Result<Opened, Failure> {
        event!("About to decode encrypted object");
        let object = EncryptedObject::parse(stored)?;
        event!("Decoded encrypted object");
        // Values are readable even if the write key has expired.
        let write_key = self.probe.write_key()?;
        let key = self.data_key(&object, &write_key).await?;
        key.uses.record();
        event!("About to decrypt data using DEK");
        let value = key.cipher.open(authenticated, &object.encrypted_data)?;
        event!("Data decryption succeeded");
        let stale = object.key_id != write_key.template.key_id
            || object.encrypted_dek_source_type != HKDF_SHA256_XNONCE_AES_GCM_SEED;
        Ok(Opened { value: value.into(), stale })
    }

    async fn data_key(
        &self,
        object: &EncryptedObject,
        write_key: &WriteKey,
    ) -> Result<Arc<DataKey>, Failure> {
        let cache_key = object.cache_key();
        if cache_key == write_key.cache_key {
            return Ok(write_key.key.clone());
        }
        if let Some(key) = self.cache.get(&cache_key) {
            return Ok(key);
        }
        self.metrics.cache_miss();
        let uid = Uuid::new_v4().to_string();
        tracing::debug!(provider = self.provider, uid, "decrypting a data key");
        let request = DecryptRequest {
            ciphertext: object.encrypted_dek_source.clone(),
            uid,
            key_id: object.key_id.clone(),
            annotations: object.annotations.clone(),
        };
        event!("About to decrypt DEK using remote service");
        let key = self.service.decrypt(request).await;
        let key = key.map_err(|error| Failure::of_call("failed to decrypt DEK, error: ", &error))?;
        event!("DEK decryption succeeded");
        let uses = self.metrics.key_id(Direction::FromStorage, &self.provider, &object.key_id);
        let key = Arc::new(DataKey::decrypted(object.encrypted_dek_source_type, key, uses)?);
        self.cache.insert(cache_key, key.clone());
        Ok(key)
    }
}
