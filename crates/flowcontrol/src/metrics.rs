//! The metrics of flow control, under Kubernetes' names
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#metrics>).

use crate::{
    clock::Clock,
    timing_histogram::{RatioGauge, TimingHistogramVec},
};
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, core::Collector,
};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

const LEVEL: &str = "priority_level";
const SCHEMA: &str = "flow_schema";
const BY_LEVEL: &[&str] = &[LEVEL];
const BY_SCHEMA: &[&str] = &[LEVEL, SCHEMA];
const QUEUE_LENGTHS: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const DURATIONS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const WATCH_COUNTS: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0];
const SEATS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
const SEAT_UTILIZATION: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const REQUEST_UTILIZATION: &[f64] = &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const READ_VS_WRITE: &[f64] =
    &[0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const DEMAND: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];

/// All metrics of flow control.
pub struct FlowControlMetrics {
    rejected: IntCounterVec,
    dispatched: IntCounterVec,
    inqueue_requests: IntGaugeVec,
    inqueue_seats: IntGaugeVec,
    executing_requests: IntGaugeVec,
    executing_seats: IntGaugeVec,
    queue_length: HistogramVec,
    wait_duration: HistogramVec,
    execution: HistogramVec,
    watch_count: HistogramVec,
    work_estimated_seats: HistogramVec,
    no_accommodation: IntCounterVec,
    current_r: GaugeVec,
    dispatch_r: GaugeVec,
    latest_s: GaugeVec,
    next_s_bounds: GaugeVec,
    next_discounted_s_bounds: GaugeVec,
    nominal_limit: IntGaugeVec,
    lower_limit: IntGaugeVec,
    upper_limit: IntGaugeVec,
    current_limit: IntGaugeVec,
    demand_high_watermark: GaugeVec,
    demand_average: GaugeVec,
    demand_stdev: GaugeVec,
    demand_smoothed: GaugeVec,
    target_seats: GaugeVec,
    pub(crate) fair_frac: Gauge,
    seat_utilization: TimingHistogramVec,
    request_utilization: TimingHistogramVec,
    read_vs_write: TimingHistogramVec,
    demand: TimingHistogramVec,
    inqueue_watermark: IntGaugeVec,
    pub(crate) kinds: [KindMetrics; 2],
}

/// The metrics of all read-only or all mutating requests.
pub(crate) struct KindMetrics {
    pub(crate) waiting: RatioGauge,
    pub(crate) executing: RatioGauge,
    /// The number of waiting requests, and its maximum since the watermark was last published.
    inqueue: AtomicI64,
    inqueue_max: AtomicI64,
    inqueue_watermark: IntGauge,
}

impl FlowControlMetrics {
    /// New metrics.
    ///
    /// # Errors
    /// Never, because the names are valid; the library checks them at run time.
    pub fn new(clock: Arc<dyn Clock>) -> Result<FlowControlMetrics, prometheus::Error> {
        let now: Arc<dyn Fn() -> Duration + Send + Sync> = Arc::new(move || clock.now());
        let timing = |name: &str, help: &str, labels: &[&str], constant: &[(&str, &str)], bounds| {
            TimingHistogramVec::new(&full(name), help, labels, constant, bounds, now.clone())
        };
        let read_vs_write = timing(
            "read_vs_write_current_requests",
            "Requests waiting or executing, as a part of the limit, at the end of every nanosecond.",
            &["phase", "request_kind"],
            &[],
            READ_VS_WRITE,
        )?;
        let inqueue_watermark = IntGaugeVec::new(
            Opts::new(
                "apiserver_current_inqueue_requests",
                "The most requests that waited in the last second.",
            ),
            &["request_kind"],
        )?;
        let kind = |kind: &str| KindMetrics {
            waiting: read_vs_write.member(&["waiting", kind]),
            executing: read_vs_write.member(&["executing", kind]),
            inqueue: AtomicI64::new(0),
            inqueue_max: AtomicI64::new(0),
            inqueue_watermark: inqueue_watermark.with_label_values(&[kind]),
        };
        Ok(FlowControlMetrics {
            rejected: counter(
                "rejected_requests_total",
                "Requests refused, by the reason.",
                &[LEVEL, SCHEMA, "reason"],
            )?,
            dispatched: counter("dispatched_requests_total", "Requests that were let in.", BY_SCHEMA)?,
            inqueue_requests: int_gauge("current_inqueue_requests", "Requests that wait.", BY_SCHEMA)?,
            inqueue_seats: int_gauge("current_inqueue_seats", "Seats that requests wait for.", BY_SCHEMA)?,
            executing_requests: int_gauge(
                "current_executing_requests",
                "Requests that are served; of watches the first stage.",
                BY_SCHEMA,
            )?,
            executing_seats: int_gauge(
                "current_executing_seats",
                "Seats of requests that are served; of watches in the first stage.",
                BY_SCHEMA,
            )?,
            queue_length: histogram(
                "request_queue_length_after_enqueue",
                "The length of its queue, as a request sees it.",
                BY_SCHEMA,
                QUEUE_LENGTHS,
            )?,
            wait_duration: histogram(
                "request_wait_duration_seconds",
                "How long requests waited, and whether they were let in.",
                &[LEVEL, SCHEMA, "execute"],
                DURATIONS,
            )?,
            execution: histogram(
                "request_execution_seconds",
                "How long requests were served; watches: their first stage.",
                &[LEVEL, SCHEMA, "type"],
                DURATIONS,
            )?,
            watch_count: histogram(
                "watch_count_samples",
                "Watches that writes are told to.",
                BY_SCHEMA,
                WATCH_COUNTS,
            )?,
            work_estimated_seats: histogram(
                "work_estimated_seats",
                "The most seats that requests are thought to need.",
                BY_SCHEMA,
                SEATS,
            )?,
            no_accommodation: counter(
                "request_dispatch_no_accommodation_total",
                "How often the next request needed more seats than were free.",
                BY_SCHEMA,
            )?,
            current_r: gauge("current_r", "Virtual time of the last change.", BY_LEVEL)?,
            dispatch_r: gauge("dispatch_r", "Virtual time of the last dispatch.", BY_LEVEL)?,
            latest_s: gauge("latest_s", "Virtual start of the request dispatched last.", BY_LEVEL)?,
            next_s_bounds: gauge(
                "next_s_bounds",
                "Least and greatest virtual start of the oldest requests of all queues.",
                &[LEVEL, "bound"],
            )?,
            next_discounted_s_bounds: gauge(
                "next_discounted_s_bounds",
                "The same less the work that is being done.",
                &[LEVEL, "bound"],
            )?,
            nominal_limit: int_gauge(
                "nominal_limit_seats",
                "Seats that a level has by its shares.",
                BY_LEVEL,
            )?,
            lower_limit: int_gauge("lower_limit_seats", "Seats that a level never lends.", BY_LEVEL)?,
            upper_limit: int_gauge(
                "upper_limit_seats",
                "Seats of a level with all it may borrow.",
                BY_LEVEL,
            )?,
            current_limit: int_gauge("current_limit_seats", "Seats that a level has now.", BY_LEVEL)?,
            demand_high_watermark: gauge(
                "demand_seats_high_watermark",
                "The most seats that a level could have used in the last period.",
                BY_LEVEL,
            )?,
            demand_average: gauge("demand_seats_average", "Their average over time.", BY_LEVEL)?,
            demand_stdev: gauge("demand_seats_stdev", "Their standard deviation over time.", BY_LEVEL)?,
            demand_smoothed: gauge("demand_seats_smoothed", "Their smoothed number.", BY_LEVEL)?,
            target_seats: gauge("target_seats", "Seats that a level is to have.", BY_LEVEL)?,
            fair_frac: Gauge::new(full("seat_fair_frac"), "The part of its target that each level gets.")?,
            seat_utilization: timing(
                "priority_level_seat_utilization",
                "Seats in use as a part of the limit, at the end of every nanosecond.",
                BY_LEVEL,
                &[("phase", "executing")],
                SEAT_UTILIZATION,
            )?,
            request_utilization: timing(
                "priority_level_request_utilization",
                "Requests as a part of the limit, at the end of every nanosecond.",
                &["phase", LEVEL],
                &[],
                REQUEST_UTILIZATION,
            )?,
            demand: timing(
                "demand_seats",
                "Seats that a level could use as a part of its limit, at the end of every nanosecond.",
                BY_LEVEL,
                &[],
                DEMAND,
            )?,
            kinds: [kind("readOnly"), kind("mutating")],
            read_vs_write,
            inqueue_watermark,
        })
    }

    /// All collectors, for registration.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let counters = [&self.rejected, &self.dispatched, &self.no_accommodation];
        let int_gauges = [
            &self.inqueue_requests,
            &self.inqueue_seats,
            &self.executing_requests,
            &self.executing_seats,
            &self.nominal_limit,
            &self.lower_limit,
            &self.upper_limit,
            &self.current_limit,
            &self.inqueue_watermark,
        ];
        let histograms = [
            &self.queue_length,
            &self.wait_duration,
            &self.execution,
            &self.watch_count,
            &self.work_estimated_seats,
        ];
        let gauges = [
            &self.current_r,
            &self.dispatch_r,
            &self.latest_s,
            &self.next_s_bounds,
            &self.next_discounted_s_bounds,
            &self.demand_high_watermark,
            &self.demand_average,
            &self.demand_stdev,
            &self.demand_smoothed,
            &self.target_seats,
        ];
        let timings = [&self.seat_utilization, &self.request_utilization, &self.read_vs_write, &self.demand];
        let mut all: Vec<Box<dyn Collector>> = vec![Box::new(self.fair_frac.clone())];
        all.extend(counters.map(|one| Box::new(one.clone()) as Box<dyn Collector>));
        all.extend(int_gauges.map(|one| Box::new(one.clone()) as Box<dyn Collector>));
        all.extend(histograms.map(|one| Box::new(one.clone()) as Box<dyn Collector>));
        all.extend(gauges.map(|one| Box::new(one.clone()) as Box<dyn Collector>));
        all.extend(timings.map(|one| Box::new(one.clone()) as Box<dyn Collector>));
        all
    }

    /// Publishes the maximum number of waiting requests since the last call.
    pub(crate) fn publish_watermarks(&self) {
        for kind in &self.kinds {
            let now = kind.inqueue.load(Ordering::Relaxed);
            kind.inqueue_watermark.set(kind.inqueue_max.swap(now, Ordering::Relaxed));
        }
    }

    pub(crate) fn kind(&self, is_read_only: bool) -> &KindMetrics {
        let [read_only, mutating] = &self.kinds;
        if is_read_only { read_only } else { mutating }
    }
}

impl KindMetrics {
    /// Adds to the number of waiting requests.
    pub(crate) fn note_waiting(&self, now: Duration, more: i64) {
        let waiting = self.inqueue.fetch_add(more, Ordering::Relaxed) + more;
        self.inqueue_max.fetch_max(waiting, Ordering::Relaxed);
        self.waiting.add(now, more as f64);
    }
}

/// The metrics of a priority level.
pub(crate) struct LevelMetrics {
    pub(crate) current_r: Gauge,
    all: Arc<FlowControlMetrics>,
    name: String,
    pub(crate) waiting: RatioGauge,
    pub(crate) executing: RatioGauge,
    pub(crate) seats: RatioGauge,
    pub(crate) demand: RatioGauge,
    dispatch: OnceLock<[Gauge; 6]>,
}

/// The result of the periodic adjustment of a level.
pub(crate) struct Adjustment {
    pub(crate) high_watermark: f64,
    pub(crate) average: f64,
    pub(crate) deviation: f64,
    pub(crate) smoothed: f64,
    pub(crate) target: f64,
    pub(crate) limit: u64,
}

impl LevelMetrics {
    pub(crate) fn new(all: &Arc<FlowControlMetrics>, name: &str) -> LevelMetrics {
        LevelMetrics {
            current_r: all.current_r.with_label_values(&[name]),
            waiting: all.request_utilization.member(&["waiting", name]),
            executing: all.request_utilization.member(&["executing", name]),
            seats: all.seat_utilization.member(&[name]),
            demand: all.demand.member(&[name]),
            dispatch: OnceLock::new(),
            all: all.clone(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn all(&self) -> &FlowControlMetrics {
        &self.all
    }

    pub(crate) fn set_limits(&self, nominal: u64, lower: u64, upper: u64) {
        let set = |gauge: &IntGaugeVec, seats: u64| {
            gauge.with_label_values(&[&self.name]).set(i64::try_from(seats).unwrap_or(i64::MAX));
        };
        set(&self.all.nominal_limit, nominal);
        set(&self.all.lower_limit, lower);
        set(&self.all.upper_limit, upper);
    }

    pub(crate) fn note_adjustment(&self, adjustment: &Adjustment) {
        let set = |gauge: &GaugeVec, value: f64| gauge.with_label_values(&[&self.name]).set(value);
        set(&self.all.demand_high_watermark, adjustment.high_watermark);
        set(&self.all.demand_average, adjustment.average);
        set(&self.all.demand_stdev, adjustment.deviation);
        set(&self.all.demand_smoothed, adjustment.smoothed);
        set(&self.all.target_seats, adjustment.target);
        let limit = i64::try_from(adjustment.limit).unwrap_or(i64::MAX);
        self.all.current_limit.with_label_values(&[&self.name]).set(limit);
    }

    /// Records `[R, S, least S, greatest S, least discounted S, greatest discounted S]` of a dispatch.
    pub(crate) fn note_dispatch(&self, values: [f64; 6]) {
        let gauges = self.dispatch.get_or_init(|| {
            let name = self.name.as_str();
            [
                self.all.dispatch_r.with_label_values(&[name]),
                self.all.latest_s.with_label_values(&[name]),
                self.all.next_s_bounds.with_label_values(&[name, "min"]),
                self.all.next_s_bounds.with_label_values(&[name, "max"]),
                self.all.next_discounted_s_bounds.with_label_values(&[name, "min"]),
                self.all.next_discounted_s_bounds.with_label_values(&[name, "max"]),
            ]
        });
        for (gauge, value) in gauges.iter().zip(values) {
            gauge.set(value);
        }
    }
}

/// The metrics of a flow schema in its level, each looked up on first use.
pub(crate) struct FlowMetrics {
    all: Arc<FlowControlMetrics>,
    level: String,
    schema: String,
    dispatched: OnceLock<IntCounter>,
    inqueue_requests: OnceLock<IntGauge>,
    inqueue_seats: OnceLock<IntGauge>,
    executing_requests: OnceLock<IntGauge>,
    executing_seats: OnceLock<IntGauge>,
    queue_length: OnceLock<Histogram>,
    waited: [OnceLock<Histogram>; 2],
    execution: [OnceLock<Histogram>; 2],
    watch_count: OnceLock<Histogram>,
    work_estimated_seats: OnceLock<Histogram>,
}

impl FlowMetrics {
    pub(crate) fn new(all: &Arc<FlowControlMetrics>, level: &str, schema: &str) -> FlowMetrics {
        FlowMetrics {
            all: all.clone(),
            level: level.to_owned(),
            schema: schema.to_owned(),
            dispatched: OnceLock::new(),
            inqueue_requests: OnceLock::new(),
            inqueue_seats: OnceLock::new(),
            executing_requests: OnceLock::new(),
            executing_seats: OnceLock::new(),
            queue_length: OnceLock::new(),
            waited: Default::default(),
            execution: Default::default(),
            watch_count: OnceLock::new(),
            work_estimated_seats: OnceLock::new(),
        }
    }

    pub(crate) fn reject(&self, reason: &str) {
        self.all.rejected.with_label_values(&[&self.level, &self.schema, reason]).inc();
    }

    pub(crate) fn no_accommodation(&self) {
        self.all.no_accommodation.with_label_values(&[&self.level, &self.schema]).inc();
    }

    pub(crate) fn dispatched(&self) {
        self.dispatched.get_or_init(|| self.all.dispatched.with_label_values(&self.labels())).inc();
    }

    pub(crate) fn add_waiting(&self, requests: i64, seats: i64) {
        let gauge = |vec: &IntGaugeVec| vec.with_label_values(&self.labels());
        self.inqueue_requests.get_or_init(|| gauge(&self.all.inqueue_requests)).add(requests);
        self.inqueue_seats.get_or_init(|| gauge(&self.all.inqueue_seats)).add(seats);
    }

    pub(crate) fn add_executing(&self, requests: i64) {
        let gauge = || self.all.executing_requests.with_label_values(&self.labels());
        self.executing_requests.get_or_init(gauge).add(requests);
    }

    pub(crate) fn add_executing_seats(&self, seats: i64) {
        let gauge = || self.all.executing_seats.with_label_values(&self.labels());
        self.executing_seats.get_or_init(gauge).add(seats);
    }

    pub(crate) fn queue_length(&self, length: usize) {
        let histogram = || self.all.queue_length.with_label_values(&self.labels());
        self.queue_length.get_or_init(histogram).observe(length as f64);
        // These exist from the first request on, also if none has to wait.
        self.add_waiting(0, 0);
    }

    pub(crate) fn waited(&self, is_executed: bool, time: Duration) {
        let [not_executed, executed] = &self.waited;
        let (slot, label) = if is_executed { (executed, "true") } else { (not_executed, "false") };
        let histogram = || self.all.wait_duration.with_label_values(&[&self.level, &self.schema, label]);
        slot.get_or_init(histogram).observe(time.as_secs_f64());
    }

    pub(crate) fn executed(&self, is_watch: bool, time: Duration) {
        let [regular, watch] = &self.execution;
        let (slot, label) = if is_watch { (watch, "watch") } else { (regular, "regular") };
        let histogram = || self.all.execution.with_label_values(&[&self.level, &self.schema, label]);
        slot.get_or_init(histogram).observe(time.as_secs_f64());
    }

    pub(crate) fn watch_count(&self, count: usize) {
        let histogram = || self.all.watch_count.with_label_values(&self.labels());
        self.watch_count.get_or_init(histogram).observe(count as f64);
    }

    pub(crate) fn work_estimated_seats(&self, seats: u64) {
        let histogram = || self.all.work_estimated_seats.with_label_values(&self.labels());
        self.work_estimated_seats.get_or_init(histogram).observe(seats as f64);
    }

    fn labels(&self) -> [&str; 2] {
        [&self.level, &self.schema]
    }
}

fn full(name: &str) -> String {
    format!("apiserver_flowcontrol_{name}")
}

fn counter(name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
    IntCounterVec::new(Opts::new(full(name), help), labels)
}

fn int_gauge(name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
    IntGaugeVec::new(Opts::new(full(name), help), labels)
}

fn gauge(name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec, prometheus::Error> {
    GaugeVec::new(Opts::new(full(name), help), labels)
}

fn histogram(
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: &[f64],
) -> Result<HistogramVec, prometheus::Error> {
    HistogramVec::new(HistogramOpts::new(full(name), help).buckets(buckets.to_vec()), labels)
}
