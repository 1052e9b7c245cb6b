//! Opens connections in one network.

use crate::{Cause, Link, direct, egress::proxy::Proxy};
use std::{fmt, net::IpAddr, sync::Arc};

/// Opens connections in one network: directly, or through the proxy that the egress selector configuration names.
/// Clones are the same dialer; the default one connects directly.
#[derive(Clone, Default)]
pub struct Dialer {
    proxy: Option<Arc<Proxy>>,
    permits: Option<fn(IpAddr) -> bool>,
}

impl Dialer {
    /// A dialer that connects through a proxy.
    pub(crate) fn through(proxy: Proxy) -> Dialer {
        Dialer { proxy: Some(Arc::new(proxy)), permits: None }
    }

    /// The same dialer, whose direct connections are to permitted addresses alone, whatever a host's name resolves to. A
    /// proxy resolves hosts itself.
    #[must_use]
    pub fn permitting(&self, permits: fn(IpAddr) -> bool) -> Dialer {
        Dialer { permits: Some(permits), ..self.clone() }
    }

    /// Whether connections are direct.
    pub fn is_direct(&self) -> bool {
        self.proxy.is_none()
    }

    /// Opens a connection to an address `host:port`. A proxy resolves the host itself, and has 30 seconds.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn dial(&self, address: &str) -> Result<Link, Cause> {
        match &self.proxy {
            None => direct::tcp(address, self.permits).await.map(Link::Direct),
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
