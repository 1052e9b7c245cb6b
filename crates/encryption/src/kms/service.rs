//! Calls a KMS plugin: gRPC over a Unix socket, each call with a time-out.
//!
//! A call waits until the plugin is reachable, within its time-out: the plugin may start after the server, or
//! restart.

use super::{
    endpoint::Endpoint,
    messages::{
        DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusRequest, StatusResponse,
    },
};
use crate::{failure::code_name, metrics::EncryptionMetrics};
use http::{Uri, uri::PathAndQuery};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use pintle_go_forms::quote;
use pintle_storage::BoxFuture;
use prost::Message;
use std::{sync::Arc, time::Duration};
use tokio::{net::UnixStream, time::Instant};
use tonic::{Code, Request, Status, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;
use zeroize::Zeroizing;

const STATUS: &str = "/v2.KeyManagementService/Status";
const ENCRYPT: &str = "/v2.KeyManagementService/Encrypt";
const DECRYPT: &str = "/v2.KeyManagementService/Decrypt";

/// The back-off between attempts to reach the plugin: the first delay and the longest.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// See [`GrpcService::call_when_reachable`].
const TOLD_LATER: Duration = Duration::from_secs(1);

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
    channel: Channel,
    dialer: Arc<Dialer>,
    timeout: Duration,
    provider: String,
    metrics: Arc<EncryptionMetrics>,
}

impl GrpcService {
    /// The plugin at an endpoint; it does not connect yet. Must be called on a runtime.
    pub(crate) fn new(
        endpoint: Endpoint,
        timeout: Duration,
        provider: &str,
        metrics: Arc<EncryptionMetrics>,
    ) -> GrpcService {
        let dialer = Arc::new(Dialer { endpoint, failed: Mutex::default() });
        let dialing = dialer.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let dialer = dialing.clone();
            async move { dialer.dial().await.map(TokioIo::new) }
        });
        let channel = tonic::transport::Endpoint::from_static("http://localhost");
        let channel = channel.connect_with_connector_lazy(connector);
        GrpcService { channel, dialer, timeout, provider: provider.to_owned(), metrics }
    }

    async fn call<Q, R>(&self, method: &'static str, request: Q) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let start = Instant::now();
        let answer = tokio::time::timeout(self.timeout, self.call_when_reachable(method, request)).await;
        let answer = answer.unwrap_or_else(|_| {
            let mut why = "context deadline exceeded".to_owned();
            if let Some(error) = &*self.dialer.failed.lock() {
                why = format!("{why}: last connection error: {error}");
            }
            Err(Status::deadline_exceeded(why))
        });
        let code = answer.as_ref().err().map_or(Code::Ok, Status::code);
        self.metrics.kms_operation(&self.provider, method, code_name(code), start.elapsed());
        answer
    }

    /// Calls the plugin, with retries while its socket is not listening.
    async fn call_when_reachable<Q, R>(&self, method: &'static str, message: Q) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let mut backoff = FIRST_BACKOFF;
        loop {
            let mut request = Request::new(message.clone());
            // The plugin gets the time-out in the request. It is a little longer, since the library also enforces it,
            // with another error text.
            request.set_timeout(self.timeout + TOLD_LATER);
            let failure = match self.call_once(method, request).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if self.dialer.failed.lock().is_none() {
                return Err(failure);
            }
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    async fn call_once<Q, R>(&self, method: &'static str, request: Request<Q>) -> Result<R, Status>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let mut client = Grpc::new(self.channel.clone());
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec = ProstCodec::<Q, R>::default();
        let response = client.unary(request, PathAndQuery::from_static(method), codec).await?;
        Ok(response.into_inner())
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

/// Connects, and records the error of the last attempt.
struct Dialer {
    endpoint: Endpoint,
    failed: Mutex<Option<String>>,
}

impl Dialer {
    async fn dial(&self) -> Result<UnixStream, std::io::Error> {
        let connected = UnixStream::connect(self.endpoint.path()).await;
        *self.failed.lock() = connected.as_ref().err().map(|error| {
            let path = self.endpoint.path().display();
            let why = format!("transport: Error while dialing: dial unix {path}: connect: {error}");
            format!("connection error: desc = {}", quote(&why))
        });
        connected
    }
}
