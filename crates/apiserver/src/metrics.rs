//! Counters under Kubernetes' metric names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use crate::request_info::RequestInfo;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use std::time::Duration;

/// All counters of a server.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    duration: HistogramVec,
    inflight: IntGaugeVec,
    longrunning: IntGaugeVec,
    /// `apiserver_registered_watchers` summed over all kinds.
    pub watches: IntGauge,
}

const DURATION_BUCKETS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

impl Metrics {
    /// New counters.
    ///
    /// # Errors
    /// Never, for names that are right; the library checks them at run time.
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
        let watches = IntGauge::new("apiserver_registered_watchers", "Watches that are open.")?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(duration.clone()))?;
        registry.register(Box::new(inflight.clone()))?;
        registry.register(Box::new(longrunning.clone()))?;
        registry.register(Box::new(watches.clone()))?;
        Ok(Metrics { registry, requests, duration, inflight, longrunning, watches })
    }

    /// Adds a collector of another layer.
    ///
    /// # Errors
    /// When a metric of its name is there already.
    pub fn register(&self, collector: Box<dyn prometheus::core::Collector>) -> Result<(), prometheus::Error> {
        self.registry.register(collector)
    }

    /// Notes a request that was answered.
    pub fn observe(&self, info: &RequestInfo, dry_run: bool, code: u16, duration: Duration) {
        let verb = verb_label(info);
        let dry_run = if dry_run { "All" } else { "" };
        let scope = info.scope();
        let (group, version) = (info.api_group.as_str(), info.api_version.as_str());
        let (resource, subresource) = match info.is_resource_request {
            true => (info.resource.as_str(), info.subresource.as_str()),
            false => ("", ""),
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

    /// The gauge that counts a request while it is in flight.
    pub fn in_flight(&self, info: &RequestInfo) -> IntGauge {
        if info.is_long_running() {
            return self.longrunning.with_label_values(&[
                verb_label(info),
                &info.api_group,
                &info.api_version,
                &info.resource,
                &info.subresource,
                info.scope(),
                COMPONENT,
            ]);
        }
        let mutating = !matches!(info.verb.as_str(), "get" | "list" | "watch");
        self.inflight.with_label_values(&[if mutating { "mutating" } else { "readOnly" }])
    }

    /// All counters in Prometheus' text format.
    ///
    /// # Errors
    /// When a collector gives what cannot be written.
    pub fn text(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

const COMPONENT: &str = "apiserver";

/// The verb as metrics have it; unknown ones are one.
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
