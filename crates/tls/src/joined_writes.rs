//! Joins the writes of a connection that many share.
//!
//! The protocol library writes and flushes each frame by itself as soon as a stream has one: fifty watches that get an
//! event cost fifty TLS records and as many system calls. Two things join them:
//!
//! - [`JoinedWrites`] keeps what is written until the connection's task has been polled, and [`JoinedConnection`] sends it
//!   all at once;
//! - while several requests are under way, the task lets the tasks that are ready to run have their turn before it is
//!   polled, so that it finds the frames of all of them.

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes that wait to be joined: four TLS records.
const JOINED_BYTES: usize = 64 << 10;
/// The least bytes that are written by themselves when nothing waits: a copy costs more than a write saves.
const LARGE_BYTES: usize = 12 << 10;

/// The size of the buffer when the first bytes wait.
const FIRST_BYTES: usize = 4 << 10;

/// A connection whose writes are joined, or pass. Reads pass.
#[derive(Debug)]
pub struct JoinedWrites<S>(Inner<S>);

#[derive(Debug)]
enum Inner<S> {
    Passing(S),
    Joining(Shared<S>),
}

type Shared<S> = Arc<Mutex<Writer<S>>>;

#[derive(Debug)]
struct Writer<S> {
    inner: S,
    /// The bytes that wait to be written.
    waiting: BytesMut,
    /// Whether what was written is still to be flushed.
    is_unflushed: bool,
    /// Why sending failed, for the next read or write of the protocol.
    error: Option<io::Error>,
}

impl<S> JoinedWrites<S> {
    /// A connection whose writes pass.
    pub fn passing(inner: S) -> JoinedWrites<S> {
        JoinedWrites(Inner::Passing(inner))
    }

    /// A connection whose writes wait until its [`JoinedConnection`] sends them.
    pub fn joining(inner: S) -> (JoinedWrites<S>, Joint<S>) {
        let writer = Writer { inner, waiting: BytesMut::new(), is_unflushed: false, error: None };
        let shared = Arc::new(Mutex::new(writer));
        (JoinedWrites(Inner::Joining(shared.clone())), Joint(shared))
    }

    /// The inner connection, where writes pass.
    fn passing_mut(&mut self) -> Result<&mut S, &Shared<S>> {
        match &mut self.0 {
            Inner::Passing(inner) => Ok(inner),
            Inner::Joining(shared) => Err(shared),
        }
    }
}

impl<S: AsyncWrite + Unpin> Writer<S> {
    /// Writes all that waits.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.waiting.has_remaining() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(context, &self.waiting))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.waiting.advance(written);
        }
        // A connection that is quiet has no buffer.
        self.waiting = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        ready!(Pin::new(&mut self.inner).poll_flush(context))?;
        self.is_unflushed = false;
        Poll::Ready(Ok(()))
    }

    /// Sends all that was written, beside the protocol. A failure ends what the protocol does next.
    fn poll_send_aside(&mut self, context: &mut Context<'_>) {
        if self.is_unflushed
            && let Poll::Ready(Err(error)) = self.poll_flush(context)
        {
            self.error = Some(error);
            self.is_unflushed = false;
            self.waiting = BytesMut::new();
            context.waker().wake_by_ref();
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Err(error));
        }
        let length = slices.iter().map(|slice| slice.len()).sum::<usize>();
        if self.waiting.len() + length > JOINED_BYTES {
            ready!(self.poll_send(context))?;
        }
        self.is_unflushed = true;
        if self.waiting.is_empty() && length >= LARGE_BYTES {
            return Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        }
        match self.waiting.capacity() - self.waiting.len() {
            0 if self.waiting.is_empty() => self.waiting.reserve(length.max(FIRST_BYTES)),
            // Much is to be joined: the bytes are moved once, not each time that the buffer doubles.
            room if room < length => self.waiting.reserve(JOINED_BYTES - self.waiting.len()),
            _ => {}
        }
        let mut taken = 0;
        for slice in slices {
            let room = JOINED_BYTES - self.waiting.len();
            let part = slice.get(..room.min(slice.len())).unwrap_or_default();
            self.waiting.extend_from_slice(part);
            taken += part.len();
        }
        Poll::Ready(Ok(taken))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for JoinedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.passing_mut() {
            Ok(inner) => Pin::new(inner).poll_read(context, buffer),
            Err(shared) => {
                let mut shared = shared.lock();
                match shared.error.take() {
                    Some(error) => Poll::Ready(Err(error)),
                    None => Pin::new(&mut shared.inner).poll_read(context, buffer),
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for JoinedWrites<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.passing_mut() {
            Ok(inner) => Pin::new(inner).poll_write(context, bytes),
            Err(shared) => shared.lock().poll_write(context, &[IoSlice::new(bytes)]),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.passing_mut() {
            Ok(inner) => Pin::new(inner).poll_write_vectored(context, slices),
            Err(shared) => shared.lock().poll_write(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Inner::Passing(inner) => inner.is_write_vectored(),
            Inner::Joining(_) => true,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.passing_mut() {
            Ok(inner) => Pin::new(inner).poll_flush(context),
            // The connection's task flushes when it has been polled.
            Err(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.passing_mut() {
            Ok(inner) => Pin::new(inner).poll_shutdown(context),
            Err(shared) => {
                let mut writer = shared.lock();
                ready!(writer.poll_flush(context))?;
                Pin::new(&mut writer.inner).poll_shutdown(context)
            }
        }
    }
}

/// The end of a [`JoinedWrites`] that sends what waits.
#[derive(Debug)]
pub struct Joint<S>(Shared<S>);

/// The future of a connection over [`JoinedWrites`]. It has to be polled for the writes to be sent.
pub struct JoinedConnection<F, S, B> {
    connection: F,
    /// `None` where the writes pass.
    joint: Option<Joint<S>>,
    /// Whether several requests are under way.
    is_busy: B,
    turn: Option<Arc<Turn>>,
}

/// The turn of a task that lets the others go first.
struct Turn {
    has_come: AtomicBool,
    task: Waker,
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_come.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl<F, S, B> JoinedConnection<F, S, B> {
    /// The future of a connection whose protocol `connection` implements. `is_busy` tells whether several requests are
    /// under way.
    pub fn new(connection: F, joint: Option<Joint<S>>, is_busy: B) -> JoinedConnection<F, S, B> {
        JoinedConnection { connection, joint, is_busy, turn: None }
    }

    /// The protocol's connection.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.connection
    }
}

impl<F, S, B: Fn() -> bool> JoinedConnection<F, S, B> {
    /// Whether the task lets the others go first.
    fn waits(&mut self, context: &mut Context<'_>) -> bool {
        match &self.turn {
            Some(turn) if turn.has_come.load(Ordering::Acquire) => {
                self.turn = None;
                return false;
            }
            Some(turn) if turn.task.will_wake(context.waker()) => return true,
            None if !(self.is_busy)() => return false,
            _ => {}
        }
        let turn = Arc::new(Turn { has_come: AtomicBool::new(false), task: context.waker().clone() });
        let waker = Waker::from(turn.clone());
        self.turn = Some(turn);
        // Once polled, it wakes the turn when the tasks that are ready have run.
        let mut others = std::pin::pin!(tokio::task::yield_now());
        others.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
    }
}

impl<F, S, B> Future for JoinedConnection<F, S, B>
where
    F: Future + Unpin,
    S: AsyncWrite + Unpin,
    B: Fn() -> bool + Unpin,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        if this.joint.is_none() {
            return Pin::new(&mut this.connection).poll(context);
        }
        if this.waits(context) {
            return Poll::Pending;
        }
        let polled = Pin::new(&mut this.connection).poll(context);
        if polled.is_pending()
            && let Some(Joint(shared)) = &this.joint
        {
            shared.lock().poll_send_aside(context);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::poll_fn, time::Duration};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// Counts its writes.
    struct Counting<S>(S, Arc<Mutex<Vec<usize>>>);

    impl<S: AsyncWrite + Unpin> AsyncWrite for Counting<S> {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let written = Pin::new(&mut self.0).poll_write(context, bytes);
            if let Poll::Ready(Ok(written)) = written {
                self.1.lock().push(written);
            }
            written
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    #[tokio::test]
    async fn writes_of_one_poll_are_one_write() {
        let (mut near, far) = duplex(1 << 20);
        let writes = Arc::default();
        let (mut joined, joint) = JoinedWrites::joining(Counting(far, Arc::clone(&writes)));
        let connection = Box::pin(async move {
            for _ in 0..3 {
                joined.write_all(b"frame").await.unwrap();
                joined.flush().await.unwrap();
            }
            joined.write_all(&[7; JOINED_BYTES]).await.unwrap();
            joined.write_all(b"end").await.unwrap();
            std::future::pending::<()>().await;
        });
        tokio::spawn(JoinedConnection::new(connection, Some(joint), || false));
        let mut read = vec![0; 15 + JOINED_BYTES + 3];
        near.read_exact(&mut read).await.unwrap();
        assert!(read.starts_with(b"frameframeframe\x07") && read.ends_with(b"\x07end"));
        // The large write goes by itself.
        assert_eq!(*writes.lock(), [15, JOINED_BYTES, 3]);
    }

    #[tokio::test]
    async fn a_busy_connection_lets_the_ready_tasks_go_first() {
        for (is_busy, expected) in [(true, vec![3]), (false, vec![1, 1, 1])] {
            let (mut near, far) = duplex(1 << 20);
            let writes = Arc::default();
            let (mut joined, joint) = JoinedWrites::joining(Counting(far, Arc::clone(&writes)));
            let (send, mut frames) = tokio::sync::mpsc::unbounded_channel();
            let connection = Box::pin(async move {
                while let Some(frame) = frames.recv().await {
                    joined.write_all(&[frame]).await.unwrap();
                }
            });
            tokio::spawn(JoinedConnection::new(connection, Some(joint), move || is_busy));
            tokio::task::yield_now().await;
            for frame in 0..3 {
                let send = send.clone();
                tokio::spawn(async move { send.send(frame).unwrap() });
            }
            near.read_exact(&mut [0; 3]).await.unwrap();
            let writes = writes.lock().clone();
            // Without the turn of the others, the writes may be joined by chance.
            assert!(writes == expected || !is_busy && writes.iter().sum::<usize>() == 3, "{writes:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_stops_the_writer() {
        let (mut near, far) = duplex(1 << 10);
        let (mut joined, joint) = JoinedWrites::joining(far);
        let written = Arc::new(Mutex::new(0));
        let counted = written.clone();
        let connection = Box::pin(async move {
            while joined.write_all(&[0; 100]).await.is_ok() {
                *counted.lock() += 100;
            }
        });
        let task = tokio::spawn(JoinedConnection::new(connection, Some(joint), || true));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(*written.lock() <= JOINED_BYTES + (1 << 10), "{}", written.lock());
        // It goes on where it was, and ends with the connection.
        let before = *written.lock();
        let mut read = vec![0; before];
        near.read_exact(&mut read).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(*written.lock() > before);
        drop(near);
        task.await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_write_ends_the_protocol() {
        let (near, far) = duplex(1 << 10);
        drop(near);
        let (mut joined, joint) = JoinedWrites::joining(far);
        let connection = Box::pin(async move {
            // The writer does not know yet.
            joined.write_all(b"lost").await.unwrap();
            tokio::task::yield_now().await;
            joined.write_all(b"late").await.unwrap_err().kind()
        });
        let end = JoinedConnection::new(connection, Some(joint), || false).await;
        assert_eq!(end, io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn what_waits_is_sent_before_the_end() {
        let (mut near, far) = duplex(1 << 10);
        let (mut joined, joint) = JoinedWrites::joining(far);
        let connection = Box::pin(async move {
            joined.write_all(b"last").await.unwrap();
            joined.shutdown().await.unwrap();
            poll_fn(|_| Poll::Ready(())).await;
        });
        JoinedConnection::new(connection, Some(joint), || true).await;
        let mut read = String::new();
        near.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "last");
    }
}
