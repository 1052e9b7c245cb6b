//! Records metrics under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

mod authorization;
mod impersonation;
mod stores;
mod streams;

use crate::{base::request_info::RequestInfo, registry::Stores};
use authorization::AuthorizationMetrics;
pub use impersonation::ImpersonationMetrics;
use pintle_auth::authz::Verdict;
use pintle_machinery::{Value, ValueExt};
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
    core::Collector,
};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
pub use stores::StorageSizes;
use stores::StoreMetrics;
pub(crate) use streams::StreamMetrics;

/// All metrics of a server.
pub struct Metrics {
    registry: Registry,
    start_time: u64,
    requests: IntCounterVec,
    duration: HistogramVec,
    inflight: IntGaugeVec,
    longrunning: IntGaugeVec,
    stores: StoreMetrics,
    impersonation: ImpersonationMetrics,
    authorization: AuthorizationMetrics,
    streams: StreamMetrics,
}

const DURATION_BUCKETS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

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
        let registry = Registry::new();
        let requests = IntCounterVec::new(
            Opts::new(
                "apiserver_request_total",
                "Requests by verb, dry run, group, version, resource, scope, component and HTTP code.",
            ),
            &["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"],
        )?;
        let duration = HistogramVec::new(
            HistogramOpts::new(
                "apiserver_request_duration_seconds",
                "How long requests took, by verb, group, version, resource and scope.",
            )
            .buckets(DURATION_BUCKETS.to_vec()),
            &["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"],
        )?;
        let inflight = IntGaugeVec::new(
            Opts::new("apiserver_current_inflight_requests", "Requests in flight, by kind of request."),
            &["request_kind"],
        )?;
        let longrunning = IntGaugeVec::new(
            Opts::new(
                "apiserver_longrunning_requests",
                "Long-running requests, by verb, group, version and resource.",
            ),
            &["verb", "group", "version", "resource", "subresource", "scope", "component"],
        )?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(duration.clone()))?;
        registry.register(Box::new(inflight.clone()))?;
        registry.register(Box::new(longrunning.clone()))?;
        let stores = StoreMetrics::register(&registry)?;
        let impersonation = ImpersonationMetrics::register(&registry)?;
        let authorization = AuthorizationMetrics::register(&registry)?;
        let streams = StreamMetrics::register(&registry)?;
        let start_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(Metrics {
            start_time,
            registry,
            requests,
            duration,
            inflight,
            longrunning,
            stores,
            impersonation,
            authorization,
            streams,
        })
    }

    /// The metrics of streams.
    pub(crate) fn streams(&self) -> &StreamMetrics {
        &self.streams
    }

    /// Records an answered request. Names from the path become labels only when the server serves them: labels are kept
    /// for ever, and clients can make up any number of names.
    pub fn observe(&self, info: &RequestInfo, is_served: bool, dry_run: bool, code: u16, duration: Duration) {
        let is_connect = info.is_long_running() && !matches!(&*info.verb, "watch" | "proxy");
        let verb = if is_connect { "CONNECT" } else { verb_label(info) };
        let dry_run = if dry_run { "All" } else { "" };
        let scope = info.scope();
        let [group, version, resource, subresource] = match is_served {
            true => {
                [&info.api_group, &info.api_version, &info.resource, &info.subresource].map(String::as_str)
            }
            false => [""; 4],
        };
        let mut digits = itoa::Buffer::new();
        let code = digits.format(code);
        self.requests
            .with_label_values(&[
                verb,
                dry_run,
                group,
                version,
                resource,
                subresource,
                scope,
                COMPONENT,
                code,
            ])
            .inc();
        self.duration
            .with_label_values(&[verb, dry_run, group, version, resource, subresource, scope, COMPONENT])
            .observe(duration.as_secs_f64());
    }

    /// Sets the metrics of finished requests to zero.
    pub fn reset(&self) {
        self.requests.reset();
        self.duration.reset();
    }

    /// The gauge of long-running requests of a resource.
    pub fn long_running(&self, info: &RequestInfo) -> IntGauge {
        self.longrunning.with_label_values(&[
            verb_label(info),
            &info.api_group,
            &info.api_version,
            &info.resource,
            &info.subresource,
            info.scope(),
            COMPONENT,
        ])
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
        self.registry.register(Box::new(gauge))
    }

    /// Registers collectors of other crates.
    ///
    /// # Errors
    /// When metrics of the same names are registered already.
    pub fn register(&self, collectors: Vec<Box<dyn Collector>>) -> Result<(), prometheus::Error> {
        collectors.into_iter().try_for_each(|collector| self.registry.register(collector))
    }

    /// All metrics in Prometheus' text format, with those of the stores and the size of the stored data.
    /// `count_objects` adds the number of objects.
    ///
    /// # Errors
    /// When a collector's metrics cannot be encoded.
    pub fn text(
        &self,
        stores: &[Arc<Stores>],
        storage_sizes: &StorageSizes,
        count_objects: bool,
    ) -> Result<String, prometheus::Error> {
        self.stores.collect(stores, storage_sizes, count_objects);
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

const COMPONENT: &str = "apiserver";

/// The verb label; all unknown verbs share one value.
fn verb_label(info: &RequestInfo) -> &'static str {
    match info.verb.as_str() {
        "get" => "GET",
        "list" => "LIST",
        "watch" => "WATCH",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        _ => "other",
    }
}
