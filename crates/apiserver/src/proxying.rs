//! Answers requests by other servers: extension API servers, nodes, pods and services.
//!
//! The handler that calls [`Proxying::answer`] has authorized the request.

use crate::{
    base::{
        body::Body,
        client::Client as WaitingClient,
        connection_lease::ConnectionLease,
        peer::RemoteAddress,
        request::{Request, info_of},
        response::{Proxied, Response, Terminated, put_first},
        stop::stopped,
    },
    filters::Arrival,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body::{Body as HttpBody, Frame};
use pintle_dialer::Client;
use pintle_proxy::{BrokenOff, Carry, Forwarding, ResponseBody, TunnelLife};
use std::{
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};
use tokio::sync::watch;

pub use pintle_proxy::{Failure, Origin, Target};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// How a request is answered by another server.
pub struct Proxying<'a> {
    /// The client of the server.
    pub client: &'a Client,
    /// The URL that the request is sent to.
    pub target: Target,
    /// The address that the server and its links have for the client.
    pub origin: Origin,
    /// Whether a redirect is answered with 502; otherwise it passes, with a rewritten location.
    pub rejects_redirects: bool,
    /// The time limit of the response; `None` for that of the request alone.
    pub limit: Option<Duration>,
    /// The translation of an upgraded connection; `None` copies its bytes.
    pub carry: Option<Carry>,
}

impl Proxying<'_> {
    /// Forwards a request, with the headers that `prepare` adds, and returns the response, whose body is still arriving.
    /// `prepare` is called as by [`Forwarding::forward`]. The request ends when its client is gone or its timeout is
    /// over; a long-running one ends when the server stops.
    ///
    /// # Errors
    /// When there is no response.
    pub async fn answer(
        self,
        request: Request,
        prepare: impl FnOnce(&mut HeaderMap) -> Result<(), String>,
    ) -> Result<Response, Failure> {
        let client_address = request.extensions().get::<RemoteAddress>().map(|remote| remote.0.ip());
        let lease = request.extensions().get::<ConnectionLease>().cloned();
        let interruptions = Interruptions::of(&request);
        // The events of both API servers about a request have one ID.
        let arrival = request.extensions().get::<Arrival>().filter(|_| self.origin == Origin::Backend);
        let audit_id = arrival.map(|arrival| arrival.audit_id.clone());
        let prepare = |headers: &mut HeaderMap| {
            if let Some(audit_id) = audit_id {
                headers.insert(AUDIT_ID, audit_id);
            }
            prepare(headers)
        };
        let forwarding = Forwarding {
            client: self.client,
            target: self.target,
            origin: self.origin,
            client_address,
            rejects_redirects: self.rejects_redirects,
            limit: self.limit,
            tunnel: TunnelLife { carry: self.carry, ..tunnel_life(lease.as_ref()) },
        };
        let answer = pin!(forwarding.forward(request.map(|body| body.into_stream()), prepare));
        match interruptions.wait_for(answer).await {
            Ok(response) => Ok(proxied(response?, interruptions.stopping)),
            Err(interrupted) => Ok(interrupted),
        }
    }
}

/// The reasons to stop waiting for another server.
pub(crate) struct Interruptions {
    client: Option<WaitingClient>,
    /// Becomes true when a long-running request has to end, because the server stops.
    pub(crate) stopping: Option<watch::Receiver<bool>>,
}

impl Interruptions {
    /// Those of a request.
    pub(crate) fn of(request: &Request) -> Interruptions {
        let stopping = request.extensions().get().map(ConnectionLease::stopping);
        Interruptions {
            client: request.extensions().get::<WaitingClient>().cloned(),
            stopping: stopping.filter(|_| info_of(request).is_long_running()),
        }
    }

    /// Waits for the answer of another server. The response is for a client that waits no longer, or is told that the
    /// server stops.
    pub(crate) async fn wait_for<T>(&self, answer: Pin<&mut impl Future<Output = T>>) -> Result<T, Response> {
        match (self.client.clone(), self.stopping.clone()) {
            (None, None) => Ok(answer.await),
            (client, stopping) => tokio::select! {
                biased;
                answer = answer => Ok(answer),
                () = gone(client) => Err(Response::new(Body::empty())),
                () = stop(stopping) => {
                    Err(failure(StatusCode::SERVICE_UNAVAILABLE, "apiserver is shutting down."))
                }
            },
        }
    }
}

/// The life of what a connection becomes when it is upgraded.
pub(crate) fn tunnel_life(lease: Option<&ConnectionLease>) -> TunnelLife {
    lease.map_or_else(TunnelLife::default, ConnectionLease::tunnel_life)
}

/// A plain-text failure of the proxy itself, in the form of Go's `http.Error`.
pub fn failure(code: StatusCode, text: &str) -> Response {
    proxied(pintle_proxy::failure(code, text), None)
}

/// The response when the server behind an API service is not asked, with the status 503. Metrics count an early end.
pub fn unavailable(text: &str) -> Response {
    let mut response = failure(StatusCode::SERVICE_UNAVAILABLE, text);
    response.extensions_mut().insert(Terminated::Unavailable);
    response
}

fn proxied(response: http::Response<ResponseBody>, stopping: Option<watch::Receiver<bool>>) -> Response {
    let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let mut response = response.map(|body| match (body, stopping) {
        (ResponseBody::Stream(frames), Some(mut stopping)) => Body::Foreign(Box::pin(LongRunning {
            frames: Box::pin(frames),
            stopped: Box::pin(async move { stopped(&mut stopping).await }),
            is_between_lines: true,
            is_over: false,
        })),
        (body, _) => Body::from(body),
    });
    if !is_upgraded {
        let headers = response.headers_mut();
        put_first(headers, header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    }
    response.extensions_mut().insert(Proxied);
    response
}

async fn gone(client: Option<WaitingClient>) {
    match client {
        Some(client) => client.gone().await,
        None => std::future::pending().await,
    }
}

/// Waits until the server stops.
pub(crate) async fn stop(stopping: Option<watch::Receiver<bool>>) {
    match stopping {
        Some(mut stopping) => stopped(&mut stopping).await,
        None => std::future::pending().await,
    }
}

/// The body of a long-running request, which ends when the server stops: properly after a whole line, such as an event of
/// a watch, and otherwise broken off.
struct LongRunning<B> {
    frames: Pin<Box<B>>,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_between_lines: bool,
    is_over: bool,
}

impl<B: HttpBody<Data = Bytes, Error = BrokenOff>> HttpBody for LongRunning<B> {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        match this.frames.as_mut().poll_frame(context) {
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame
                    && let Some(last) = frame.data_ref().and_then(|data| data.last())
                {
                    this.is_between_lines = *last == b'\n';
                }
                Poll::Ready(frame)
            }
            Poll::Pending => this.stopped.as_mut().poll(context).map(|()| {
                this.is_over = true;
                (!this.is_between_lines).then_some(Err(BrokenOff))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.frames.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};

    #[tokio::test]
    async fn a_long_running_body_ends_after_a_whole_line_when_the_server_stops() {
        for (text, is_whole) in [("line\n", true), ("part", false)] {
            let (stop, mut stopping) = watch::channel(false);
            let frames = stream::iter([Ok(Frame::data(Bytes::from(text)))]).chain(stream::pending());
            let mut body = LongRunning {
                frames: Box::pin(StreamBody::new(frames)),
                stopped: Box::pin(async move { stopped(&mut stopping).await }),
                is_between_lines: true,
                is_over: false,
            };
            assert!(body.frame().await.unwrap().is_ok());
            stop.send_replace(true);
            let end = body.frame().await;
            assert_eq!(end.is_none(), is_whole);
            assert!(end.is_none_or(|end| end.is_err()));
            assert!(body.frame().await.is_none());
        }
    }
}
