//! Forwards a request to upgrade the connection, to any protocol.
//!
//! The request goes over a connection of its own, in HTTP/1.1. When the backend switches protocols, the client's
//! connection does too, and both become one tunnel. When the backend refuses, its response passes and the client's
//! connection ends.

use crate::{
    backend_body::BackendBody,
    body::{Relayed, ResponseBody},
    headers::{clean_response, state_length},
    tunnel::{self, TunnelLife},
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header, uri::PathAndQuery};
use hyper::{client::conn::http1, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use pintle_dialer::{Cause, Client, UpstreamBody};

/// The most headers of a response.
const MAX_HEADERS: usize = 1000;
/// The most bytes of a response's head.
const MAX_HEAD_BYTES: usize = 1 << 20;

/// The reason why a connection was not upgraded, and there is no response of the backend.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpgradeError {
    #[error("error dialing backend: {0}")]
    Dial(Cause),
    #[error("error sending request: {0}")]
    Send(String),
    #[error("{0}")]
    Receive(&'static str),
    #[error("malformed HTTP response")]
    Malformed,
    #[error("invalid upgrade response: status code {0}")]
    Status(u16),
    #[error("request connection cannot be hijacked")]
    Connection,
}

/// Forwards a request to upgrade, whose URI is the backend's.
///
/// # Errors
/// When the backend gives no response that could pass.
pub(crate) async fn upgrade(
    client: &Client,
    request: Request<UpstreamBody>,
    life: TunnelLife,
) -> Result<Response<ResponseBody>, UpgradeError> {
    let (mut head, body) = request.into_parts();
    let on_upgrade = head.extensions.remove::<OnUpgrade>();
    head.extensions.clear();
    let stream = client.connect(head.uri.clone()).await.map_err(UpgradeError::Dial)?;
    // The connection has the authority already.
    let path = head.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    head.uri = path.into();
    state_length(&mut head, &body);
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake(stream)
        .await
        .map_err(|error| UpgradeError::Send(error.to_string()))?;
    // The connection is polled by its own task, which ends with the response's body or with the tunnel.
    let connection = tokio::spawn(connection.with_upgrades());
    let mut abort = AbortOnDrop(Some(connection.abort_handle()));
    let response = sender.send_request(Request::from_parts(head, body)).await.map_err(received)?;
    let (mut head, body) = response.into_parts();
    if head.status != StatusCode::SWITCHING_PROTOCOLS {
        if head.status.as_u16() < 400 {
            return Err(UpgradeError::Status(head.status.as_u16()));
        }
        // The task ends when the body is read or dropped.
        abort.0 = None;
        head.extensions.clear();
        clean_response(&mut head.headers);
        head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        let body = BackendBody::new(body.into(), &mut head.headers, false);
        let body = ResponseBody::Stream(Relayed::new(Bytes::new(), body, None));
        return Ok(Response::from_parts(head, body));
    }
    let Some(on_upgrade) = on_upgrade else { return Err(UpgradeError::Connection) };
    let Some(switched) = head.extensions.remove::<OnUpgrade>() else { return Err(UpgradeError::Malformed) };
    let switched = switched.await.map_err(|_| UpgradeError::Malformed)?;
    tokio::spawn(async move {
        // The client's connection is switched when it has got the response.
        match on_upgrade.await {
            Ok(client) => tunnel::copy(TokioIo::new(client), TokioIo::new(switched), life).await,
            Err(error) => tracing::debug!(%error, "a client left before its connection was upgraded"),
        }
    });
    head.extensions.clear();
    Ok(Response::from_parts(head, ResponseBody::Full(Bytes::new())))
}

/// Ends a task when it is dropped: the client is gone.
struct AbortOnDrop(Option<tokio::task::AbortHandle>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

fn received(error: hyper::Error) -> UpgradeError {
    if error.is_parse() || error.is_parse_too_large() {
        return UpgradeError::Malformed;
    }
    match error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        // Go's reader of responses expected more.
        true => UpgradeError::Receive("unexpected EOF"),
        false => UpgradeError::Send(error.to_string()),
    }
}
