//! Serves gRPC on a Unix socket.

use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use tokio::{net::UnixListener, task::JoinSet};
use tonic::body::Body;

/// Answers the requests of all connections, for ever. Connections end with the future.
pub async fn serve<A, F>(listener: UnixListener, answer: A)
where
    A: Fn(http::Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = http::Response<Body>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let answer = answer.clone();
        let service = service_fn(move |request: http::Request<Incoming>| {
            let answered = answer(request);
            async move { Ok::<_, Infallible>(answered.await) }
        });
        connections.spawn(async move {
            let connection =
                http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
            // A client that disconnects is no failure.
            let _ = connection.await;
        });
    }
}
