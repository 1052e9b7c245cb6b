//! The client of a plugin.

use crate::rpc_error::keep_other_code;
use http::{Response, Uri, uri::PathAndQuery};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use pintle_go_forms::{quote, system_error};
use prost::Message;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::{net::UnixStream, time::Instant};
use tonic::{Code, Request, Status, body::Body, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;
use tower::ServiceExt;

/// The back-off between attempts to reach the plugin: the first delay and the longest.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// See [`PluginClient::call_when_reachable`].
const TOLD_LATER: Duration = Duration::from_secs(1);

/// The result of a call, for metrics.
type Observer = Box<dyn Fn(&'static str, Code, Duration) + Send + Sync>;

/// A plugin behind a socket.
pub struct PluginClient {
    channel: Channel,
    dialer: Arc<Dialer>,
    observe: Observer,
}

impl std::fmt::Debug for PluginClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginClient").field("path", &self.dialer.path).finish_non_exhaustive()
    }
}

impl PluginClient {
    /// The plugin at a socket; it does not connect yet. The name of an abstract socket follows a zero byte. The method, the
    /// code and the duration of each call are observed.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn new(
        path: PathBuf,
        observe: impl Fn(&'static str, Code, Duration) + Send + Sync + 'static,
    ) -> PluginClient {
        let dialer = Arc::new(Dialer { path, failed: Mutex::default() });
        let dialing = dialer.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let dialer = dialing.clone();
            async move { dialer.dial().await.map(TokioIo::new) }
        });
        let channel = tonic::transport::Endpoint::from_static("http://localhost");
        let channel = channel.connect_with_connector_lazy(connector);
        PluginClient { channel, dialer, observe: Box::new(observe) }
    }

    /// Calls a method, such as `/v1.Service/Method`.
    ///
    /// # Errors
    /// The plugin's error, or that of the connection, or `DeadlineExceeded`.
    pub async fn call<Q, R>(&self, method: &'static str, message: Q, limit: Duration) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let start = Instant::now();
        let answer = tokio::time::timeout(limit, self.call_when_reachable(method, message, limit)).await;
        let answer = answer.unwrap_or_else(|_| {
            let why = match &*self.dialer.failed.lock() {
                Some(error) => format!("latest balancer error: {error}"),
                None => "context deadline exceeded".to_owned(),
            };
            Err(Status::deadline_exceeded(why))
        });
        let code = answer.as_ref().err().map_or(Code::Ok, Status::code);
        (self.observe)(method, code, start.elapsed());
        answer
    }

    /// Calls the plugin, with retries while its socket is not listening.
    async fn call_when_reachable<Q, R>(
        &self,
        method: &'static str,
        message: Q,
        limit: Duration,
    ) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let mut backoff = FIRST_BACKOFF;
        loop {
            let mut request = Request::new(message.clone());
            // The plugin gets the time-out in the request. It is a little longer, since the library also enforces it,
            // with another error text.
            request.set_timeout(limit + TOLD_LATER);
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
        let mut client = Grpc::new(self.channel.clone().map_response(with_other_codes));
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec = ProstCodec::<Q, R>::default();
        let response = client.unary(request, PathAndQuery::from_static(method), codec).await;
        Ok(response.map_err(in_words_of_go)?.into_inner())
    }
}

/// Keeps codes that the library does not know. The code is in the headers of a response without a body, and otherwise in
/// the trailers.
fn with_other_codes(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    keep_other_code(&mut head.headers);
    let body = body.map_frame(|frame: Frame<_>| match frame.into_trailers() {
        Ok(mut trailers) => {
            keep_other_code(&mut trailers);
            Frame::trailers(trailers)
        }
        Err(frame) => frame,
    });
    Response::from_parts(head, Body::new(body))
}

/// The error for an answer that cannot be decoded has the text of Go's library.
fn in_words_of_go(status: Status) -> Status {
    // The library says so, and a plugin has no reason to.
    let Some(why) = status.message().strip_prefix("failed to decode Protobuf message: ") else {
        return status;
    };
    let why = match why.contains("invalid string value") {
        true => "string field contains invalid UTF-8",
        false => "proto: cannot parse invalid wire-format data",
    };
    Status::new(status.code(), format!("grpc: failed to unmarshal the received message: {why}"))
}

/// Connects, and records the error of the last attempt.
struct Dialer {
    path: PathBuf,
    failed: Mutex<Option<String>>,
}

impl Dialer {
    async fn dial(&self) -> Result<UnixStream, std::io::Error> {
        let connected = UnixStream::connect(&self.path).await;
        *self.failed.lock() = connected.as_ref().err().map(|error| {
            let (path, error) = (self.path.display(), system_error(error));
            let why = format!("transport: Error while dialing: dial unix {path}: connect: {error}");
            format!("connection error: desc = {}", quote(&why))
        });
        connected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct Answer {
        #[prost(string, tag = "1")]
        text: String,
    }

    #[test]
    fn answers_that_cannot_be_decoded_are_told_in_the_words_of_go() {
        let told = |bytes: &[u8]| {
            let error = <Answer as Message>::decode(bytes).unwrap_err();
            in_words_of_go(Status::internal(error.to_string())).message().to_owned()
        };
        let start = "grpc: failed to unmarshal the received message:";
        assert_eq!(told(b"\xff\xff"), format!("{start} proto: cannot parse invalid wire-format data"));
        assert_eq!(told(b"\x0a\x01\xff"), format!("{start} string field contains invalid UTF-8"));
        assert_eq!(in_words_of_go(Status::internal("why")).message(), "why");
    }
}
