//! The filter chain that every request passes, from the outermost filter in. [`chain`] is the list; the order is
//! Kubernetes' (`DefaultBuildHandlerChain`).

mod audit;
mod audit_id;
mod authentication;
mod authorization;
mod compression;
mod cors;
mod drain;
mod filter;
mod goaway;
mod hsts;
mod impersonation;
mod instrumentation;
mod max_in_flight;
mod max_long_running;
mod panic_recovery;
mod priority_and_fairness;
mod request_info;
mod storage_version;
mod timeout;
mod tracing;

use crate::{base::handler::Handler, drain::Drain, metrics::Metrics};
use filter::{Filter, before};
use http::HeaderValue;
use pintle_audit::Auditor;
use pintle_auth::{RequestHeaders, authn::Authenticator, authz::Authorizer};
use pintle_flowcontrol::FlowControl;
use pintle_registry::StorageVersionManager;
use regex::Regex;
use std::{sync::Arc, time::Duration};

pub(crate) use audit_id::Arrival;
pub(crate) use authorization::{attributes_of, authorize};
pub(crate) use priority_and_fairness::WatchTicket;

/// The configuration of the filter chain.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChainConfig {
    /// The metrics that filters record.
    pub metrics: Arc<Metrics>,
    /// Writes the audit events; `None` without an audit policy.
    pub auditor: Option<Arc<Auditor>>,
    /// Authenticates every request.
    pub authenticator: Arc<dyn Authenticator>,
    /// The headers in which a front proxy sends the user, besides the standard ones.
    pub request_headers: RequestHeaders,
    /// Headers for browsers, and the closing of connections.
    pub transport: TransportFilters,
    /// The authorizer that every request is checked with.
    pub authorizer: Arc<dyn Authorizer>,
    /// Whether the constrained modes of impersonation are tried, too.
    pub constrained_impersonation: bool,
    /// The timeout of a request that is not long-running.
    pub request_timeout: Duration,
    /// Decides which requests are served, queued or refused; with `None`, the two limits below apply.
    pub flow_control: Option<Arc<FlowControl>>,
    /// The resources that are not written before their storage version is published; `None` does not refuse writes.
    pub storage_versions: Option<Arc<StorageVersionManager>>,
    /// Whether requests begin spans.
    pub tracing: bool,
    /// The limit of reads in flight, without flow control.
    pub max_requests_in_flight: usize,
    /// The limit of writes in flight, without flow control.
    pub max_mutating_requests_in_flight: usize,
    /// The limit of long-running requests, such as watches; a user may have half of them.
    pub max_long_running: usize,
}

impl ChainConfig {
    /// Filters that neither audit nor trace, with the limits that kube-apiserver has by default, and one of 10,000
    /// long-running requests.
    pub fn new(
        metrics: Arc<Metrics>,
        authenticator: Arc<dyn Authenticator>,
        authorizer: Arc<dyn Authorizer>,
    ) -> ChainConfig {
        ChainConfig {
            metrics,
            auditor: None,
            authenticator,
            request_headers: RequestHeaders::default(),
            transport: TransportFilters::default(),
            authorizer,
            constrained_impersonation: true,
            request_timeout: Duration::from_secs(60),
            flow_control: None,
            storage_versions: None,
            tracing: false,
            max_requests_in_flight: 400,
            max_mutating_requests_in_flight: 200,
            max_long_running: 10_000,
        }
    }
}

/// Optional filters for browsers and connections.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TransportFilters {
    /// The value of `Strict-Transport-Security`.
    pub strict_transport_security: Option<HeaderValue>,
    /// Patterns of the origins whose pages may read responses.
    pub cors_allowed_origins: Vec<Regex>,
    /// The probability that a request closes its HTTP/2 connection, 0 to 1.
    pub goaway_chance: f64,
    /// Counts the requests in flight, and refuses requests at shutdown; `None` does neither.
    pub drain: Option<Arc<Drain>>,
}

/// Puts the filters in front of a handler. Read it bottom to top: the last is the outermost.
pub fn chain(config: ChainConfig, handler: Handler) -> Handler {
    let limits = (config.max_requests_in_flight, config.max_mutating_requests_in_flight);
    let auditor = config.auditor;
    let audit = auditor.clone().map(|auditor| audit::Audit { auditor, metrics: config.metrics.clone() });
    let TransportFilters { strict_transport_security, cors_allowed_origins, goaway_chance, drain } =
        config.transport;
    let hsts = strict_transport_security.map(|directives| hsts::Hsts { directives });
    let goaway = (goaway_chance > 0.0).then_some(goaway::ProbabilisticGoaway { chance: goaway_chance });
    let cors =
        (!cors_allowed_origins.is_empty()).then(|| cors::Cors { allowed_origins: cors_allowed_origins });
    let authentication = authentication::Authentication::new(
        config.authenticator,
        config.request_headers,
        auditor.clone(),
        config.metrics.clone(),
    );
    let max_in_flight =
        config.flow_control.is_none().then(|| max_in_flight::MaxInFlight::new(limits.0, limits.1));
    let priority_and_fairness =
        config.flow_control.map(|flow_control| priority_and_fairness::PriorityAndFairness {
            flow_control,
            request_timeout: config.request_timeout,
            metrics: config.metrics.clone(),
        });
    let authorization = authorization::Authorization {
        authorizer: config.authorizer.clone(),
        metrics: config.metrics.clone(),
    };
    let impersonation = impersonation::Impersonation::new(
        config.authorizer,
        config.metrics.clone(),
        config.constrained_impersonation,
    );
    let timeout =
        timeout::RequestTimeout { limit: config.request_timeout, metrics: config.metrics.clone(), auditor };
    let instrumentation = instrumentation::Instrumentation { metrics: config.metrics };
    let storage_version =
        config.storage_versions.map(|manager| storage_version::StorageVersionPrecondition { manager });
    let rest = before(storage_version, Arc::new(handler));
    let rest = max_long_running::MaxLongRunning::new(config.max_long_running).before(rest);
    let rest = authorization.before(rest);
    let rest = before(max_in_flight, rest);
    let rest = before(priority_and_fairness, rest);
    let rest = impersonation.before(rest);
    let rest = before(audit, rest);
    let rest = compression::Compression.before(rest);
    let rest = before(config.tracing.then_some(tracing::Tracing), rest);
    let rest = authentication.before(rest);
    let rest = before(cors, rest);
    let rest = timeout.before(rest);
    let rest = before(goaway, rest);
    let rest = before(hsts, rest);
    let rest = before(drain.map(|drain| drain::RefuseWhileDraining { drain }), rest);
    let rest = instrumentation.before(rest);
    let rest = request_info::ReadRequestInfo.before(rest);
    let rest = panic_recovery::PanicRecovery.before(rest);
    let all = audit_id::AuditId.before(rest);
    Handler::new(move |request| {
        let all = all.clone();
        async move { all.call(request).await }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{body::RequestBody, response::text};
    use http_body_util::BodyExt as _;
    use pintle_audit::{AuditMetrics, Backend, BatchConfig, Log, LogConfig, LogFormat, Mode, Policy};
    use pintle_auth::{
        BoxFuture,
        authn::{Authenticated, Authentication, Credentials},
        authz::AlwaysAllow,
    };
    use pintle_machinery::UserInfo;

    struct EveryoneIsJane;

    impl Authenticator for EveryoneIsJane {
        fn authenticate<'a>(&'a self, _: &'a Credentials<'a>) -> BoxFuture<'a, Authentication> {
            let user = Arc::new(UserInfo { name: "jane".to_owned(), ..UserInfo::default() });
            let jane = Authenticated { user, audiences: Vec::new(), remarks: None };
            Box::pin(std::future::ready(Ok(Some(jane))))
        }
    }

    #[tokio::test]
    async fn a_request_that_panics_is_a_500_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let log = Log::open(&LogConfig { path: path.clone(), format: LogFormat::Json, rotation: None });
        let audit_metrics = AuditMetrics::new().unwrap();
        let batch = BatchConfig {
            buffer_size: 1,
            max_batch_size: 1,
            max_batch_wait: Duration::from_secs(1),
            throttle: None,
        };
        let backend = Backend::log(log.unwrap(), Mode::Blocking, &batch, None, &audit_metrics);
        let policy = br#"{"kind":"Policy","apiVersion":"audit.k8s.io/v1","rules":[{"level":"Metadata"}]}"#;
        let (policy, _) = Policy::parse(policy).unwrap();
        let drain = Arc::new(Drain::default());
        let config = ChainConfig {
            metrics: Arc::new(Metrics::new().unwrap()),
            auditor: Some(Auditor::new(policy, vec![backend], audit_metrics)),
            authenticator: Arc::new(EveryoneIsJane),
            request_headers: RequestHeaders::default(),
            transport: TransportFilters { drain: Some(drain.clone()), ..TransportFilters::default() },
            authorizer: Arc::new(AlwaysAllow),
            constrained_impersonation: false,
            request_timeout: Duration::from_secs(60),
            flow_control: None,
            storage_versions: None,
            tracing: false,
            // A place that a panic kept would be missing below.
            max_requests_in_flight: 1,
            max_mutating_requests_in_flight: 1,
            max_long_running: 1,
        };
        let handler = Handler::new(|request: crate::base::request::Request| async move {
            assert!(!request.uri().path().ends_with("/bad"), "as asked");
            text(200, "fine")
        });
        let chain = chain(config, handler);
        let send = async |name: &str| {
            let request = http::Request::get(format!("/api/v1/nodes/{name}"));
            let response = chain.call(request.body(RequestBody::Bytes(Default::default())).unwrap()).await;
            let code = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (code, String::from_utf8(body.to_vec()).unwrap())
        };
        for _ in 0..2 {
            let panicked = "This request caused apiserver to panic. Look in the logs for details.\n";
            assert_eq!(send("bad").await, (500, panicked.to_owned()));
            assert_eq!(send("good").await, (200, "fine".to_owned()));
        }
        let events = std::fs::read_to_string(path).unwrap();
        let events: Vec<serde_json::Value> =
            events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ends: Vec<_> = events
            .iter()
            .filter(|event| event["stage"] != "RequestReceived")
            .map(|event| (event["stage"].as_str().unwrap(), event["responseStatus"]["message"].as_str()))
            .collect();
        let both = [("Panic", Some("APIServer panic'd: as asked")), ("ResponseComplete", None)];
        assert_eq!(ends, [both, both].concat());
    }
}
