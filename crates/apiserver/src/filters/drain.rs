//! Counts the requests in flight, and refuses requests at shutdown with 429, so that clients ask another server.
//! Health checks and long-running requests are not counted; health checks are not refused.

use super::filter::{Filter, Rest};
use crate::{
    base::{
        request::{Request, info_of},
        response::{Response, text},
    },
    drain::Drain,
};
use http::{HeaderValue, header};
use std::sync::Arc;

pub(super) struct RefuseWhileDraining {
    pub(super) drain: Arc<Drain>,
}

impl Filter for RefuseWhileDraining {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        if is_health_check(request.uri().path()) {
            return next.call(request).await;
        }
        if self.drain.is_refusing() {
            return refused();
        }
        let _in_flight = (!info_of(&request).is_long_running()).then(|| self.drain.begin());
        next.call(request).await
    }
}

/// Whether a path is one of the health endpoints or of their checks.
fn is_health_check(path: &str) -> bool {
    let root = path.trim_start_matches('/').split('/').next();
    matches!(root, Some("healthz" | "livez" | "readyz"))
}

/// The response to a request that comes too late.
fn refused() -> Response {
    let mut response = text(429, "The apiserver is shutting down, please try again later.\n");
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_checks_are_recognized_by_their_first_segment() {
        for path in ["/healthz", "/livez/ping", "/readyz/poststarthook/x"] {
            assert!(is_health_check(path), "{path}");
        }
        for path in ["/", "/api/v1/healthz", "/healthzz", "/metrics"] {
            assert!(!is_health_check(path), "{path}");
        }
    }
}
