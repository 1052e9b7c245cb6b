//! Metrics of authenticated requests, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>).

use crate::token_cache::TokenCacheMetrics;
use pintle_auth::authn::Authentication;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, core::Collector,
    exponential_buckets,
};
use std::time::Duration;

/// The metrics of request authentication.
#[derive(Clone)]
pub struct AuthenticationMetrics {
    users: IntCounterVec,
    attempts: IntCounterVec,
    durations: HistogramVec,
    lifetimes: Histogram,
    token_cache: TokenCacheMetrics,
    /// The series that nearly all requests count in, looked up once.
    successes: (IntCounter, Histogram),
    other_users: IntCounter,
}

/// The buckets of remaining certificate lifetimes, in seconds: from none to a year.
const LIFETIMES: [f64; 14] = [
    0.0,
    1800.0,
    3600.0,
    7200.0,
    21600.0,
    43200.0,
    86400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];

impl AuthenticationMetrics {
    /// New metrics, all zero.
    ///
    /// # Errors
    /// When a metric's name is invalid, which the names here are not.
    pub fn new() -> Result<AuthenticationMetrics, prometheus::Error> {
        let counter = |name, help, label| IntCounterVec::new(Opts::new(name, help), &[label]);
        let durations = HistogramOpts::new(
            "authentication_duration_seconds",
            "How long finding out who asks took, by result.",
        );
        let lifetimes = HistogramOpts::new(
            "apiserver_client_certificate_expiration_seconds",
            "How long the certificates of clients are still good.",
        );
        let users = counter(
            "authenticated_user_requests",
            "Authenticated requests, by kind of user name.",
            "username",
        )?;
        let attempts = counter("authentication_attempts", "Attempts to authenticate, by result.", "result")?;
        let durations =
            HistogramVec::new(durations.buckets(exponential_buckets(0.001, 2.0, 15)?), &["result"])?;
        Ok(AuthenticationMetrics {
            successes: (attempts.with_label_values(&["success"]), durations.with_label_values(&["success"])),
            other_users: users.with_label_values(&["other"]),
            users,
            attempts,
            durations,
            lifetimes: Histogram::with_opts(lifetimes.buckets(LIFETIMES.to_vec()))?,
            token_cache: TokenCacheMetrics::new()?,
        })
    }

    /// The collectors to register.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let mut collectors: Vec<Box<dyn Collector>> = vec![
            Box::new(self.users.clone()),
            Box::new(self.attempts.clone()),
            Box::new(self.durations.clone()),
            Box::new(self.lifetimes.clone()),
        ];
        collectors.extend(self.token_cache.collectors());
        collectors
    }

    /// The remaining lifetimes of client certificates, in seconds.
    pub fn lifetimes(&self) -> Histogram {
        self.lifetimes.clone()
    }

    /// The metrics of the token cache.
    pub fn token_cache(&self) -> TokenCacheMetrics {
        self.token_cache.clone()
    }

    pub(crate) fn observe(&self, found: &Authentication, took: Duration) {
        let (result, attempts) = match found {
            Err(_) => ("error", None),
            Ok(None) => ("failure", None),
            Ok(Some(authenticated)) => {
                match compressed(&authenticated.user.name) {
                    "other" => self.other_users.inc(),
                    name => self.users.with_label_values(&[name]).inc(),
                }
                ("success", Some(&self.successes))
            }
        };
        match attempts {
            Some((attempts, durations)) => {
                attempts.inc();
                durations.observe(took.as_secs_f64());
            }
            None => {
                self.attempts.with_label_values(&[result]).inc();
                self.durations.with_label_values(&[result]).observe(took.as_secs_f64());
            }
        }
    }
}

/// The label for a user name. A few classes stand for all names: their number is unbounded, and they are private.
fn compressed(name: &str) -> &str {
    match name {
        "admin" | "client" | "kube_proxy" | "kubelet" | "system:serviceaccount:kube-system:default" => name,
        name if name.contains('@') => "email_id",
        _ => "other",
    }
}
