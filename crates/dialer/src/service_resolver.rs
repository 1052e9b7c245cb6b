//! Resolves services to addresses.

use pintle_registry::BoxFuture;

/// Resolves a service to an address.
pub trait ServiceResolver: Send + Sync {
    /// The address `host:port` for a port of a service.
    ///
    /// # Errors
    /// The reason why the service cannot be resolved, as a text for clients.
    fn resolve<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<String, String>>;
}
