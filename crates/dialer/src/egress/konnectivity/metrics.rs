//! The metrics of konnectivity's client, under its names
//! (<https://github.com/kubernetes-sigs/apiserver-network-proxy/tree/master/konnectivity-client>).

use super::packet::PacketType;
use pintle_plugin_socket::code_name;
use prometheus::{
    IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use std::sync::{Arc, OnceLock};
use tonic::Status;

/// The metrics of all connections through konnectivity servers. Clones share the counters.
#[derive(Clone)]
pub(in crate::egress) struct KonnectivityMetrics {
    packets: IntCounterVec,
    errors: IntCounterVec,
    dial_failures: IntCounterVec,
    connections: IntGaugeVec,
    /// The series of packets, by direction and type; each exists from its first packet on.
    series: Arc<[[OnceLock<IntCounter>; PACKET_TYPES.len()]; 2]>,
}

const PACKET_TYPES: [(PacketType, &str); 6] = [
    (PacketType::DialReq, "DIAL_REQ"),
    (PacketType::DialRsp, "DIAL_RSP"),
    (PacketType::CloseReq, "CLOSE_REQ"),
    (PacketType::CloseRsp, "CLOSE_RSP"),
    (PacketType::Data, "DATA"),
    (PacketType::DialCls, "DIAL_CLS"),
];

/// The direction of packets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Segment {
    FromClient,
    ToClient,
}

impl Segment {
    fn as_str(self) -> &'static str {
        match self {
            Segment::FromClient => "from_client",
            Segment::ToClient => "to_client",
        }
    }
}

/// The reason why a dial failed.
#[derive(Debug, Clone, Copy)]
pub(in crate::egress) enum DialFailure {
    /// The server did not answer in time.
    Timeout,
    /// The request that needed the connection ended first.
    Context,
    /// The agent could not reach the destination.
    Endpoint,
    /// The server closed the dial.
    DialClosed,
    /// The stream ended.
    TunnelClosed,
}

impl KonnectivityMetrics {
    pub(in crate::egress) fn new() -> prometheus::Result<KonnectivityMetrics> {
        let name = |name: &str, help: &str| {
            Opts::new(format!("konnectivity_network_proxy_client_{name}"), help.to_owned())
        };
        Ok(KonnectivityMetrics {
            packets: IntCounterVec::new(
                name("stream_packets_total", "Packets, by direction and type."),
                &["segment", "packet_type"],
            )?,
            errors: IntCounterVec::new(
                name("stream_errors_total", "Errors of streams, by direction, code and type of packet."),
                &["segment", "code", "packet_type"],
            )?,
            dial_failures: IntCounterVec::new(
                name("dial_failure_total", "Dials that failed, by reason."),
                &["reason"],
            )?,
            connections: IntGaugeVec::new(
                name("client_connections", "Open connections, by status."),
                &["status"],
            )?,
            series: Arc::default(),
        })
    }

    /// Counts a packet; none of an unknown type.
    pub(super) fn packet(&self, segment: Segment, packet_type: i32) {
        let Some(place) = PACKET_TYPES.iter().position(|(known, _)| *known as i32 == packet_type) else {
            return;
        };
        let [from, to] = &*self.series;
        let series = match segment {
            Segment::FromClient => from,
            Segment::ToClient => to,
        };
        if let (Some(series), Some((_, name))) = (series.get(place), PACKET_TYPES.get(place)) {
            series.get_or_init(|| self.packets.with_label_values(&[segment.as_str(), *name])).inc();
        }
    }

    /// Counts an error of a stream that is being read.
    pub(super) fn stream_failed(&self, status: &Status) {
        let segment = Segment::ToClient.as_str();
        self.errors.with_label_values(&[segment, code_name(status.code()), "Unknown"]).inc();
    }

    /// Counts a dial that failed.
    pub(in crate::egress) fn dial_failed(&self, failure: DialFailure) {
        let reason = match failure {
            DialFailure::Timeout => "timeout",
            DialFailure::Context => "context",
            DialFailure::Endpoint => "endpoint",
            DialFailure::DialClosed => "dialclosed",
            DialFailure::TunnelClosed => "tunnelclosed",
        };
        self.dial_failures.with_label_values(&[reason]).inc();
    }

    /// Counts a connection that is being dialed.
    pub(super) fn dialing(&self) -> ConnectionCount {
        let gauge = self.connections.with_label_values(&["dialing"]);
        gauge.inc();
        ConnectionCount { gauge, metrics: self.clone() }
    }
}

/// Counts a connection under its status until it is dropped.
pub(super) struct ConnectionCount {
    gauge: IntGauge,
    metrics: KonnectivityMetrics,
}

impl ConnectionCount {
    /// The connection is established.
    pub(super) fn connected(&mut self) {
        self.is_now("ok");
    }

    /// The connection is being closed.
    pub(super) fn closing(&mut self) {
        self.is_now("closing");
    }

    fn is_now(&mut self, status: &str) {
        self.gauge.dec();
        self.gauge = self.metrics.connections.with_label_values(&[status]);
        self.gauge.inc();
    }

    pub(super) fn metrics(&self) -> &KonnectivityMetrics {
        &self.metrics
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

impl Collector for KonnectivityMetrics {
    fn desc(&self) -> Vec<&Desc> {
        let counters = [&self.packets, &self.errors, &self.dial_failures];
        counters.into_iter().flat_map(Collector::desc).chain(self.connections.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let counters = [&self.packets, &self.errors, &self.dial_failures];
        counters.into_iter().flat_map(Collector::collect).chain(self.connections.collect()).collect()
    }
}
