//! Opens connections in one network.

use crate::{Cause, Link, direct, egress::proxy::Proxy};
use std::{fmt, sync::Arc};

/// Opens connections in one network: directly, or through the proxy that the egress selector configuration names.
/// Clones are the same dialer; the default one connects directly.
#[derive(Clone, Default)]
pub struct Dialer(Option<Arc<Proxy>>);

impl Dialer {
    /// A dialer that connects through a proxy.
    pub(crate) fn through(proxy: Proxy) -> Dialer {
        Dialer(Some(Arc::new(proxy)))
    }

    /// Whether connections are direct.
    pub fn is_direct(&self) -> bool {
        self.0.is_none()
    }

    /// Opens a connection to an address `host:port`. A proxy resolves the host itself, and has 30 seconds.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn dial(&self, address: &str) -> Result<Link, Cause> {
        match &self.0 {
            None => direct::tcp(address).await.map(Link::Direct),
            // Few connections need this future, which is large.
            Some(proxy) => Box::pin(proxy.dial(address)).await.map(Link::Tunnel),
        }
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_direct() { "Dialer(direct)" } else { "Dialer(proxy)" })
    }
}
