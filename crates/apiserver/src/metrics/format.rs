//! The formats of `/metrics`, and their negotiation.

use super::text::put_families;
use prometheus::proto::MetricFamily;

/// A format of `/metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Text(Escaping),
    /// Length-delimited protobuf messages, one a family.
    Protobuf(Escaping),
}

/// The escaping of names that a client asks for. All names here are the same in every escaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escaping {
    /// UTF-8 names as they are.
    AllowUtf8,
    /// Other characters become underscores.
    #[default]
    Underscores,
    /// Dots become `_dot_`.
    Dots,
    /// Characters become their values.
    Values,
}

impl Escaping {
    fn parse(text: &str) -> Option<Escaping> {
        [Escaping::AllowUtf8, Escaping::Underscores, Escaping::Dots, Escaping::Values]
            .into_iter()
            .find(|escaping| escaping.as_str() == text)
    }

    fn as_str(self) -> &'static str {
        match self {
            Escaping::AllowUtf8 => "allow-utf-8",
            Escaping::Underscores => "underscores",
            Escaping::Dots => "dots",
            Escaping::Values => "values",
        }
    }
}

impl Format {
    /// Selects the format by an `Accept` header: the first clause of a known format, by descending quality.
    pub fn negotiate(accept: &str) -> Format {
        let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::parse).collect();
        clauses.sort_by(|left, right| right.quality.total_cmp(&left.quality));
        let mut escaping = Escaping::default();
        for clause in clauses {
            if let Some(asked) = clause.parameter("escaping").and_then(Escaping::parse) {
                escaping = asked;
            }
            match clause.media_type {
                "application/vnd.google.protobuf"
                    if clause.parameter("proto") == Some("io.prometheus.client.MetricFamily")
                        && clause.parameter("encoding") == Some("delimited") =>
                {
                    return Format::Protobuf(escaping);
                }
                "text/plain" if matches!(clause.parameter("version"), None | Some("" | "0.0.4")) => {
                    return Format::Text(escaping);
                }
                _ => {}
            }
        }
        Format::Text(escaping)
    }

    /// The media type of responses.
    pub fn content_type(self) -> String {
        match self {
            Format::Text(escaping) => {
                format!("text/plain; version=0.0.4; charset=utf-8; escaping={}", escaping.as_str())
            }
            Format::Protobuf(escaping) => format!(
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; \
                 escaping={}",
                escaping.as_str()
            ),
        }
    }

    /// Encodes families.
    pub(super) fn encode(self, families: &[MetricFamily]) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Format::Text(_) => put_families(&mut out, families),
            Format::Protobuf(_) => {
                for family in families {
                    let message = protobuf::family(family);
                    protobuf::put_varint(&mut out, message.len() as u64);
                    out.extend_from_slice(&message);
                }
            }
        }
        out
    }
}

/// One clause of an `Accept` header.
struct Clause<'a> {
    media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f64,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Clause<'a> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parameters: Vec<_> = parts
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name.trim(), value.trim().trim_matches('"')))
            .collect();
        let quality = parameters.iter().find(|(name, _)| *name == "q");
        let quality = quality.and_then(|(_, value)| value.parse().ok()).unwrap_or(1.0);
        Clause { media_type, parameters, quality }
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// The messages of `io.prometheus.client`
/// (<https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto>).
mod protobuf {
    use prometheus::proto::{Metric, MetricFamily, MetricType};

    const VARINT: u32 = 0;
    const FIXED64: u32 = 1;
    const BYTES: u32 = 2;

    pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            out.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: u32) {
        put_varint(out, u64::from(field << 3 | wire_type));
    }

    fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
        put_tag(out, field, BYTES);
        put_varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }

    fn put_double(out: &mut Vec<u8>, field: u32, value: f64) {
        put_tag(out, field, FIXED64);
        out.extend_from_slice(&value.to_le_bytes());
    }

    fn put_uint(out: &mut Vec<u8>, field: u32, value: u64) {
        put_tag(out, field, VARINT);
        put_varint(out, value);
    }

    pub(super) fn family(family: &MetricFamily) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, 1, family.name().as_bytes());
        put_bytes(&mut out, 2, family.help().as_bytes());
        let kind = family.get_field_type();
        put_uint(
            &mut out,
            3,
            match kind {
                MetricType::COUNTER => 0,
                MetricType::GAUGE => 1,
                MetricType::SUMMARY => 2,
                MetricType::UNTYPED => 3,
                MetricType::HISTOGRAM => 4,
            },
        );
        for one in family.get_metric() {
            put_bytes(&mut out, 4, &metric(one, kind));
        }
        out
    }

    fn metric(metric: &Metric, kind: MetricType) -> Vec<u8> {
        let mut out = Vec::new();
        for label in metric.get_label() {
            let mut pair = Vec::new();
            put_bytes(&mut pair, 1, label.name().as_bytes());
            put_bytes(&mut pair, 2, label.value().as_bytes());
            put_bytes(&mut out, 1, &pair);
        }
        let mut value = Vec::new();
        let field = match kind {
            MetricType::GAUGE => {
                put_double(&mut value, 1, metric.get_gauge().get_value());
                2
            }
            MetricType::COUNTER | MetricType::UNTYPED => {
                put_double(&mut value, 1, metric.get_counter().get_value());
                3
            }
            MetricType::SUMMARY => {
                let summary = metric.get_summary();
                put_uint(&mut value, 1, summary.sample_count());
                put_double(&mut value, 2, summary.sample_sum());
                for quantile in summary.get_quantile() {
                    let mut pair = Vec::new();
                    put_double(&mut pair, 1, quantile.quantile());
                    put_double(&mut pair, 2, quantile.value());
                    put_bytes(&mut value, 3, &pair);
                }
                4
            }
            MetricType::HISTOGRAM => {
                let histogram = metric.get_histogram();
                put_uint(&mut value, 1, histogram.get_sample_count());
                put_double(&mut value, 2, histogram.get_sample_sum());
                for bucket in histogram.get_bucket() {
                    let mut pair = Vec::new();
                    put_uint(&mut pair, 1, bucket.cumulative_count());
                    put_double(&mut pair, 2, bucket.upper_bound());
                    put_bytes(&mut value, 3, &pair);
                }
                7
            }
        };
        put_bytes(&mut out, field, &value);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

    #[test]
    fn formats_are_negotiated() {
        let protobuf =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let check =
            |accept: &str, expected: Format| assert_eq!(Format::negotiate(accept), expected, "{accept}");
        check("", Format::Text(Escaping::Underscores));
        check("*/*", Format::Text(Escaping::Underscores));
        check("application/json", Format::Text(Escaping::Underscores));
        check(protobuf, Format::Protobuf(Escaping::Underscores));
        check(&format!("text/plain;q=0.3, {protobuf};q=0.5"), Format::Protobuf(Escaping::Underscores));
        check(&format!("{protobuf};q=0.5,text/plain"), Format::Text(Escaping::Underscores));
        check("application/vnd.google.protobuf", Format::Text(Escaping::Underscores));
        check(
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8,text/plain;version=0.0.4;q=0.5",
            Format::Text(Escaping::AllowUtf8),
        );
        check("text/plain;escaping=wild", Format::Text(Escaping::Underscores));
    }

    #[test]
    fn families_are_protobuf_messages() {
        let registry = Registry::new();
        let counter = IntCounterVec::new(Opts::new("a", "b"), &["c"]).unwrap();
        counter.with_label_values(&["d"]).inc_by(3);
        registry.register(Box::new(counter)).unwrap();
        let options = HistogramOpts::new("h", "i").buckets(vec![1.0, 2.0]);
        let histogram = HistogramVec::new(options, &[]).unwrap();
        histogram.with_label_values::<&str>(&[]).observe(1.5);
        registry.register(Box::new(histogram)).unwrap();
        let three = 3.0_f64.to_le_bytes();
        let mut expected = vec![29, 0x0a, 1, b'a', 0x12, 1, b'b', 0x18, 0, 0x22, 19];
        expected.extend([0x0a, 6, 0x0a, 1, b'c', 0x12, 1, b'd', 0x1a, 9, 0x09]);
        expected.extend(three);
        expected.extend([49, 0x0a, 1, b'h', 0x12, 1, b'i', 0x18, 4, 0x22, 39, 0x3a, 37]);
        expected.extend([0x08, 1, 0x11]);
        expected.extend(1.5_f64.to_le_bytes());
        for (count, bound) in [(0, 1.0_f64), (1, 2.0)] {
            expected.extend([0x1a, 11, 0x08, count, 0x11]);
            expected.extend(bound.to_le_bytes());
        }
        let encoded = Format::Protobuf(Escaping::default()).encode(&registry.gather());
        assert_eq!(encoded, expected);
    }
}
