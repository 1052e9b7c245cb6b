//! A client of one server, which may have several addresses.

use crate::{Cause, ConfigError, Connector, Destination, Stream, TlsSettings, usage::Usage};
use bytes::Bytes;
use http::{Request, Response, Uri, request};
use http_body_util::{BodyExt, Empty, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use rustls::pki_types::ServerName;
use std::{error::Error, fmt, time::Duration};

/// The body of a request to another server.
pub type UpstreamBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A client of the server of one name. The URL of a request has the address; the certificate must have the name. Idle
/// connections are kept for later requests, until the client is dropped.
pub struct Client {
    pool: legacy::Client<Connector, UpstreamBody>,
    /// Opens connections of HTTP/1.1, which can be upgraded.
    upgradable: Connector,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.upgradable.server_name).finish_non_exhaustive()
    }
}

/// The time for which an idle connection is kept, and the number of idle connections per address.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
const MAX_IDLE: usize = 25;
/// How often a request is sent again when kept connections turn out to be closed.
const MAX_RETRIES: usize = 3;
/// The most headers of a response, and the most bytes of its head.
const MAX_HEADERS: usize = 1000;
const MAX_HEAD_BYTES: usize = 512 << 10;

impl Client {
    /// A client of the server of this name; it does not connect yet.
    ///
    /// # Errors
    /// When the name is none, or the certificates or the key are unusable.
    pub fn new(server_name: String, settings: &TlsSettings<'_>) -> Result<Client, ConfigError> {
        let server_name =
            ServerName::try_from(server_name).map_err(|error| ConfigError::Url(error.to_string()))?;
        let connector = |both_protocols| {
            let tls = TlsSettings { both_protocols, ..*settings }.connector()?;
            Ok(Connector { destination: Destination::Url, server_name: server_name.clone(), tls: Some(tls) })
        };
        let pool = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            .pool_timer(TokioTimer::new())
            .http1_max_headers(MAX_HEADERS)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .http2_max_header_list_size(MAX_HEAD_BYTES as u32)
            .build(connector(settings.both_protocols)?);
        Ok(Client { pool, upgradable: connector(false)? })
    }

    /// Sends a request, and returns the response when its head has arrived.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn send(&self, request: Request<UpstreamBody>) -> Result<Response<Incoming>, Cause> {
        self.try_send(request).await.map_err(|failed| failed.cause)
    }

    /// Sends a request without a body that may be repeated. It is sent again when a kept connection ends before the
    /// response begins: the server may have closed it just before the request came.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn send_replayable(&self, head: request::Parts) -> Result<Response<Incoming>, Cause> {
        let mut retries = 0;
        loop {
            let request = Request::from_parts(head.clone(), empty_body());
            match self.try_send(request).await {
                Err(failed) if failed.is_stale && retries < MAX_RETRIES => retries += 1,
                sent => return sent.map_err(|failed| failed.cause),
            }
        }
    }

    async fn try_send(&self, request: Request<UpstreamBody>) -> Result<Response<Incoming>, Failed> {
        match self.pool.request(request).await {
            Ok(response) => {
                if let Some(usage) = response.extensions().get::<Usage>() {
                    usage.note_response();
                }
                Ok(response)
            }
            Err(error) => {
                let mut extras = http::Extensions::new();
                if let Some(connected) = error.connect_info() {
                    connected.get_extras(&mut extras);
                }
                let was_used = extras.get::<Usage>().is_some_and(Usage::has_had_response);
                let cause = Cause::of(error);
                Err(Failed { is_stale: was_used && matches!(cause, Cause::Closed | Cause::Reset), cause })
            }
        }
    }

    /// Opens a connection of its own for HTTP/1.1, which can be upgraded.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn connect(&self, url: Uri) -> Result<Stream, Cause> {
        self.upgradable.clone().connect(url).await
    }
}

/// A request without response.
struct Failed {
    cause: Cause,
    /// Whether a kept connection was closed before the response began.
    is_stale: bool,
}

/// No body.
pub fn empty_body() -> UpstreamBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}
