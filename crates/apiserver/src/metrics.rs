//! Records metrics under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

mod authorization;
mod baseline;
mod bodies;
mod cacher_counters;
mod configuration;
mod exposition;
mod filters;
mod format;
mod impersonation;
mod label_allow_list;
mod metric_registry;
mod process;
mod request_labels;
mod requests;
mod stability;
mod stores;
mod streams;
mod text;
mod times_comparison;
mod watches;

use crate::{base::request_info::RequestInfo, registry::Stores};
use authorization::AuthorizationMetrics;
pub(crate) use bodies::{BodyMetrics, BodySeries, BodyVerb};
pub use configuration::{AllowListKeyError, MetricsConfiguration};
pub(crate) use exposition::Exposition;
pub(crate) use filters::FilterMetrics;
pub use format::Format;
pub use impersonation::ImpersonationMetrics;
use pintle_auth::authz::Verdict;
use pintle_machinery::{Value, ValueExt};
use process::ProcessMetrics;
use prometheus::{IntCounter, IntGauge, IntGaugeVec, Opts, core::Collector};
pub(crate) use request_labels::{RequestLabels, RequestVerb, route_place};
pub(crate) use requests::{LateEnd, LateHandler, RequestMetrics, ResourceSeries, RouteSeries};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
pub use stores::StorageSizes;
use stores::StoreMetrics;
pub(crate) use streams::StreamMetrics;
pub(crate) use times_comparison::times_compared;
pub(crate) use watches::{InitialEvents, WatchMetrics, WatchSeries};

/// All metrics of a server.
pub struct Metrics {
    exposition: Exposition,
    start_time: u64,
    requests: RequestMetrics,
    filters: FilterMetrics,
    watches: WatchMetrics,
    bodies: BodyMetrics,
    inflight: IntGaugeVec,
    stores: StoreMetrics,
    impersonation: ImpersonationMetrics,
    authorization: AuthorizationMetrics,
    streams: StreamMetrics,
    tls_handshake_errors: IntCounter,
}

impl Metrics {
    /// The server's start time, in seconds since 1970.
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// New metrics, all zero.
    ///
    /// # Errors
    /// When a metric's name is invalid, which the names in this crate are not.
    pub fn new() -> Result<Metrics, prometheus::Error> {
        Metrics::configured(&MetricsConfiguration::default())
    }

    /// As [`Metrics::new`], with a configuration of what is exported.
    ///
    /// # Errors
    /// As [`Metrics::new`].
    pub fn configured(configuration: &MetricsConfiguration) -> Result<Metrics, prometheus::Error> {
        let exposition = Exposition::new(configuration)?;
        let registry = exposition.registry();
        let inflight = IntGaugeVec::new(
            Opts::new("apiserver_current_inflight_requests", "Requests in flight, by kind of request."),
            &["request_kind"],
        )?;
        registry.register(Box::new(inflight.clone()))?;
        let tls_handshake_errors = IntCounter::new(
            "apiserver_tls_handshake_errors_total",
            "Connections that were closed because the TLS handshake failed.",
        )?;
        registry.register(Box::new(tls_handshake_errors.clone()))?;
        let requests = RequestMetrics::register(registry)?;
        let filters = FilterMetrics::register(registry)?;
        let watches = WatchMetrics::register(registry)?;
        let bodies = BodyMetrics::register(registry)?;
        let stores = StoreMetrics::register(registry)?;
        let impersonation = ImpersonationMetrics::register(registry)?;
        let authorization = AuthorizationMetrics::register(registry)?;
        let streams = StreamMetrics::register(registry)?;
        registry.register(Box::new(ProcessMetrics::new()?))?;
        registry.register(Box::new(times_comparison::collector()?))?;
        let start_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(Metrics {
            start_time,
            exposition,
            requests,
            filters,
            watches,
            bodies,
            inflight,
            stores,
            impersonation,
            authorization,
            streams,
            tls_handshake_errors,
        })
    }

    /// The metrics of requests.
    pub(crate) fn requests(&self) -> &RequestMetrics {
        &self.requests
    }

    /// The durations of filters.
    pub(crate) fn filters(&self) -> &FilterMetrics {
        &self.filters
    }

    /// The metrics of watches.
    pub(crate) fn watches(&self) -> &WatchMetrics {
        &self.watches
    }

    /// The sizes of request bodies.
    pub(crate) fn bodies(&self) -> &BodyMetrics {
        &self.bodies
    }

    /// The counter of failed TLS handshakes.
    pub fn tls_handshake_errors(&self) -> &IntCounter {
        &self.tls_handshake_errors
    }

    /// The metrics of streams.
    pub(crate) fn streams(&self) -> &StreamMetrics {
        &self.streams
    }

    /// Sets the counters and histograms with labels to zero, those of other crates too.
    pub fn reset(&self) {
        self.requests.reset();
        self.exposition.reset();
    }

    /// The gauge of requests in flight, mutating or read-only.
    pub fn in_flight(&self, info: &RequestInfo) -> IntGauge {
        let mutating = !matches!(info.verb.as_str(), "get" | "list" | "watch");
        self.inflight.with_label_values(&[if mutating { "mutating" } else { "readOnly" }])
    }

    /// Records an authorizer's decision and its duration.
    pub fn authorized(&self, verdict: &Verdict, duration: Duration) {
        self.authorization.note(verdict, duration);
    }

    /// The metrics of impersonation.
    pub fn impersonation(&self) -> &ImpersonationMetrics {
        &self.impersonation
    }

    /// Sets `kubernetes_build_info`.
    ///
    /// # Errors
    /// When it was set before.
    pub fn set_build_info(&self, version: &Value) -> Result<(), prometheus::Error> {
        let labels = [
            ("build_date", "buildDate"),
            ("compiler", "compiler"),
            ("git_commit", "gitCommit"),
            ("git_tree_state", "gitTreeState"),
            ("git_version", "gitVersion"),
            ("go_version", "goVersion"),
            ("major", "major"),
            ("minor", "minor"),
            ("platform", "platform"),
        ];
        let opts = Opts::new("kubernetes_build_info", "The build that serves, always 1.");
        let gauge = IntGaugeVec::new(opts, &labels.map(|(label, _)| label))?;
        gauge.with_label_values(&labels.map(|(_, field)| version.str_at(field))).set(1);
        self.exposition.registry().register(Box::new(gauge))
    }

    /// Registers collectors of other crates.
    ///
    /// # Errors
    /// When metrics of the same names are registered already.
    pub fn register(&self, collectors: Vec<Box<dyn Collector>>) -> Result<(), prometheus::Error> {
        collectors.into_iter().try_for_each(|collector| self.exposition.registry().register(collector))
    }

    /// All metrics in a format, with those of the stores and the size of the stored data. `count_objects` adds the number
    /// of objects.
    pub fn encode(
        &self,
        format: Format,
        stores: &[Arc<Stores>],
        storage_sizes: &StorageSizes,
        count_objects: bool,
    ) -> Vec<u8> {
        self.stores.collect(stores, storage_sizes, count_objects);
        self.exposition.encode(format)
    }
}
