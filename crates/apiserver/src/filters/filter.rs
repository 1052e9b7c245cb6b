//! One filter of the chain, and the rest of the chain behind it.

use crate::base::{handler::Handler, request::Request, response::Response};
use pintle_auth::BoxFuture;
use std::sync::Arc;

/// One filter: it answers a request or passes it on.
pub(super) trait Filter: Send + Sync + Sized + 'static {
    fn handle(&self, request: Request, next: &Rest) -> impl Future<Output = Response> + Send;

    /// This filter in front of the rest of the chain.
    fn before(self, next: Rest) -> Rest {
        Arc::new(Link { filter: self, next })
    }
}

/// The rest of the chain. Each filter's future is boxed: one combined future would be larger than all of them, and
/// would be moved several times.
pub(super) type Rest = Arc<dyn Next>;

pub(super) trait Next: Send + Sync {
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
        Handler::call(self, request)
    }
}

/// Adds an optional filter.
pub(super) fn before(filter: Option<impl Filter>, next: Rest) -> Rest {
    match filter {
        Some(filter) => filter.before(next),
        None => next,
    }
}
