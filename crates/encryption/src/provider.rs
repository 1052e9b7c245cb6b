//! Providers, and the list of a resource's providers.
//!
//! A stored value begins with its provider's prefix (`k8s:enc:aescbc:v1:`). The first provider of the list encrypts;
//! a value is decrypted by the providers with its prefix, one after the other until one succeeds, since two providers
//! may share a prefix during a rotation.

use crate::{
    failure::Failure,
    identity,
    key_ring::{KeyRing, Opened},
    kms::KmsTransformer,
    metrics::Scope,
};
use bytes::Bytes;
use pintle_storage::Key;
use std::{sync::Arc, time::Instant};

/// The value prefixes of the local providers.
pub(crate) const AES_CBC_PREFIX: &str = "k8s:enc:aescbc:v1:";
pub(crate) const AES_GCM_PREFIX: &str = "k8s:enc:aesgcm:v1:";
pub(crate) const SECRETBOX_PREFIX: &str = "k8s:enc:secretbox:v1:";
/// The value prefix of KMS plugins; the plugin's name and a colon follow.
pub(crate) const KMS_V2_PREFIX: &str = "k8s:enc:kms:v2:";

/// One provider.
pub(crate) struct Provider {
    /// Empty only for [`ProviderKind::Identity`].
    pub(crate) prefix: String,
    pub(crate) kind: ProviderKind,
}

/// The type of a provider.
pub(crate) enum ProviderKind {
    /// Stores values unencrypted.
    Identity,
    /// Encrypts with keys of the configuration.
    Keys(KeyRing),
    /// Encrypts with data keys that a KMS plugin encrypts.
    Kms(Arc<KmsTransformer>),
}

impl Provider {
    fn seal(&self, scope: Scope<'_>, key: &Key, value: Bytes) -> Result<Bytes, Failure> {
        let authenticated = key.as_str().as_bytes();
        let mut out = Vec::new();
        match &self.kind {
            ProviderKind::Identity => return Ok(value),
            ProviderKind::Keys(keys) => {
                out.extend_from_slice(self.prefix.as_bytes());
                keys.seal(scope, authenticated, &value, &mut out)?;
            }
            ProviderKind::Kms(kms) => {
                out.extend_from_slice(self.prefix.as_bytes());
                kms.seal(authenticated, &value, &mut out)?;
            }
        }
        Ok(out.into())
    }

    async fn open(
        &self,
        scope: Scope<'_>,
        key: &Key,
        stored: &Bytes,
        rest: &[u8],
    ) -> Result<Opened, Failure> {
        let authenticated = key.as_str().as_bytes();
        match &self.kind {
            ProviderKind::Identity => Ok(Opened { value: identity::open(stored)?, stale: false }),
            ProviderKind::Keys(keys) => keys.open(scope, authenticated, rest),
            ProviderKind::Kms(kms) => kms.open(authenticated, rest).await,
        }
    }
}

/// The providers of a resource; the first one encrypts.
#[derive(Clone, Default)]
pub(crate) struct Providers(Vec<Arc<Provider>>);

impl Providers {
    /// Appends the providers of another rule for the same resource.
    pub(crate) fn extend(&mut self, providers: &[Arc<Provider>]) {
        self.0.extend_from_slice(providers);
    }

    /// Encrypts a value.
    pub(crate) fn seal(&self, scope: Scope<'_>, key: &Key, value: Bytes) -> Result<Bytes, Failure> {
        let Some(provider) = self.0.first() else { return Err(no_match()) };
        let start = Instant::now();
        let sealed = provider.seal(scope, key, value);
        scope.sealed(&provider.prefix, start, sealed.as_ref().err());
        if let Err(failure) = &sealed {
            tracing::error!(error = %failure, resource = scope.resource, "failed to encrypt data");
        }
        sealed
    }

    /// Decrypts a stored value.
    pub(crate) async fn open(&self, scope: Scope<'_>, key: &Key, stored: Bytes) -> Result<Opened, Failure> {
        let start = Instant::now();
        let mut failures = Vec::new();
        for (position, provider) in self.0.iter().enumerate() {
            let Some(rest) = stored.strip_prefix(provider.prefix.as_bytes()) else { continue };
            let opened = provider.open(scope, key, &stored, rest).await;
            if matches!(provider.kind, ProviderKind::Identity) {
                // Identity is first while a cluster is being decrypted; the other providers read the encrypted
                // values.
                let Ok(opened) = opened else { continue };
                scope.opened("identity", start, None);
                return Ok(Opened { value: opened.value, stale: position != 0 });
            }
            scope.opened(&provider.prefix, start, opened.as_ref().err());
            match opened {
                Ok(opened) => {
                    return Ok(Opened { value: opened.value, stale: opened.stale || position != 0 });
                }
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(failure) = Failure::aggregate(failures) {
            tracing::error!(error = %failure, resource = scope.resource, "failed to decrypt data");
            return Err(failure);
        }
        scope.opened("unknown", start, Some(&no_match()));
        Err(no_match())
    }
}

/// The failure for a value without a provider's prefix.
fn no_match() -> Failure {
    Failure::new("no matching prefix found")
}
