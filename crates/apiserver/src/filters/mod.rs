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
use pintle_auth::{RequestHeaders, authn::Authenticator, authz::Authorizer};
use pintle_flowcontrol::FlowControl;
use regex::Regex;
use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc, task::Poll, time::Duration};
use tower::{
    Layer, Service, ServiceBuilder,
    util::{BoxCloneSyncService, option_layer},
};

pub use audit::RemoteAddress;
pub use authentication::PeerCertificates;
pub(crate) use priority_and_fairness::WatchTicket;

/// A handler of requests that cannot fail: failures are responses.
pub type Handler = BoxCloneSyncService<Request, Response, Infallible>;

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

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

/// Puts the filters in front of a handler. Read it top to bottom: the first is the outermost.
pub fn chain(config: ChainConfig, handler: Handler) -> Handler {
    let limits = (config.max_requests_in_flight, config.max_mutating_requests_in_flight);
    let auditor = config.auditor;
    let audit = auditor.clone().map(|auditor| FilterLayer::new(audit::Audit { auditor }));
    let TransportFilters { strict_transport_security, cors_allowed_origins, goaway_chance } =
        config.transport;
    let hsts = strict_transport_security.map(|directives| FilterLayer::new(hsts::Hsts { directives }));
    let goaway = (goaway_chance > 0.0)
        .then(|| FilterLayer::new(goaway::ProbabilisticGoaway { chance: goaway_chance }));
    let cors = (!cors_allowed_origins.is_empty())
        .then(|| FilterLayer::new(cors::Cors { allowed_origins: cors_allowed_origins }));
    let authentication =
        authentication::Authentication::new(config.authenticator, config.request_headers, auditor.clone());
    let max_in_flight =
        config.flow_control.is_none().then(|| max_in_flight::MaxInFlight::new(limits.0, limits.1));
    let priority_and_fairness = config.flow_control.map(|flow_control| {
        priority_and_fairness::PriorityAndFairness { flow_control, request_timeout: config.request_timeout }
    });
    let service = ServiceBuilder::new()
        .layer(FilterLayer::new(audit_id::AuditId))
        .layer(FilterLayer::new(panic_recovery::PanicRecovery))
        .layer(FilterLayer::new(request_info::ReadRequestInfo))
        .layer(FilterLayer::new(instrumentation::Instrumentation { metrics: config.metrics.clone() }))
        .layer(option_layer(hsts))
        .layer(option_layer(goaway))
        .layer(FilterLayer::new(timeout::RequestTimeout { limit: config.request_timeout, auditor }))
        .layer(option_layer(cors))
        .layer(FilterLayer::new(authentication))
        .layer(option_layer(audit))
        .layer(FilterLayer::new(impersonation::Impersonation::new(
            config.authorizer.clone(),
            config.metrics.clone(),
        )))
        .layer(option_layer(priority_and_fairness.map(FilterLayer::new)))
        .layer(option_layer(max_in_flight.map(FilterLayer::new)))
        .layer(FilterLayer::new(authorization::Authorization {
            authorizer: config.authorizer,
            metrics: config.metrics,
        }))
        .service(handler);
    BoxCloneSyncService::new(service)
}

/// One filter: looks at a request and answers it, or hands it on.
trait Filter: Send + Sync + 'static {
    fn handle(self: Arc<Self>, request: Request, next: impl Next) -> impl Future<Output = Response> + Send;
}

/// The rest of the chain.
trait Next: Send + 'static {
    fn call(self, request: Request) -> impl Future<Output = Response> + Send;
}

struct Rest<S>(S);

impl<S> Next for Rest<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    async fn call(mut self, request: Request) -> Response {
        let Ok(response) = self.0.call(request).await;
        response
    }
}

struct FilterLayer<F>(Arc<F>);

impl<F> FilterLayer<F> {
    fn new(filter: F) -> FilterLayer<F> {
        FilterLayer(Arc::new(filter))
    }
}

impl<F, S> Layer<S> for FilterLayer<F> {
    type Service = FilterService<F, S>;

    fn layer(&self, inner: S) -> FilterService<F, S> {
        FilterService { filter: self.0.clone(), inner }
    }
}

struct FilterService<F, S> {
    filter: Arc<F>,
    inner: S,
}

impl<F, S: Clone> Clone for FilterService<F, S> {
    fn clone(&self) -> Self {
        FilterService { filter: self.filter.clone(), inner: self.inner.clone() }
    }
}

impl<F, S> Service<Request> for FilterService<F, S>
where
    F: Filter,
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
        // Every service of the chain is ready always; what limits requests answers them with 429.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        let filter = self.filter.clone();
        let next = Rest(self.inner.clone());
        Box::pin(async move { Ok(filter.handle(request, next).await) })
    }
}

pub(crate) use authorization::user_of as authorization_user;
pub(crate) use request_info::{info_of as request_info_of, query_of as request_query_of};
