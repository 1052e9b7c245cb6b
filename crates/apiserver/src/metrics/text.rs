//! Writes families in Prometheus' text format
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>).
//!
//! Numbers have the form in which Go's clients write them, since the bound of a bucket is a label: rules and dashboards
//! that select `le="1e+06"` find the same text.

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use std::io::Write;

/// Appends families.
pub(super) fn put_families(out: &mut Vec<u8>, families: &[MetricFamily]) {
    for family in families {
        put_family(out, family);
    }
}

fn put_family(out: &mut Vec<u8>, family: &MetricFamily) {
    let (name, kind) = (family.name(), family.get_field_type());
    if !family.help().is_empty() {
        put(out, &["# HELP ", name, " "]);
        put_escaped(out, family.help(), false);
        out.push(b'\n');
    }
    put(out, &["# TYPE ", name, " ", type_name(kind), "\n"]);
    for metric in family.get_metric() {
        let mut sample = |suffix: &str, label: Option<(&str, f64)>, value: f64| {
            put(out, &[name, suffix]);
            put_labels(out, metric.get_label(), label);
            out.push(b' ');
            put_number(out, value);
            out.push(b'\n');
        };
        match kind {
            MetricType::GAUGE => sample("", None, metric.get_gauge().get_value()),
            MetricType::COUNTER | MetricType::UNTYPED => sample("", None, metric.get_counter().get_value()),
            MetricType::SUMMARY => put_summary(metric, sample),
            MetricType::HISTOGRAM => put_histogram(metric, sample),
        }
    }
}

fn put_summary(metric: &Metric, mut sample: impl FnMut(&str, Option<(&str, f64)>, f64)) {
    let summary = metric.get_summary();
    for quantile in summary.get_quantile() {
        sample("", Some(("quantile", quantile.quantile())), quantile.value());
    }
    sample("_sum", None, summary.sample_sum());
    sample("_count", None, summary.sample_count() as f64);
}

fn put_histogram(metric: &Metric, mut sample: impl FnMut(&str, Option<(&str, f64)>, f64)) {
    let histogram = metric.get_histogram();
    let count = histogram.get_sample_count() as f64;
    for bucket in histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound() < f64::INFINITY) {
        sample("_bucket", Some(("le", bucket.upper_bound())), bucket.cumulative_count() as f64);
    }
    sample("_bucket", Some(("le", f64::INFINITY)), count);
    sample("_sum", None, histogram.get_sample_sum());
    sample("_count", None, count);
}

fn type_name(kind: MetricType) -> &'static str {
    match kind {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::SUMMARY => "summary",
        MetricType::UNTYPED => "untyped",
        MetricType::HISTOGRAM => "histogram",
    }
}

fn put_labels(out: &mut Vec<u8>, labels: &[LabelPair], last: Option<(&str, f64)>) {
    let mut separator = "{";
    for label in labels {
        put(out, &[separator, label.name(), "=\""]);
        put_escaped(out, label.value(), true);
        out.push(b'"');
        separator = ",";
    }
    if let Some((name, value)) = last {
        put(out, &[separator, name, "=\""]);
        put_number(out, value);
        out.push(b'"');
        separator = ",";
    }
    if separator == "," {
        out.push(b'}');
    }
}

fn put(out: &mut Vec<u8>, texts: &[&str]) {
    texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
}

fn put_escaped(out: &mut Vec<u8>, text: &str, escapes_quotes: bool) {
    for byte in text.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'"' if escapes_quotes => out.extend_from_slice(b"\\\""),
            byte => out.push(byte),
        }
    }
}

/// Appends a number as Go's `strconv.FormatFloat(number, 'g', -1, 64)` writes it: with an exponent of at least two
/// digits if that is below -4 or above 5.
fn put_number(out: &mut Vec<u8>, number: f64) {
    // Writing to a vector cannot fail.
    let mut text = |arguments| drop(out.write_fmt(arguments));
    if number.is_nan() {
        return text(format_args!("NaN"));
    }
    if number.is_infinite() {
        return text(format_args!("{}Inf", if number > 0.0 { '+' } else { '-' }));
    }
    let magnitude = number.abs();
    if magnitude == 0.0 || (1e-4..1e6).contains(&magnitude) {
        return text(format_args!("{number}"));
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.strip_prefix('-') {
        Some(exponent) => text(format_args!("{digits}e-{exponent:0>2}")),
        None => text(format_args!("{digits}e+{exponent:0>2}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{Gauge, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

    #[test]
    fn numbers_have_the_form_of_go() {
        let check = |number: f64, expected: &str| {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        // Printed by Go 1.26.
        check(0.0, "0");
        check(-1.0, "-1");
        check(0.005, "0.005");
        check(0.0001, "0.0001");
        check(0.00001, "1e-05");
        check(9.999999999999999e-6, "9.999999999999999e-06");
        check(0.0000005, "5e-07");
        check(999_999.0, "999999");
        check(999_999.5, "999999.5");
        check(1e6, "1e+06");
        check(1_050_000.0, "1.05e+06");
        check(1_764_000_123.25, "1.76400012325e+09");
        check(-2e100, "-2e+100");
        check(5e-324, "5e-324");
        check(f64::INFINITY, "+Inf");
        check(f64::NEG_INFINITY, "-Inf");
        check(f64::NAN, "NaN");
    }

    #[test]
    fn families_are_text() {
        let registry = Registry::new();
        let counter = IntCounterVec::new(Opts::new("a", "one\\two\n\"three\""), &["b", "c"]).unwrap();
        counter.with_label_values(&["\\\n\"", "é"]).inc_by(3);
        registry.register(Box::new(counter)).unwrap();
        let options = HistogramOpts::new("h", "i").buckets(vec![1.0, 2e6]);
        let histogram = HistogramVec::new(options, &[]).unwrap();
        histogram.with_label_values::<&str>(&[]).observe(1.5);
        registry.register(Box::new(histogram)).unwrap();
        let gauge = Gauge::new("z", "-").unwrap();
        gauge.set(-0.5);
        registry.register(Box::new(gauge)).unwrap();
        let mut out = Vec::new();
        put_families(&mut out, &registry.gather());
        let expected = r#"# HELP a one\\two\n"three"
# TYPE a counter
a{b="\\\n\"",c="é"} 3
# HELP h i
# TYPE h histogram
h_bucket{le="1"} 0
h_bucket{le="2e+06"} 1
h_bucket{le="+Inf"} 1
h_sum 1.5
h_count 1
# HELP z -
# TYPE z gauge
z -0.5
"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
