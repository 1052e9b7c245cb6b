//! A Unix socket that serves profiles and the verbosity of the log, to everybody who may open it.
//!
//! Connections are few and have time limits, so that nobody holds the server up.

use crate::base::{body::RequestBody, response::not_found};
use crate::server::{Profiles, VerbositySetter, serve_debug};
use http_body_util::{BodyExt, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, io, path::Path, sync::Arc, time::Duration};
use tokio::{net::UnixListener, sync::Semaphore, sync::watch, time::timeout};

/// The most connections at once.
const MAX_CONNECTIONS: usize = 16;
/// The time limit of heads and bodies of requests.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The size limit of a body, in bytes.
const MAX_BODY: usize = 1 << 20;
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Opens the socket. A file that is in its place is removed.
///
/// # Errors
/// When that fails.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => UnixListener::bind(path),
    }
}

/// Serves the socket until `stop` becomes true.
pub async fn serve(
    listener: UnixListener,
    profiles: Profiles,
    verbosity: VerbositySetter,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "accept on the debug socket failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = super::stopped(&mut stop) => return,
        };
        // A connection more than that is closed at once.
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let (profiles, verbosity, mut stop) = (profiles.clone(), verbosity.clone(), stop.clone());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (profiles, verbosity) = (profiles.clone(), verbosity.clone());
            async move { Ok::<_, Infallible>(answer(request, &profiles, &verbosity).await) }
        });
        tokio::spawn(async move {
            let _place = place;
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(READ_TIMEOUT);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                served = connection => {
                    if let Err(error) = served {
                        tracing::debug!(%error, "a connection of the debug socket ended");
                    }
                }
                () = super::stopped(&mut stop) => {}
            }
        });
    }
}

async fn answer(
    request: hyper::Request<Incoming>,
    profiles: &Profiles,
    verbosity: &VerbositySetter,
) -> http::Response<http_body_util::Full<bytes::Bytes>> {
    let (head, body) = request.into_parts();
    let response = match timeout(READ_TIMEOUT, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => {
            let request = http::Request::from_parts(head, RequestBody::Bytes(body.to_bytes()));
            serve_debug(Some(profiles), Some(verbosity), request).await.unwrap_or_else(|_| not_found())
        }
        Ok(Err(_)) | Err(_) => crate::base::response::text(400, "error reading request body\n"),
    };
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    http::Response::from_parts(head, http_body_util::Full::new(bytes))
}
