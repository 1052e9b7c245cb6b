//! The connections that are kept for later requests.

use crate::{
    http1::Http1,
    http2::{Http2, Reserved},
};
use http::uri::Authority;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
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
    Http2(Reserved),
}

/// The kept connections by address.
#[derive(Default)]
pub(crate) struct Kept(Mutex<KeptConnections>);

#[derive(Default)]
struct KeptConnections {
    addresses: HashMap<Authority, OfAddress>,
    /// Whether a task closes unused connections.
    is_watched: bool,
}

/// The kept connections to one address.
#[derive(Default)]
struct OfAddress {
    /// The idle connections, and since when they are idle, in the order of this time.
    idle: Vec<(Instant, Http1)>,
    /// The shared connections, idle or not.
    shared: Vec<Http2>,
}

impl OfAddress {
    /// A place on an open connection.
    fn reserve_shared(&mut self) -> Option<Reserved> {
        self.shared.retain(|connection| !connection.is_closed());
        self.shared.iter().find_map(Http2::reserve)
    }
}

impl Kept {
    /// A connection that can carry another request: a shared one, or the idle one that was used last.
    pub(crate) fn take(&self, address: &Authority) -> Option<Connection> {
        loop {
            let mut kept = self.0.lock();
            let connections = kept.addresses.get_mut(address)?;
            if let Some(shared) = connections.reserve_shared() {
                return Some(Connection::Http2(shared));
            }
            let (_, mut connection) = connections.idle.pop()?;
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
        let idle = &mut kept.addresses.entry(address).or_default().idle;
        if idle.len() < MAX_IDLE {
            idle.push((Instant::now(), connection));
            self.watch(&mut kept);
        }
    }

    /// Shares a new connection. Returns a place on the one to use: when several requests connected at the same time, the
    /// first of their connections is shared, and the others are closed that it has room for. `None` if the new
    /// connection has no room.
    pub(crate) fn share(self: &Arc<Self>, address: &Authority, connection: Http2) -> Option<Reserved> {
        let mut kept = self.0.lock();
        let connections = kept.addresses.entry(address.clone()).or_default();
        if let Some(open) = connections.reserve_shared() {
            return Some(open);
        }
        let reserved = connection.reserve();
        connections.shared.push(connection);
        self.watch(&mut kept);
        reserved
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
        let mut next: Option<Instant> = None;
        kept.addresses.retain(|_, connections| {
            connections.idle.retain(|(since, _)| *since + IDLE_TIMEOUT > now);
            connections
                .shared
                .retain(|connection| connection.idle_since().is_none_or(|since| since + IDLE_TIMEOUT > now));
            let idle = connections.idle.first().map(|(since, _)| *since);
            let shared = connections.shared.iter().map(|connection| connection.idle_since().unwrap_or(now));
            let first = idle.into_iter().chain(shared).min();
            next = first.into_iter().map(|since| since + IDLE_TIMEOUT).chain(next).min();
            first.is_some()
        });
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
        let all = kept.addresses.values();
        all.fold((0, 0), |(idle, shared), at| (idle + at.idle.len(), shared + at.shared.len()))
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.0.lock().is_watched
    }
}
