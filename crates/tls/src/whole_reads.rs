//! Fills the buffers of readers above TLS.
//!
//! The TLS library returns one record of at most 16 KiB for each read, also when several have been decrypted. A reader with
//! a larger buffer gets all of them at once, and writes them on at once.

use crate::pass_writes::pass_writes;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, ReadBuf};

/// A connection whose reads return all that is there, up to the size of the buffer. Writes pass.
#[derive(Debug)]
pub struct WholeReads<S> {
    inner: S,
    /// The error that came behind what the last read returned.
    error: Option<io::Error>,
}

impl<S> WholeReads<S> {
    /// Reads a connection.
    pub fn new(inner: S) -> WholeReads<S> {
        WholeReads { inner, error: None }
    }

    /// The connection.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WholeReads<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(error) = this.error.take() {
            return Poll::Ready(Err(error));
        }
        let start = buffer.filled().len();
        loop {
            let before = buffer.filled().len();
            let read = Pin::new(&mut this.inner).poll_read(context, buffer);
            let is_first = before == start;
            match read {
                // The end of the stream is read again.
                Poll::Ready(Ok(())) if buffer.filled().len() == before || buffer.remaining() == 0 => {
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Ok(())) => {}
                read if is_first => return read,
                Poll::Ready(Err(error)) => {
                    this.error = Some(error);
                    return Poll::Ready(Ok(()));
                }
                // The context is woken for the next read.
                Poll::Pending => return Poll::Ready(Ok(())),
            }
        }
    }
}

pass_writes!(WholeReads);

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// Returns one part at a time, and an error behind them.
    struct Parts(Vec<&'static [u8]>);

    impl AsyncRead for Parts {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let Some(part) = self.0.pop() else {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            };
            buffer.put_slice(part);
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_read_returns_all_parts_and_then_the_error() {
        let mut reads = WholeReads::new(Parts(vec![b"ef", b"cd", b"ab"]));
        let mut buffer = [0; 16];
        assert_eq!(reads.read(&mut buffer).await.unwrap(), 6);
        assert_eq!(buffer.get(..6), Some(&b"abcdef"[..]));
        assert_eq!(reads.read(&mut buffer).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn the_end_comes_behind_what_is_there() {
        let (mut near, far) = duplex(64);
        let mut far = WholeReads::new(far);
        near.write_all(b"all").await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!(far.read(&mut buffer).await.unwrap(), 3);
        near.write_all(b"rest").await.unwrap();
        drop(near);
        assert_eq!(far.read(&mut buffer).await.unwrap(), 4);
        assert_eq!(far.read(&mut buffer).await.unwrap(), 0);
    }
}
