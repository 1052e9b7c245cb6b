//! Opens connections without a proxy.

use crate::{Cause, cause::plain};
use std::path::Path;
use tokio::net::{TcpStream, UnixStream, lookup_host};

/// Opens a connection to an address `host:port`.
pub(crate) async fn tcp(address: &str) -> Result<TcpStream, Cause> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let addresses = lookup_host(address).await.map_err(|_| Cause::Lookup(host.to_owned()))?;
    let mut failed = Cause::Lookup(host.to_owned());
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // A request is written at once and waits for its response: delaying small writes gains nothing.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => failed = Cause::Dial { address: address.to_string(), error },
        }
    }
    Err(failed)
}

/// Opens a connection to a Unix socket.
pub(crate) async fn unix(path: &Path) -> Result<UnixStream, Cause> {
    let failed = |error| Cause::Other(format!("dial unix {}: connect: {}", path.display(), plain(&error)));
    UnixStream::connect(path).await.map_err(failed)
}
