//! Tests of HTTP/2 with servers in this process.

use super::*;
use crate::{Destination, Dialer, TlsSettings, kept::IDLE_TIMEOUT};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use h2::{Reason, RecvStream, server};
use http::{HeaderMap, Method};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use rustls::{
    ServerConfig,
    pki_types::{PrivatePkcs8KeyDer, ServerName},
};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

type Connected = server::Connection<TlsStream<TcpStream>, Bytes>;
type Asked = (Request<RecvStream>, server::SendResponse<Bytes>);

/// A server that gives each new connection to `serve`, with its number.
async fn server<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(usize, Connected) -> F + Send + Sync + 'static,
) -> (Connections, Uri) {
    let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(authority.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![authority.cert.der().clone()], key.into())
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("https://{}/x", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            tokio::spawn(serve(number, server::handshake(stream).await.unwrap()));
        }
    });
    let ca = authority.cert.pem();
    let settings =
        TlsSettings { ca: ca.as_bytes(), insecure: false, client_certificate: None, both_protocols: true };
    let connector = Connector {
        destination: Destination::Url,
        server_name: ServerName::try_from("localhost").ok(),
        tls: Some(settings.connector().unwrap()),
        timeout: None,
        dialer: Dialer::default(),
        peers: None,
    };
    (Connections::new(connector), uri)
}

/// Answers every request with the number of the connection and the request's body.
async fn echo(number: usize, mut connection: Connected) {
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let body = read(request.into_body()).await.unwrap();
            let head = Response::builder().header("connection-number", number).body(()).unwrap();
            let mut stream = respond.send_response(head, false).unwrap();
            stream.send_data(body.into(), true).unwrap();
        });
    }
}

async fn read(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut whole = Vec::new();
    while let Some(data) = body.data().await.transpose()? {
        body.flow_control().release_capacity(data.len())?;
        whole.extend(data);
    }
    Ok(whole)
}

/// Gives each request of the first connection to the test.
async fn asked(serve: mpsc::UnboundedSender<Asked>, mut connection: Connected) {
    while let Some(Ok(asked)) = connection.accept().await {
        serve.send(asked).ok();
    }
}

async fn server_of_test() -> (Connections, Uri, mpsc::UnboundedReceiver<Asked>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (connections, uri) = server(move |_, connection| asked(sender.clone(), connection)).await;
    (connections, uri, receiver)
}

fn request(uri: &Uri, pieces: Vec<Result<Bytes, &'static str>>) -> Request<UpstreamBody> {
    let pieces = pieces.into_iter().map(|piece| piece.map(Frame::data).map_err(Into::into));
    let mut request = Request::new(StreamBody::new(stream::iter(pieces)).boxed_unsync());
    (*request.method_mut(), *request.uri_mut()) = (Method::POST, uri.clone());
    request
}

/// Sends a body and returns the number of the connection that it was sent over.
async fn send(connections: &Connections, uri: &Uri, body: &'static [u8]) -> usize {
    let request = request(uri, vec![Ok(Bytes::from_static(body))]);
    let (head, answer) = connections.send(request).await.unwrap().into_parts();
    assert!(answer.whole(usize::MAX).await.unwrap() == body);
    head.headers["connection-number"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_connection_is_shared_and_closed_when_it_is_idle() {
    let (connections, uri) = server(echo).await;
    assert_eq!(send(&connections, &uri, b"a").await, 0);
    assert_eq!(tokio::join!(send(&connections, &uri, b"b"), send(&connections, &uri, b"c")), (0, 0));
    assert_eq!(connections.kept.counts(), (0, 1));
    tokio::time::pause();
    tokio::time::sleep(IDLE_TIMEOUT + Duration::from_secs(1)).await;
    assert_eq!(connections.kept.counts(), (0, 0));
}

#[tokio::test]
async fn bodies_larger_than_all_windows_pass_in_both_directions() {
    static LARGE: [u8; 12 << 20] = [7; 12 << 20];
    let (connections, uri) = server(echo).await;
    let one = send(&connections, &uri, &LARGE);
    assert_eq!(tokio::join!(one, send(&connections, &uri, b"small")), (0, 0));
}

#[tokio::test]
async fn a_client_that_is_dropped_closes_its_connection() {
    let (ended, mut is_ended) = mpsc::unbounded_channel();
    let (connections, uri) = server(move |number, connection| {
        let ended = ended.clone();
        async move {
            echo(number, connection).await;
            ended.send(()).unwrap();
        }
    })
    .await;
    send(&connections, &uri, b"a").await;
    drop(connections);
    is_ended.recv().await.unwrap();
}

#[tokio::test]
async fn a_dropped_request_is_reset_and_its_connection_stays() {
    let (connections, uri, mut requests) = server_of_test().await;
    let endless = StreamBody::new(stream::pending::<Result<Frame<Bytes>, _>>()).boxed_unsync();
    let mut request = Request::new(endless);
    (*request.method_mut(), *request.uri_mut()) = (Method::POST, uri.clone());
    let (mut request, _respond) = tokio::select! {
        _ = connections.send(request) => unreachable!("the server sends nothing"),
        request = requests.recv() => request.unwrap(),
    };
    let end = request.body_mut().data().await.unwrap().unwrap_err();
    assert_eq!(end.reason(), Some(Reason::CANCEL));
    assert_eq!(connections.kept.counts(), (0, 1));
}

#[tokio::test]
async fn a_body_that_fails_resets_its_request() {
    let (connections, uri, mut requests) = server_of_test().await;
    let (fail, failure) = oneshot::channel::<()>();
    let begin = stream::iter([Ok(Frame::data(Bytes::from_static(b"part")))]);
    let body = StreamBody::new(begin.chain(stream::once(async {
        failure.await.unwrap();
        Err("no more".into())
    })));
    let mut request = Request::new(body.boxed_unsync());
    (*request.method_mut(), *request.uri_mut()) = (Method::POST, uri);
    let server = async {
        let (request, _respond) = requests.recv().await.unwrap();
        fail.send(()).unwrap();
        read(request.into_body()).await.unwrap_err()
    };
    let (end, sent) = tokio::join!(server, connections.send(request));
    assert_eq!(end.reason(), Some(Reason::CANCEL));
    assert!(!sent.unwrap_err().is_stale);
}

/// Sends a request, lets the server answer its beginning, and returns the rest of the body.
async fn answered(end: impl AsyncFnOnce(h2::SendStream<Bytes>)) -> Result<Bytes, Cause> {
    let (connections, uri, mut requests) = server_of_test().await;
    let (has_head, is_begun) = oneshot::channel();
    let server = async {
        let (_, mut respond) = requests.recv().await.unwrap();
        let head = Response::builder().header("content-length", 8).body(()).unwrap();
        let mut stream = respond.send_response(head, false).unwrap();
        stream.send_data(Bytes::from_static(b"part"), false).unwrap();
        is_begun.await.unwrap();
        end(stream).await;
    };
    let client = async {
        let body = connections.send(request(&uri, Vec::new())).await.unwrap().into_body();
        assert_eq!(body.size_hint().exact(), Some(8));
        has_head.send(()).unwrap();
        body.whole(usize::MAX).await
    };
    tokio::join!(server, client).1
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_not_whole() {
    let whole = answered(async |mut stream| {
        stream.send_data(Bytes::from_static(b"rest"), false).unwrap();
        let trailers = HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from_static("x"))]);
        stream.send_trailers(trailers).unwrap();
    });
    assert_eq!(whole.await.unwrap(), "partrest");
    assert!(answered(async |mut stream| stream.send_reset(Reason::CANCEL)).await.is_err());
    assert!(answered(async |stream| drop(stream)).await.is_err());
    // Less than was announced.
    assert!(answered(async |mut stream| stream.send_data(Bytes::new(), true).unwrap()).await.is_err());
}

#[tokio::test]
async fn a_connection_that_the_server_closes_is_not_used_again() {
    let served = Arc::new(AtomicUsize::new(0));
    let counted = served.clone();
    let (connections, uri) = server(move |number, mut connection| {
        let counted = counted.clone();
        async move {
            let (request, mut respond) = connection.accept().await.unwrap().unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            // It answers the request, and takes no other.
            connection.graceful_shutdown();
            tokio::spawn(async move {
                let body = read(request.into_body()).await.unwrap();
                let head = Response::builder().header("connection-number", number).body(()).unwrap();
                respond.send_response(head, false).unwrap().send_data(body.into(), true).unwrap();
            });
            while connection.accept().await.is_some() {}
        }
    })
    .await;
    for expected in 0..3 {
        assert_eq!(send(&connections, &uri, b"a").await, expected);
    }
    assert_eq!(served.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn requests_that_a_server_refuses_or_leaves_may_be_sent_again() {
    let (connections, uri, mut requests) = server_of_test().await;
    let failed = async |end: fn(server::SendResponse<Bytes>)| {
        let server = async { end(requests.recv().await.unwrap().1) };
        tokio::join!(server, connections.send(request(&uri, Vec::new()))).1.unwrap_err()
    };
    let mut failed = failed;
    assert!(!failed(|mut respond| respond.send_reset(Reason::INTERNAL_ERROR)).await.is_stale);
    // The next ones go over the kept connection.
    assert!(failed(|mut respond| respond.send_reset(Reason::REFUSED_STREAM)).await.is_stale);
}

#[tokio::test]
async fn a_server_that_falls_silent_is_left() {
    let (asked, mut requests) = mpsc::unbounded_channel();
    let (connections, uri) = server(move |_, mut connection| {
        let asked = asked.clone();
        async move {
            asked.send(connection.accept().await.unwrap().unwrap()).unwrap();
            // A connection that is not polled answers no ping.
            std::future::pending::<()>().await;
        }
    })
    .await;
    let sent = tokio::spawn(async move { connections.send(request(&uri, Vec::new())).await.map(|_| ()) });
    let _asked = requests.recv().await.unwrap();
    tokio::time::pause();
    let cause = sent.await.unwrap().unwrap_err().cause;
    assert!(matches!(cause, Cause::Closed), "{cause:?}");
}
