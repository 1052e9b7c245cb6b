//! Providers, and the list of them that a resource has.
//!
//! A stored value begins with its provider's prefix (`k8s:enc:aescbc:v1:`). The first provider of the list encrypts;
//! a value is decrypted by those whose prefix it has, one after the other until one succeeds, since during a rotation
//! two providers may share a prefix.

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

/// What begins a value of each local provider.
pub(crate) const AES_CBC_PREFIX: &str = "k8s:enc:aescbc:v1:";
pub(crate) const AES_GCM_PREFIX: &str = "k8s:enc:aesgcm:v1:";
pub(crate) const SECRETBOX_PREFIX: &str = "k8s:enc:secretbox:v1:";
/// What begins a value of a key service; its name and a colon follow.
pub(crate) const KMS_V2_PREFIX: &str = "k8s:enc:kms:v2:";

/// One provider.
pub(crate) struct Provider {
    /// Empty for [`ProviderKind::Identity`] alone.
    pub(crate) prefix: String,
    pub(crate) kind: ProviderKind,
}

/// What a provider does.
pub(crate) enum ProviderKind {
    /// Stores values as they are.
    Identity,
    /// Encrypts by keys of the configuration.
    Keys(KeyRing),
    /// Encrypts by keys that a key service guards.
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

/// The providers of a resource, the one that writes first.
#[derive(Clone, Default)]
pub(crate) struct Providers(Vec<Arc<Provider>>);

impl Providers {
    /// Adds the providers of another rule for the same resource, behind those that are there.
    pub(crate) fn extend(&mut self, providers: &[Arc<Provider>]) {
        self.0.extend_from_slice(providers);
    }

    /// What to store for a value.
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

    /// The value that was stored.
    pub(crate) async fn open(&self, scope: Scope<'_>, key: &Key, stored: Bytes) -> Result<Opened, Failure> {
        let start = Instant::now();
        let mut failures = Vec::new();
        for (position, provider) in self.0.iter().enumerate() {
            let Some(rest) = stored.strip_prefix(provider.prefix.as_bytes()) else { continue };
            let opened = provider.open(scope, key, &stored, rest).await;
            if matches!(provider.kind, ProviderKind::Identity) {
                // Identity stands before the others when a cluster is being decrypted; what it cannot read is theirs.
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

/// No provider's prefix begins the value.
fn no_match() -> Failure {
    Failure::new("no matching prefix found")
}
