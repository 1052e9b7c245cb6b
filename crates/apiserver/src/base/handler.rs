//! Request handlers.

use crate::base::{request::Request, response::Response};
use pintle_auth::BoxFuture;
use std::sync::Arc;

/// A request handler. It cannot fail: failures are responses. Clones share one handler.
#[derive(Clone)]
pub struct Handler(Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>);

impl Handler {
    /// A handler that calls a function.
    pub fn new<F>(handle: impl Fn(Request) -> F + Send + Sync + 'static) -> Handler
    where
        F: Future<Output = Response> + Send + 'static,
    {
        Handler(Arc::new(move |request| Box::pin(handle(request))))
    }

    /// Answers a request.
    pub fn call(&self, request: Request) -> BoxFuture<'static, Response> {
        (self.0)(request)
    }
}
