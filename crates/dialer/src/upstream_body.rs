//! The bodies of requests to other servers.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, combinators::UnsyncBoxBody};
use std::error::Error;

/// The body of a request to another server.
pub type UpstreamBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// No body.
pub fn empty_body() -> UpstreamBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}
