//! Whether the response to a request is still awaited.

use pintle_auth::BoxFuture;

/// The client of a request, which may leave before the response.
pub trait Client: Send + Sync {
    /// Whether nobody awaits the response any more: the client has disconnected, or was answered because the time of
    /// the request is over.
    fn is_gone(&self) -> bool;

    /// Completes when the client is gone.
    fn gone(&self) -> BoxFuture<'_, ()>;
}

/// A client that never leaves, such as the server itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatientClient;

impl Client for PatientClient {
    fn is_gone(&self) -> bool {
        false
    }

    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
