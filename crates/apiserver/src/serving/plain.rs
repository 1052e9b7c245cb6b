//! Refuses clients that do not speak TLS.

use std::io;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, sink},
    net::TcpStream,
};

/// The type of a record of TLS with which a handshake begins.
const HANDSHAKE_RECORD: u8 = 22;
/// How requests begin that Go's server recognizes, by as many bytes as the head of a record has.
const BEGINNINGS: [&[u8; 5]; 5] = [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"];
const ANSWER: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/// The most bytes of a refused request that are read.
const MAX_REST: u64 = 64 << 10;

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
    // A socket that is closed with unread data would take the answer back.
    copy(&mut stream.take(MAX_REST), &mut sink()).await?;
    Err(io::Error::other("client sent an HTTP request to an HTTPS server"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::{net::TcpListener, time::timeout};

    /// A connection to a server that refuses plain HTTP, and the server's task.
    async fn refused() -> (TcpStream, tokio::task::JoinHandle<io::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        (client, tokio::spawn(async move { refuse_plain(&mut stream).await }))
    }

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn a_request_gets_the_reason() {
        let (mut client, server) = refused().await;
        client.write_all(&[b"POST / HTTP/1.1\r\n\r\n".as_slice(), &[b'x'; 16 << 10]].concat()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = Vec::new();
        timeout(PATIENCE, client.read_to_end(&mut answer)).await.unwrap().unwrap();
        assert_eq!(answer, ANSWER);
        assert!(server.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_client_that_sends_on_and_on_is_cut_off() {
        let (mut client, server) = refused().await;
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let sending = async { while client.write_all(&[b'x'; 4096]).await.is_ok() {} };
        timeout(PATIENCE, sending).await.expect("the server reads on");
        assert!(server.await.unwrap().is_err());
    }
}
