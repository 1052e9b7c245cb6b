//! An HTTP/2 client that sends single frames, which client libraries do not allow.

use crate::harness::{Identity, PATIENCE, Server};
use std::io;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

const INITIAL_WINDOW_SIZE: u16 = 4;

/// A frame as bytes.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A SETTINGS frame.
pub(crate) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let pairs = values.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
    frame(SETTINGS, 0, 0, &pairs.collect::<Vec<_>>())
}

/// A string literal of a header block: its length with a 7-bit prefix, then its bytes.
fn text(text: &str) -> Vec<u8> {
    let mut encoded = Vec::new();
    match text.len() {
        length @ 0..127 => encoded.push(u8::try_from(length).unwrap()),
        length => {
            encoded.push(127);
            let mut rest = length - 127;
            while rest > 127 {
                encoded.push(u8::try_from(rest % 128 + 128).unwrap());
                rest /= 128;
            }
            encoded.push(u8::try_from(rest).unwrap());
        }
    }
    encoded.extend(text.as_bytes());
    encoded
}

/// A header literal that is not added to the table.
pub(crate) fn literal(name: &str, value: &str) -> Vec<u8> {
    [vec![0], text(name), text(value)].concat()
}

/// The header block of a GET without further headers.
pub(crate) fn get(path: &str) -> Vec<u8> {
    // GET, https, and a path that is not added to the table.
    [vec![0x82, 0x87, 0x04], text(path)].concat()
}

/// A received frame.
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The error code of a RST_STREAM or GOAWAY.
    pub(crate) fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// A connection that has sent the client preface.
pub(crate) struct Http2 {
    pub(crate) reader: ReadHalf<TlsStream<TcpStream>>,
    pub(crate) writer: WriteHalf<TlsStream<TcpStream>>,
}

impl Http2 {
    /// The administrator's connection; `window` is the initial window of each stream, in bytes.
    pub(crate) async fn connect(server: &Server, window: u32) -> Http2 {
        Http2::connect_as(Identity::Admin, server, window).await
    }

    /// A client's connection; `window` is the initial window of each stream, in bytes.
    pub(crate) async fn connect_as(identity: Identity, server: &Server, window: u32) -> Http2 {
        let (reader, writer) = tokio::io::split(server.raw_http2(identity).await);
        let mut client = Http2 { reader, writer };
        let begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        client.send(&[&begin[..], &settings(&[(INITIAL_WINDOW_SIZE, window)])].concat()).await.unwrap();
        client
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).await?;
        self.writer.flush().await
    }

    /// Sends a GET.
    pub(crate) async fn get(&mut self, stream: u32, path: &str) {
        let head = frame(HEADERS, END_STREAM | END_HEADERS, stream, &get(path));
        self.send(&head).await.unwrap();
    }

    /// The next frame of any kind.
    pub(crate) async fn frame(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.reader.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length.try_into().unwrap()];
        self.reader.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        Ok(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// The next frame of these kinds. Other frames are skipped; pings and settings are acknowledged. An error when the
    /// connection ends.
    pub(crate) async fn next(&mut self, kinds: &[u8]) -> io::Result<Frame> {
        loop {
            let frame = self.frame().await?;
            match frame.kind {
                kind if kinds.contains(&kind) => return Ok(frame),
                PING if frame.flags & ACK == 0 => {
                    self.send(&self::frame(PING, ACK, 0, &frame.payload)).await?;
                }
                SETTINGS if frame.flags & ACK == 0 => self.send(&self::frame(SETTINGS, ACK, 0, &[])).await?,
                _ => {}
            }
        }
    }

    /// As [`Http2::next`], with a timeout.
    pub(crate) async fn soon(&mut self, kinds: &[u8]) -> io::Result<Frame> {
        timeout(PATIENCE, self.next(kinds)).await.unwrap()
    }
}
