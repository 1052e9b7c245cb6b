//! Replaces the request's user with an impersonated one, if the authorizer allows it
//! (<https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/>).
//!
//! There are several impersonation [`modes`]. The mode that succeeded last for a user is tried first. When no mode is
//! allowed, the refusal of the first that was tried is returned. Without the feature gate `ConstrainedImpersonation` there is
//! the legacy mode alone, and nothing is counted.
//!
//! The headers are removed in every case: no later filter sees them.

mod headers;
mod mode_cache;
mod modes;

use super::{
    audit,
    authorization::{attributes_of, selectors},
    filter::{Filter, Rest},
};
use crate::{
    base::{
        request::{Request, info_of, query_of, user_of},
        response::{Response, negotiated_failure},
    },
    metrics::Metrics,
};
use http::{HeaderValue, header};
use mode_cache::ModeCache;
use modes::{Attempt, Mode};
use pintle_audit::Layer;
use pintle_auth::authz::{Attributes, Authorizer};
use pintle_machinery::{Status, UserInfo};
use std::{sync::Arc, time::Instant};

pub(super) struct Impersonation {
    authorizer: Arc<dyn Authorizer>,
    metrics: Arc<Metrics>,
    /// Whether the constrained modes are tried, too.
    is_constrained: bool,
    last_modes: ModeCache,
}

impl Impersonation {
    pub(super) fn new(
        authorizer: Arc<dyn Authorizer>,
        metrics: Arc<Metrics>,
        is_constrained: bool,
    ) -> Impersonation {
        Impersonation { authorizer, metrics, is_constrained, last_modes: ModeCache::default() }
    }

    /// The impersonated user, and the mode that allowed it.
    async fn user(&self, request: &Request, wanted: &UserInfo) -> Result<(UserInfo, Mode), Status> {
        let (info, query, requestor) = (info_of(request), query_of(request), user_of(request));
        let selectors = selectors(&info, &query);
        let asked =
            Attributes { selectors: selectors.as_ref(), ..attributes_of(&requestor, &info.verb, &info) };
        let attempt = Attempt {
            authorizer: &*self.authorizer,
            metrics: &self.metrics,
            is_constrained: self.is_constrained,
            wanted,
            asked,
        };
        if !self.is_constrained {
            return attempt.legacy().await.map(|user| (user, Mode::Legacy));
        }
        let last = self.last_modes.get(&requestor.name);
        let others = Mode::ALL.into_iter().filter(|mode| Some(*mode) != last);
        let mut refusal = None;
        for mode in last.into_iter().chain(others) {
            match attempt.make(mode).await {
                Some(Ok(user)) => {
                    self.last_modes.set(&requestor.name, mode);
                    return Ok((user, mode));
                }
                Some(Err(status)) => {
                    refusal.get_or_insert(status);
                }
                None => {}
            }
        }
        // The legacy mode applies to every request.
        Err(refusal.unwrap_or_else(|| Status::internal_error("all impersonation modes failed")))
    }
}

impl Filter for Impersonation {
    async fn handle(&self, mut request: Request, next: &Rest) -> Response {
        let start = Instant::now();
        let wanted = match headers::take(request.headers_mut(), self.is_constrained) {
            Ok(None) => {
                self.metrics.filters().impersonation.passed(start.elapsed());
                return next.call(request).await;
            }
            Ok(Some(wanted)) => wanted,
            Err(status) => return refuse(&request, &status),
        };
        let outcome = Box::pin(self.user(&request, &wanted)).await;
        let mode = outcome.as_ref().map_or("", |(_, mode)| mode.as_str());
        if self.is_constrained {
            let took = start.elapsed();
            self.metrics.impersonation().attempted(mode, outcome.is_ok(), took);
            audit::note_latency(&request, Layer::Impersonation, took);
        }
        match outcome {
            Ok((user, mode)) => {
                let user = Arc::new(user);
                audit::note_impersonation(&request, &user, mode.constraint());
                request.extensions_mut().insert(user);
                self.metrics.filters().impersonation.passed(start.elapsed());
                next.call(request).await
            }
            Err(status) => {
                tracing::debug!(message = status.message, "impersonation refused");
                refuse(&request, &status)
            }
        }
    }
}

fn refuse(request: &Request, status: &Status) -> Response {
    let mut response = negotiated_failure(status, request.headers(), query_of(request).first("pretty"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests;
