//! Calls a KMS plugin. A call waits until the plugin is reachable, within its time-out.

use super::{
    endpoint::Endpoint,
    messages::{
        DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusRequest, StatusResponse,
    },
};
use crate::metrics::EncryptionMetrics;
use pintle_plugin_socket::{PluginClient, Status, code_name};
use pintle_storage::BoxFuture;
use prost::Message;
use std::{sync::Arc, time::Duration};
use zeroize::Zeroizing;

const STATUS: &str = "/v2.KeyManagementService/Status";
const ENCRYPT: &str = "/v2.KeyManagementService/Encrypt";
const DECRYPT: &str = "/v2.KeyManagementService/Decrypt";

/// Encrypts and decrypts data keys.
pub(crate) trait KmsService: Send + Sync + 'static {
    /// The plugin's health, API version and key id.
    fn status(&self) -> BoxFuture<'_, Result<StatusResponse, Status>>;

    /// Encrypts a data key.
    fn encrypt<'a>(
        &'a self,
        uid: &'a str,
        plaintext: &'a [u8],
    ) -> BoxFuture<'a, Result<EncryptResponse, Status>>;

    /// Decrypts a data key.
    fn decrypt(&self, request: DecryptRequest) -> BoxFuture<'_, Result<Zeroizing<Vec<u8>>, Status>>;
}

/// A plugin behind a socket.
pub(crate) struct GrpcService {
    client: PluginClient,
    timeout: Duration,
}

impl GrpcService {
    /// The plugin at an endpoint; it does not connect yet. Must be called on a runtime.
    pub(crate) fn new(
        endpoint: &Endpoint,
        timeout: Duration,
        provider: &str,
        metrics: Arc<EncryptionMetrics>,
    ) -> GrpcService {
        let provider = provider.to_owned();
        let observe = move |method: &'static str, code, took| {
            metrics.kms_operation(&provider, method, code_name(code), took);
        };
        GrpcService { client: PluginClient::new(endpoint.path().to_owned(), observe), timeout }
    }

    async fn call<Q, R>(&self, method: &'static str, request: Q) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        self.client.call(method, request, self.timeout).await
    }
}

impl KmsService for GrpcService {
    fn status(&self) -> BoxFuture<'_, Result<StatusResponse, Status>> {
        Box::pin(self.call(STATUS, StatusRequest {}))
    }

    fn encrypt<'a>(
        &'a self,
        uid: &'a str,
        plaintext: &'a [u8],
    ) -> BoxFuture<'a, Result<EncryptResponse, Status>> {
        let request = EncryptRequest { plaintext: plaintext.to_vec(), uid: uid.to_owned() };
        Box::pin(self.call(ENCRYPT, request))
    }

    fn decrypt(&self, request: DecryptRequest) -> BoxFuture<'_, Result<Zeroizing<Vec<u8>>, Status>> {
        Box::pin(async move {
            let response: DecryptResponse = self.call(DECRYPT, request).await?;
            Ok(Zeroizing::new(response.plaintext))
        })
    }
}
