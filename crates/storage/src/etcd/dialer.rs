//! Connects to the members of a cluster in another network.

use crate::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection to a member, without TLS.
pub trait EtcdConnection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> EtcdConnection for T {}

/// Opens the connections to members, in place of direct ones.
pub trait EtcdDialer: Send + Sync {
    /// Opens a connection to an address `host:port`.
    ///
    /// # Errors
    /// When there is no connection.
    fn dial<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<Box<dyn EtcdConnection>, String>>;
}
