//! The time that the layers of the server took for one request, which the last event of a slow request has.

use jiff::{SignedDuration, Timestamp};
use pintle_go_forms::format_duration;
use std::{collections::BTreeMap, time::Duration};

/// The latency above which events have the times.
const SLOW: SignedDuration = SignedDuration::from_millis(500);

/// A layer whose time is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The authentication of the request.
    Authentication,
    /// The authorization of the request.
    Authorization,
    /// The choice and the authorization of an impersonated user.
    Impersonation,
    /// The wait in a queue of priority and fairness.
    QueueWait,
    /// The calls of mutating webhooks, one after the other.
    MutatingWebhook,
    /// The calls of validating webhooks, side by side.
    ValidatingWebhook,
}

impl Layer {
    fn annotation(self) -> &'static str {
        match self {
            Layer::Authentication => "apiserver.latency.k8s.io/authentication",
            Layer::Authorization => "apiserver.latency.k8s.io/authorization",
            Layer::Impersonation => "apiserver.latency.k8s.io/impersonation",
            Layer::QueueWait => "apiserver.latency.k8s.io/apf-queue-wait",
            Layer::MutatingWebhook => "apiserver.latency.k8s.io/mutating-webhook",
            Layer::ValidatingWebhook => "apiserver.latency.k8s.io/validating-webhook",
        }
    }

    /// Whether several times of the layer are added; otherwise the longest one counts, because they overlap.
    fn is_sum(self) -> bool {
        match self {
            Layer::Authentication | Layer::Impersonation | Layer::MutatingWebhook => true,
            Layer::Authorization | Layer::QueueWait | Layer::ValidatingWebhook => false,
        }
    }
}

/// The times of the layers.
#[derive(Debug, Default)]
pub(crate) struct Latencies(BTreeMap<Layer, Duration>);

impl Latencies {
    pub(crate) fn add(&mut self, layer: Layer, took: Duration) {
        if took.is_zero() {
            return;
        }
        let noted = self.0.entry(layer).or_default();
        *noted = if layer.is_sum() { noted.saturating_add(took) } else { took.max(*noted) };
    }

    /// The annotations of the last event; none for a request that was fast enough.
    pub(crate) fn annotations(&self, received: Timestamp, now: Timestamp) -> Vec<(&'static str, String)> {
        let total = now.duration_since(received);
        if total <= SLOW || self.0.is_empty() {
            return Vec::new();
        }
        let nanos = |duration: i128| format_duration(i64::try_from(duration).unwrap_or(i64::MAX));
        let layers = self.0.iter();
        let layers = layers.map(|(layer, took)| {
            (
                layer.annotation(),
                nanos(SignedDuration::try_from(*took).unwrap_or(SignedDuration::MAX).as_nanos()),
            )
        });
        layers.chain([("apiserver.latency.k8s.io/total", nanos(total.as_nanos()))]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_requests_have_the_times_of_their_layers() {
        let mut latencies = Latencies::default();
        let at = |millis: i64| Timestamp::from_millisecond(1_000_000 + millis).unwrap();
        assert_eq!(latencies.annotations(at(0), at(9000)), [], "nothing was measured");
        for (layer, millis) in [
            (Layer::MutatingWebhook, 100),
            (Layer::MutatingWebhook, 200),
            (Layer::ValidatingWebhook, 100),
            (Layer::ValidatingWebhook, 90),
            (Layer::QueueWait, 0),
        ] {
            latencies.add(layer, Duration::from_millis(millis));
        }
        assert_eq!(latencies.annotations(at(0), at(500)), []);
        let expected = [
            ("apiserver.latency.k8s.io/mutating-webhook", "300ms"),
            ("apiserver.latency.k8s.io/validating-webhook", "100ms"),
            ("apiserver.latency.k8s.io/total", "501ms"),
        ];
        assert_eq!(
            latencies.annotations(at(0), at(501)),
            expected.map(|(key, value)| (key, value.to_owned()))
        );
    }
}
