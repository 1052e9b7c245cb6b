//! Spreads the clients of HTTP/2 among servers, by closing a connection now and then: behind a load balancer they would
//! stay for ever with the server that was there first.

use super::{Filter, Rest};
use crate::{request::Request, response::Response, serving::ConnectionHandle};
use http::Version;
use rand::Rng;

pub(super) struct ProbabilisticGoaway {
    /// In how many of all requests.
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
