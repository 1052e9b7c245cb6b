//! Answers a stream by a connection of the destination that is upgraded.

use super::{
    super::request_scope::RequestScope,
    proxied::status_of,
    target::{query_of, target_of},
};
use crate::{
    base::{
        body::Body,
        connection_lease::ConnectionLease,
        request::Request,
        response::{Proxied, Response},
    },
    proxying::{Origin, Proxying, failure, tunnel_life},
};
use http::{HeaderValue, Method, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pintle_go_forms::quote;
use pintle_machinery::Status;
use pintle_proxy::asks_for_upgrade;
use pintle_registry::{Destination, Stream};
use pintle_remotecommand::{Command, CommandStreams, Ports, Refusal};
use pintle_websocket::{Handshake, HandshakeError};
use std::pin::pin;

/// Answers a request to upgrade. It passes to the destination as it is, whatever the protocol, unless the destination
/// does not speak the protocol and it is one that is translated.
///
/// # Errors
/// 400 for a request that asks for no upgrade, and the error of the connection.
pub(super) async fn answer(
    scope: &RequestScope<'_>,
    request: Request,
    destination: &Destination,
    stream: Stream,
) -> Result<Response, Status> {
    let metrics = scope.server.metrics.streams();
    if stream != Stream::Untranslated {
        metrics.routed(&scope.info.subresource, stream == Stream::Native);
    }
    match stream {
        Stream::Command { stdin, stdout, stderr, tty } if Command::translates(request.headers()) => {
            let streams = CommandStreams { stdin, stdout, stderr, tty };
            Ok(translate(scope, request, destination, streams))
        }
        Stream::Ports if Ports::translates(request.headers()) => {
            let answered = tunnel(scope, request, destination).await;
            let code =
                answered.as_ref().map_or_else(|status| status.code, |response| response.status().as_u16());
            metrics.tunneled(code);
            answered
        }
        Stream::Native | Stream::Untranslated | Stream::Command { .. } | Stream::Ports => {
            pass(scope, request, destination, false).await
        }
    }
}

/// Passes the request. The content of the upgraded connection is carried between WebSocket and SPDY or passes, too.
async fn pass(
    scope: &RequestScope<'_>,
    request: Request,
    destination: &Destination,
    is_carried: bool,
) -> Result<Response, Status> {
    if !asks_for_upgrade(request.headers()) {
        return Err(Status::bad_request("Upgrade request required"));
    }
    let target = target_of(destination, &query_of(destination), String::new());
    let target = target.map_err(|why| Status::unknown(format!("error dialing backend: {why}")))?;
    let client = scope.server.transports.client(destination.transport, destination.location.scheme);
    let proxying = Proxying {
        client: &client,
        target,
        origin: Origin::Client,
        rejects_redirects: false,
        limit: None,
        carry: is_carried.then_some(Ports::carry),
    };
    proxying.answer(request, |_| Ok(())).await.map_err(status_of)
}

/// Switches to WebSocket at once, and runs the command then: its errors are told on the connection.
fn translate(
    scope: &RequestScope<'_>,
    mut request: Request,
    destination: &Destination,
    streams: CommandStreams,
) -> Response {
    let metrics = scope.server.metrics.streams().clone();
    let handshake = match Handshake::read(request.method(), request.headers()) {
        Ok(handshake) => handshake,
        Err(error) => {
            metrics.translated(400);
            return refusal(error);
        }
    };
    let Some(on_upgrade) = request.extensions_mut().remove::<OnUpgrade>() else {
        metrics.translated(400);
        return failure(StatusCode::INTERNAL_SERVER_ERROR, "request connection cannot be hijacked");
    };
    let query = query_of(destination);
    let target = target_of(destination, &query, String::new());
    let command = Command {
        client: scope.server.transports.client(destination.transport, destination.location.scheme),
        uri: target.map(|target| target.uri).map_err(|why| {
            let location = &destination.location;
            let url = format!("{}://{}{}?{query}", location.scheme, location.authority(), location.path);
            format!("error sending request: Post {}: {why}", quote(&url))
        }),
        streams,
    };
    let life = tunnel_life(request.extensions().get::<ConnectionLease>());
    tokio::spawn(async move {
        match on_upgrade.await {
            Ok(client) => {
                if let Some(code) = life.run(pin!(command.serve(TokioIo::new(client)))).await {
                    metrics.translated(code);
                }
            }
            Err(error) => tracing::debug!(%error, "a client left before its connection was upgraded"),
        }
    });
    let response = handshake.response(Some(HeaderValue::from_static(Command::PROTOCOL)));
    let mut response = response.map(|()| Body::empty());
    response.extensions_mut().insert(Proxied);
    response
}

/// Passes the request as one to upgrade to SPDY, whose bytes are carried in the messages of a WebSocket.
async fn tunnel(
    scope: &RequestScope<'_>,
    mut request: Request,
    destination: &Destination,
) -> Result<Response, Status> {
    let refused = |refusal: Refusal| failure(refusal.status, refusal.text);
    let ports = match Ports::read(request.method(), request.headers()) {
        Ok(ports) => ports,
        Err(refusal) => return Ok(refused(refusal)),
    };
    *request.method_mut() = Method::POST;
    Ports::ask_for_spdy(request.headers_mut());
    let response = pass(scope, request, destination, true).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(response);
    }
    match ports.response(response.headers()) {
        Ok(switched) => {
            let mut switched = switched.map(|()| Body::empty());
            *switched.extensions_mut() = response.into_parts().0.extensions;
            Ok(switched)
        }
        Err(refusal) => Ok(refused(refusal)),
    }
}

/// The refusal of a handshake, in the form that servers of Kubernetes have for it.
fn refusal(error: HandshakeError) -> Response {
    let mut response = Response::new(Body::from(error.to_string()));
    *response.status_mut() = error.status();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    if error == HandshakeError::Version {
        response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    }
    response.extensions_mut().insert(Proxied);
    response
}
