//! Answers a stream by a connection of the destination that is upgraded.

use super::{
    super::request_scope::RequestScope,
    proxied::status_of,
    target::{query_of, target_of},
};
use crate::{
    base::{request::Request, response::Response},
    proxying::{Origin, Proxying},
};
use pintle_machinery::Status;
use pintle_proxy::asks_for_upgrade;
use pintle_registry::{Destination, Stream};

/// Answers a request to upgrade. It passes to the destination as it is, whatever the protocol.
///
/// # Errors
/// 400 for a request that asks for no upgrade, and the error of the connection.
pub(super) async fn answer(
    scope: &RequestScope<'_>,
    request: Request,
    destination: &Destination,
    _stream: Stream,
) -> Result<Response, Status> {
    if !asks_for_upgrade(request.headers()) {
        return Err(Status::bad_request("Upgrade request required"));
    }
    let target = target_of(destination, &query_of(destination), String::new());
    let target = target.map_err(|why| Status::unknown(format!("error dialing backend: {why}")))?;
    let client = scope.server.transports.client(destination.transport, destination.location.scheme);
    let proxying =
        Proxying { client: &client, target, origin: Origin::Client, rejects_redirects: false, limit: None };
    proxying.answer(request, |_| Ok(())).await.map_err(status_of)
}
