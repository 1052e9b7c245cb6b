//! Collects traces for tests: OTLP over gRPC (<https://opentelemetry.io/docs/specs/otlp/>).
//!
//! It declares its own messages, so that an error in those of the exporter is detected.

mod messages;

pub use messages::{Attribute, Event, Export, Link, OfResource, OfScope, Resource, Span, SpanStatus, Value};

use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use messages::Exported;
use std::{convert::Infallible, io};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};
use tonic::{Request, Response, Status, body::Body, server::Grpc};
use tonic_prost::ProstCodec;

/// Collects what arrives at a port, on the current runtime.
///
/// # Errors
/// When there is no port.
pub async fn collect() -> io::Result<(String, UnboundedReceiver<Export>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let (sender, receiver) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            serve(stream, sender.clone());
        }
    });
    Ok((address, receiver))
}

/// Collects what arrives at a Unix socket, on the current runtime.
pub fn collect_on(listener: UnixListener) -> UnboundedReceiver<Export> {
    let (sender, receiver) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            serve(stream, sender.clone());
        }
    });
    receiver
}

fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, exports: UnboundedSender<Export>) {
    let service = service_fn(move |request| {
        let exports = exports.clone();
        async move { Ok::<_, Infallible>(answer(request, exports).await) }
    });
    tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service));
}

async fn answer(request: http::Request<Incoming>, exports: UnboundedSender<Export>) -> http::Response<Body> {
    if request.uri().path() != "/opentelemetry.proto.collector.trace.v1.TraceService/Export" {
        return Status::unimplemented("unknown method").into_http();
    }
    let service = tower::service_fn(move |request: Request<Export>| {
        let exports = exports.clone();
        async move {
            // A test that has ended collects no more.
            let _ = exports.send(request.into_inner());
            Ok(Response::new(Exported {}))
        }
    });
    Grpc::new(ProstCodec::<Exported, Export>::default()).unary(service, request).await
}
