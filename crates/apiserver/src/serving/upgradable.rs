//! Responses that switch the protocol of their connection.
//!
//! The upgraded connection is long-running work of its request: the response's body is kept until the connection has
//! ended, so that metrics and audit events know the end.

use super::{
    cutoff::{Cutoff, guard},
    response_budget::ResponseBudget,
    sent_body::SentBody,
    websocket,
};
use crate::base::{
    body::Body,
    connection::ConnectionHandle,
    connection_lease::ConnectionLease,
    response::Response,
    websocket::{WebSocketFrames, refusal},
};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::pin::pin;

/// The connection of a request, which may be upgraded.
pub(super) struct Upgradable {
    /// `None` when the request does not ask for an upgrade.
    pub(super) on_upgrade: Option<OnUpgrade>,
    pub(super) handle: ConnectionHandle,
    pub(super) lease: ConnectionLease,
}

impl Upgradable {
    /// Prepares what follows the response, and returns the response to send. Responses that switch no protocol are
    /// returned unchanged.
    pub(super) fn switch(self, response: Response, budget: &ResponseBudget) -> Response {
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return response;
        }
        match response.extensions().get::<WebSocketFrames>() {
            Some(_) => self.send_frames(response, budget),
            None => self.keep(response),
        }
    }

    /// Keeps the body until the tunnel that the connection becomes has ended.
    fn keep(self, response: Response) -> Response {
        let Some(end) = self.lease.tunnel_end() else { return response };
        let (head, mut body) = response.into_parts();
        let lease = self.lease;
        tokio::spawn(async move {
            // The sender is dropped at the end.
            let _ = end.await;
            while let Some(Ok(_)) = body.frame().await {}
            drop(lease);
        });
        Response::from_parts(head, Body::empty())
    }

    /// Starts to send a body of frames once the connection is upgraded.
    fn send_frames(self, response: Response, budget: &ResponseBudget) -> Response {
        // HTTP/1.0 knows no upgrade.
        let Some(on_upgrade) = self.on_upgrade else { return *refusal(StatusCode::BAD_REQUEST) };
        let (head, frames) = response.into_parts();
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = head.status;
        *answer.headers_mut() = head.headers.clone();
        let frames = Response::from_parts(head, frames);
        let cutoff = Cutoff::new(self.handle.clone());
        let frames = SentBody::of(frames, budget, cutoff.clone(), self.handle.begin().answered()).into_body();
        let lease = self.lease;
        tokio::spawn(async move {
            match on_upgrade.await {
                Ok(connection) => {
                    let sent = pin!(websocket::serve(TokioIo::new(connection), frames));
                    if guard(&cutoff, sent).await.is_none() {
                        tracing::debug!("a client did not read its WebSocket connection in time");
                    }
                }
                Err(error) => tracing::debug!(%error, "a client left before its connection was upgraded"),
            }
            drop(lease);
        });
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::sync::Arc;

    fn upgradable() -> Upgradable {
        let handle = ConnectionHandle::new(10);
        let (_, stopping) = tokio::sync::watch::channel(false);
        let lease = ConnectionLease::new(handle.clone(), Arc::new(()), stopping);
        Upgradable { on_upgrade: None, handle, lease }
    }

    fn switching() -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response
    }

    #[tokio::test]
    async fn frames_without_an_upgrade_are_refused() {
        let budget = ResponseBudget::default();
        assert_eq!(upgradable().switch(Response::new(Body::empty()), &budget).status(), 200);
        let mut frames = switching();
        frames.extensions_mut().insert(WebSocketFrames);
        assert_eq!(upgradable().switch(frames, &budget).status(), 400);
    }

    #[tokio::test]
    async fn the_body_lasts_as_long_as_the_tunnel() {
        let upgradable = upgradable();
        let tunnel = upgradable.lease.tunnel_life();
        let (running, mut ended) = tokio::sync::oneshot::channel::<()>();
        let response = switching().map(|body| body.with_guard(running));
        assert_eq!(upgradable.switch(response, &ResponseBudget::default()).status(), 101);
        tokio::task::yield_now().await;
        assert!((&mut ended).now_or_never().is_none());
        drop(tunnel);
        assert!(ended.await.is_err());
    }
}
