//! Forwards a request to upgrade the connection, to any protocol.
//!
//! The request goes over a connection of its own, in HTTP/1.1. When the backend switches protocols, the client's
//! connection does too, and both become one tunnel. When the backend refuses, its response passes and the client's
//! connection ends.

use crate::{
    backend_body::BackendBody,
    body::{Relayed, ResponseBody},
    headers::{clean_response, state_length, translate_pragma},
    throttled::Throttled,
    tunnel::{self, Connection, TunnelLife},
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header, response, uri::PathAndQuery};
use hyper::{body::Incoming, client::conn::http1, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use pintle_dialer::{Cause, Client, UpstreamBody};

/// The most headers of a response.
const MAX_HEADERS: usize = 1000;
/// The most bytes of a response's head.
const MAX_HEAD_BYTES: usize = 1 << 20;

/// The answer of a backend to a request to upgrade.
#[derive(Debug)]
pub enum Switch {
    /// The connection is upgraded.
    Switched {
        /// The head of the response.
        head: response::Parts,
        /// The connection, with the client's limit of bytes per second.
        connection: Throttled<Connection>,
    },
    /// The connection is not upgraded. Its end is that of the response's body.
    Refused(Response<Incoming>),
}

/// The reason why there is no answer to a request to upgrade.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// There is no connection.
    #[error("{0}")]
    Dial(Cause),
    /// The request was not sent.
    #[error("{0}")]
    Send(String),
    /// There is no response.
    #[error("{0}")]
    Receive(&'static str),
    /// The response cannot be read.
    #[error("malformed HTTP response")]
    Malformed,
}

/// The reason why a connection was not upgraded, and there is no response of the backend that could pass.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpgradeError {
    #[error("{}{}", prefix(.0), .0)]
    Switch(#[from] SwitchError),
    #[error("invalid upgrade response: status code {0}")]
    Status(u16),
    #[error("request connection cannot be hijacked")]
    Connection,
}

fn prefix(error: &SwitchError) -> &'static str {
    match error {
        SwitchError::Dial(_) => "error dialing backend: ",
        SwitchError::Send(_) => "error sending request: ",
        SwitchError::Receive(_) | SwitchError::Malformed => "",
    }
}

/// Sends a request to upgrade, whose URI is the backend's, over a connection of its own.
///
/// # Errors
/// When there is no answer.
pub async fn switch(client: &Client, request: Request<UpstreamBody>) -> Result<Switch, SwitchError> {
    let (mut head, body) = request.into_parts();
    head.extensions.clear();
    let stream = client.connect(head.uri.clone()).await.map_err(SwitchError::Dial)?;
    // The connection has the authority already.
    let path = head.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    head.uri = path.into();
    state_length(&mut head, &body);
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake(stream)
        .await
        .map_err(|error| SwitchError::Send(error.to_string()))?;
    // The connection is polled by its own task, which ends with the response's body or with the upgrade.
    let connection = tokio::spawn(connection.with_upgrades());
    let mut abort = AbortOnDrop(Some(connection.abort_handle()));
    let mut response = sender.send_request(Request::from_parts(head, body)).await.map_err(received)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        // The task ends when the body is read or dropped.
        abort.0 = None;
        return Ok(Switch::Refused(response));
    }
    let upgraded = response.extensions_mut().remove::<OnUpgrade>().ok_or(SwitchError::Malformed)?;
    let connection = TokioIo::new(upgraded.await.map_err(|_| SwitchError::Malformed)?);
    let connection = Throttled::new(connection, client.upgraded_bytes_per_second());
    let (head, _) = response.into_parts();
    Ok(Switch::Switched { head, connection })
}

/// Forwards a request to upgrade, whose URI is the backend's.
///
/// # Errors
/// When the backend gives no response that could pass.
pub(crate) async fn upgrade(
    client: &Client,
    mut request: Request<UpstreamBody>,
    life: TunnelLife,
) -> Result<Response<ResponseBody>, UpgradeError> {
    let on_upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let (mut head, backend) = match switch(client, request).await? {
        Switch::Switched { head, connection } => (head, connection),
        Switch::Refused(response) if response.status().as_u16() < 400 => {
            return Err(UpgradeError::Status(response.status().as_u16()));
        }
        Switch::Refused(response) => {
            let (mut head, body) = response.into_parts();
            head.extensions.clear();
            translate_pragma(head.version, &mut head.headers);
            clean_response(head.version, &mut head.headers);
            head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            let body = BackendBody::new(body.into(), &mut head.headers, false);
            let body = ResponseBody::Stream(Relayed::new(Bytes::new(), body, None));
            return Ok(Response::from_parts(head, body));
        }
    };
    let Some(on_upgrade) = on_upgrade else { return Err(UpgradeError::Connection) };
    tokio::spawn(async move {
        // The client's connection is switched when it has got the response.
        match on_upgrade.await {
            Ok(client) => tunnel::connect(TokioIo::new(client), backend, life).await,
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

fn received(error: hyper::Error) -> SwitchError {
    if error.is_parse() || error.is_parse_too_large() {
        return SwitchError::Malformed;
    }
    match error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        // Go's reader of responses expected more.
        true => SwitchError::Receive("unexpected EOF"),
        false => SwitchError::Send(error.to_string()),
    }
}
