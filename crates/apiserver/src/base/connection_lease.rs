//! The connection of a request, for handlers that keep it beyond their response.

use crate::base::connection::ConnectionHandle;
use pintle_proxy::TunnelLife;
use std::{any::Any, sync::Arc};
use tokio::sync::watch;

/// The connection of a request: its place among the open connections, and the signal that the server stops. An extension
/// of the request.
#[derive(Clone)]
pub(crate) struct ConnectionLease(Arc<Lease>);

struct Lease {
    connection: ConnectionHandle,
    place: Arc<dyn Any + Send + Sync>,
    stopping: watch::Receiver<bool>,
}

impl ConnectionLease {
    /// A lease of an open connection. `stopping` becomes true when the server stops, which waits until its receivers are
    /// dropped.
    pub(crate) fn new(
        connection: ConnectionHandle,
        place: Arc<dyn Any + Send + Sync>,
        stopping: watch::Receiver<bool>,
    ) -> ConnectionLease {
        ConnectionLease(Arc::new(Lease { connection, place, stopping }))
    }

    /// The signal that the server stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.clone()
    }

    /// The life of a tunnel that the connection becomes: it counts as an open connection with a request, and ends when
    /// the server stops.
    pub(crate) fn tunnel_life(&self) -> TunnelLife {
        let request = self.0.connection.begin().answered();
        TunnelLife {
            carry: None,
            stopping: Some(self.stopping()),
            guard: Some(Box::new((request, self.0.place.clone()))),
        }
    }
}
