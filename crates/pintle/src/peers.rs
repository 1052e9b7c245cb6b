//! The options of the proxy between servers of different versions, validated, and the file that they name.

use crate::{Options, aggregation::Aggregation, run_error::RunError};
use pintle_dialer::{EgressSelector, Network};
use pintle_peer_proxy::PeerClient;
use std::{fs, path::PathBuf};

/// The file of the authority of other servers, and its contents at the start.
pub(crate) type CaFile = (PathBuf, Vec<u8>);

/// The authority of the other servers.
pub(crate) struct Peers {
    /// `None` when requests are not forwarded.
    pub(crate) ca: Option<CaFile>,
}

impl Peers {
    /// Loads the file that the options name.
    pub(crate) fn load(
        options: &Options,
        aggregation: &Aggregation,
        egress: &EgressSelector,
    ) -> Result<Peers, RunError> {
        let Some(path) = options.peers.ca_file.clone() else { return Ok(Peers { ca: None }) };
        if !aggregation.has_certificate() {
            let message = "error building peer proxy handler, proxy-cert-file not specified";
            return Err(RunError::Options(message.to_owned()));
        }
        let failed =
            |error: String| RunError::Options(format!("--peer-ca-file: {}: {error}", path.display()));
        let contents = fs::read(&path).map_err(|error| failed(error.to_string()))?;
        // A client that is not used yet shows whether the certificates are usable.
        client(contents.clone(), aggregation, egress).map_err(failed)?;
        Ok(Peers { ca: Some((path, contents)) })
    }
}

/// A client of the other servers that verifies them by these certificates.
pub(crate) fn client(
    ca: Vec<u8>,
    aggregation: &Aggregation,
    egress: &EgressSelector,
) -> Result<PeerClient, String> {
    PeerClient::new(ca, aggregation.certificate(), egress.dialer(Network::ControlPlane))
}
