//! Opens connections without a proxy.

use crate::{Cause, cause::plain};
use std::{net::IpAddr, path::Path};
use tokio::net::{TcpStream, UnixStream, lookup_host};

/// Opens a connection to an address `host:port`. Of the addresses of the host, those that are not permitted are left out.
pub(crate) async fn tcp(address: &str, permits: Option<fn(IpAddr) -> bool>) -> Result<TcpStream, Cause> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let addresses = lookup_host(address).await.map_err(|_| Cause::Lookup(host.to_owned()))?;
    let mut failed = Cause::Lookup(host.to_owned());
    for address in addresses {
        if permits.is_some_and(|permits| !permits(address.ip())) {
            failed = Cause::Other("address not allowed".to_owned());
            continue;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_name_leads_to_permitted_addresses_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("localhost:{}", listener.local_addr().unwrap().port());
        assert!(tcp(&address, None).await.is_ok());
        assert!(tcp(&address, Some(|address| address.is_loopback())).await.is_ok());
        let refused = tcp(&address, Some(|address| !address.is_loopback())).await.unwrap_err();
        assert_eq!(refused.to_string(), "address not allowed");
    }
}
