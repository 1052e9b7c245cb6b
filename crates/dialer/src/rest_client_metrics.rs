//! Metrics of requests to webhooks, under the names of Kubernetes' client
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).
//!
//! They belong to the process: clients are made in many places, and by no server alone. Each client keeps its series, so
//! that a call looks nothing up.

use parking_lot::Mutex;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, core::Collector};
use std::{
    collections::HashSet,
    sync::{LazyLock, OnceLock},
    time::Duration,
};

/// The metrics of requests to webhooks.
#[derive(Debug)]
pub struct RestClientMetrics {
    requests: IntCounterVec,
    durations: HistogramVec,
    request_sizes: HistogramVec,
    response_sizes: HistogramVec,
    /// The hosts that have series.
    hosts: Mutex<HashSet<String>>,
}

const DURATIONS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
const SIZES: [f64; 11] =
    [64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

/// The number of hosts that have series of their own. Users configure hosts, and must not fill the memory.
const MAX_HOSTS: usize = 500;
/// The label of all other hosts.
const OTHER_HOST: &str = "unexpected";

static METRICS: LazyLock<Result<RestClientMetrics, prometheus::Error>> =
    LazyLock::new(RestClientMetrics::new);

impl RestClientMetrics {
    /// The metrics of the process; `None` if their names were invalid, which tests would reveal.
    pub fn of_process() -> Option<&'static RestClientMetrics> {
        METRICS.as_ref().ok()
    }

    fn new() -> Result<RestClientMetrics, prometheus::Error> {
        let histogram = |name: &str, help: &str, bounds: &[f64]| {
            let options = HistogramOpts::new(format!("rest_client_{name}"), help).buckets(bounds.to_vec());
            HistogramVec::new(options, &["verb", "host"])
        };
        let requests = Opts::new("rest_client_requests_total", "Requests to webhooks, by code and host.");
        Ok(RestClientMetrics {
            requests: IntCounterVec::new(requests, &["code", "method", "host"])?,
            durations: histogram(
                "request_duration_seconds",
                "How long webhooks took, in seconds.",
                &DURATIONS,
            )?,
            request_sizes: histogram("request_size_bytes", "The size of requests, in bytes.", &SIZES)?,
            response_sizes: histogram("response_size_bytes", "The size of responses, in bytes.", &SIZES)?,
            hosts: Mutex::default(),
        })
    }

    /// The metrics, to be registered.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.requests.clone()),
            Box::new(self.durations.clone()),
            Box::new(self.request_sizes.clone()),
            Box::new(self.response_sizes.clone()),
        ]
    }

    /// The label of a host.
    fn label(&self, host: &str) -> String {
        let mut hosts = self.hosts.lock();
        let is_known = hosts.contains(host);
        if !is_known && hosts.len() == MAX_HOSTS {
            return OTHER_HOST.to_owned();
        }
        if !is_known {
            hosts.insert(host.to_owned());
        }
        host.to_owned()
    }
}

/// The series of the requests of one method to one host. They exist from the first request on.
#[derive(Debug)]
pub struct RestClientSeries {
    method: &'static str,
    host: String,
    series: OnceLock<Option<Series>>,
}

#[derive(Debug)]
struct Series {
    host: String,
    duration: Histogram,
    request_size: Histogram,
    response_size: OnceLock<Histogram>,
    ok: OnceLock<IntCounter>,
}

impl RestClientSeries {
    /// The series of a host and port.
    pub fn new(method: &'static str, host: String) -> RestClientSeries {
        RestClientSeries { method, host, series: OnceLock::new() }
    }

    /// Records a request of this many bytes, and the code of its response, if there was one.
    pub fn requested(&self, bytes: usize, code: Option<u16>, took: Duration) {
        let (Some(metrics), Some(series)) = (RestClientMetrics::of_process(), self.series()) else { return };
        series.duration.observe(took.as_secs_f64());
        series.request_size.observe(bytes as f64);
        let count = |code: &str| metrics.requests.with_label_values(&[code, self.method, &series.host]);
        match code {
            Some(200) => series.ok.get_or_init(|| count("200")).inc(),
            Some(code) => count(&code.to_string()).inc(),
            None => count("<error>").inc(),
        }
    }

    /// Records the size of a response that was successful.
    pub fn responded(&self, bytes: usize) {
        let (Some(metrics), Some(series)) = (RestClientMetrics::of_process(), self.series()) else { return };
        let size = || metrics.response_sizes.with_label_values(&[self.method, &series.host]);
        series.response_size.get_or_init(size).observe(bytes as f64);
    }

    fn series(&self) -> Option<&Series> {
        let new = || {
            let metrics = RestClientMetrics::of_process()?;
            let host = metrics.label(&self.host);
            Some(Series {
                duration: metrics.durations.with_label_values(&[self.method, &host]),
                request_size: metrics.request_sizes.with_label_values(&[self.method, &host]),
                response_size: OnceLock::new(),
                ok: OnceLock::new(),
                host,
            })
        };
        self.series.get_or_init(new).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hosts_share_one_series() {
        let metrics = RestClientMetrics::new().unwrap();
        for number in 0..MAX_HOSTS {
            assert_eq!(metrics.label(&format!("h{number}")), format!("h{number}"));
        }
        assert_eq!(metrics.label("one.more:443"), OTHER_HOST);
        assert_eq!(metrics.label("h7"), "h7");
    }
}
