//! The request type inside the server.

use crate::body::RequestBody;

/// The request that filters and handlers receive.
pub type Request = http::Request<RequestBody>;
