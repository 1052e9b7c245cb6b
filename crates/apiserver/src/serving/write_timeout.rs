//! Limits the time that a socket write may make no progress.
//!
//! A peer that opens no TCP window keeps all pending writes in memory. The write fails once it has made no progress for
//! [`WRITE_TIMEOUT`].

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// How long a write may make no progress.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct WriteTimeout<S> {
    inner: S,
    /// The timer of a pending write.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(inner: S) -> WriteTimeout<S> {
        WriteTimeout { inner, waiting: None }
    }

    fn check<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        waiting.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.check(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.check(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut_down = Pin::new(&mut self.inner).poll_shutdown(context);
        self.check(context, shut_down)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.check(context, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::Instant,
    };

    #[tokio::test(start_paused = true)]
    async fn a_peer_has_to_accept_something_now_and_then() {
        let (near, mut far) = duplex(10);
        let mut near = WriteTimeout::new(near);
        let begun = Instant::now();
        let reading = tokio::spawn(async move {
            for _ in 0..3 {
                tokio::time::sleep(WRITE_TIMEOUT / 2).await;
                far.read_exact(&mut [0]).await.unwrap();
            }
            far
        });
        let error = near.write_all(&[0; 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), WRITE_TIMEOUT / 2 * 3 + WRITE_TIMEOUT);
        drop(reading.await.unwrap());
    }
}
