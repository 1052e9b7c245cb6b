//! A proxy to a network.

use super::{
    dial_timeout::{DIAL_TIMEOUT, timed_out},
    http_connect::HttpConnect,
    konnectivity::Konnectivity,
    metrics::{ProxyMetrics, Stage},
};
use crate::{Cause, link::Tunnel};
use std::time::Instant;
use tokio::time::timeout;

/// A proxy to a network.
pub(crate) struct Proxy {
    protocol: Protocol,
    metrics: ProxyMetrics,
}

/// The protocol of a proxy.
pub(super) enum Protocol {
    HttpConnect(HttpConnect),
    Konnectivity(Konnectivity),
}

impl Proxy {
    pub(super) fn new(protocol: Protocol, metrics: ProxyMetrics) -> Proxy {
        Proxy { protocol, metrics }
    }

    /// Opens a connection to an address through the proxy.
    pub(crate) async fn dial(&self, address: &str) -> Result<Box<dyn Tunnel>, Cause> {
        let begun = Instant::now();
        self.metrics.start();
        let dialed = match &self.protocol {
            Protocol::HttpConnect(proxy) => {
                let connection = self.stage(Stage::Connect, proxy.connect()).await?;
                self.stage(Stage::Proxy, proxy.tunnel(connection, address)).await?
            }
            Protocol::Konnectivity(proxy) => {
                // It has its time itself.
                let connection = self.counted(Stage::Connect, proxy.connect().await)?;
                self.stage(Stage::Proxy, proxy.tunnel(connection, address)).await?
            }
        };
        self.metrics.dialed(begun.elapsed());
        Ok(dialed)
    }

    /// Carries out a part of a dial within the time that it has.
    async fn stage<T>(&self, stage: Stage, work: impl Future<Output = Result<T, Cause>>) -> Result<T, Cause> {
        let done = timeout(DIAL_TIMEOUT, work).await.unwrap_or_else(|_| Err(timed_out(stage)));
        self.counted(stage, done)
    }

    /// Counts a part of a dial that failed.
    fn counted<T>(&self, stage: Stage, done: Result<T, Cause>) -> Result<T, Cause> {
        if done.is_err() {
            self.metrics.failed(stage);
        }
        done
    }
}
