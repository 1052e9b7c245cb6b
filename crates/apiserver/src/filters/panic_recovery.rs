//! Answers a request whose handler panicked with 500; other requests are not affected.

use super::filter::{Filter, Rest};
use crate::base::{
    request::Request,
    response::{Response, text},
};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

pub(super) struct PanicRecovery;

impl Filter for PanicRecovery {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        match AssertUnwindSafe(next.call(request)).catch_unwind().await {
            Ok(response) => response,
            Err(_) => {
                tracing::error!(%method, path, "a handler panicked");
                text(500, "This request caused apiserver to panic. Look in the logs for details.\n")
            }
        }
    }
}
