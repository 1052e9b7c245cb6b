//! Records the comparisons of objects that decide whether an update changes only times of `managedFields`.
//!
//! The metric belongs to the process: stores know no metrics of a server.

use pintle_machinery::managed_fields::TimesComparison;
use prometheus::{Histogram, HistogramOpts, HistogramVec};
use std::{sync::LazyLock, time::Duration};

struct TimesComparisonMetrics {
    all: HistogramVec,
    unequal_fast: Histogram,
    unequal_slow: Histogram,
    equal: Histogram,
}

static METRICS: LazyLock<Result<TimesComparisonMetrics, prometheus::Error>> = LazyLock::new(|| {
    let options = HistogramOpts::new(
        "apiserver_request_timestamp_comparison_time",
        "How long updates compared objects without their times, in seconds, by the result.",
    );
    let bounds = vec![0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0];
    let all = HistogramVec::new(options.buckets(bounds), &["code_path"])?;
    Ok(TimesComparisonMetrics {
        unequal_fast: all.with_label_values(&["unequal_objects_fast"]),
        unequal_slow: all.with_label_values(&["unequal_objects_slow"]),
        equal: all.with_label_values(&["equal_objects"]),
        all,
    })
});

/// The metric, to be registered.
///
/// # Errors
/// Never, because the name is valid; the library checks it at run time.
pub(super) fn collector() -> Result<HistogramVec, prometheus::Error> {
    match &*METRICS {
        Ok(metrics) => Ok(metrics.all.clone()),
        Err(error) => Err(prometheus::Error::Msg(error.to_string())),
    }
}

/// Records a comparison.
pub(crate) fn times_compared(result: TimesComparison, took: Duration) {
    let Ok(metrics) = &*METRICS else { return };
    let series = match result {
        TimesComparison::UnequalFast => &metrics.unequal_fast,
        TimesComparison::UnequalSlow => &metrics.unequal_slow,
        TimesComparison::Equal => &metrics.equal,
    };
    series.observe(took.as_secs_f64());
}
