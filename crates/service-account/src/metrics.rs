//! The metrics of tokens, under Kubernetes' names.

use prometheus::{IntCounter, core::Collector};

/// The metrics of service-account tokens.
pub struct TokenMetrics {
    pub(crate) legacy: IntCounter,
    pub(crate) stale: IntCounter,
    pub(crate) valid: IntCounter,
    pub(crate) legacy_manual: IntCounter,
    pub(crate) legacy_auto: IntCounter,
    pub(crate) legacy_invalid: IntCounter,
}

impl TokenMetrics {
    /// New metrics.
    ///
    /// # Errors
    /// When a name is malformed, which would be a defect.
    pub fn new() -> Result<TokenMetrics, prometheus::Error> {
        let counter = |name: &str, help: &str| IntCounter::new(format!("serviceaccount_{name}"), help);
        Ok(TokenMetrics {
            legacy: counter("legacy_tokens_total", "Uses of service account tokens without an audience.")?,
            stale: counter("stale_tokens_total", "Uses of tokens that should have been refreshed.")?,
            valid: counter("valid_tokens_total", "Uses of extended tokens in their first hour.")?,
            legacy_manual: counter(
                "legacy_manual_token_uses_total",
                "Uses of tokens from secrets that somebody made.",
            )?,
            legacy_auto: counter(
                "legacy_auto_token_uses_total",
                "Uses of tokens from secrets that were made with the account.",
            )?,
            legacy_invalid: counter(
                "invalid_legacy_auto_token_uses_total",
                "Uses of tokens from secrets that are marked as invalid.",
            )?,
        })
    }

    /// All collectors, for registration.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let all = [
            &self.legacy,
            &self.stale,
            &self.valid,
            &self.legacy_manual,
            &self.legacy_auto,
            &self.legacy_invalid,
        ];
        all.map(|counter| Box::new(counter.clone()) as Box<dyn Collector>).into()
    }
}
