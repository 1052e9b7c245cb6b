//! Reads ahead below TLS while much comes.
//!
//! The TLS library reads 4 KiB at a time of a record of 16 KiB, and grows its buffer with each read. While a peer sends more
//! than is read, one read of the socket fetches several records instead. A connection on which little comes has no buffer.

use crate::pass_writes::pass_writes;
use std::{
    io,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// The most bytes that are read ahead.
const AHEAD_BYTES: usize = 64 << 10;

/// A connection that is read ahead of its reader, up to 64 KiB, while it has more than the reader asks for. Writes pass.
#[derive(Debug)]
pub struct ReadAhead<S> {
    inner: S,
    /// Whether the last read of the connection returned all that was asked for.
    has_more: bool,
    /// The bytes that were read ahead; empty while little is received.
    buffer: Box<[u8]>,
    unread: Range<usize>,
}

impl<S> ReadAhead<S> {
    /// Reads ahead of a connection.
    pub fn new(inner: S) -> ReadAhead<S> {
        ReadAhead { inner, has_more: false, buffer: Box::default(), unread: 0..0 }
    }
}

impl<S: AsyncRead + Unpin> ReadAhead<S> {
    /// Fills the buffer, which has nothing unread.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; AHEAD_BYTES].into();
        }
        let mut read = ReadBuf::new(&mut self.buffer);
        let filled = Pin::new(&mut self.inner).poll_read(context, &mut read);
        let length = read.filled().len();
        match filled {
            Poll::Ready(Ok(())) if length > 0 => {
                self.unread = 0..length;
                Poll::Ready(Ok(()))
            }
            // Little comes, or nothing any more.
            other => {
                self.has_more = false;
                self.buffer = Box::default();
                other
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.unread.is_empty() {
            let wanted = buffer.remaining();
            if !this.has_more || wanted >= AHEAD_BYTES {
                this.buffer = Box::default();
                ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
                this.has_more = wanted > 0 && buffer.remaining() == 0;
                return Poll::Ready(Ok(()));
            }
            ready!(this.poll_fill(context))?;
        }
        let length = buffer.remaining().min(this.unread.len());
        let end = this.unread.start + length;
        if let Some(bytes) = this.buffer.get(this.unread.start..end) {
            buffer.put_slice(bytes);
        }
        this.unread.start = end;
        Poll::Ready(Ok(()))
    }
}

pass_writes!(ReadAhead);

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::timeout,
    };

    #[tokio::test]
    async fn what_comes_is_read_in_order_and_nothing_is_kept() {
        let (mut near, far) = duplex(300 << 10);
        let sent: Vec<u8> = (0..200_003_u32).map(|index| (index % 251) as u8).collect();
        near.write_all(&sent).await.unwrap();
        let mut far = ReadAhead::new(far);
        let mut read = Vec::new();
        let mut part = [0; 4096];
        let mut has_read_ahead = false;
        while read.len() < sent.len() {
            let length = far.read(&mut part).await.unwrap();
            read.extend_from_slice(part.get(..length).unwrap());
            has_read_ahead |= !far.unread.is_empty();
        }
        assert!(has_read_ahead);
        assert!(read == sent);
        let nothing = tokio::select! {
            biased;
            _ = far.read(&mut part) => false,
            () = std::future::ready(()) => true,
        };
        assert!(nothing && far.buffer.is_empty());
        near.write_all(b"little").await.unwrap();
        assert_eq!(far.read(&mut part).await.unwrap(), 6);
        assert!(far.buffer.is_empty());
        near.write_all(&sent).await.unwrap();
        drop(near);
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await.unwrap();
        assert!(rest == sent);
        assert!(far.buffer.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_stops_the_peer() {
        const ROOM: usize = 1 << 10;
        let (mut near, far) = duplex(ROOM);
        let sending = tokio::spawn(async move {
            let mut sent = 0;
            // The peer gives up when nothing was taken for a while.
            while let Ok(Ok(length)) = timeout(Duration::from_secs(1), near.write(&[0; ROOM])).await {
                sent += length;
            }
            sent
        });
        let mut far = ReadAhead::new(far);
        let mut part = [0; 16];
        let mut read = 0;
        for _ in 0..1000 {
            read += far.read(&mut part).await.unwrap();
        }
        assert!(far.buffer.len() <= AHEAD_BYTES);
        let sent = sending.await.unwrap();
        assert!(sent - read <= AHEAD_BYTES + ROOM, "{sent} {read}");
        drop(far);
    }

    #[tokio::test]
    async fn writes_pass() {
        let (mut near, far) = duplex(64);
        let mut far = ReadAhead::new(far);
        far.write_all(b"to the peer").await.unwrap();
        far.shutdown().await.unwrap();
        let mut read = String::new();
        near.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "to the peer");
    }
}
