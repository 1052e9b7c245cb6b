//! Closes HTTP/2 connections at random, so that clients spread over the servers behind a load balancer: they would keep
//! their first connection for ever.

use super::filter::{Filter, Rest};
use crate::base::{connection::ConnectionHandle, request::Request, response::Response};
use http::Version;
use rand::Rng;

pub(super) struct ProbabilisticGoaway {
    /// The probability that a request closes its connection, 0 to 1.
    pub(super) chance: f64,
}

impl Filter for ProbabilisticGoaway {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        if request.version() == Version::HTTP_2
            && rand::rng().random::<f64>() < self.chance
            && let Some(connection) = request.extensions().get::<ConnectionHandle>()
        {
            connection.go_away();
        }
        next.call(request).await
    }
}
