//! Asks the server behind an API service for its discovery document.

use crate::{api_services::ApiService, backend::Backend};
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::{HeaderMap, HeaderValue};
use std::time::Duration;

/// The number of concurrent requests when the first one fails or takes long: a service may have endpoints that work
/// and others that do not.
const ATTEMPTS: usize = 5;
/// How long the first request may take before the others are sent.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long each request may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The size limit of the document, in bytes. Its contents do not matter here.
const MAX_SIZE: usize = 4 << 20;

/// Checks that one of several requests for the discovery document succeeds.
///
/// # Errors
/// The text of the last failure.
pub(super) async fn probe(service: &ApiService, backend: &Backend) -> Result<(), String> {
    let mut attempts = FuturesUnordered::new();
    attempts.push(attempt(service, backend));
    let mut last = match tokio::time::timeout(PATIENCE, attempts.next()).await {
        Ok(Some(Ok(()))) => return Ok(()),
        Ok(Some(Err(error))) => error,
        Ok(None) | Err(_) => String::new(),
    };
    attempts.extend((1..ATTEMPTS).map(|_| attempt(service, backend)));
    while let Some(outcome) = attempts.next().await {
        match outcome {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn attempt(service: &ApiService, backend: &Backend) -> Result<(), String> {
    let address = backend.locate().await?;
    let version = &service.group_version;
    let path = match version.group.as_str() {
        "" => format!("/api/{}", version.version),
        group => format!("/apis/{group}/{}", version.version),
    };
    let url = format!("https://{address}{path}");
    let failed = |error: String| format!("failing or missing response from {url}: {error}");
    let fetched = backend.fetch(&url, aggregator_headers(), TIMEOUT, MAX_SIZE).await.map_err(failed)?;
    match fetched.status {
        200..300 => Ok(()),
        status => Err(failed(format!("bad status from {url}: {status}"))),
    }
}

/// The headers by which backends know the aggregator: a user who may read everything.
pub(crate) fn aggregator_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-remote-user", HeaderValue::from_static("system:kube-aggregator"));
    headers.insert("x-remote-group", HeaderValue::from_static("system:masters"));
    headers
}
