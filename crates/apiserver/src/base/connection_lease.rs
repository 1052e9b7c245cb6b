//! The connection of a request, for handlers that keep it beyond their response.

use crate::base::connection::ConnectionHandle;
use parking_lot::Mutex;
use pintle_proxy::TunnelLife;
use std::{any::Any, sync::Arc};
use tokio::sync::{oneshot, watch};

/// The connection of a request: its place among the open connections, and the signal that the server stops. An extension
/// of the request.
#[derive(Clone)]
pub(crate) struct ConnectionLease(Arc<Lease>);

struct Lease {
    connection: ConnectionHandle,
    place: Arc<dyn Any + Send + Sync>,
    stopping: watch::Receiver<bool>,
    /// Becomes ready when the tunnel of the last request has ended.
    tunnel_end: Mutex<Option<oneshot::Receiver<()>>>,
}

impl ConnectionLease {
    /// A lease of an open connection, which keeps `place`. `stopping` becomes true when streams have to end.
    pub(crate) fn new(
        connection: ConnectionHandle,
        place: Arc<dyn Any + Send + Sync>,
        stopping: watch::Receiver<bool>,
    ) -> ConnectionLease {
        ConnectionLease(Arc::new(Lease { connection, place, stopping, tunnel_end: Mutex::default() }))
    }

    /// The signal that the server stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.clone()
    }

    /// The life of a tunnel that the connection becomes: it counts as an open connection with a request, and ends when
    /// the server stops.
    pub(crate) fn tunnel_life(&self) -> TunnelLife {
        let request = self.0.connection.begin().answered();
        let (end, ended) = oneshot::channel::<()>();
        *self.0.tunnel_end.lock() = Some(ended);
        TunnelLife {
            carry: None,
            stopping: Some(self.stopping()),
            guard: Some(Box::new((request, self.0.place.clone(), end))),
        }
    }

    /// Becomes ready, with an error, when the tunnel has ended whose life was made last; `None` without one, or when it
    /// was taken. Requests of HTTP/1 come one after the other.
    pub(crate) fn tunnel_end(&self) -> Option<oneshot::Receiver<()>> {
        self.0.tunnel_end.lock().take()
    }
}
