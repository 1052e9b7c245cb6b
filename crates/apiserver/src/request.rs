//! Requests inside the server.

use crate::body::RequestBody;

/// What every filter and handler gets.
pub type Request = http::Request<RequestBody>;
