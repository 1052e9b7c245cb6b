//! A konnectivity server for tests. It reads and writes the frames of gRPC itself, so that it can also write wrong ones.

use super::super::konnectivity::packet::{
    CloseDial, CloseRequest, CloseResponse, Data, DialResponse, Packet, Payload,
};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::{
    convert::Infallible,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixListener, tcp::OwnedReadHalf},
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
};

/// How the server answers a dial.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// Connects.
    Connect,
    /// Connects, after a hint that an agent is about to end, and the end of another connection.
    HintFirst,
    /// With this error.
    Refuse(&'static str),
    /// Closes the dial.
    CloseDial,
    /// As if another dial had been requested.
    OtherDial,
    /// With data.
    DataFirst,
    /// Ends the stream.
    End,
    /// With bytes that are no packet.
    Garbage,
    /// With a packet of a megabyte.
    LargePacket,
    /// As a server of another service.
    Unimplemented,
    /// Pretends to connect, and sends data of another connection.
    OtherConnection,
    /// Pretends to connect, and breaks the stream off.
    BreakOff,
    /// Pretends to connect, reads nothing, and sends zeros for ever.
    Flood,
}

/// The bytes that a client may send before they are read.
const WINDOW: u32 = 64 << 10;
/// The id of every connection.
const CONNECT_ID: i64 = 7;

#[derive(Default)]
struct Shared {
    closed: AtomicUsize,
    sent: AtomicUsize,
    progress: Notify,
    end: watch::Sender<bool>,
}

pub(super) struct KonnectivityServer {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

type Frames = mpsc::Sender<Result<Frame<Bytes>, std::io::Error>>;

impl KonnectivityServer {
    pub(super) fn start(directory: &Path, answer: Answer) -> KonnectivityServer {
        let listener = UnixListener::bind(directory.join("proxy.sock")).unwrap();
        let shared = Arc::<Shared>::default();
        let server = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let server = server.clone();
                    async move { Ok::<_, Infallible>(serve(request, answer, server)) }
                });
                tokio::spawn(
                    http2::Builder::new(TokioExecutor::new())
                        .initial_stream_window_size(WINDOW)
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        KonnectivityServer { shared, task }
    }

    /// The number of connections that the client closed.
    pub(super) fn closed(&self) -> usize {
        self.shared.closed.load(Ordering::SeqCst)
    }

    pub(super) async fn wait_for_closed(&self, count: usize) {
        while self.closed() < count {
            self.shared.progress.notified().await;
        }
    }

    /// Ends all connections from the side of their destinations.
    pub(super) fn end_connections(&self) {
        self.shared.end.send_replace(true);
    }

    /// The bytes that were sent.
    pub(super) fn sent(&self) -> usize {
        self.shared.sent.load(Ordering::SeqCst)
    }

    /// Waits until nothing more can be sent.
    pub(super) async fn wait_until_stuck(&self) {
        while tokio::time::timeout(Duration::from_millis(500), self.shared.progress.notified()).await.is_ok()
        {
        }
    }
}

impl Drop for KonnectivityServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn serve(
    request: Request<Incoming>,
    answer: Answer,
    shared: Arc<Shared>,
) -> Response<StreamBody<impl futures_util::Stream<Item = Result<Frame<Bytes>, std::io::Error>>>> {
    assert_eq!(request.uri().path(), "/ProxyService/Proxy");
    let (sender, receiver) = mpsc::channel(1);
    if !matches!(answer, Answer::Unimplemented) {
        tokio::spawn(answer_dial(request.into_body(), sender, answer, shared));
    }
    let frames = futures_util::stream::unfold(receiver, async |mut receiver: mpsc::Receiver<_>| {
        let frame = receiver.recv().await?;
        Some((frame, receiver))
    });
    let mut response = Response::builder().header("content-type", "application/grpc");
    if matches!(answer, Answer::Unimplemented) {
        response = response.header("grpc-status", "12");
    }
    response.body(StreamBody::new(frames)).unwrap()
}

async fn answer_dial(mut body: Incoming, frames: Frames, answer: Answer, shared: Arc<Shared>) {
    let mut received = BytesMut::new();
    let Some(Payload::DialRequest(dial)) = next(&mut body, &mut received).await else {
        panic!("the first packet is no DIAL_REQ");
    };
    assert_eq!(dial.protocol, "tcp");
    let random = dial.random;
    let accept = Payload::DialResponse(DialResponse { error: String::new(), connect_id: CONNECT_ID, random });
    let data = |connect_id: i64, data: &'static [u8]| {
        Payload::Data(Data { connect_id, error: String::new(), data: Bytes::from_static(data) })
    };
    match answer {
        Answer::Connect | Answer::HintFirst => {
            if matches!(answer, Answer::HintFirst) {
                let hint = Bytes::from_static(b"\0\0\0\0\x04\x08\x06\x42\0");
                let _ = frames.send(Ok(Frame::data(hint))).await;
                let end = CloseResponse { error: String::new(), connect_id: CONNECT_ID + 1 };
                send(&frames, Payload::CloseResponse(end)).await;
            }
            let stream = TcpStream::connect(&dial.address).await.unwrap();
            send(&frames, accept).await;
            connect(stream, body, received, frames, shared).await;
        }
        Answer::Refuse(error) => {
            let error = error.to_owned();
            send(&frames, Payload::DialResponse(DialResponse { error, connect_id: 0, random })).await;
        }
        Answer::CloseDial => send(&frames, Payload::CloseDial(CloseDial { random })).await,
        Answer::OtherDial => {
            let random = random ^ 1;
            let response = DialResponse { error: String::new(), connect_id: CONNECT_ID, random };
            send(&frames, Payload::DialResponse(response)).await;
        }
        Answer::DataFirst => send(&frames, data(CONNECT_ID, b"early")).await,
        Answer::End | Answer::Unimplemented => {}
        Answer::Garbage => {
            let garbage = Bytes::from_static(b"\0\0\0\0\x03\xff\xff\xff");
            let _ = frames.send(Ok(Frame::data(garbage))).await;
        }
        Answer::LargePacket => {
            send(&frames, data(CONNECT_ID, Box::leak(vec![0; 1 << 20].into_boxed_slice()))).await;
        }
        Answer::OtherConnection => {
            send(&frames, accept).await;
            send(&frames, data(CONNECT_ID + 1, b"other")).await;
            // The client ends the stream.
            while next(&mut body, &mut received).await.is_some() {}
        }
        Answer::BreakOff => {
            send(&frames, accept).await;
            let _ = frames.send(Err(std::io::Error::other("broken"))).await;
        }
        Answer::Flood => {
            send(&frames, accept).await;
            loop {
                send(&frames, data(CONNECT_ID, &[0; 1000])).await;
                shared.sent.fetch_add(1000, Ordering::SeqCst);
                shared.progress.notify_one();
                if frames.is_closed() {
                    return drop(body);
                }
            }
        }
    }
}

/// Passes data on in both directions.
async fn connect(
    stream: TcpStream,
    mut body: Incoming,
    mut received: BytesMut,
    frames: Frames,
    shared: Arc<Shared>,
) {
    let (from, mut to) = stream.into_split();
    let down = tokio::spawn(read(from, frames.clone(), shared.end.subscribe()));
    while let Some(payload) = next(&mut body, &mut received).await {
        match payload {
            Payload::Data(data) => {
                assert_eq!(data.connect_id, CONNECT_ID);
                to.write_all(&data.data).await.unwrap();
            }
            Payload::CloseRequest(CloseRequest { connect_id }) => {
                shared.closed.fetch_add(1, Ordering::SeqCst);
                shared.progress.notify_one();
                down.abort();
                send(&frames, Payload::CloseResponse(CloseResponse { error: String::new(), connect_id }))
                    .await;
                return;
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn read(mut from: OwnedReadHalf, frames: Frames, mut end: watch::Receiver<bool>) {
    let mut buffer = vec![0; 4096];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read.unwrap(),
            _ = end.wait_for(|end| *end) => 0,
        };
        if read == 0 {
            let response = CloseResponse { error: String::new(), connect_id: CONNECT_ID };
            return send(&frames, Payload::CloseResponse(response)).await;
        }
        let data = Bytes::copy_from_slice(&buffer[..read]);
        send(&frames, Payload::Data(Data { connect_id: CONNECT_ID, error: String::new(), data })).await;
    }
}

async fn send(frames: &Frames, payload: Payload) {
    let message = Packet::of(payload).encode_to_vec();
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(&message);
    // The client may be gone.
    let _ = frames.send(Ok(Frame::data(frame.freeze()))).await;
}

/// The payload of the client's next packet.
async fn next(body: &mut Incoming, received: &mut BytesMut) -> Option<Payload> {
    loop {
        if received.len() >= 5 {
            let length = u32::from_be_bytes(received[1..5].try_into().unwrap()) as usize;
            if received.len() >= 5 + length {
                received.advance(5);
                return Packet::decode(received.split_to(length)).unwrap().payload;
            }
        }
        let frame = body.frame().await?.ok()?;
        received.extend_from_slice(&frame.into_data().ok()?);
    }
}
