//! The filter chain: what every request passes, from the outside in. [`chain`] is the list; the order is Kubernetes'
//! (`DefaultBuildHandlerChain`).

mod audit;
mod audit_id;
mod authentication;
mod authorization;
mod cors;
mod goaway;
mod hsts;
mod impersonation;
mod instrumentation;
mod max_in_flight;
mod panic_recovery;
mod priority_and_fairness;
mod request_info;
mod timeout;

use crate::{metrics::Metrics, request::Request, response::Response};
pub(crate) use authorization::authorize;
pub use authorization::forbidden;
use http::HeaderValue;
use pintle_audit::Auditor;
use pintle_auth::{BoxFuture, RequestHeaders, authn::Authenticator, authz::Authorizer};
use pintle_flowcontrol::FlowControl;
use regex::Regex;
use std::{future::Future, sync::Arc, time::Duration};

pub use audit::RemoteAddress;
pub use authentication::PeerCertificates;
pub(crate) use priority_and_fairness::WatchTicket;
pub(crate) use timeout::RequestDeadline;

/// A handler of requests that cannot fail: failures are responses. Clones are the same one.
#[derive(Clone)]
pub struct Handler(Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>);

impl Handler {
    /// A handler that is a function.
    pub fn new<F>(handle: impl Fn(Request) -> F + Send + Sync + 'static) -> Handler
    where
        F: Future<Output = Response> + Send + 'static,
    {
        Handler(Arc::new(move |request| Box::pin(handle(request))))
    }

    /// Answers a request.
    pub fn call(&self, request: Request) -> impl Future<Output = Response> + Send + 'static {
        (self.0)(request)
    }
}

/// What the chain is made of.
#[derive(Clone)]
pub struct ChainConfig {
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Who is told of requests, if anybody.
    pub auditor: Option<Arc<Auditor>>,
    /// Who asks.
    pub authenticator: Arc<dyn Authenticator>,
    /// The headers by which a front proxy tells users, beside the standard ones.
    pub request_headers: RequestHeaders,
    /// What browsers are told, and when connections are closed.
    pub transport: TransportFilters,
    /// What they may do.
    pub authorizer: Arc<dyn Authorizer>,
    /// How long a request may take that is not long-running.
    pub request_timeout: Duration,
    /// Who decides which requests are served, wait or are refused; `None` leaves it to the two limits below.
    pub flow_control: Option<Arc<FlowControl>>,
    /// How many reads may be in flight, without flow control.
    pub max_requests_in_flight: usize,
    /// How many writes may be in flight, without flow control.
    pub max_mutating_requests_in_flight: usize,
}

/// Filters that most servers do without.
#[derive(Debug, Clone, Default)]
pub struct TransportFilters {
    /// The value of `Strict-Transport-Security`.
    pub strict_transport_security: Option<HeaderValue>,
    /// What the origins match whose pages may read answers.
    pub cors_allowed_origins: Vec<Regex>,
    /// In how many of all requests an HTTP/2 connection is closed.
    pub goaway_chance: f64,
}

/// Puts the filters in front of a handler. Read it bottom to top: the last is the outermost.
pub fn chain(config: ChainConfig, handler: Handler) -> Handler {
    let limits = (config.max_requests_in_flight, config.max_mutating_requests_in_flight);
    let auditor = config.auditor;
    let audit = auditor.clone().map(|auditor| audit::Audit { auditor });
    let TransportFilters { strict_transport_security, cors_allowed_origins, goaway_chance } =
        config.transport;
    let hsts = strict_transport_security.map(|directives| hsts::Hsts { directives });
    let goaway = (goaway_chance > 0.0).then_some(goaway::ProbabilisticGoaway { chance: goaway_chance });
    let cors =
        (!cors_allowed_origins.is_empty()).then(|| cors::Cors { allowed_origins: cors_allowed_origins });
    let authentication =
        authentication::Authentication::new(config.authenticator, config.request_headers, auditor.clone());
    let max_in_flight =
        config.flow_control.is_none().then(|| max_in_flight::MaxInFlight::new(limits.0, limits.1));
    let priority_and_fairness = config.flow_control.map(|flow_control| {
        priority_and_fairness::PriorityAndFairness { flow_control, request_timeout: config.request_timeout }
    });
    let authorization = authorization::Authorization {
        authorizer: config.authorizer.clone(),
        metrics: config.metrics.clone(),
    };
    let impersonation = impersonation::Impersonation::new(config.authorizer, config.metrics.clone());
    let timeout = timeout::RequestTimeout { limit: config.request_timeout, auditor };
    let instrumentation = instrumentation::Instrumentation { metrics: config.metrics };
    let rest = authorization.before(Arc::new(handler));
    let rest = before(max_in_flight, rest);
    let rest = before(priority_and_fairness, rest);
    let rest = impersonation.before(rest);
    let rest = before(audit, rest);
    let rest = authentication.before(rest);
    let rest = before(cors, rest);
    let rest = timeout.before(rest);
    let rest = before(goaway, rest);
    let rest = before(hsts, rest);
    let rest = instrumentation.before(rest);
    let rest = request_info::ReadRequestInfo.before(rest);
    let rest = panic_recovery::PanicRecovery.before(rest);
    let all = audit_id::AuditId.before(rest);
    Handler::new(move |request| {
        let all = all.clone();
        async move { all.call(request).await }
    })
}

/// One filter: looks at a request and answers it, or hands it on.
trait Filter: Send + Sync + Sized + 'static {
    fn handle(&self, request: Request, next: &Rest) -> impl Future<Output = Response> + Send;

    /// This filter in front of the rest of the chain.
    fn before(self, next: Rest) -> Rest {
        Arc::new(Link { filter: self, next })
    }
}

/// The rest of the chain. Each filter's future is a box of its own: one future of all would be larger than all of them,
/// and be moved more than once.
type Rest = Arc<dyn Next>;

trait Next: Send + Sync {
    fn call(&self, request: Request) -> BoxFuture<'_, Response>;
}

struct Link<F> {
    filter: F,
    next: Rest,
}

impl<F: Filter> Next for Link<F> {
    fn call(&self, request: Request) -> BoxFuture<'_, Response> {
        Box::pin(self.filter.handle(request, &self.next))
    }
}

impl Next for Handler {
    fn call(&self, request: Request) -> BoxFuture<'_, Response> {
        (self.0)(request)
    }
}

/// A filter that most servers do without.
fn before(filter: Option<impl Filter>, next: Rest) -> Rest {
    match filter {
        Some(filter) => filter.before(next),
        None => next,
    }
}

pub(crate) use authorization::user_of as authorization_user;
pub(crate) use request_info::{info_of as request_info_of, query_of as request_query_of};
