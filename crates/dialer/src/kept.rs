//! The connections that are kept for later requests.

use crate::{http1::Http1, http2::Http2};
use http::uri::Authority;
use parking_lot::Mutex;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::Instant;

/// How long an idle connection is kept.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The maximum number of idle HTTP/1.1 connections of one address.
pub(crate) const MAX_IDLE: usize = 25;

/// A new or a kept connection.
pub(crate) enum Connection {
    Http1(Http1),
    Http2(Http2),
}

/// The kept connections by address.
#[derive(Default)]
pub(crate) struct Kept(Mutex<KeptConnections>);

#[derive(Default)]
struct KeptConnections {
    /// The idle connections, and since when they are idle, in the order of this time.
    idle: Vec<(Instant, Authority, Http1)>,
    /// The shared connections, idle or not.
    shared: Vec<(Authority, Http2)>,
    /// Whether a task closes unused connections.
    is_watched: bool,
}

impl Kept {
    /// A connection that can carry another request: a shared one, or the idle one that was used last.
    pub(crate) fn take(&self, address: &Authority) -> Option<Connection> {
        loop {
            let mut kept = self.0.lock();
            kept.shared.retain(|(_, connection)| !connection.is_closed());
            let mut shared = kept.shared.iter();
            if let Some((_, connection)) = shared.find(|(at, shared)| at == address && shared.has_room()) {
                return Some(Connection::Http2(connection.clone()));
            }
            let index = kept.idle.iter().rposition(|(_, at, _)| at == address)?;
            let (_, _, mut connection) = kept.idle.remove(index);
            drop(kept);
            if connection.is_free() {
                return Some(Connection::Http1(connection));
            }
        }
    }

    /// Keeps a connection, if it can be used again and there are not too many.
    pub(crate) fn keep(self: &Arc<Self>, address: Authority, mut connection: Http1) {
        if !connection.is_free() {
            return;
        }
        let mut kept = self.0.lock();
        if kept.idle.iter().filter(|(_, at, _)| *at == address).count() < MAX_IDLE {
            kept.idle.push((Instant::now(), address, connection));
            self.watch(&mut kept);
        }
    }

    /// Shares a new connection. Returns the one to use: when several requests connected at the same time, the first of
    /// their connections is shared and the others are closed.
    pub(crate) fn share(self: &Arc<Self>, address: &Authority, connection: Http2) -> Http2 {
        let mut kept = self.0.lock();
        let mut shared = kept.shared.iter();
        let open = shared.find(|(at, shared)| at == address && shared.has_room() && !shared.is_closed());
        if let Some((_, open)) = open {
            return open.clone();
        }
        kept.shared.push((address.clone(), connection.clone()));
        self.watch(&mut kept);
        connection
    }

    fn watch(self: &Arc<Self>, kept: &mut KeptConnections) {
        if !std::mem::replace(&mut kept.is_watched, true) {
            tokio::spawn(close_unused(Arc::downgrade(self)));
        }
    }

    /// Closes the connections that have been idle for too long. Returns the time of the next check, if there are
    /// connections left.
    fn close_unused(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut kept = self.0.lock();
        kept.idle.retain(|(since, ..)| *since + IDLE_TIMEOUT > now);
        kept.shared
            .retain(|(_, connection)| connection.idle_since().is_none_or(|at| at + IDLE_TIMEOUT > now));
        let idle = kept.idle.iter().map(|(since, ..)| *since);
        let shared = kept.shared.iter().map(|(_, connection)| connection.idle_since().unwrap_or(now));
        let next = idle.chain(shared).min().map(|since| since + IDLE_TIMEOUT);
        kept.is_watched = next.is_some();
        next
    }
}

/// Closes unused connections as long as connections are kept.
async fn close_unused(kept: Weak<Kept>) {
    while let Some(next) = kept.upgrade().and_then(|kept| kept.close_unused()) {
        tokio::time::sleep_until(next).await;
    }
}

#[cfg(test)]
impl Kept {
    /// The numbers of idle and of shared connections.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let kept = self.0.lock();
        (kept.idle.len(), kept.shared.len())
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.0.lock().is_watched
    }
}
