//! The metrics of peer-aggregated discovery.

use prometheus::{IntCounter, core::Collector};

/// Counts the uses of peer-aggregated discovery.
#[derive(Clone)]
pub(super) struct PeerMetrics {
    /// Requests for the groups of this server alone.
    pub(super) no_peer: IntCounter,
    pub(super) hits: IntCounter,
    pub(super) misses: IntCounter,
}

impl PeerMetrics {
    pub(super) fn new() -> PeerMetrics {
        let counter = |name: &str, help: &str| {
            let name = format!("aggregator_discovery_{name}");
            IntCounter::new(name, help).unwrap_or_else(|error| unreachable!("{error}"))
        };
        PeerMetrics {
            no_peer: counter(
                "nopeer_requests_total",
                "Counter of number of times no-peer (non peer-aggregated) discovery was requested",
            ),
            hits: counter(
                "peer_aggregated_cache_hits_total",
                "Counter of number of times discovery was served from peer-aggregated cache",
            ),
            misses: counter(
                "peer_aggregated_cache_misses_total",
                "Counter of number of times discovery was aggregated across all API servers",
            ),
        }
    }

    pub(super) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        [&self.no_peer, &self.hits, &self.misses].map(|counter| Box::new(counter.clone()) as _).into()
    }
}
