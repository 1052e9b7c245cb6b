//! Refuses clients that do not speak TLS.

use std::io;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The type of a record of TLS with which a handshake begins.
const HANDSHAKE_RECORD: u8 = 22;
/// How requests begin that Go's server recognizes, by as many bytes as the head of a record has.
const BEGINNINGS: [&[u8; 5]; 5] = [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"];
const ANSWER: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// Waits for the first byte. A client whose connection does not begin with a handshake is refused; one that sends an
/// HTTP request is told the reason, as by Go's server.
pub(super) async fn refuse_plain(stream: &mut TcpStream) -> io::Result<()> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 || first == [HANDSHAKE_RECORD] {
        return Ok(());
    }
    let mut head = [0; BEGINNINGS[0].len()];
    stream.read_exact(&mut head).await?;
    if !BEGINNINGS.contains(&&head) {
        return Err(io::Error::other("first record does not look like a TLS handshake"));
    }
    stream.write_all(ANSWER).await?;
    stream.shutdown().await?;
    // A socket that is closed with unread data would take the answer back. The timeout of the handshake ends this.
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Err(io::Error::other("client sent an HTTP request to an HTTPS server"))
}
