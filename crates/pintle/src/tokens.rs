//! Assembles the issuing and authentication of service account tokens and bootstrap tokens.

use crate::{Options, run_error::RunError};
use pintle_api::authentication::token_review::TokenReviewer;
use pintle_apiserver::{
    metrics::Metrics,
    registry::{Store, Stores},
};
use pintle_auth::{BoxFuture, authn::TokenAuthenticator};
use pintle_cacher::Freshness;
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::{Registry, WriteOptions};
use pintle_service_account::{
    BootstrapTokens, Config, ExternalSigner, ExternalSignerMetrics, Found, ObjectGetter, ObjectKind,
    OpenIdMetadata, ServiceAccountTokens, TokenIssuer, TokenKeys, TokenMetrics,
};
use std::{sync::Arc, time::Duration};

/// The server's tokens, as far as they need no stores.
pub(crate) struct Tokens {
    keys: Arc<TokenKeys>,
    /// Issues tokens; `None` without a signing key.
    pub(crate) issuer: Option<Arc<TokenIssuer>>,
    /// Serves `TokenReview`s.
    pub(crate) reviewer: Arc<TokenReviewer>,
    signer_metrics: Option<Arc<ExternalSignerMetrics>>,
}

impl Tokens {
    /// Loads the keys.
    pub(crate) async fn load(options: &Options) -> Result<Tokens, RunError> {
        let own = &options.service_accounts;
        own.warn();
        let mut max_expiration = own.max_token_expiration;
        let mut signer_metrics = None;
        let keys = match &own.signing_endpoint {
            Some(endpoint) => {
                let metrics = ExternalSignerMetrics::new();
                let metrics = Arc::new(metrics?);
                signer_metrics = Some(metrics.clone());
                let signer = ExternalSigner::connect(endpoint, metrics).await;
                let signer = signer.map_err(|error| RunError::Options(error.to_string()))?;
                let longest = Duration::from_secs(signer.max_expiration_seconds().unsigned_abs());
                max_expiration = own.max_expiration_with(longest).map_err(RunError::Options)?;
                TokenKeys::external(signer)
            }
            None => Tokens::keys(options)?,
        };
        let keys = Arc::new(keys);
        let audiences = own.audiences().to_vec();
        let max_seconds = i64::try_from(max_expiration.as_secs()).ok();
        let issuer = own.issuers.first().filter(|_| keys.can_sign()).map(|issuer| {
            Arc::new(TokenIssuer {
                issuer: issuer.clone(),
                keys: keys.clone(),
                audiences: audiences.clone(),
                max_expiration_seconds: max_seconds.filter(|seconds| *seconds > 0),
                extend_expiration: own.extend_token_expiration,
            })
        });
        Ok(Tokens { keys, issuer, reviewer: Arc::new(TokenReviewer::new(audiences)), signer_metrics })
    }

    /// The keys in the configured files, or those that the server generates.
    pub(crate) fn keys(options: &Options) -> Result<TokenKeys, RunError> {
        let own = &options.service_accounts;
        Ok(match own.key_files.is_empty() && own.signing_key_file.is_none() {
            true => TokenKeys::generated(options.certificates_dir().join("service-account.key"))?,
            false => TokenKeys::from_files(&own.key_files, own.signing_key_file.as_deref())?,
        })
    }

    /// The documents by which others verify the tokens; `None` when the issuer is not a URL that supports discovery.
    pub(crate) fn open_id(&self, options: &Options, address: &str) -> Option<OpenIdMetadata> {
        let own = &options.service_accounts;
        let issuer = own.issuers.first()?;
        let metadata = OpenIdMetadata::new(issuer, own.jwks_uri.as_deref(), address, self.keys.clone());
        metadata
            .inspect_err(|error| tracing::warn!(%error, "the documents of OpenID discovery are not served"))
            .ok()
    }

    /// The authenticators of tokens, in order.
    pub(crate) fn authenticators(
        &self,
        options: &Options,
        stores: &Arc<Stores>,
        server_metrics: &Metrics,
    ) -> Result<Vec<Arc<dyn TokenAuthenticator>>, RunError> {
        let own = &options.service_accounts;
        let objects: Arc<dyn ObjectGetter> = Arc::new(StoredObjects::new(stores.clone()));
        let metrics = Arc::new(TokenMetrics::new()?);
        server_metrics.register(metrics.collectors())?;
        if let Some(signer) = &self.signer_metrics {
            server_metrics.register(signer.collectors())?;
        }
        let audiences = own.audiences().to_vec();
        let mut all: Vec<Arc<dyn TokenAuthenticator>> = vec![Arc::new(ServiceAccountTokens::new(Config {
            issuers: own.issuers.clone(),
            keys: self.keys.clone(),
            audiences: audiences.clone(),
            lookup: own.lookup,
            objects: objects.clone(),
            metrics,
        }))];
        if own.enable_bootstrap_token_auth {
            all.push(Arc::new(BootstrapTokens::new(objects, audiences)));
        }
        Ok(all)
    }
}

/// Reads the objects that tokens are bound to from this server's stores.
struct StoredObjects {
    stores: Arc<Stores>,
    by_kind: [Option<Arc<Store>>; 4],
}

const KINDS: [ObjectKind; 4] =
    [ObjectKind::ServiceAccount, ObjectKind::Secret, ObjectKind::Pod, ObjectKind::Node];

impl StoredObjects {
    fn new(stores: Arc<Stores>) -> StoredObjects {
        let by_kind = KINDS.map(|kind| stores.store(&kind.resource()).ok());
        StoredObjects { stores, by_kind }
    }
}

impl ObjectGetter for StoredObjects {
    fn find<'a>(
        &'a self,
        kind: ObjectKind,
        namespace: &'a str,
        name: &'a str,
        is_consistent: bool,
    ) -> BoxFuture<'a, Result<Option<Found>, Status>> {
        Box::pin(async move {
            let of_kind = KINDS.iter().zip(&self.by_kind).find(|(own, _)| **own == kind);
            let Some(store) = of_kind.and_then(|(_, store)| store.as_ref()) else { return Ok(None) };
            let freshness = if is_consistent { Freshness::Consistent } else { Freshness::Any };
            // Names in tokens are not validated, but must form a valid key.
            let Ok(key) = store.object_key(namespace, name) else { return Ok(None) };
            let found = store.find(&key, freshness).await?;
            Ok(found.map(|object| Found { revision: object.revision().0, json: object.json() }))
        })
    }

    fn label_secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
        (label, value): (&'static str, String),
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let resource = ObjectKind::Secret.resource();
            let change = |mut secret: Value| {
                if secret.str_at("metadata.uid") != uid {
                    return Err(Status::conflict(&resource, name, "it is another one by now"));
                }
                secret.object_at_mut("metadata.labels").insert(label.to_owned(), value.as_str().into());
                Ok(secret)
            };
            let options =
                WriteOptions { field_manager: "kube-apiserver".to_owned(), ..WriteOptions::default() };
            let updated = self.stores.update(&resource, namespace, name, Box::new(change), options).await;
            if let Err(error) = updated {
                tracing::warn!(%error, namespace, name, "the use of a token in a secret cannot be noted");
            }
        })
    }
}
