//! Metrics of configuration that is read again while the server runs
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>): how often and when it was read, and which one is in
//! force.

mod config_metrics;
mod content_hash;

pub use config_metrics::ConfigMetrics;
pub use content_hash::content_hash;
