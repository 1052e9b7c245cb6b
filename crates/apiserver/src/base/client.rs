//! Whether the client of a request still waits.

use crate::base::request::Request;
use pintle_registry::BoxFuture;
use tokio::sync::watch;

/// Reports whether the client of a request still waits: a write whose client is gone continues, but stores nothing, and need
/// not wait in a queue nor for another server. An extension of the request.
#[derive(Clone)]
pub(crate) struct Client(watch::Receiver<()>);

impl Client {
    /// A client, which is gone when the sender is dropped.
    pub(crate) fn new() -> (watch::Sender<()>, Client) {
        let (waits, client) = watch::channel(());
        (waits, Client(client))
    }

    /// Completes when the client is gone, or the request has timed out.
    pub(crate) async fn gone(mut self) {
        // Nothing is ever sent: the channel closes when the future of the response is dropped.
        while self.0.changed().await.is_ok() {}
    }
}

impl pintle_registry::Client for Client {
    fn is_gone(&self) -> bool {
        // The channel is closed.
        self.0.has_changed().is_err()
    }

    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.clone().gone())
    }
}

/// The result of some work, or `None` when the client of the request is gone before.
pub(crate) async fn while_client_waits<T>(request: &Request, work: impl Future<Output = T>) -> Option<T> {
    // Most work needs no wait, and then nothing is looked up.
    let gone = async {
        match request.extensions().get::<Client>().cloned() {
            Some(client) => client.gone().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        result = work => Some(result),
        () = gone => None,
    }
}
