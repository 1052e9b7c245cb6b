//! Tracks one connection: its idle time, its abandoned requests, and its end.
//!
//! ```text
//! open ──(requests)──> open ──(idle | stop | go away)──> draining ──(last answer sent)──> closed
//!   └──────────────(abuse | cut off)──────────────┴──────────(not sent in time)───────────────┘
//! ```

use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// How long a connection without requests stays open: the idle timeout of Go's clients.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a draining connection without requests may take to send the rest of its responses.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take no bytes of responses that exist before its connection gives way to others.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The sustained rate of requests that a client may reset, per second. Clients reset streams that they lose interest
/// in, such as the watches of an ending informer; an attacker does nothing else.
const RESETS_PER_SECOND: f64 = 50.0;

/// The connection of a request: request handlers close it through this handle. An extension of the request; clones are
/// the same connection.
#[derive(Clone)]
pub(crate) struct ConnectionHandle(Arc<State>);

struct State {
    /// Requests whose responses, bodies included, are not sent yet.
    active: AtomicUsize,
    idle_since: Mutex<Instant>,
    /// Those of the active requests whose responses exist as a whole: only their clients decide how long they are sent.
    unread: AtomicUsize,
    /// When the client last took bytes of such a response, or got the first one.
    unread_since: Mutex<Instant>,
    resets: Mutex<Resets>,
    reset_limit: f64,
    wake: Notify,
    went_away: AtomicBool,
    is_severed: AtomicBool,
}

/// A leaky bucket of reset requests.
struct Resets {
    level: f64,
    at: Instant,
}

impl ConnectionHandle {
    /// A connection on which `reset_limit` requests may be reset in a burst.
    pub(crate) fn new(reset_limit: u32) -> ConnectionHandle {
        ConnectionHandle(Arc::new(State {
            active: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            unread: AtomicUsize::new(0),
            unread_since: Mutex::new(Instant::now()),
            resets: Mutex::new(Resets { level: 0.0, at: Instant::now() }),
            reset_limit: f64::from(reset_limit),
            wake: Notify::new(),
            went_away: AtomicBool::new(false),
            is_severed: AtomicBool::new(false),
        }))
    }

    /// Closes the connection after the responses to its requests are sent. HTTP/2 clients get GOAWAY at once and open
    /// another connection for further requests.
    pub(crate) fn go_away(&self) {
        if !self.0.went_away.swap(true, Ordering::Relaxed) {
            self.0.wake.notify_one();
        }
    }

    /// Closes the connection immediately.
    pub(crate) fn sever(&self) {
        if !self.0.is_severed.swap(true, Ordering::Relaxed) {
            self.0.wake.notify_one();
        }
    }

    /// When the last request ended; `None` while there is one.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (self.0.active.load(Ordering::Acquire) == 0).then(|| *self.0.idle_since.lock())
    }

    /// Since when the connection has nothing to do but to wait for its client, so that it gives way to others; `None` if
    /// it does not.
    pub(crate) fn gives_way_since(&self) -> Option<Instant> {
        if let Some(since) = self.idle_since() {
            return Some(since);
        }
        if self.0.unread.load(Ordering::Acquire) < self.0.active.load(Ordering::Acquire) {
            return None;
        }
        let since = *self.0.unread_since.lock();
        // A connection that has to end gets no time: it is that of a client without a user, or is idle for long.
        let ends = self.0.went_away.load(Ordering::Relaxed);
        (ends || Instant::now() >= since + UNREAD_TIMEOUT).then_some(since)
    }

    /// Whether there is more than one request whose response is not sent yet.
    pub(crate) fn has_several_requests(&self) -> bool {
        self.0.active.load(Ordering::Relaxed) > 1
    }

    /// Waits until the connection is severed.
    pub(crate) async fn severed(&self) {
        while !self.0.is_severed.load(Ordering::Relaxed) {
            self.0.wake.notified().await;
        }
    }

    /// Counts a request as active until its response is sent.
    pub(crate) fn begin(&self) -> ActiveRequest {
        self.0.active.fetch_add(1, Ordering::Relaxed);
        ActiveRequest { connection: self.clone(), is_answered: false, is_whole: false }
    }

    /// Does not count one of the requests as active until the result is dropped: the connection may give way to others.
    pub(crate) fn neglect(&self) -> Neglected<'_> {
        self.deactivate();
        Neglected(self)
    }

    fn deactivate(&self) {
        if self.0.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            *self.0.idle_since.lock() = Instant::now();
        }
    }

    /// Waits until the connection has to end, and returns how. Cancel safe.
    pub(crate) async fn end(&self) -> End {
        let state = &self.0;
        loop {
            if state.is_severed.load(Ordering::Relaxed) {
                return End::Now;
            }
            if state.went_away.load(Ordering::Relaxed) {
                return End::GoAway;
            }
            let deadline = self.idle_since().unwrap_or_else(Instant::now) + IDLE_TIMEOUT;
            if Instant::now() >= deadline {
                return End::GoAway;
            }
            tokio::select! {
                () = state.wake.notified() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    /// Waits until a draining connection has to be closed: it is severed, or has not sent its responses in time.
    pub(crate) async fn drained(&self) {
        let state = &self.0;
        let began = Instant::now();
        while !state.is_severed.load(Ordering::Relaxed) {
            let idle_since = self.idle_since().unwrap_or_else(Instant::now);
            let deadline = idle_since.max(began) + DRAIN_TIMEOUT;
            if Instant::now() >= deadline {
                return;
            }
            tokio::select! {
                () = state.wake.notified() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    fn reset(&self) {
        let mut resets = self.0.resets.lock();
        let now = Instant::now();
        let leaked = now.duration_since(resets.at).as_secs_f64() * RESETS_PER_SECOND;
        *resets = Resets { level: (resets.level - leaked).max(0.0) + 1.0, at: now };
        if resets.level > self.0.reset_limit {
            self.sever();
        }
    }
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// After its requests are answered.
    GoAway,
    /// Immediately.
    Now,
}

/// A request without a response. Dropped before [`ActiveRequest::answered`], it was reset by the client.
pub(crate) struct ActiveRequest {
    connection: ConnectionHandle,
    is_answered: bool,
    is_whole: bool,
}

impl ActiveRequest {
    /// Marks the request as answered; its response body may still be sent for a long time.
    pub(crate) fn answered(mut self) -> ActiveRequest {
        self.is_answered = true;
        self
    }

    /// Marks the response as one that exists as a whole.
    pub(crate) fn mark_whole(&mut self) {
        if std::mem::replace(&mut self.is_whole, true) {
            return;
        }
        // Further ones are no sign that the client reads.
        if self.connection.0.unread.fetch_add(1, Ordering::AcqRel) == 0 {
            self.note_progress();
        }
    }

    /// Records that the client takes bytes of the response.
    pub(crate) fn note_progress(&self) {
        *self.connection.0.unread_since.lock() = Instant::now();
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if self.is_whole {
            self.connection.0.unread.fetch_sub(1, Ordering::AcqRel);
        }
        self.connection.deactivate();
        if !self.is_answered {
            self.connection.reset();
        }
    }
}

/// A request that is not counted as active.
pub(crate) struct Neglected<'a>(&'a ConnectionHandle);

impl Drop for Neglected<'_> {
    fn drop(&mut self) {
        self.0.0.active.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_when_it_is_idle_and_not_before() {
        let connection = ConnectionHandle::new(10);
        let request = connection.begin().answered();
        let ended = tokio::time::timeout(IDLE_TIMEOUT * 3, connection.end()).await;
        assert!(ended.is_err(), "a request is there");
        drop(request);
        let began = Instant::now();
        assert_eq!(connection.end().await, End::GoAway);
        assert_eq!(began.elapsed(), IDLE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_client_takes_no_notice_of_its_end_is_closed() {
        let connection = ConnectionHandle::new(10);
        let request = connection.begin().answered();
        let drained = tokio::time::timeout(DRAIN_TIMEOUT * 3, connection.drained()).await;
        assert!(drained.is_err(), "a request is there");
        drop(request);
        let began = Instant::now();
        connection.drained().await;
        assert_eq!(began.elapsed(), DRAIN_TIMEOUT);
        let other = ConnectionHandle::new(10);
        let _request = other.begin();
        other.sever();
        other.drained().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_client_reads_no_response_gives_way_to_others() {
        let second = Duration::from_secs(1);
        let connection = ConnectionHandle::new(10);
        let began = Instant::now();
        assert_eq!(connection.gives_way_since(), Some(began), "it is idle");
        let (mut first, mut second_request) = (connection.begin().answered(), connection.begin().answered());
        first.mark_whole();
        tokio::time::advance(UNREAD_TIMEOUT).await;
        assert_eq!(connection.gives_way_since(), None, "a request is executed");
        second_request.mark_whole();
        assert_eq!(connection.gives_way_since(), Some(began));
        second_request.note_progress();
        assert_eq!(connection.gives_way_since(), None);
        tokio::time::advance(UNREAD_TIMEOUT - second).await;
        assert_eq!(connection.gives_way_since(), None);
        connection.go_away();
        assert_eq!(connection.gives_way_since(), Some(began + UNREAD_TIMEOUT), "it has to end");
        drop((first, second_request));
        assert_eq!(connection.gives_way_since(), connection.idle_since());
        let _request = connection.begin();
        assert_eq!(connection.gives_way_since(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_abandons_one_request_after_the_other_is_cut_off() {
        let connection = ConnectionHandle::new(10);
        for _ in 0..10 {
            drop(connection.begin());
        }
        // Occasional resets drain from the bucket.
        for _ in 0..100 {
            tokio::time::advance(Duration::from_millis(20)).await;
            drop(connection.begin());
            drop(connection.begin().answered());
        }
        assert!(tokio::time::timeout(Duration::from_secs(1), connection.end()).await.is_err());
        for _ in 0..11 {
            drop(connection.begin());
        }
        assert_eq!(connection.end().await, End::Now);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_goes_away_on_request() {
        let connection = ConnectionHandle::new(10);
        let _request = connection.begin();
        let other = connection.clone();
        let ended = tokio::spawn(async move { other.end().await });
        tokio::task::yield_now().await;
        connection.go_away();
        assert_eq!(ended.await.unwrap(), End::GoAway);
    }
}
