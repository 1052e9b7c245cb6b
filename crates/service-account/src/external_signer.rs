//! Tokens that a program beside the server signs
//! (<https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#external-serviceaccount-token-signing-and-key-management>).
//!
//! The program has the private keys. It tells the public keys, and for how long they may be used without asking again; a
//! token with an unknown key id makes the server ask at once.

mod error;
mod header;
mod key_cache;
mod messages;
mod metrics;

pub use error::ExternalSignerError;
pub use metrics::ExternalSignerMetrics;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use error::label;
use header::Header;
use key_cache::{CALL_TIMEOUT, KeyCache, MAX_KEY_ID_BYTES};
use messages::{MetadataRequest, MetadataResponse, SignJwtRequest, SignJwtResponse};
use pintle_jwt::PublicKey;
use pintle_plugin_socket::{PluginClient, Status, code_name};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

const SIGN: &str = "/v1.ExternalJWTSigner/Sign";
const METADATA: &str = "/v1.ExternalJWTSigner/Metadata";
/// How long the metadata may take.
const METADATA_TIMEOUT: Duration = Duration::from_secs(10);
/// The minimum lifetime of tokens, in seconds.
const MIN_EXPIRATION_SECONDS: i64 = 10 * 60;

/// A signer behind a socket. Its keys are fetched in the background until it is dropped.
#[derive(Debug)]
pub struct ExternalSigner {
    client: Arc<PluginClient>,
    keys: Arc<KeyCache>,
    metrics: Arc<ExternalSignerMetrics>,
    /// The longest lifetime of tokens that the signer signs, in seconds.
    max_expiration_seconds: i64,
    refreshing: JoinHandle<()>,
}

impl Drop for ExternalSigner {
    fn drop(&mut self) {
        self.refreshing.abort();
    }
}

impl ExternalSigner {
    /// The signer at a socket, whose name begins with `@` if it is abstract. Waits up to a minute until it tells its keys.
    ///
    /// # Errors
    /// When the signer tells no keys, or does not sign tokens of ten minutes.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub async fn connect(
        endpoint: &str,
        metrics: Arc<ExternalSignerMetrics>,
    ) -> Result<ExternalSigner, ExternalSignerError> {
        let path = match endpoint.strip_prefix('@') {
            Some(name) => PathBuf::from(format!("\0{name}")),
            None => PathBuf::from(endpoint),
        };
        let observed = metrics.clone();
        let client = Arc::new(PluginClient::new(path, move |method, code, took| {
            observed.called(method, code_name(code), took);
        }));
        let keys = Arc::new(KeyCache::new(client.clone(), metrics.clone()));
        let setting_up = |error: ExternalSignerError| error.when("while setting up external-jwt-signer");
        let filling = "while initially filling key cache: while performing initial cache fill";
        keys.sync().await.map_err(|error| setting_up(error.when(filling)))?;
        let metadata: Result<MetadataResponse, Status> =
            client.call(METADATA, MetadataRequest {}, METADATA_TIMEOUT).await;
        let metadata = metadata.map_err(|status| setting_up(ExternalSignerError::of_call(&status)))?;
        let max_expiration_seconds = metadata.max_token_expiration_seconds;
        if max_expiration_seconds < MIN_EXPIRATION_SECONDS {
            return Err(ExternalSignerError::new(format!(
                "max token life supported by external-jwt-signer ({max_expiration_seconds}s) is less than acceptable \
                 (min {MIN_EXPIRATION_SECONDS}s)"
            )));
        }
        let refreshing = tokio::spawn(keys.clone().refresh());
        Ok(ExternalSigner { client, keys, metrics, max_expiration_seconds, refreshing })
    }

    /// The longest lifetime of tokens that the signer signs, in seconds: ten minutes or more.
    pub fn max_expiration_seconds(&self) -> i64 {
        self.max_expiration_seconds
    }

    /// The keys that may have signed a token with this key id, or all keys for an empty id.
    pub(crate) async fn verifying(&self, key_id: &str) -> Vec<PublicKey> {
        self.keys.find(key_id).await
    }

    /// The keys that are published.
    pub(crate) fn published(&self) -> Vec<PublicKey> {
        self.keys.published()
    }

    /// For how many seconds the published keys may be cached.
    pub(crate) fn max_age_seconds(&self) -> u64 {
        self.keys.max_age_seconds()
    }

    /// A number that changes with the keys.
    pub(crate) fn generation(&self) -> u64 {
        self.keys.generation()
    }

    /// Has the claims signed, and returns the token.
    ///
    /// # Errors
    /// When the call fails, or the answer is not a signature by a published key.
    pub(crate) async fn sign(&self, claims: &str) -> Result<String, ExternalSignerError> {
        let signed = self.signed(claims).await;
        self.metrics.signed(label(&signed));
        signed
    }

    async fn signed(&self, claims: &str) -> Result<String, ExternalSignerError> {
        let claims = URL_SAFE_NO_PAD.encode(claims);
        let request = SignJwtRequest { claims: claims.clone() };
        let answer: Result<SignJwtResponse, Status> = self.client.call(SIGN, request, CALL_TIMEOUT).await;
        let answer =
            answer.map_err(|status| ExternalSignerError::of_call(&status).when("while signing jwt"))?;
        self.check_header(&answer.header).await.map_err(|error| error.when("while validating header"))?;
        if answer.signature.is_empty() {
            return Err(ExternalSignerError::new("empty signature returned"));
        }
        Ok(format!("{}.{claims}.{}", answer.header, answer.signature))
    }

    async fn check_header(&self, header: &str) -> Result<(), ExternalSignerError> {
        let header = Header::read(header).map_err(ExternalSignerError::new)?;
        if header.typ != "JWT" {
            return Err(ExternalSignerError::new("bad type"));
        }
        if header.kid.is_empty() {
            return Err(ExternalSignerError::new("key id missing"));
        }
        if header.kid.len() > MAX_KEY_ID_BYTES {
            return Err(ExternalSignerError::new("key id longer than 1 kb"));
        }
        if !matches!(header.alg.as_str(), "RS256" | "ES256" | "ES384" | "ES512") {
            let algorithm = pintle_go_forms::quote(&header.alg);
            return Err(ExternalSignerError::new(format!("bad signing algorithm {algorithm}")));
        }
        if self.keys.is_excluded(&header.kid).await {
            return Err(ExternalSignerError::new(format!(
                "key used for signing JWT (kid: {}) is excluded from OIDC discovery docs",
                header.kid
            )));
        }
        Ok(())
    }
}
