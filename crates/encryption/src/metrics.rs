//! The metrics of encryption at rest, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use crate::failure::Failure;
use indexmap::IndexMap;
use jiff::Timestamp;
use parking_lot::Mutex;
use pintle_config_metrics::{ConfigMetrics, content_hash};
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts,
    core::Collector, exponential_buckets,
};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

/// The number of key ids with their own series. The least recently used series are removed.
const KEY_ID_SERIES: usize = 100;

/// All metrics of encryption at rest of one server.
pub struct EncryptionMetrics {
    server_hash: String,
    transformations: IntCounterVec,
    transformation_duration: HistogramVec,
    cache_misses: IntCounter,
    data_key_generation_duration: Histogram,
    data_key_generation_failures: IntCounter,
    kms_operations: HistogramVec,
    key_ids: Arc<KeyIdSeries>,
    key_id_status: StatusSeries,
    invalid_key_ids: IntCounterVec,
    data_key_cache_fill: Gauge,
    data_key_cache_size: GaugeVec,
    config: ConfigMetrics,
}

impl EncryptionMetrics {
    /// New metrics; `api_server_id` identifies the server among those of a cluster.
    ///
    /// # Errors
    /// Never, because the names are valid; the library checks them at run time.
    pub fn new(api_server_id: &str) -> Result<EncryptionMetrics, prometheus::Error> {
        let opts = |name: &str, help: &str| Opts::new(name, help);
        let histogram = |name: &str, help: &str, start: f64, count: usize| {
            Ok::<_, prometheus::Error>(
                HistogramOpts::new(name, help).buckets(exponential_buckets(start, 2.0, count)?),
            )
        };
        let key_id_labels = ["transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"];
        Ok(EncryptionMetrics {
            server_hash: content_hash(api_server_id.as_bytes()),
            transformations: IntCounterVec::new(
                opts(
                    "apiserver_storage_transformation_operations_total",
                    "Values encrypted and decrypted, by resource, direction, provider and outcome.",
                ),
                &["resource", "transformation_type", "transformer_prefix", "status"],
            )?,
            transformation_duration: HistogramVec::new(
                histogram(
                    "apiserver_storage_transformation_duration_seconds",
                    "How long it took to encrypt or decrypt a value.",
                    5e-6,
                    25,
                )?,
                &["transformation_type", "transformer_prefix"],
            )?,
            cache_misses: IntCounter::with_opts(opts(
                "apiserver_storage_envelope_transformation_cache_misses_total",
                "Values whose data key had to be decrypted by a key service.",
            ))?,
            data_key_generation_duration: Histogram::with_opts(histogram(
                "apiserver_storage_data_key_generation_duration_seconds",
                "How long it took to make a data key.",
                5e-6,
                14,
            )?)?,
            data_key_generation_failures: IntCounter::with_opts(opts(
                "apiserver_storage_data_key_generation_failures_total",
                "Data keys that could not be made.",
            ))?,
            kms_operations: HistogramVec::new(
                histogram(
                    "apiserver_envelope_encryption_kms_operations_latency_seconds",
                    "How long calls of key services took, by outcome.",
                    0.0001,
                    20,
                )?,
                &["provider_name", "method_name", "grpc_status_code"],
            )?,
            key_ids: Arc::new(KeyIdSeries {
                total: IntCounterVec::new(
                    opts(
                        "apiserver_envelope_encryption_key_id_hash_total",
                        "How often a key of a key service was used.",
                    ),
                    &key_id_labels,
                )?,
                last: GaugeVec::new(
                    opts(
                        "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
                        "When a key of a key service was last used.",
                    ),
                    &key_id_labels,
                )?,
                used: Mutex::default(),
            }),
            key_id_status: StatusSeries {
                last: GaugeVec::new(
                    opts(
                        "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
                        "When a key service last named a key as its current one.",
                    ),
                    &["provider_name", "key_id_hash", "apiserver_id_hash"],
                )?,
                used: Mutex::default(),
            },
            invalid_key_ids: IntCounterVec::new(
                opts(
                    "apiserver_envelope_encryption_invalid_key_id_from_status_total",
                    "How often a key service named no valid key as its current one.",
                ),
                &["provider_name", "error"],
            )?,
            data_key_cache_fill: Gauge::with_opts(opts(
                "apiserver_envelope_encryption_dek_cache_fill_percent",
                "How full the cache of data keys of KMS v1 is, of which there are none here.",
            ))?,
            data_key_cache_size: GaugeVec::new(
                opts(
                    "apiserver_envelope_encryption_dek_source_cache_size",
                    "How many decrypted data keys are kept, about as many as a restart asks the key service for.",
                ),
                &["provider_name"],
            )?,
            config: ConfigMetrics::new("encryption", "the encryption configuration", api_server_id, &[])?,
        })
    }

    /// All collectors, for registration.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let mut collectors: Vec<Box<dyn Collector>> = vec![
            Box::new(self.transformations.clone()),
            Box::new(self.transformation_duration.clone()),
            Box::new(self.cache_misses.clone()),
            Box::new(self.data_key_generation_duration.clone()),
            Box::new(self.data_key_generation_failures.clone()),
            Box::new(self.kms_operations.clone()),
            Box::new(self.key_ids.total.clone()),
            Box::new(self.key_ids.last.clone()),
            Box::new(self.key_id_status.last.clone()),
            Box::new(self.invalid_key_ids.clone()),
            Box::new(self.data_key_cache_fill.clone()),
            Box::new(self.data_key_cache_size.clone()),
        ];
        collectors.extend(self.config.collectors());
        collectors
    }

    pub(crate) fn cache_miss(&self) {
        self.cache_misses.inc();
    }

    pub(crate) fn data_key_generated(&self, start: Instant, is_ok: bool) {
        match is_ok {
            true => self.data_key_generation_duration.observe(start.elapsed().as_secs_f64()),
            false => self.data_key_generation_failures.inc(),
        }
    }

    pub(crate) fn kms_operation(&self, provider: &str, method: &str, code: &str, duration: Duration) {
        let observed = self.kms_operations.with_label_values(&[provider, method, code]);
        observed.observe(duration.as_secs_f64());
    }

    /// The counters of one key id, for its encryptions or decryptions.
    pub(crate) fn key_id(&self, direction: Direction, provider: &str, key_id: &str) -> KeyIdUse {
        let labels = [direction.label(), provider, &content_hash(key_id.as_bytes()), &self.server_hash];
        KeyIdUse { series: self.key_ids.clone(), labels: labels.map(str::to_owned), counted: OnceLock::new() }
    }

    pub(crate) fn key_id_from_status(&self, provider: &str, key_id: &str) {
        let labels = [provider, &content_hash(key_id.as_bytes()), &self.server_hash];
        let mut used = self.key_id_status.used.lock();
        if let Some(evicted) = touch(&mut used, labels.map(str::to_owned)) {
            let _ = self.key_id_status.last.remove_label_values(&evicted.each_ref().map(String::as_str));
        }
        self.key_id_status.last.with_label_values(&labels).set(now());
    }

    pub(crate) fn invalid_key_id_from_status(&self, provider: &str, error: &str) {
        self.invalid_key_ids.with_label_values(&[provider, error]).inc();
    }

    pub(crate) fn data_key_cache_size(&self, provider: &str, size: usize) {
        self.data_key_cache_size.with_label_values(&[provider]).set(size as f64);
    }

    /// The metrics of the configuration file.
    pub(crate) fn config(&self) -> &ConfigMetrics {
        &self.config
    }
}

/// The direction of a transformation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    FromStorage,
    ToStorage,
}

impl Direction {
    fn label(self) -> &'static str {
        match self {
            Direction::FromStorage => "from_storage",
            Direction::ToStorage => "to_storage",
        }
    }
}

/// The resource of a transformation, and its metrics.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) resource: &'a str,
    pub(crate) metrics: &'a EncryptionMetrics,
}

impl Scope<'_> {
    /// Counts an encryption.
    pub(crate) fn sealed(self, prefix: &str, start: Instant, failure: Option<&Failure>) {
        self.record(Direction::ToStorage, prefix, start, failure);
    }

    /// Counts a decryption.
    pub(crate) fn opened(self, prefix: &str, start: Instant, failure: Option<&Failure>) {
        self.record(Direction::FromStorage, prefix, start, failure);
    }

    fn record(self, direction: Direction, prefix: &str, start: Instant, failure: Option<&Failure>) {
        let direction = direction.label();
        let status = failure.map_or("OK", Failure::label);
        self.metrics.transformations.with_label_values(&[self.resource, direction, prefix, status]).inc();
        if failure.is_none() {
            let duration = self.metrics.transformation_duration.with_label_values(&[direction, prefix]);
            duration.observe(start.elapsed().as_secs_f64());
        }
    }
}

/// The counters of one key id. They are exported from the first use on.
pub(crate) struct KeyIdUse {
    series: Arc<KeyIdSeries>,
    labels: [String; 4],
    counted: OnceLock<(IntCounter, Gauge)>,
}

impl KeyIdUse {
    /// Counts an encryption or decryption with the key.
    pub(crate) fn record(&self) {
        let (total, last) = self.counted.get_or_init(|| self.series.start(&self.labels));
        total.inc();
        last.set(now());
    }
}

struct KeyIdSeries {
    total: IntCounterVec,
    last: GaugeVec,
    used: Mutex<IndexMap<[String; 4], ()>>,
}

impl KeyIdSeries {
    /// The counters with these labels, in the place of those that were not used for the longest time.
    fn start(&self, labels: &[String; 4]) -> (IntCounter, Gauge) {
        let mut used = self.used.lock();
        if let Some(evicted) = touch(&mut used, labels.clone()) {
            // Removal only fails for series that do not exist.
            let _ = self.total.remove_label_values(&evicted.each_ref().map(String::as_str));
            let _ = self.last.remove_label_values(&evicted.each_ref().map(String::as_str));
        }
        let labels = labels.each_ref().map(String::as_str);
        (self.total.with_label_values(&labels), self.last.with_label_values(&labels))
    }
}

struct StatusSeries {
    last: GaugeVec,
    used: Mutex<IndexMap<[String; 3], ()>>,
}

/// Makes these labels the most recently used ones, and returns the labels to remove for them.
fn touch<const N: usize>(used: &mut IndexMap<[String; N], ()>, labels: [String; N]) -> Option<[String; N]> {
    used.shift_remove(&labels);
    used.insert(labels, ());
    match used.len() > KEY_ID_SERIES {
        true => used.shift_remove_index(0).map(|(labels, ())| labels),
        false => None,
    }
}

fn now() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_used_least_recently_make_room() {
        let metrics = EncryptionMetrics::new("apiserver-a").unwrap();
        for number in 0..=KEY_ID_SERIES {
            metrics.key_id(Direction::ToStorage, "p", &format!("key-{number}")).record();
            metrics.key_id(Direction::ToStorage, "p", "key-0").record();
        }
        let series = metrics.key_ids.total.collect();
        let metrics: Vec<_> = series.iter().flat_map(|family| family.get_metric()).collect();
        assert_eq!(metrics.len(), KEY_ID_SERIES);
        let has = |key: &str| {
            metrics.iter().any(|metric| {
                metric.get_label().iter().any(|label| label.value() == content_hash(key.as_bytes()))
            })
        };
        assert!(has("key-0") && has("key-100") && !has("key-1"));
    }
}
