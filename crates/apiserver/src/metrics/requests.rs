//! Records requests: counts, durations and sizes.
//!
//! A route keeps its series, so that recording a request looks nothing up, formats nothing and takes no lock.

use super::{
    metric_registry::MetricRegistry,
    request_labels::{RequestLabels, RequestVerb},
};
use arc_swap::ArcSwapOption;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The upper bounds of request durations, in seconds.
const DURATIONS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
/// The upper bounds of service level indicators, in seconds.
const SLI_DURATIONS: &[f64] = &[
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
/// The upper bounds of response sizes, in bytes.
const RESPONSE_SIZES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

const ROUTE: [&str; 7] = ["verb", "group", "version", "resource", "subresource", "scope", "component"];
const DRY_ROUTE: [&str; 8] =
    ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"];

/// The metrics of requests.
pub(crate) struct RequestMetrics {
    total: IntCounterVec,
    duration: HistogramVec,
    sli: HistogramVec,
    response_sizes: HistogramVec,
    long_running: IntGaugeVec,
    deprecated: IntGaugeVec,
    field_validation: HistogramVec,
    terminations: IntCounterVec,
    aborts: IntCounterVec,
    post_timeout: IntCounterVec,
    /// Rises with each reset: series of an earlier generation are not exported any more.
    generation: AtomicU64,
}

impl RequestMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a metric of the same name is registered already.
    pub(super) fn register(registry: &MetricRegistry) -> Result<RequestMetrics, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let gauge = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let histogram = |name: &str, help: &str, labels: &[&str], bounds: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(bounds.to_vec());
            let histogram = HistogramVec::new(options, labels)?;
            registry.register(Box::new(histogram.clone()))?;
            Ok::<_, prometheus::Error>(histogram)
        };
        Ok(RequestMetrics {
            total: counter(
                "apiserver_request_total",
                "Requests by verb, dry run, group, version, resource, scope, component and HTTP code.",
                &[
                    "verb",
                    "dry_run",
                    "group",
                    "version",
                    "resource",
                    "subresource",
                    "scope",
                    "component",
                    "code",
                ],
            )?,
            duration: histogram(
                "apiserver_request_duration_seconds",
                "How long requests took, by verb, dry run, group, version, resource, scope and component.",
                &DRY_ROUTE,
                DURATIONS,
            )?,
            sli: histogram(
                "apiserver_request_sli_duration_seconds",
                "How long requests took, without the time in webhooks and in queues.",
                &ROUTE,
                SLI_DURATIONS,
            )?,
            response_sizes: histogram(
                "apiserver_response_sizes",
                "The size of responses to reads, in bytes.",
                &ROUTE,
                RESPONSE_SIZES,
            )?,
            long_running: gauge(
                "apiserver_longrunning_requests",
                "Open long-running requests, by verb, group, version, resource, scope and component.",
                &ROUTE,
            )?,
            deprecated: gauge(
                "apiserver_requested_deprecated_apis",
                "Deprecated resources that were requested, with the release that removes them.",
                &["group", "version", "resource", "subresource", "removed_release"],
            )?,
            field_validation: histogram(
                "field_validation_request_duration_seconds",
                "How long requests took, by the value of the option fieldValidation.",
                &["field_validation"],
                SLI_DURATIONS,
            )?,
            terminations: counter(
                "apiserver_request_terminations_total",
                "Requests that the server ended to protect itself.",
                &["verb", "group", "version", "resource", "subresource", "scope", "component", "code"],
            )?,
            aborts: counter(
                "apiserver_request_aborts_total",
                "Requests whose handler ended without a response.",
                &["verb", "group", "version", "resource", "subresource", "scope"],
            )?,
            post_timeout: counter(
                "apiserver_request_post_timeout_total",
                "Handlers that went on after their request had timed out, by how they ended.",
                &["source", "status"],
            )?,
            generation: AtomicU64::default(),
        })
    }

    /// Counts a handler after the timeout of its request.
    pub(crate) fn went_on(&self, handler: LateHandler, end: LateEnd) {
        let source = match handler {
            LateHandler::Filter => "timeout-handler",
            LateHandler::Write => "rest-handler",
        };
        let status = match end {
            LateEnd::Ok => "ok",
            LateEnd::Error => "error",
            LateEnd::Panic => "panic",
            LateEnd::Pending => "pending",
        };
        self.post_timeout.with_label_values(&[source, status]).inc();
    }

    /// Sets all metrics to zero.
    pub(super) fn reset(&self) {
        self.total.reset();
        self.duration.reset();
        self.sli.reset();
        self.response_sizes.reset();
        self.deprecated.reset();
        self.field_validation.reset();
        self.terminations.reset();
        self.aborts.reset();
        self.post_timeout.reset();
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Records an answered request of a route. `sli` is its duration without the time in webhooks and in queues; the size
    /// of a streamed response is recorded by [`RouteSeries::sent`].
    pub(crate) fn answered(
        &self,
        series: &RouteSeries,
        dry_run: &str,
        code: u16,
        duration: Duration,
        sli: Duration,
    ) {
        let duration = duration.as_secs_f64();
        if !dry_run.is_empty() {
            let labels = &series.labels;
            self.counter(labels, dry_run, code).inc();
            let values = labels.values();
            let [verb, group, version, resource, subresource, scope, component] = values;
            self.duration
                .with_label_values(&[verb, dry_run, group, version, resource, subresource, scope, component])
                .observe(duration);
            return;
        }
        match CODES.iter().position(|known| *known == code).and_then(|place| series.codes.get(place)) {
            Some(counter) => counter.get_or_init(|| self.counter(&series.labels, "", code)).inc(),
            None => self.counter(&series.labels, "", code).inc(),
        }
        let [durations, slis] = series.durations.get_or_init(|| self.durations(&series.labels));
        durations.observe(duration);
        slis.observe(sli.as_secs_f64());
    }

    /// Records a request of a plain endpoint, such as a health check.
    pub(crate) fn answered_plain(&self, labels: &RequestLabels, code: u16, duration: Duration, size: u64) {
        let series = self.series(labels.clone());
        self.answered(&series, "", code, duration, duration);
        series.sent(size);
    }

    /// Records the value of the option `fieldValidation` of a request that names one.
    pub(crate) fn validated_fields(&self, option: &str, duration: Duration) {
        self.field_validation.with_label_values(&[option]).observe(duration.as_secs_f64());
    }

    /// Counts a request that was refused or ended by the server to protect itself.
    pub(crate) fn terminated(&self, labels: &RequestLabels, code: u16) {
        let [verb, group, version, resource, subresource, scope, component] = labels.values();
        let mut digits = itoa::Buffer::new();
        let code = digits.format(code);
        self.terminations
            .with_label_values(&[verb, group, version, resource, subresource, scope, component, code])
            .inc();
    }

    /// Counts a request that was refused because too many others are in flight.
    pub(crate) fn dropped(&self, labels: &RequestLabels, dry_run: &str, code: u16) {
        self.counter(labels, dry_run, code).inc();
        self.terminated(labels, code);
    }

    /// Counts a request whose handler panicked.
    pub(crate) fn aborted(&self, labels: &RequestLabels) {
        let [verb, group, version, resource, subresource, scope, _] = labels.values();
        self.aborts.with_label_values(&[verb, group, version, resource, subresource, scope]).inc();
    }

    /// Records the request of a deprecated resource, and the release that removes it.
    pub(crate) fn requested_deprecated(&self, labels: &RequestLabels, removed_release: Option<&str>) {
        let removed_release = removed_release.unwrap_or_default();
        let [_, group, version, resource, subresource, ..] = labels.values();
        self.deprecated.with_label_values(&[group, version, resource, subresource, removed_release]).set(1);
    }

    fn counter(&self, labels: &RequestLabels, dry_run: &str, code: u16) -> IntCounter {
        let [verb, group, version, resource, subresource, scope, component] = labels.values();
        let mut digits = itoa::Buffer::new();
        let code = digits.format(code);
        self.total.with_label_values(&[
            verb,
            dry_run,
            group,
            version,
            resource,
            subresource,
            scope,
            component,
            code,
        ])
    }

    /// The histograms of durations of requests that are no dry runs.
    fn durations(&self, labels: &RequestLabels) -> [Histogram; 2] {
        let values = labels.values();
        let [verb, group, version, resource, subresource, scope, component] = values;
        let dry = [verb, "", group, version, resource, subresource, scope, component];
        [self.duration.with_label_values(&dry), self.sli.with_label_values(&values)]
    }

    fn series(&self, labels: RequestLabels) -> RouteSeries {
        // Read first: a series that a reset overtakes is of the old generation, and is made anew.
        let generation = self.generation.load(Ordering::Acquire);
        let values = labels.values();
        RouteSeries {
            generation,
            codes: Default::default(),
            durations: OnceLock::new(),
            response_sizes: matches!(labels.verb, RequestVerb::Get | RequestVerb::List)
                .then(|| self.response_sizes.with_label_values(&values)),
            long_running: (labels.verb == RequestVerb::Watch || labels.verb == RequestVerb::Connect)
                .then(|| self.long_running.with_label_values(&values)),
            labels,
        }
    }
}

/// A handler that goes on after the timeout of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LateHandler {
    /// The filter chain behind the timeout.
    Filter,
    /// A write, which is finished in any case.
    Write,
}

/// How a handler ended after the timeout of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LateEnd {
    /// With a result.
    Ok,
    /// With an error.
    Error,
    /// With a panic.
    Panic,
    /// It has not ended for minutes.
    Pending,
}

/// The codes whose counters a route keeps.
const CODES: [u16; 8] = [200, 201, 404, 409, 403, 422, 400, 101];

/// The series of one route: of one verb of a resource in one scope.
pub(crate) struct RouteSeries {
    labels: RequestLabels,
    generation: u64,
    codes: [OnceLock<IntCounter>; CODES.len()],
    /// Those of requests that are no dry runs, once there was one: durations, and those that count for objectives.
    durations: OnceLock<[Histogram; 2]>,
    response_sizes: Option<Histogram>,
    long_running: Option<IntGauge>,
}

impl RouteSeries {
    /// The labels of the route.
    pub(crate) fn labels(&self) -> &RequestLabels {
        &self.labels
    }

    /// Records the size of a sent response, in bytes.
    pub(crate) fn sent(&self, bytes: u64) {
        if let Some(sizes) = &self.response_sizes {
            sizes.observe(bytes as f64);
        }
    }

    /// Whether response sizes are recorded for the verb.
    pub(crate) fn has_sizes(&self) -> bool {
        self.response_sizes.is_some()
    }

    /// The gauge of open requests, of a long-running verb.
    pub(crate) fn long_running(&self) -> Option<&IntGauge> {
        self.long_running.as_ref()
    }
}

/// The series of the routes of one resource in one version: each is made by its first request.
#[derive(Default)]
pub(crate) struct ResourceSeries {
    /// By subresource; the first is the resource itself.
    by_subresource: OnceLock<Box<[OnceLock<Box<Routes>>]>>,
}

type Routes = [ArcSwapOption<RouteSeries>; RequestVerb::COUNT * RequestLabels::SCOPES];

impl ResourceSeries {
    /// The series of a route. `subresource` is 0 for the resource itself, otherwise its place, from 1 to `subresources`.
    pub(crate) fn route(
        &self,
        metrics: &RequestMetrics,
        subresources: usize,
        subresource: usize,
        labels: impl FnOnce() -> RequestLabels,
        place: usize,
    ) -> Arc<RouteSeries> {
        let all = self
            .by_subresource
            .get_or_init(|| (0..=subresources).map(|_| OnceLock::default()).collect::<Vec<_>>().into());
        let slot = all.get(subresource).and_then(|routes| {
            routes.get_or_init(|| Box::new(std::array::from_fn(|_| ArcSwapOption::empty()))).get(place)
        });
        let Some(slot) = slot else { return Arc::new(metrics.series(labels())) };
        let generation = metrics.generation.load(Ordering::Acquire);
        match slot.load_full() {
            Some(series) if series.generation == generation => series,
            _ => {
                let series = Arc::new(metrics.series(labels()));
                slot.store(Some(series.clone()));
                series
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::TextEncoder;

    fn labels() -> RequestLabels {
        RequestLabels {
            verb: RequestVerb::Get,
            group: "apps".into(),
            version: "v1".into(),
            resource: "deployments".into(),
            subresource: "".into(),
            scope: "resource",
            component: "apiserver",
        }
    }

    #[test]
    fn dry_runs_have_series_of_their_own() {
        let registry = MetricRegistry::new().unwrap();
        let metrics = RequestMetrics::register(&registry).unwrap();
        let resource = ResourceSeries::default();
        let series = resource.route(&metrics, 1, 0, labels, labels().place());
        metrics.answered(&series, "All", 200, Duration::from_millis(30), Duration::from_millis(10));
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        assert!(text.contains(r#"dry_run="All""#), "{text}");
        assert!(!text.contains(r#"dry_run="""#), "{text}");
        assert!(!text.contains("apiserver_request_sli_duration_seconds_count"), "{text}");
    }

    #[test]
    fn a_route_counts_again_after_a_reset() {
        let registry = MetricRegistry::new().unwrap();
        let metrics = RequestMetrics::register(&registry).unwrap();
        let resource = ResourceSeries::default();
        let answer = |code| {
            let series = resource.route(&metrics, 1, 0, labels, labels().place());
            metrics.answered(&series, "", code, Duration::from_millis(30), Duration::from_millis(10));
            series.sent(1500);
        };
        let scrape = || TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for code in [200, 200, 418] {
            answer(code);
        }
        let route = r#"component="apiserver",group="apps",resource="deployments",scope="resource",subresource="",verb="GET",version="v1""#;
        let text = scrape();
        for line in [
            r#"apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="GET",version="v1"} 2"#.to_owned(),
            format!("apiserver_request_sli_duration_seconds_bucket{{{route},le=\"0.05\"}} 3"),
            format!("apiserver_response_sizes_bucket{{{route},le=\"1000\"}} 0"),
            format!("apiserver_response_sizes_bucket{{{route},le=\"10000\"}} 3"),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
        assert!(text.contains("code=\"418\""));
        metrics.reset();
        assert!(!scrape().contains("apps"));
        answer(200);
        assert!(scrape().contains(&format!("apiserver_request_sli_duration_seconds_count{{{route}}} 1\n")));
    }
}
