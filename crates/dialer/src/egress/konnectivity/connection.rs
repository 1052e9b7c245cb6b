//! A connection through a konnectivity server.

use super::{
    metrics::{ConnectionCount, KonnectivityMetrics, Segment},
    packet::{CloseRequest, Data, Packet, Payload},
};
use bytes::{Buf, Bytes};
use futures_util::Stream;
use pintle_registry::BoxFuture;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::Handle,
    sync::mpsc::{Sender, error::TrySendError},
    time::timeout,
};
use tonic::Streaming;

/// The most bytes of data in a packet to the server.
const MAX_DATA_BYTES: usize = 32 << 10;
/// The error of a packet behind the end of the stream: Go's client tells the end in both directions.
const STREAM_ENDED: io::ErrorKind = io::ErrorKind::UnexpectedEof;
/// How long the server may take to answer that a connection is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection, which is closed when it is dropped. The protocol has no half-closed connections: shutting down the
/// writing half ends this side's data only.
pub(super) struct Connection {
    connect_id: i64,
    packets: Option<Streaming<Packet>>,
    /// The rest of the last packet.
    unread: Bytes,
    sending: Sending,
    is_shut_down: bool,
    /// Taken by the end.
    count: Option<ConnectionCount>,
    metrics: KonnectivityMetrics,
}

impl Connection {
    pub(super) fn new(
        connect_id: i64,
        packets: Streaming<Packet>,
        sending: Sending,
        count: ConnectionCount,
    ) -> Connection {
        Connection {
            connect_id,
            packets: Some(packets),
            unread: Bytes::new(),
            sending,
            is_shut_down: false,
            metrics: count.metrics().clone(),
            count: Some(count),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.unread.is_empty() {
            let Some(packets) = &mut this.packets else { return Poll::Ready(Ok(())) };
            let packet = ready!(Pin::new(packets).poll_next(context));
            match &packet {
                Some(Ok(packet)) => this.metrics.packet(Segment::ToClient, packet.packet_type),
                Some(Err(status)) => this.metrics.stream_failed(status),
                None => {}
            }
            match packet {
                Some(Ok(Packet { payload: Some(Payload::Data(data)), .. }))
                    if data.connect_id == this.connect_id =>
                {
                    this.unread = data.data;
                }
                // The server only hints at its end.
                Some(Ok(Packet { payload: None, .. })) => {}
                Some(Ok(Packet { payload: Some(Payload::CloseResponse(_)), .. })) | None => {
                    this.packets = None;
                }
                Some(Ok(_)) => {
                    this.packets = None;
                    let why = "the konnectivity server sent a packet of another connection";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
                Some(Err(status)) => {
                    this.packets = None;
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, status)));
                }
            }
        }
        let length = this.unread.len().min(buffer.remaining());
        buffer.put_slice(this.unread.get(..length).unwrap_or_default());
        this.unread.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_shut_down {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        ready!(self.sending.poll_ready(context))?;
        let bytes = bytes.get(..MAX_DATA_BYTES).unwrap_or(bytes);
        let (connect_id, data) = (self.connect_id, Bytes::copy_from_slice(bytes));
        let data = Data { connect_id, error: String::new(), data };
        self.sending.start_send(Packet::of(Payload::Data(data)))?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sending.poll_ready(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_shut_down = true;
        Poll::Ready(Ok(()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let (Some(packets), Ok(runtime)) = (self.packets.take(), Handle::try_current()) else { return };
        let Some(mut count) = self.count.take() else { return };
        count.closing();
        runtime.spawn(close(self.connect_id, packets, self.sending.take(), count));
    }
}

/// Asks the server to close a connection, and waits until it has.
async fn close(
    connect_id: i64,
    mut packets: Streaming<Packet>,
    mut sending: Sending,
    count: ConnectionCount,
) {
    let request = Packet::of(Payload::CloseRequest(CloseRequest { connect_id }));
    let closed = async {
        sending.send(request).await?;
        while let Ok(Some(packet)) = packets.message().await {
            count.metrics().packet(Segment::ToClient, packet.packet_type);
            if matches!(packet.payload, Some(Payload::CloseResponse(_))) {
                break;
            }
        }
        io::Result::Ok(())
    };
    // Without an answer the stream ends here as well.
    let _ = timeout(CLOSE_TIMEOUT, closed).await;
}

/// The packets to the server. One is kept until the stream takes it.
pub(super) struct Sending {
    state: State,
    metrics: KonnectivityMetrics,
}

enum State {
    Idle(Sender<Packet>),
    /// Waits for room.
    Waiting(BoxFuture<'static, io::Result<Sender<Packet>>>),
    Ended,
}

impl Sending {
    pub(super) fn new(packets: Sender<Packet>, metrics: KonnectivityMetrics) -> Sending {
        Sending { state: State::Idle(packets), metrics }
    }

    /// Sends a packet when there is room.
    ///
    /// # Errors
    /// When the stream has ended.
    pub(super) async fn send(&mut self, packet: Packet) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll_ready(context)).await?;
        self.start_send(packet)
    }

    /// Waits for room.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut self.state {
                State::Idle(packets) if packets.capacity() > 0 && !packets.is_closed() => {
                    return Poll::Ready(Ok(()));
                }
                State::Idle(packets) => {
                    let packets = packets.clone();
                    self.state = State::Waiting(Box::pin(async move {
                        // The permit's room is this side's again when the permit is dropped.
                        drop(packets.reserve().await.map_err(|_| STREAM_ENDED)?);
                        Ok(packets)
                    }));
                }
                State::Waiting(packets) => {
                    let packets = ready!(packets.as_mut().poll(context));
                    self.state = match packets {
                        Ok(packets) => State::Idle(packets),
                        Err(error) => {
                            self.state = State::Ended;
                            return Poll::Ready(Err(error));
                        }
                    };
                }
                State::Ended => return Poll::Ready(Err(STREAM_ENDED.into())),
            }
        }
    }

    /// Sends a packet, for which there is room.
    fn start_send(&mut self, packet: Packet) -> io::Result<()> {
        let State::Idle(packets) = &self.state else { return Err(STREAM_ENDED.into()) };
        let packet_type = packet.packet_type;
        packets.try_send(packet).map_err(|error| match error {
            TrySendError::Full(_) => io::ErrorKind::WouldBlock,
            TrySendError::Closed(_) => STREAM_ENDED,
        })?;
        self.metrics.packet(Segment::FromClient, packet_type);
        Ok(())
    }

    fn take(&mut self) -> Sending {
        Sending { state: std::mem::replace(&mut self.state, State::Ended), metrics: self.metrics.clone() }
    }
}
