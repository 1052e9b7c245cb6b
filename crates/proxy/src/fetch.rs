//! Asks another server for a document of this server's own.

use crate::backend_body::{BackendBody, ask_for_gzip};
use http::{HeaderMap, Method, Request, Response, Uri};
use pintle_dialer::{Cause, Client, empty_body};

/// Sends a GET without headers of a client, and returns the response when its head has arrived. The body is unpacked.
/// Redirects are not followed. Dropping the future, or the response's body, aborts the request.
///
/// # Errors
/// When there is no response.
pub async fn fetch(client: &Client, uri: Uri) -> Result<Response<BackendBody>, Cause> {
    let mut headers = HeaderMap::new();
    let unpacks = ask_for_gzip(&Method::GET, &mut headers);
    let mut request = Request::new(empty_body());
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    let (head, ()) = request.map(drop).into_parts();
    let (mut head, body) = client.send_replayable(head).await?.into_parts();
    let body = BackendBody::new(body, &mut head.headers, unpacks);
    Ok(Response::from_parts(head, body))
}
