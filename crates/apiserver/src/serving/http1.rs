//! Reads HTTP/1 request heads by the rules of Go's `net/http`, in front of hyper's HTTP/1 connection.
//!
//! [`RequestHeads`] wraps the TLS stream that hyper reads from. It finds the beginning and the end of each request head, so
//! it tracks the bodies between them as well. It handles a head in one of three ways:
//!
//! - A head that both `net/http` and hyper accept passes unchanged.
//! - A head that only `net/http` accepts (folded headers, `HTTP/1.2`, unusual characters in the path) is rewritten.
//! - A head that `net/http` refuses is withheld. Hyper gets a placeholder request, and the service answers it with the
//!   [`Refusal`], so that pending answers are sent first. Bytes behind a refused head are discarded.
//!
//! Well-formed requests are inspected in hyper's own buffer and never copied. Upgraded connections pass uninspected.
//! Bytes behind a request to upgrade wait for the response, which decides whether they are another request. The frames of
//! HTTP/2 are read by [`Frames`].

mod refusal;

use super::{
    frames::{Frames, SHUTDOWN_ACK},
    head_budget::{HeadBudget, HeadCharge},
    step::Step,
};
use crate::base::connection::ConnectionHandle;
use bytes::{Buf, BytesMut};
use futures_util::task::AtomicWaker;
use memchr::memchr;
use pintle_http1::{
    Chunks, Refusal,
    head::{self, Framing, Head},
};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

pub(super) use refusal::{refused, refused_in_http2};

/// The size of a head that is not charged to the budget, in bytes. A connection ends with the response to a larger
/// head, since its buffers have grown.
pub(super) const UNCHARGED_HEAD_BYTES: usize = 64 << 10;
/// How long the rest of a head may take after its first bytes.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(32);
/// The request that hyper gets in place of a refused one.
const REFUSED: &[u8] = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n";
/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";
/// How many bytes after a refused head are read and discarded, so that the client sees the response and not a reset.
const MAX_DRAINED_BYTES: usize = 1 << 20;

/// The state of a connection's requests that [`RequestHeads`] and the service share.
#[derive(Clone, Default)]
pub(super) struct Requests(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// The refused request, if there is one: it is the last.
    refusal: OnceLock<(u64, Refusal)>,
    served: AtomicU64,
    answered: AtomicU64,
    is_upgraded: AtomicBool,
    /// The task that waits for the response to a request to upgrade.
    reader: AtomicWaker,
    ends_connection: AtomicBool,
    acknowledges_end: AtomicBool,
}

impl Requests {
    /// Counts a request and returns its refusal if it is the refused one. Call it once for each request of the
    /// connection, in order.
    pub(super) fn next(&self) -> Option<Refusal> {
        let position = self.0.served.fetch_add(1, Ordering::Relaxed);
        self.0.refusal.get().filter(|(refused, _)| *refused == position).map(|(_, refusal)| *refusal)
    }

    /// Counts a response; `is_upgrade` when it switches the protocol of the connection. Call it once for each response, in
    /// order.
    pub(super) fn answered(&self, is_upgrade: bool) {
        self.0.is_upgraded.store(is_upgrade, Ordering::Release);
        self.0.answered.fetch_add(1, Ordering::Release);
        self.0.reader.wake();
    }

    /// Whether the response to this request switches the protocol; `None` before the response, which wakes the task.
    fn poll_upgraded_by(&self, request: u64, context: &Context<'_>) -> Option<bool> {
        self.0.reader.register(context.waker());
        let is_answered = self.0.answered.load(Ordering::Acquire) > request;
        is_answered.then(|| self.0.is_upgraded.load(Ordering::Acquire))
    }

    /// Acknowledges the ping behind a GOAWAY in place of a client of HTTP/2 that does not: the HTTP library waits for that
    /// before it ignores further streams, and closes the connection after those that it has. Takes effect when the
    /// connection is polled.
    pub(super) fn acknowledge_end(&self) {
        self.0.acknowledges_end.store(true, Ordering::Relaxed);
    }

    /// Whether the connection ends with the next response: a body was malformed, or a head was larger than
    /// [`UNCHARGED_HEAD_BYTES`].
    pub(super) fn ends_connection(&self) -> bool {
        self.0.ends_connection.load(Ordering::Relaxed)
    }
}

/// A stream whose request heads are read by Go's rules.
pub(super) struct RequestHeads<S> {
    inner: S,
    state: State,
    /// The number of heads that were passed on.
    heads: u64,
    /// The first bytes of an incomplete head.
    held: BytesMut,
    /// How many bytes of `held` are known not to contain the end of the head.
    searched: usize,
    /// Whether the request line in `held` was checked.
    is_line_checked: bool,
    /// The deadline for the rest of the head.
    deadline: Option<Pin<Box<Sleep>>>,
    /// The bytes that hyper gets next.
    ready: BytesMut,
    requests: Requests,
    budget: HeadBudget,
    connection: ConnectionHandle,
    /// The budget charge of the head that has begun.
    charge: Option<HeadCharge>,
}

enum State {
    /// Before the first head: it may be HTTP/2.
    Start,
    /// At the beginning of a head. Up to this many bytes of line ends are skipped: some old clients send one after the
    /// body of a `POST`.
    Head { blanks: usize },
    /// In a body of known length, with this many bytes to come.
    Body(u64, AfterBody),
    /// In a chunked body.
    Chunks(Box<Chunks>, AfterBody),
    /// After a request to upgrade, with this position: bytes are held until there is a response. Whether it is a `POST`.
    Undecided(u64, bool),
    /// Bytes pass uninspected.
    Through,
    /// In the frames of HTTP/2.
    Frames(Box<Frames>),
    /// The body is malformed. The error is reported once.
    Broken(Option<&'static str>),
    /// A head was refused; up to this many further bytes are discarded.
    Refused(usize),
}

/// The properties of a request that determine the state after its body.
#[derive(Clone, Copy)]
struct AfterBody {
    /// The position of the request, if it asks for an upgrade.
    upgrade: Option<u64>,
    is_post: bool,
}

impl State {
    /// After the body of a request.
    fn after(body: AfterBody) -> State {
        match body.upgrade {
            Some(request) => State::Undecided(request, body.is_post),
            None => State::head(body.is_post),
        }
    }

    /// Before the next head.
    fn head(after_post: bool) -> State {
        State::Head { blanks: if after_post { 4 } else { 0 } }
    }
}

impl<S> RequestHeads<S> {
    /// Inspects the heads of a stream. `is_http2` states that ALPN selected HTTP/2; large heads are charged to `budget`,
    /// which may sever `connection`.
    pub(super) fn new(
        inner: S,
        is_http2: bool,
        requests: Requests,
        budget: HeadBudget,
        connection: ConnectionHandle,
    ) -> RequestHeads<S> {
        RequestHeads {
            inner,
            state: if is_http2 { State::Frames(Box::default()) } else { State::Start },
            heads: 0,
            held: BytesMut::new(),
            searched: 0,
            is_line_checked: false,
            deadline: None,
            ready: BytesMut::new(),
            requests,
            budget,
            connection,
            charge: None,
        }
    }

    /// Inspects the next bytes. `searched` of them are known not to contain the end of a head.
    fn step(&mut self, input: &[u8], searched: usize) -> Step {
        match &mut self.state {
            State::Through => Step::Pass(input.len()),
            State::Frames(frames) => {
                let step = frames.step(input);
                if matches!(step, Step::Stop) {
                    self.state = State::Broken(Some("bad preface"));
                }
                step
            }
            State::Start if input.starts_with(PREFACE) => {
                self.state = State::Frames(Box::default());
                self.step(input, 0)
            }
            State::Start if PREFACE.starts_with(input) => Step::More,
            State::Start => {
                self.state = State::Head { blanks: 0 };
                self.head(input, searched, 0)
            }
            State::Head { blanks } => {
                let blanks = *blanks;
                self.head(input, searched, blanks)
            }
            State::Body(left, after) => {
                let passed = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= passed as u64;
                if *left == 0 {
                    self.state = State::after(*after);
                }
                Step::Pass(passed)
            }
            State::Chunks(chunks, after) => match chunks.read(input) {
                Ok((passed, is_over)) => {
                    if is_over {
                        self.state = State::after(*after);
                    }
                    Step::Pass(passed)
                }
                Err(error) => {
                    self.state = State::Broken(Some(error));
                    self.requests.0.ends_connection.store(true, Ordering::Relaxed);
                    Step::Stop
                }
            },
            State::Undecided(..) => Step::More,
            State::Broken(_) | State::Refused(_) => Step::Stop,
        }
    }

    fn head(&mut self, input: &[u8], searched: usize, blanks: usize) -> Step {
        let is_blank = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let blank = input.iter().take(blanks).take_while(is_blank).count();
        let head = input.get(blank..).unwrap_or_default();
        // Line ends alone do not start the time limit of a head.
        if head.is_empty() && blank > 0 {
            self.state = State::Head { blanks: blanks - blank };
            return Step::Replace(blank, BytesMut::new());
        }
        let Some(end) = head::end(head, searched.saturating_sub(blank)) else {
            if head.len() > head::MAX_HEAD_BYTES {
                return self.refuse(Refusal::HeadersTooLarge);
            }
            // Each byte is searched once, however small the pieces.
            let has_line = memchr(b'\n', input.get(searched..).unwrap_or_default()).is_some();
            if has_line && !std::mem::replace(&mut self.is_line_checked, true) {
                return match head::check_beginning(head) {
                    Err(refusal) => self.refuse(refusal),
                    Ok(()) => Step::More,
                };
            }
            return Step::More;
        };
        self.is_line_checked = false;
        let (head, _) = head.split_at(end.min(head.len()));
        if head.len() > head::MAX_HEAD_BYTES {
            return self.refuse(Refusal::HeadersTooLarge);
        }
        match head::read(head) {
            Err(refusal) => self.refuse(refusal),
            Ok(Head { framing, is_upgrade, is_post, rewritten }) => {
                let after = AfterBody { upgrade: is_upgrade.then_some(self.heads), is_post };
                self.heads += 1;
                if end > UNCHARGED_HEAD_BYTES {
                    self.requests.0.ends_connection.store(true, Ordering::Relaxed);
                }
                self.state = match framing {
                    Framing::Length(0) => State::after(after),
                    Framing::Length(length) => State::Body(length, after),
                    Framing::Chunked => State::Chunks(Box::default(), after),
                };
                match rewritten {
                    Some(rewritten) => Step::Replace(blank + end, rewritten),
                    None if blank > 0 => Step::Replace(blank + end, head.into()),
                    None => Step::Pass(end),
                }
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal) -> Step {
        // At most one request of a connection is refused.
        self.requests.0.refusal.get_or_init(|| (self.heads, refusal));
        self.state = State::Refused(MAX_DRAINED_BYTES);
        self.ready = REFUSED.into();
        Step::Stop
    }

    /// Inspects the held bytes.
    fn step_held(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        match self.step(&held, self.searched) {
            Step::Pass(passed) => {
                self.ready = held.split_to(passed.min(held.len()));
                self.begin();
            }
            Step::Replace(replaced, by) => {
                held.advance(replaced.min(held.len()));
                self.ready = by;
                self.begin();
            }
            Step::More => self.searched = held.len(),
            Step::Stop => held.clear(),
        }
        self.held = held;
    }

    /// The bytes that are held begin another head, with its own time.
    fn begin(&mut self) {
        self.searched = 0;
        self.deadline = None;
    }

    /// Charges the head that has begun to the budget, if it is large.
    fn charge(&mut self) {
        let memory = match &self.state {
            State::Frames(frames) => frames.memory(),
            _ => self.held.len(),
        };
        match memory > UNCHARGED_HEAD_BYTES {
            true => {
                let charge = || self.budget.charge(self.connection.clone());
                self.charge.get_or_insert_with(charge).raise_to(memory);
            }
            false => self.charge = None,
        }
    }

    /// Inspects bytes that were just read into hyper's buffer, and moves those that must not pass yet into `held`.
    fn look(&mut self, buffer: &mut ReadBuf<'_>, start: usize) {
        let mut end = start;
        while let Some(input @ [_, ..]) = buffer.filled().get(end..) {
            match self.step(input, 0) {
                Step::Pass(passed) => end += passed,
                Step::Replace(replaced, by) => {
                    self.held = input.get(replaced..).unwrap_or_default().into();
                    self.searched = 0;
                    self.ready = by;
                    break;
                }
                Step::More => {
                    self.held = input.into();
                    self.searched = input.len();
                    break;
                }
                Step::Stop => break,
            }
        }
        buffer.set_filled(end.min(buffer.filled().len()));
    }
}

/// Ready with an error when the rest of a head has taken too long. The time begins with the first call.
fn poll_deadline(deadline: &mut Option<Pin<Box<Sleep>>>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
    let limit = || Box::pin(tokio::time::sleep(HEADER_READ_TIMEOUT));
    match deadline.get_or_insert_with(limit).as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        Poll::Pending => Poll::Ready(Ok(())),
    }
}

impl<S: AsyncRead + Unpin> RequestHeads<S> {
    /// Reads more bytes into `held`; false at the end of the stream. Hyper's buffer may have room for a few bytes only.
    fn poll_hold(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut chunk = [0; 4096];
        let mut chunk = ReadBuf::new(&mut chunk);
        ready!(Pin::new(&mut self.inner).poll_read(context, &mut chunk))?;
        self.held.extend_from_slice(chunk.filled());
        Poll::Ready(Ok(!chunk.filled().is_empty()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RequestHeads<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.ready.is_empty() {
                let length = this.ready.len().min(buffer.remaining());
                buffer.put_slice(&this.ready.split_to(length));
                if this.ready.is_empty() {
                    this.ready = BytesMut::new();
                    if this.held.is_empty() {
                        this.charge = None;
                    }
                }
                return Poll::Ready(Ok(()));
            }
            if let State::Frames(frames) = &this.state
                && frames.are_whole()
                && this.requests.0.acknowledges_end.load(Ordering::Relaxed)
            {
                this.requests.0.acknowledges_end.store(false, Ordering::Relaxed);
                if !frames.is_end_acknowledged() {
                    this.ready = SHUTDOWN_ACK.into();
                    continue;
                }
            }
            if !this.held.is_empty() && this.searched < this.held.len() {
                this.step_held();
                if this.searched == this.held.len() && !this.held.is_empty() {
                    this.charge();
                }
                continue;
            }
            let start = buffer.filled().len();
            match &mut this.state {
                State::Through => return Pin::new(&mut this.inner).poll_read(context, buffer),
                State::Broken(error) => {
                    let error = error.take().unwrap_or("unexpected EOF");
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
                }
                State::Undecided(request, is_post) => match this.requests.poll_upgraded_by(*request, context)
                {
                    Some(true) => {
                        this.state = State::Through;
                        this.ready = std::mem::take(&mut this.held);
                    }
                    Some(false) => {
                        this.state = State::head(*is_post);
                        this.searched = 0;
                    }
                    // Before the response only the end of the stream matters, and only if no bytes precede it.
                    None if !this.held.is_empty() => return Poll::Pending,
                    None => {
                        if !ready!(this.poll_hold(context))? {
                            return Poll::Ready(Ok(()));
                        }
                        this.searched = this.held.len();
                    }
                },
                State::Refused(left) => {
                    // At the end of the stream hyper would drop its response, so that the stream stays pending.
                    if *left == 0 {
                        return Poll::Pending;
                    }
                    ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
                    let read = buffer.filled().len() - start;
                    *left = if read == 0 { 0 } else { left.saturating_sub(read) };
                    buffer.set_filled(start);
                }
                _ if this.held.is_empty() => {
                    this.deadline = None;
                    ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
                    if buffer.filled().len() == start {
                        return Poll::Ready(Ok(()));
                    }
                    this.look(buffer, start);
                    this.charge();
                    if buffer.filled().len() > start {
                        return Poll::Ready(Ok(()));
                    }
                }
                _ => {
                    ready!(poll_deadline(&mut this.deadline, context))?;
                    if !ready!(this.poll_hold(context))? {
                        return Poll::Ready(Ok(()));
                    }
                    this.charge();
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RequestHeads<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(context, bytes)
    }
}

#[cfg(test)]
mod tests;
